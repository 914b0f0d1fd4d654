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

fn axis(label: &str, log: bool, marks: Vec<f64>) -> Axis<'_> {
    let write: fn(f64) -> String = if log { |value| format::count(value.round() as u64) } else { format::number };
    Axis { label, log, marks, write }
}

/// Rows over the sequence length, at one eps.
fn over_n(ui: &mut Ui, scene: &Scene<'_>, eps: f64) {
    ui.strong(fill(Text::BoundsOverN, &[&format::number(eps)])).on_hover_text(Text::BoundsOverNHelp.get());
    let mut traces: Vec<Trace> = theorems(scene)
        .into_iter()
        .map(|(theorem, name, colour)| Trace::line(name, colour, LENGTHS.map(|n| [n, theorem.rows(n, eps)]).into()))
        .collect();
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
    let marks: Vec<f64> = (1..=6).map(|tenth| f64::from(tenth) / 10.0).collect();
    let steps: Vec<f64> = (4..=24).map(|step| f64::from(step) / 40.0).collect();
    let mut traces: Vec<Trace> = theorems(scene)
        .into_iter()
        .map(|(theorem, name, colour)| {
            Trace::line(name, colour, steps.iter().map(|eps| [*eps, theorem.rows(n, *eps)]).collect())
        })
        .collect();
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
    let ks: Vec<f64> = (0..=64).map(|step| ROWS[0] * (ROWS[4] / ROWS[0]).powf(f64::from(step) / 64.0)).collect();
    let dots = |error: fn(&TheoremErrors) -> f64| {
        let at = |(k, answer): &(u32, Option<Result<TheoremErrors, String>>)| {
            let errors = answer.as_ref()?.as_ref().ok()?;
            Some(Dot { at: [f64::from(*k), error(errors)], error: 0.0 })
        };
        known.iter().filter_map(at).collect::<Vec<Dot>>()
    };
    let mut traces: Vec<Trace> = theorems(scene)
        .into_iter()
        .map(|(theorem, name, colour)| {
            Trace::line(name, colour, ks.iter().filter_map(|k| Some([*k, theorem.eps(n, *k)?])).collect())
        })
        .collect();
    for (name, colour, error) in [
        (Text::BoundsProof, COLOURS[0], (|errors| errors.proof) as fn(&TheoremErrors) -> f64),
        (Text::BoundsGaussian, COLOURS[1], |errors| errors.gaussian),
        (Text::BoundsMean, COLOURS[2], |errors| errors.mean),
    ] {
        traces.push(Trace::dots(name.get(), colour, dots(error)));
    }
    let x = axis(Text::BoundsRows.get(), true, ROWS.into());
    let y = Axis {
        label: Text::BoundsError.get(),
        log: true,
        marks: vec![0.03, 0.1, 0.3, 1.0, 3.0, 10.0],
        write: format::number,
    };
    Chart { id: "errors over k", x, y, height: HEIGHT }.show(ui, &traces);
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
