//! The bounds of Linformer's theorems over n and eps, and the errors of untrained projections measured on
//! the input of the screen.

use crate::app::scene::{Answer, Command, Question, Scene};
use crate::app::views::chart::{Axis, COLOURS, Chart, Dot, Trace};
use crate::app::views::layout::column;
use crate::app::views::{caption, format};
use crate::lab::TheoremErrors;
use crate::text::{Text, fill};
use crate::theory::{Theorem, UNDEFINED_FROM};
use egui::{Color32, RichText, Slider, Ui};

const WIDE: f32 = 680.0;
const HEIGHT: f32 = 230.0;
/// Of the line from which on nothing is saved.
const FAINT: Color32 = Color32::from_gray(130);
/// Sequence lengths of the curves, and rows k.
const LENGTHS: [f64; 6] = [64.0, 256.0, 1024.0, 4096.0, 16_384.0, 65_536.0];
const ROWS: [f64; 5] = [16.0, 64.0, 256.0, 1024.0, 4096.0];

/// Marks of the errors, of which the first three wait for errors so small, and the least error that is drawn.
const ERRORS: [f64; 9] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];
const LEAST: f64 = ERRORS[0];

pub struct State {
    eps: f64,
}

impl Default for State {
    fn default() -> Self {
        Self { eps: 0.3 }
    }
}

pub fn show(ui: &mut Ui, scene: &Scene<'_>, state: &mut State, commands: &mut Vec<Command>) {
    ui.strong(Text::BoundsTitle.get());
    ui.horizontal_wrapped(|ui| {
        let label = ui.label(Text::BoundsEps.get());
        let slider = Slider::new(&mut state.eps, 0.1..=0.6).step_by(0.05).fixed_decimals(2);
        ui.add(slider).labelled_by(label.id).on_hover_text(Text::BoundsEpsHelp.get());
    });
    if scene.input.problem.dims.d == 1 {
        ui.label(Text::BoundsNoneWidth.get());
    }
    let measured = measured(scene, commands);
    let eps = state.eps;
    if ui.available_width() > WIDE {
        ui.columns_const(|[first, second, third]| {
            column(first, |ui| over_n(ui, scene, eps));
            column(second, |ui| over_eps(ui, scene));
            column(third, |ui| over_k(ui, scene, &measured));
        });
    } else {
        over_n(ui, scene, eps);
        ui.add_space(8.0);
        over_eps(ui, scene);
        ui.add_space(8.0);
        over_k(ui, scene, &measured);
    }
    caption(ui, Text::BoundsCaption.get());
}

fn theorems(scene: &Scene<'_>) -> [(Theorem, String, Color32); 2] {
    let d = scene.input.problem.dims.d;
    [
        (Theorem::First, Text::BoundsFirst.get().to_owned(), COLOURS[0]),
        (Theorem::Second { d }, Text::BoundsSecond.get().to_owned(), COLOURS[3]),
    ]
}

/// Rows that a theorem asks for; `None` where its formula says nothing, since a logarithm in it is 0.
fn rows(theorem: Theorem, n: f64, eps: f64) -> Option<f64> {
    Some(theorem.rows(n, eps)).filter(|rows| *rows >= 1.0)
}

/// The lines of the theorems that say something, from their points.
fn lines(scene: &Scene<'_>, points: impl Fn(Theorem) -> Vec<[f64; 2]>) -> Vec<Trace> {
    let lines = theorems(scene).into_iter().map(|(theorem, name, colour)| Trace::line(name, colour, points(theorem)));
    lines.filter(|trace| !trace.line.is_empty()).collect()
}

fn axis(label: &str, log: bool, marks: Vec<f64>) -> Axis<'_> {
    let write: fn(f64) -> String = if log { |value| format::count(value.round() as u64) } else { format::number };
    Axis { label, log, marks, write }
}

/// Rows over the sequence length, at one eps.
fn over_n(ui: &mut Ui, scene: &Scene<'_>, eps: f64) {
    ui.strong(fill(Text::BoundsOverN, &[&format::number(eps)])).on_hover_text(Text::BoundsOverNHelp.get());
    let mut traces =
        lines(scene, |theorem| LENGTHS.iter().filter_map(|n| Some([*n, rows(theorem, *n, eps)?])).collect());
    traces.push(Trace::line(Text::BoundsNothing.get(), FAINT, LENGTHS.map(|n| [n, n]).into()).dashed());
    let x = axis(Text::MemoryAxisN.get(), true, LENGTHS.into());
    Chart { id: "bounds over n", x, y: axis(Text::BoundsRows.get(), true, LENGTHS.into()), height: HEIGHT }
        .show(ui, &traces);
    ui.label(RichText::new(Text::BoundsFormulas.get()).small());
}

/// Rows over eps, at the sequence length of the screen.
fn over_eps(ui: &mut Ui, scene: &Scene<'_>) {
    let dims = &scene.input.problem.dims;
    let n = f64::from(dims.n_kv);
    ui.strong(fill(Text::BoundsOverEps, &[&format::count(u64::from(dims.n_kv))]))
        .on_hover_text(Text::BoundsOverEpsHelp.get());
    if dims.n_kv == 1 {
        return drop(ui.label(Text::BoundsNoneLength.get()));
    }
    let marks: Vec<f64> = (1..=6).map(|tenth| f64::from(tenth) / 10.0).collect();
    let steps: Vec<f64> = (4..=24).map(|step| f64::from(step) / 40.0).collect();
    let mut traces =
        lines(scene, |theorem| steps.iter().filter_map(|eps| Some([*eps, rows(theorem, n, *eps)?])).collect());
    traces.push(Trace::line(Text::BoundsNothing.get(), FAINT, steps.iter().map(|eps| [*eps, n]).collect()).dashed());
    let x = axis(Text::BoundsEpsAxis.get(), false, marks);
    Chart { id: "bounds over eps", x, y: axis(Text::BoundsRows.get(), true, LENGTHS.into()), height: HEIGHT }
        .show(ui, &traces);
    ui.label(RichText::new(fill(Text::BoundsOverEpsWords, &[&dims.d.to_string()])).small());
}

/// What is known about the errors at each k.
fn measured(scene: &Scene<'_>, commands: &mut Vec<Command>) -> Vec<(u32, Option<Result<TheoremErrors, String>>)> {
    let lengths: Vec<u32> = TheoremErrors::lengths(scene.input.problem.dims.n_kv).collect();
    let ask = |k: &u32| {
        let question = Question::Theorem { k: *k };
        commands.push(Command::Ask(question));
        let answer = match (scene.answer)(question) {
            Some(Answer::Theorem(errors)) => Some(Ok(errors)),
            Some(Answer::Failed(why)) => Some(Err(why)),
            _ => None,
        };
        (*k, answer)
    };
    // What is asked last is answered first.
    let mut known: Vec<_> = lengths.iter().rev().map(ask).collect();
    known.reverse();
    known
}

/// The eps that the theorems have at each k, and the errors that were measured.
fn over_k(ui: &mut Ui, scene: &Scene<'_>, known: &[(u32, Option<Result<TheoremErrors, String>>)]) {
    let n = f64::from(scene.input.problem.dims.n_kv);
    ui.strong(Text::BoundsOverK.get()).on_hover_text(Text::BoundsOverKHelp.get());
    if scene.input.problem.dims.n_kv == 1 {
        return drop(ui.label(Text::BoundsNoneLength.get()));
    }
    let ks: Vec<f64> = (0..=64).map(|step| ROWS[0] * (ROWS[4] / ROWS[0]).powf(f64::from(step) / 64.0)).collect();
    let mut traces = lines(scene, |theorem| {
        let eps = |k: f64| theorem.eps(n, k).filter(|eps| rows(theorem, n, *eps).is_some());
        ks.iter().filter_map(|k| Some([*k, eps(*k)?])).collect()
    });
    let mut below = Vec::new();
    for (name, colour, error) in [
        (Text::BoundsProof, COLOURS[0], (|errors| errors.proof) as fn(&TheoremErrors) -> f64),
        (Text::BoundsGaussian, COLOURS[1], |errors| errors.gaussian),
        (Text::BoundsMean, COLOURS[2], |errors| errors.mean),
    ] {
        let errors = known.iter().filter_map(|(k, answer)| Some((*k, error(answer.as_ref()?.as_ref().ok()?))));
        let (drawn, small): (Vec<_>, Vec<_>) = errors.partition(|(_, error)| *error >= LEAST);
        below.extend(small.iter().map(|(k, error)| {
            fill(Text::BoundsLeftOut, &[name.get(), &format::count((*k).into()), &format::number(*error)])
        }));
        let dots = drawn.into_iter().map(|(k, error)| Dot { at: [f64::from(k), error], error: 0.0 });
        traces.push(Trace::dots(name.get(), colour, dots.collect()));
    }
    // From the last mark that no dot is below.
    let lowest = traces.iter().flat_map(|trace| &trace.dots).map(|dot| dot.at[1]).fold(ERRORS[3], f64::min);
    let x = axis(Text::BoundsRows.get(), true, ROWS.into());
    let y = Axis {
        label: Text::BoundsError.get(),
        log: true,
        marks: ERRORS[ERRORS.partition_point(|mark| *mark <= lowest).saturating_sub(1)..].to_vec(),
        write: format::number,
    };
    Chart { id: "errors over k", x, y, height: HEIGHT }.show(ui, &traces);
    if !below.is_empty() {
        ui.label(fill(Text::BelowAxis, &[&format::number(LEAST), &below.join("; ")]));
    }
    if known.iter().any(|(_, answer)| answer.is_none()) {
        ui.label(fill(Text::TheorySoon, &[Text::BoundsError.get()]));
    }
    if let Some(why) = known.iter().find_map(|(_, answer)| answer.as_ref()?.as_ref().err()) {
        ui.colored_label(ui.visuals().error_fg_color, why);
    }
    let first = known.iter().find_map(|(_, answer)| answer.as_ref()?.as_ref().ok());
    let queries = first.map_or_else(String::new, |errors| {
        let queries = format::count(u64::from(errors.queries));
        if errors.all { Text::CompareAll.get().to_owned() } else { fill(Text::BoundsSampled, &[&queries]) }
    });
    let least = format::count((5.0 * n.ln() / UNDEFINED_FROM).ceil() as u64);
    let words = fill(Text::BoundsOverKWords, &[&least]);
    ui.label(RichText::new(format!("{words} {queries}")).small());
}
