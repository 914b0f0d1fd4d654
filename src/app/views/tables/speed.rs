//! Milliseconds over the sequence length, from 128 on, where the clever methods are the slower ones.

use super::section;
use crate::app::scene::{Answer, Command, Question, Scene};
use crate::app::views::chart::{Axis, Chart, Dot, Trace};
use crate::app::views::{caption, contender, format, method_name};
use crate::crossover::Crossover;
use crate::gpu::run::Clock;
use crate::lab::turns::Timed;
use crate::settings::{MAX_N, Method};
use crate::tables::Sizes;
use crate::text::{Text, fill};
use egui::{Color32, RichText, Ui};
use std::rc::Rc;

const FIRST: u32 = 128;
/// A length is measured unasked when none of the methods took longer than this at half of it.
const QUICK_MS: f64 = 60.0;
const HEIGHT: f32 = 280.0;

#[derive(Default)]
pub struct State {
    /// Lengths up to this are measured however long they take, for these sizes.
    asked: Option<(Sizes, u32)>,
}

/// The methods at one length.
type Point = (u32, Rc<[(Method, Timed)]>);

/// What was measured, and what comes next.
struct Known {
    points: Vec<Point>,
    next: Next,
}

enum Next {
    Running(u32),
    /// It takes longer and waits to be asked for.
    Waits(u32),
    Failed(u32, String),
    Nothing,
}

pub fn show(ui: &mut Ui, scene: &Scene<'_>, sizes: &Sizes, state: &mut State, commands: &mut Vec<Command>) {
    section(ui, Text::TablesSpeed, Text::TablesSpeedHelp);
    // What does not matter to the answer does not ask again.
    let plain = Sizes::default();
    let sizes = Sizes { layers: plain.layers, d_ff: plain.d_ff, length: FIRST, ..*sizes };
    let asked = state.asked.filter(|(of, _)| *of == sizes).map_or(FIRST, |(_, most)| most);
    let known = measure(scene, &sizes, asked, commands);
    chart(ui, &known.points);
    match &known.next {
        Next::Running(n) => drop(ui.label(fill(Text::TablesSpeedSoon, &[&format::count(u64::from(*n))]))),
        Next::Failed(n, why) => {
            let words = fill(Text::TablesNotMeasured, &[&format::count(u64::from(*n)), why]);
            ui.colored_label(ui.visuals().error_fg_color, words);
        }
        Next::Waits(n) => {
            let button = ui.button(fill(Text::TablesMeasure, &[&format::count(u64::from(*n))]));
            if button.on_hover_text(Text::TablesSpeedMoreHelp.get()).clicked() {
                state.asked = Some((sizes, *n));
            }
        }
        Next::Nothing => {}
    }
    for method in [Method::Lsh, Method::Linformer] {
        if let Some(words) = crossover(&known.points, method) {
            ui.label(words);
        }
    }
    words(ui, scene, &sizes, &known.points);
    caption(ui, Text::TablesSpeedCaption.get());
}

fn measure(scene: &Scene<'_>, sizes: &Sizes, asked: u32, commands: &mut Vec<Command>) -> Known {
    let mut points: Vec<Point> = Vec::new();
    let mut n = FIRST;
    while n <= MAX_N {
        let quick = |(_, speed): &Point| speed.iter().all(|(_, timed)| timed.ms <= QUICK_MS);
        if n > asked && !points.last().is_none_or(quick) {
            return Known { points, next: Next::Waits(n) };
        }
        let question = Question::Speed { sizes: Sizes { length: n, ..*sizes } };
        commands.push(Command::Ask(question));
        match (scene.answer)(question) {
            Some(Answer::Speed(speed)) => points.push((n, speed)),
            Some(Answer::Failed(why)) => return Known { points, next: Next::Failed(n, why) },
            _ => return Known { points, next: Next::Running(n) },
        }
        n *= 2;
    }
    Known { points, next: Next::Nothing }
}

/// A method over the length; there is nothing of it where it was not measured.
fn of(points: &[Point], method: Method) -> impl Iterator<Item = (u32, Timed)> {
    let timed = move |(n, speed): &Point| {
        let (_, timed) = speed.iter().find(|(other, _)| *other == method)?;
        Some((*n, *timed))
    };
    points.iter().filter_map(timed)
}

/// Where a method overtakes full attention, by the ratios of the same turns.
fn found(points: &[Point], method: Method) -> Option<Crossover> {
    Crossover::of(of(points, method).map(|(n, timed)| (n, timed.ratio)))
}

fn chart(ui: &mut Ui, points: &[Point]) {
    let times: Vec<f64> =
        points.iter().flat_map(|(_, speed)| speed.iter()).map(|(_, timed)| timed.ms).filter(|ms| *ms > 0.0).collect();
    let low = times.iter().copied().fold(1.0, f64::min).log10().floor() as i32;
    let high = times.iter().copied().fold(1.0, f64::max).log10().ceil() as i32;
    let decades: Vec<f64> = (low..=high.max(low + 1)).map(|power| 10f64.powi(power)).collect();
    let longest = points.last().map_or(FIRST, |(n, _)| *n).max(4 * FIRST);
    let lengths: Vec<f64> = (0..).map(|bit| FIRST << bit).take_while(|n| *n <= longest).map(f64::from).collect();
    // Labels stand side by side on a telephone.
    let step = lengths.len().div_ceil(6);
    let mut traces: Vec<Trace> = [Method::Full, Method::Lsh, Method::Linformer]
        .map(|method| {
            let dots = of(points, method).map(|(n, timed)| Dot { at: [f64::from(n), timed.ms], error: 0.0 });
            Trace::dots(contender::name(method), contender::colour(method), dots.collect()).joined()
        })
        .into();
    for method in [Method::Lsh, Method::Linformer] {
        if let Some(Crossover::Between { at, .. }) = found(points, method) {
            let ends = [decades[0], decades[decades.len() - 1]].map(|ms| [at, ms]);
            let name = fill(Text::TablesCrossover, &[method_name(method)]);
            let colour: Color32 = contender::colour(method).gamma_multiply(0.8);
            traces.push(Trace::line(name, colour, ends.into()).dashed());
        }
    }
    let x = Axis {
        label: Text::MemoryAxisN.get(),
        log: true,
        marks: lengths.into_iter().rev().step_by(step).collect::<Vec<_>>().into_iter().rev().collect(),
        write: |n| format::count(n.round() as u64),
    };
    let y = Axis { label: Text::TablesSpeedAxis.get(), log: true, marks: decades, write: format::number };
    Chart { id: "speed", x, y, height: HEIGHT }.show(ui, &traces);
}

/// The same in words.
fn crossover(points: &[Point], method: Method) -> Option<String> {
    let [first, last] = [points.first()?, points.last()?].map(|(n, _)| format::count(u64::from(*n)));
    let name = method_name(method);
    Some(match found(points, method)? {
        Crossover::Always => fill(Text::TablesFasterAlways, &[name, &first, &last]),
        Crossover::Never => fill(Text::TablesFasterNever, &[name, &last]),
        Crossover::Between { behind, ahead, at } => {
            let numbers = [at.round() as u64, u64::from(behind), u64::from(ahead)].map(format::count);
            fill(Text::TablesFasterFrom, &[name, &numbers[0], &numbers[1], &numbers[2]])
        }
    })
}

/// How it was measured, once something was.
fn words(ui: &mut Ui, scene: &Scene<'_>, sizes: &Sizes, points: &[Point]) {
    if points.is_empty() {
        return;
    }
    let mut timed = points.iter().flat_map(|(_, speed)| speed.iter());
    let timestamps = timed.all(|(_, timed)| timed.clock == Clock::Timestamps);
    let clock = if timestamps { Text::ClockTimestamps } else { Text::ClockWall };
    let numbers =
        [sizes.batch, sizes.heads, sizes.d(), sizes.rounds, sizes.chunk, sizes.k].map(|size| size.to_string());
    let mut values: Vec<&str> = numbers.iter().map(String::as_str).collect();
    values.push(clock.get());
    let software = if scene.software { fill(Text::CompareSoftware, &[scene.adapter]) } else { String::new() };
    ui.label(RichText::new(format!("{} {software}", fill(Text::TablesSpeedWords, &values))).small());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crossover_is_where_the_ratios_of_the_turns_have_it() {
        // In the same turns it is the faster one; the medians of both say otherwise.
        let timed = |ms: f64, ratio: f64| Timed { ms, least: ms, most: ms, ratio, clock: Clock::Wall, bytes: 0 };
        let turns = [(Method::Full, timed(10.0, 1.0)), (Method::Lsh, timed(11.0, 0.9))];
        let points: [Point; 1] = [(FIRST, turns.into())];
        assert_eq!(found(&points, Method::Lsh), Some(Crossover::Always));
        assert_eq!(found(&points, Method::Linformer), None, "it was not measured");
    }
}
