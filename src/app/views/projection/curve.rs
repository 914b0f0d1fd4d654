//! The error over k: untrained projections, and fitted ones where that was asked for.

use super::fit::too_large;
use super::pair;
use crate::app::scene::{Answer, Command, Question, Scene};
use crate::app::views::chart::{Axis, COLOURS, Chart, Dot, Trace};
use crate::app::views::{caption, format, rank, waiting};
use crate::lab::{Errors, Start, Untrained};
use crate::methods::fit::Loss;
use crate::settings::Projection;
use crate::spectrum::{Spectrum, Way};
use crate::text::{Text, fill};
use egui::{Button, Color32, Ui};
use std::rc::Rc;

/// Projected lengths that are measured, besides the one on the slider.
const LENGTHS: [u32; 6] = [8, 16, 32, 64, 128, 256];
/// Steps of each fit, and its learning rate in units of 0.0001.
const STEPS: u32 = 200;
const RATE: u32 = 100;
/// Height of a chart, and the least error on its logarithmic axis, which has no place for 0.
const HEIGHT: f32 = 230.0;
const LEAST: f64 = 1e-3;
const NAMES: [(Projection, Text); 4] = [
    (Projection::Mean, Text::ProjectionMean),
    (Projection::Max, Text::ProjectionMax),
    (Projection::Gaussian, Text::ProjectionGaussian),
    (Projection::Convolution, Text::ProjectionConvolution),
];

#[derive(Default)]
pub struct State {
    measuring: bool,
    fitting: bool,
}

/// What a fit brings close, its name, and its colour where it is not the text's.
const FITS: [(Loss, Text, Option<Color32>); 2] =
    [(Loss::Output, Text::CurveFitted, None), (Loss::Map, Text::CurveFittedMap, Some(Color32::from_rgb(190, 150, 20)))];

/// Errors over k of one kind, in a colour or in the text's.
struct Series {
    name: Text,
    colour: Option<Color32>,
    errors: Vec<(u32, Errors)>,
}

impl State {
    pub fn show(&mut self, ui: &mut Ui, scene: &Scene<'_>, commands: &mut Vec<Command>) {
        ui.strong(Text::CurveTitle.get());
        let lengths = lengths(scene);
        ui.horizontal_wrapped(|ui| {
            toggle(ui, &mut self.measuring, Text::CurveMeasure.get(), Text::CurveMeasureHelp);
            let most = lengths.last().copied().unwrap_or(1);
            if self.measuring && too_large(scene, Loss::Output, most).is_none() {
                let name = fill(Text::CurveFit, &[&format::count(u64::from(STEPS))]);
                toggle(ui, &mut self.fitting, &name, Text::CurveFitHelp);
            } else {
                self.fitting = false;
            }
        });
        if !self.measuring {
            ui.label(Text::CurveNone.get());
            return;
        }
        let mut waits = None;
        let mut ask = |question: Question| {
            commands.push(Command::Ask(question));
            let answer = (scene.answer)(question);
            if matches!(answer, None | Some(Answer::Failed(_))) {
                waits.get_or_insert(answer.clone());
            }
            answer
        };
        // What is asked first is answered last: this takes longest. Where it waits to be asked for, it waits for the
        // view of ranks.
        let question = Question::LowRank { head: scene.head, random: false };
        let waits_in_rank = !rank::at_once(scene) && (scene.answer)(question).is_none();
        let low_rank = if waits_in_rank { None } else { ask(question) };
        let untrained: Vec<Rc<Untrained>> = lengths
            .iter()
            .filter_map(|k| match ask(Question::Untrained { head: scene.head, k: *k }) {
                Some(Answer::Untrained(untrained)) => Some(untrained),
                _ => None,
            })
            .collect();
        let mut all: Vec<Series> = NAMES
            .iter()
            .zip(COLOURS)
            .map(|((projection, name), colour)| {
                let of = |point: &Rc<Untrained>| {
                    let found = point.errors.iter().find(|(kind, _)| kind == projection);
                    found.map(|(_, errors)| (point.k, *errors))
                };
                let errors = untrained.iter().filter_map(of).collect();
                Series { name: *name, colour: Some(colour), errors }
            })
            .collect();
        // The map of a long input is not fitted.
        let fits = FITS.iter().filter(|(loss, ..)| self.fitting && too_large(scene, *loss, 1).is_none());
        for (loss, name, colour) in fits {
            let errors = lengths.iter().filter_map(|k| {
                let start = Start { head: scene.head, k: *k, loss: *loss, rate: RATE };
                match ask(Question::FittedErrors { start, steps: STEPS }) {
                    Some(Answer::FittedErrors(errors)) => Some((*k, errors)),
                    _ => None,
                }
            });
            all.push(Series { name: *name, colour: *colour, errors: errors.collect() });
        }
        let bound = match low_rank {
            Some(Answer::LowRank(low_rank)) => Some(Bound::of(&low_rank.spectrum, &lengths)),
            _ => None,
        };
        if let Some(answer) = waits {
            waiting(ui, answer);
        }
        charts(ui, &lengths, &all, bound.as_ref());
        if let Some(sampled) = untrained.first().and_then(|point| point.sampled) {
            let rows = if bound.is_some() { Text::CurveBoundRows.get() } else { "" };
            ui.label(format!("{} {rows}", fill(Text::ErrorsSampled, &[&format::count(u64::from(sampled))])));
        }
        if let Some(known) = bound.as_ref().and_then(|bound| bound.known) {
            ui.label(fill(Text::CurveBoundLow, &[&format::count(known.into())]));
        }
        if waits_in_rank {
            ui.label(fill(Text::CurveBoundWaits, &[&format::count(scene.settings.n.into())]));
        }
        if let Some(words) = left_out(&all) {
            ui.label(words);
        }
        if let Some(words) = honest(&all) {
            ui.label(words);
        }
        caption(ui, Text::CurveCaption.get());
    }
}

/// A button that stays pressed.
fn toggle(ui: &mut Ui, on: &mut bool, name: &str, help: Text) {
    *on ^= ui.add(Button::new(name).selected(*on)).on_hover_text(help.get()).clicked();
}

fn lengths(scene: &Scene<'_>) -> Vec<u32> {
    let n = scene.settings.n;
    let mut lengths: Vec<u32> =
        LENGTHS.into_iter().filter(|k| *k < n).chain([scene.settings.projected_len()]).collect();
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

/// What no map of rank k falls below.
struct Bound {
    name: Text,
    /// k, and per cent.
    line: Vec<[f64; 2]>,
    /// So many singular values are known, between two ends.
    known: Option<u32>,
}

impl Bound {
    /// The least error itself, or its lower end. What a dot cannot fall below on the axis is not drawn.
    fn of(spectrum: &Spectrum, lengths: &[u32]) -> Self {
        let at = |k: &u32| [f64::from(*k), spectrum.least_error(*k).low * 100.0];
        let line = lengths.iter().map(at).filter(|[_, error]| *error >= LEAST * 100.0).collect();
        let (name, known) = match spectrum.way {
            Way::Exact => (Text::CurveBound, None),
            Way::Randomised { .. } => (Text::CurveBoundLowName, Some(spectrum.known())),
        };
        Self { name, line, known }
    }
}

fn charts(ui: &mut Ui, lengths: &[u32], all: &[Series], bound: Option<&Bound>) {
    pair(ui, |ui, output| {
        let value = |errors: &Errors| if output { Some(errors.output) } else { errors.map };
        let dots = |one: &Series| -> Vec<Dot> {
            let dot = |(k, errors): &(u32, Errors)| {
                let error = value(errors).filter(|error| *error >= LEAST)?;
                Some(Dot { at: [f64::from(*k), error * 100.0], error: 0.0 })
            };
            one.errors.iter().filter_map(dot).collect()
        };
        let mut traces: Vec<Trace> = all
            .iter()
            .map(|one| {
                let colour = one.colour.unwrap_or(ui.visuals().strong_text_color());
                Trace::dots(one.name.get(), colour, dots(one))
            })
            .filter(|trace| !trace.dots.is_empty())
            .collect();
        // It bounds the map alone: an output may be closer than its map.
        if let Some(bound) = bound.filter(|bound| !output && !bound.line.is_empty()) {
            let line = Trace::line(bound.name.get(), ui.visuals().weak_text_color(), bound.line.clone());
            traces.push(line.dashed());
        }
        let values = traces
            .iter()
            .flat_map(|trace| trace.dots.iter().map(|dot| dot.at[1]).chain(trace.line.iter().map(|at| at[1])));
        let (low, high) = values.fold((f64::MAX, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
        let name = if output { Text::CurveOutput } else { Text::CurveMap };
        let chart = Chart {
            id: if output { "output over k" } else { "map over k" },
            x: Axis {
                label: Text::CurveAxisK.get(),
                log: true,
                marks: lengths.iter().map(|k| f64::from(*k)).collect(),
                write: |k| format::count(k.round() as u64),
            },
            y: Axis { label: name.get(), log: true, marks: marks(low, high), write: format::number },
            height: HEIGHT,
        };
        chart.show(ui, &traces);
    });
}

/// 1, 2 and 5 times powers of ten that enclose the values.
fn marks(low: f64, high: f64) -> Vec<f64> {
    // Thinner where the values span decades, so that each has a label.
    let factors: &[f64] = if high > low * 50.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let all = (-1..=6).flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)));
    let apart = if factors.len() == 1 { 10.0 } else { 2.5 };
    let marks: Vec<f64> = all.filter(|mark| *mark > low / apart && *mark < high * apart).collect();
    if marks.len() > 1 { marks } else { vec![1.0, 100.0] }
}

/// The errors that are too small for the axis.
fn left_out(all: &[Series]) -> Option<String> {
    let below = all.iter().flat_map(|one| {
        one.errors.iter().flat_map(move |(k, errors)| {
            let map = errors.map.map(|error| (Text::CurveLeftOutMap, error));
            let of_each = [map, Some((Text::CurveLeftOutOutput, errors.output))].into_iter().flatten();
            of_each.filter(|(_, error)| *error < LEAST).map(move |(words, error)| {
                fill(words, &[one.name.get(), &format::count((*k).into()), &format::percent(error)])
            })
        })
    });
    let below: Vec<String> = below.collect();
    (!below.is_empty()).then(|| fill(Text::BelowAxis, &[&format::percent(LEAST), &below.join("; ")]))
}

/// In numbers, how far an untrained random E is from good.
fn honest(all: &[Series]) -> Option<String> {
    let random = all.iter().find(|one| one.name == Text::ProjectionGaussian)?;
    let (k, errors) = random.errors.last()?;
    let mean = all.iter().find(|one| one.name == Text::ProjectionMean)?.errors.last()?.1;
    let map = |errors: &Errors| errors.map.map_or_else(String::new, format::percent);
    let output = |errors: &Errors| format::percent(errors.output);
    let k = format::count(u64::from(*k));
    Some(fill(Text::CurveHonest, &[&k, &output(errors), &map(errors), &output(&mean), &map(&mean)]))
}
