//! Three experiments on hashing: collisions by angle, pairs found by rounds, buckets larger than a
//! chunk.

use crate::app::scene::{Answer, Command, Question, Scene};
use crate::app::views::chart::{Axis, COLOURS, Chart, Dot, Trace};
use crate::app::views::format;
use crate::app::views::layout::column;
use crate::lab::theory::{
    BUCKET_COUNTS, Experiment, HASH_ROUNDS, MOST_ROUNDS, POINTS, Point, RECALL_BUCKETS, RECALL_CHUNK, SETS, Series,
    WIDTH,
};
use crate::text::{Text, fill};
use egui::{CollapsingHeader, Grid, RichText, ScrollArea, Ui};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Width from which the three stand side by side.
const WIDE: f32 = 680.0;
const HEIGHT: f32 = 230.0;
const COLLISION_BUCKETS: [u32; 3] = [2, 16, 64];
/// In hundredths.
const COSINES: [u32; 4] = [95, 90, 80, 60];

#[derive(Default)]
pub struct State {
    /// Added to the first seed by every new draw.
    draws: u32,
}

/// What is known about one series.
struct Known {
    name: String,
    answer: Option<Result<Rc<Series>, String>>,
}

impl Known {
    fn series(&self) -> Option<&Series> {
        self.answer.as_ref()?.as_deref().ok()
    }
}

/// One of the three: its chart and words, and its series.
struct Panel<'a> {
    title: Text,
    hover: Text,
    words: String,
    chart: Chart<'a>,
    known: Vec<Known>,
    /// Names of the lines where a series has more than one.
    lines: &'a [Text],
}

pub fn show(ui: &mut Ui, scene: &Scene<'_>, state: &mut State, commands: &mut Vec<Command>) {
    ui.horizontal_wrapped(|ui| {
        if ui.button(Text::TheoryDraw.get()).on_hover_text(Text::TheoryDrawHelp.get()).clicked() {
            state.draws = state.draws.wrapping_add(1);
        }
        ui.label(RichText::new(Text::TheoryLegend.get()).weak());
    });
    let seed = state.draws.wrapping_add(1);
    let mut ask = |name: String, experiment: Experiment| {
        let question = Question::Experiment { experiment, seed };
        commands.push(Command::Ask(question));
        let answer = match (scene.answer)(question) {
            Some(Answer::Series(series)) => Some(Ok(series)),
            Some(Answer::Failed(why)) => Some(Err(why)),
            _ => None,
        };
        Known { name, answer }
    };
    // The question that was asked last is answered first.
    let overfull = vec![ask(Text::TheoryIsotropic.get().to_owned(), Experiment::Overfull)];
    let recall = COSINES.map(|cosine| {
        let name = fill(Text::TheoryCosine, &[&format::number(f64::from(cosine) / 100.0)]);
        ask(name, Experiment::Recall { cosine })
    });
    let collisions = COLLISION_BUCKETS
        .map(|buckets| ask(fill(Text::TheoryBuckets, &[&buckets.to_string()]), Experiment::Collisions { buckets }));
    let panels = [of_collisions(collisions.into()), of_recall(recall.into()), of_overfull(overfull)];
    if ui.available_width() > WIDE {
        ui.columns_const(|columns: &mut [Ui; 3]| {
            for (ui, panel) in columns.iter_mut().zip(&panels) {
                column(ui, |ui| panel.show(ui));
            }
        });
    } else {
        for panel in &panels {
            panel.show(ui);
            ui.add_space(10.0);
        }
    }
    let numbers =
        CollapsingHeader::new(Text::TheoryNumbers.get()).show(ui, |ui| panels.iter().for_each(|p| p.numbers(ui)));
    numbers.header_response.on_hover_text(Text::TheoryNumbersHelp.get());
}

fn of_collisions(known: Vec<Known>) -> Panel<'static> {
    let draws = u64::from(HASH_ROUNDS * POINTS / 2);
    Panel {
        title: Text::TheoryCollisions,
        hover: Text::TheoryCollisionsHelp,
        words: fill(
            Text::TheoryCollisionsWords,
            &[&format::count(draws), &WIDTH.to_string(), &HASH_ROUNDS.to_string()],
        ),
        chart: Chart {
            id: "collisions",
            x: axis(Text::TheoryAngle, (0..=6).map(|at| f64::from(at) * 30.0).collect()),
            y: axis(Text::TheorySame, hundred()),
            height: HEIGHT,
        },
        known,
        lines: &[],
    }
}

fn of_recall(known: Vec<Known>) -> Panel<'static> {
    let draws = u64::from(SETS * POINTS / 2);
    let [buckets, most] = [RECALL_BUCKETS, MOST_ROUNDS].map(|count| count.to_string());
    let [n, m] = [POINTS, RECALL_CHUNK].map(|count| format::count(u64::from(count)));
    Panel {
        title: Text::TheoryRecall,
        hover: Text::TheoryRecallHelp,
        words: fill(Text::TheoryRecallWords, &[&buckets, &format::count(draws), &n, &m, &most]),
        chart: Chart {
            id: "recall",
            x: axis(Text::TheoryRounds, (1..=MOST_ROUNDS).map(f64::from).collect()),
            y: axis(Text::TheoryFound, hundred()),
            height: HEIGHT,
        },
        known,
        lines: &[],
    }
}

fn of_overfull(known: Vec<Known>) -> Panel<'static> {
    let n = format::count(u64::from(POINTS));
    let rounds = (SETS * HASH_ROUNDS).to_string();
    Panel {
        title: Text::TheoryOverfull,
        hover: Text::TheoryOverfullHelp,
        words: fill(Text::TheoryOverfullWords, &[&rounds, &n, &WIDTH.to_string()]),
        chart: Chart {
            id: "overfull",
            x: Axis { log: true, ..axis(Text::TheoryBucketCount, BUCKET_COUNTS.map(f64::from).into()) },
            y: axis(Text::TheoryLarger, (0..=4).map(|at| f64::from(at) * 2.0).collect()),
            height: HEIGHT,
        },
        known,
        lines: &[Text::TheoryEven, Text::TheoryByLength],
    }
}

fn axis(label: Text, marks: Vec<f64>) -> Axis<'static> {
    Axis { label: label.get(), log: false, marks, write: format::number }
}

/// Per cent with two decimals, which no error here is below.
fn hundredths(share: f64) -> String {
    format!("{:.2}", share * 100.0)
}

/// Per cent.
fn hundred() -> Vec<f64> {
    (0..=4).map(|at| f64::from(at) * 25.0).collect()
}

impl Panel<'_> {
    fn show(&self, ui: &mut Ui) {
        ui.strong(self.title.get()).on_hover_text(self.hover.get());
        let mut traces = Vec::new();
        for (known, colour) in self.known.iter().zip(COLOURS) {
            let Some(series) = known.series() else { continue };
            let percent = |line: &[[f64; 2]]| line.iter().map(|[x, y]| [*x, y * 100.0]).collect::<Vec<_>>();
            let dot =
                |point: &Point| Dot { at: [point.x, point.share() * 100.0], error: 200.0 * point.standard_error() };
            let mut dots = series.measured.iter().map(dot).collect();
            let last = series.theory.len() - 1;
            for (at, line) in series.theory.iter().enumerate().rev() {
                let name = self.lines.get(at).map_or(known.name.clone(), |line| line.get().to_owned());
                let colour = if at == last { colour } else { COLOURS[3] };
                let trace = Trace::line(name, colour, percent(line));
                let trace = if at == last { trace } else { trace.dashed() };
                traces.push(Trace { dots: std::mem::take(&mut dots), ..trace });
            }
        }
        self.chart.show(ui, &traces);
        for known in self.known.iter().filter(|known| known.answer.is_none()) {
            ui.label(fill(Text::TheorySoon, &[&known.name]));
        }
        // What ended one series, such as Cancel, often ended them all.
        let failures: BTreeSet<&String> =
            self.known.iter().filter_map(|known| known.answer.as_ref()?.as_ref().err()).collect();
        for why in failures {
            ui.colored_label(ui.visuals().error_fg_color, why);
        }
        ui.label(RichText::new(&self.words).small());
    }

    /// A row for each x, two columns for each series.
    fn numbers(&self, ui: &mut Ui) {
        ui.strong(self.title.get());
        ScrollArea::horizontal().id_salt((self.chart.id, "numbers")).auto_shrink([true, true]).show(ui, |ui| {
            Grid::new((self.chart.id, "table")).striped(true).spacing([14.0, 2.0]).show(ui, |ui| {
                let known: Vec<(&str, &Series)> =
                    self.known.iter().filter_map(|known| Some((known.name.as_str(), known.series()?))).collect();
                ui.label(self.chart.x.label);
                for (name, series) in &known {
                    ui.label(format!("{name}, {}", Text::TheoryMeasured.get()));
                    for (at, _) in series.theory.iter().enumerate() {
                        let name = self.lines.get(at).map_or(*name, |line| line.get());
                        ui.label(format!("{name}, {}", Text::TheoryPredicted.get()));
                    }
                }
                ui.end_row();
                let rows = known.first().map_or(0, |(_, series)| series.measured.len());
                for row in 0..rows {
                    for (column, (_, series)) in known.iter().enumerate() {
                        let Some(point) = series.measured.get(row) else { continue };
                        if column == 0 {
                            ui.label(format::number(point.x));
                        }
                        let [share, error] = [point.share(), point.standard_error()].map(hundredths);
                        ui.label(fill(Text::TheoryMeasuredShare, &[&share, &error]));
                        for line in &series.theory {
                            let at = line.iter().find(|[x, _]| *x == point.x);
                            ui.label(at.map_or_else(String::new, |[_, share]| format!("{} %", hundredths(*share))));
                        }
                    }
                    ui.end_row();
                }
            });
        });
    }
}
