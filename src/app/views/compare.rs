//! All methods in one table: a row a figure, a column a method.

use super::layout::cell;
use super::{caption, contender, format, method_name, missing, title};
use crate::app::scene::{Command, Scene};
use crate::gpu::run::Clock;
use crate::memory;
use crate::outcome::{Figures, Outcome};
use crate::plan::Role;
use crate::settings::Method;
use crate::text::{Text, fill};
use egui::{Align, Grid, RichText, ScrollArea, Ui};
use std::rc::Rc;

const METHODS: [Method; 3] = [Method::Full, Method::Lsh, Method::Linformer];

/// In which direction a figure is better.
#[derive(Clone, Copy, PartialEq)]
enum Better {
    /// Neither: fewer pairs are less work and less seen.
    Neither,
    Less,
    More,
}

/// Who competes in a row.
#[derive(Clone, Copy, PartialEq)]
enum Field {
    /// Quality: full attention is exact and takes no part.
    Approximations,
    /// Cost.
    All,
}

struct Row {
    name: Text,
    hover: Text,
    better: Better,
    field: Field,
    /// The figure, `None` where a method has none.
    value: fn(&Outcome) -> Option<f64>,
    written: fn(f64) -> String,
}

const fn row(name: Text, hover: Text, value: fn(&Outcome) -> Option<f64>, written: fn(f64) -> String) -> Row {
    Row { name, hover, better: Better::Neither, field: Field::All, value, written }
}

impl Row {
    const fn best(self, better: Better, field: Field) -> Self {
        Self { better, field, ..self }
    }
}

fn whole(value: f64) -> String {
    format::count(value as u64)
}

fn bytes(value: f64) -> String {
    format::bytes(value as u64)
}

fn figure(outcome: &Outcome, read: fn(&Figures) -> Option<f64>) -> Option<f64> {
    read(&outcome.figures)
}

const ROWS: &[Row] = &[
    row(Text::ComparePairs, Text::ComparePairsHover, |o| Some(o.figures.pairs as f64), whole),
    row(Text::CompareVisits, Text::CompareVisitsHover, |o| Some(o.figures.visits as f64), whole),
    row(Text::CompareShare, Text::CompareShareHover, |o| Some(o.figures.share), format::percent),
    row(Text::CompareError, Text::CompareErrorHover, |o| Some(o.figures.error), format::number),
    row(Text::CompareErrorPlain, Text::CompareErrorPlainHover, |o| Some(o.figures.error_plain), format::number)
        .best(Better::Less, Field::Approximations),
    row(Text::CompareRecall, Text::CompareRecallHover, |o| figure(o, |f| f.recall), format::percent)
        .best(Better::More, Field::Approximations),
    row(Text::CompareMass, Text::CompareMassHover, |o| figure(o, |f| f.mass), format::percent),
    row(Text::CompareLost, Text::CompareLostHover, |o| figure(o, |f| f.lost_pairs.map(|lost| lost as f64)), whole),
    row(Text::CompareAccuracy, Text::CompareAccuracyHover, |o| figure(o, |f| f.accuracy), format::percent),
    row(Text::CompareTime, Text::CompareTimeHover, |o| Some(o.ms), format::time).best(Better::Less, Field::All),
    row(Text::CompareMemory, Text::CompareMemoryHover, |o| Some(own_bytes(o) as f64), bytes)
        .best(Better::Less, Field::All),
    row(Text::ComparePeak, Text::ComparePeakHover, |o| Some(o.peak_bytes as f64), bytes).best(Better::Less, Field::All),
];

/// Bytes of tensors and the method's own buffers.
fn own_bytes(outcome: &Outcome) -> u64 {
    outcome.buffers.iter().filter(|buffer| buffer.role != Role::Instrument).map(|buffer| buffer.bytes).sum()
}

pub fn show(ui: &mut Ui, scene: &Scene<'_>, commands: &mut Vec<Command>) {
    let outcomes = [scene.full, scene.lsh, scene.linformer];
    let known = outcomes.map(Result::ok);
    title(ui, Text::CompareTitle);
    table(ui, known);
    ui.add_space(6.0);
    for (method, outcome) in METHODS.into_iter().zip(outcomes) {
        if let Err(why) = outcome {
            missing(ui, method, why, commands);
        }
    }
    sentences(ui, scene, known);
    caption(ui, Text::CompareCaption.get());
}

type Known<'a> = [Option<&'a Rc<Outcome>>; 3];

fn table(ui: &mut Ui, outcomes: Known<'_>) {
    // The label and three numbers fit on a telephone; on a wide page columns stay near each other.
    let width = ui.available_width().min(760.0);
    let spacing = 8.0;
    let label = (width * 0.2).clamp(72.0, 140.0);
    let column = (width - label - 4.0 * spacing) / 3.0;
    ScrollArea::horizontal().id_salt("compare table").auto_shrink([true, true]).show(ui, |ui| {
        Grid::new("compare").striped(true).min_col_width(0.0).spacing([spacing, 5.0]).show(ui, |ui| {
            cell(ui, label, Align::Min, RichText::new(""));
            for method in METHODS {
                let head = RichText::new(method_name(method)).strong().color(contender::colour(method));
                cell(ui, column, Align::Max, head);
            }
            ui.end_row();
            words(ui, (Text::CompareWay, Text::CompareWayHover), [label, column], outcomes, way);
            for row in ROWS.iter().filter(|row| outcomes.into_iter().flatten().any(|o| (row.value)(o).is_some())) {
                figures(ui, row, [label, column], outcomes);
                if row.name == Text::CompareTime {
                    words(ui, (Text::CompareClock, Text::CompareClockHover), [label, column], outcomes, clock);
                }
            }
        });
    });
}

fn name_cell(ui: &mut Ui, width: f32, name: Text, hover: Text) {
    cell(ui, width, Align::Min, RichText::new(name.get())).on_hover_text(hover.get());
}

/// A row of words.
fn words(
    ui: &mut Ui,
    (name, hover): (Text, Text),
    [label, column]: [f32; 2],
    outcomes: Known<'_>,
    say: fn(&Outcome) -> String,
) {
    name_cell(ui, label, name, hover);
    for outcome in outcomes {
        let text = outcome.map_or_else(|| Text::CompareNothing.get().to_owned(), |outcome| say(outcome));
        cell(ui, column, Align::Max, RichText::new(text).weak().size(11.0));
    }
    ui.end_row();
}

fn figures(ui: &mut Ui, row: &Row, [label, column]: [f32; 2], outcomes: Known<'_>) {
    name_cell(ui, label, row.name, row.hover);
    let values = outcomes.map(|outcome| outcome.and_then(|outcome| (row.value)(outcome)));
    let best = best(row, values);
    for (at, value) in values.into_iter().enumerate() {
        let text = RichText::new(value.map_or_else(|| Text::CompareNothing.get().to_owned(), row.written)).monospace();
        cell(ui, column, Align::Max, if best == Some(at) { text.strong().underline() } else { text })
            .on_hover_text(row.hover.get());
    }
    ui.end_row();
}

/// The column of the best value, when there are two or more to choose from and they differ.
fn best(row: &Row, values: [Option<f64>; 3]) -> Option<usize> {
    let first = usize::from(row.field == Field::Approximations);
    let mut field: Vec<(usize, f64)> =
        values.into_iter().enumerate().skip(first).filter_map(|(at, value)| Some((at, value?))).collect();
    match row.better {
        Better::Neither => return None,
        Better::Less => field.sort_by(|a, b| a.1.total_cmp(&b.1)),
        Better::More => field.sort_by(|a, b| b.1.total_cmp(&a.1)),
    }
    match field[..] {
        [best, second, ..] if best.1 != second.1 => Some(best.0),
        _ => None,
    }
}

fn way(outcome: &Outcome) -> String {
    let settings = &outcome.settings;
    match settings.method {
        Method::Lsh if outcome.is_short() => Text::ShortFull.get().to_owned(),
        Method::Lsh => {
            let [rounds, buckets, chunk] =
                [settings.rounds, settings.bucket_count(), settings.chunk_len()].map(|x| format::count(u64::from(x)));
            fill(Text::CompareWayLsh, &[&rounds, &buckets, &chunk])
        }
        Method::Linformer => fill(Text::CompareWayLinformer, &[&format::count(u64::from(settings.projected_len()))]),
        full => contender::name(full).to_owned(),
    }
}

fn clock(outcome: &Outcome) -> String {
    match outcome.clock {
        Clock::Timestamps => Text::CompareClockTimestamps,
        Clock::Wall => Text::CompareClockWall,
    }
    .get()
    .to_owned()
}

/// What the numbers come from, and where the clever method is the worse one.
fn sentences(ui: &mut Ui, scene: &Scene<'_>, outcomes: Known<'_>) {
    let mut say = |text: String| {
        ui.label(text);
    };
    if let Some(outcome) = outcomes.into_iter().flatten().next() {
        say(match outcome.figures.sampled {
            Some(count) => fill(Text::CompareSampled, &[&count.to_string()]),
            None => Text::CompareAll.get().to_owned(),
        });
    }
    if let Some(full) = outcomes[0] {
        let n = format::count(u64::from(full.dims.n_q));
        for (method, outcome) in METHODS.into_iter().zip(outcomes).skip(1) {
            let Some(outcome) = outcome else { continue };
            say(speed(method_name(method), outcome, full, &n));
            let ratio = own_bytes(outcome) as f64 / own_bytes(full) as f64;
            let (name, way) = (method_name(method), contender::name(full.settings.method));
            say(if ratio > 1.0 {
                fill(Text::CompareLarger, &[name, &format::number(ratio), way, &n])
            } else {
                fill(Text::CompareSmaller, &[name, &format::percent(ratio), way, &n])
            });
        }
    }
    let dims = &scene.input.problem.dims;
    let matrix = memory::planned_bytes(scene.settings, dims, Method::FullMaterialized, dims.n_q);
    say(fill(Text::CompareMatrix, &[&format::bytes(matrix)]));
    if scene.software {
        say(fill(Text::CompareSoftware, &[scene.adapter]));
    }
}

fn speed(name: &str, outcome: &Outcome, full: &Outcome, n: &str) -> String {
    if outcome.clock != full.clock {
        return Text::CompareClocksDiffer.get().to_owned();
    }
    if outcome.ms > full.ms {
        fill(Text::CompareSlower, &[name, &format::number(outcome.ms / full.ms), n])
    } else {
        fill(Text::CompareFaster, &[name, &format::number(full.ms / outcome.ms), n])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_marked_only_where_better_has_a_meaning() {
        let find = |name| ROWS.iter().find(|row| row.name == name).expect("a row");
        let time = find(Text::CompareTime);
        assert_eq!(best(time, [Some(3.0), Some(1.0), Some(2.0)]), Some(1));
        assert_eq!(best(time, [Some(3.0), None, None]), None);
        assert_eq!(best(time, [Some(1.0), Some(1.0), Some(2.0)]), None);
        assert_eq!(best(find(Text::CompareRecall), [Some(1.0), Some(0.5), Some(0.75)]), Some(2));
        assert_eq!(best(find(Text::CompareErrorPlain), [Some(0.0), Some(0.5), Some(0.75)]), Some(1));
        assert_eq!(best(find(Text::ComparePairs), [Some(3.0), Some(1.0), Some(2.0)]), None);
    }
}
