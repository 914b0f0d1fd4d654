//! Bytes: what is allocated now, what the formulae say, and both over the sequence length.

mod bars;
mod curves;

use super::layout::column;
use super::{caption, contender, format, title};
use crate::app::scene::{Command, Scene};
use crate::crossover::Crossover;
use crate::memory::{self, Curve};
use crate::plan::Limits;
use crate::problem::Dims;
use crate::settings::{Method, Settings};
use crate::text::{Text, fill};
use egui::{RichText, Ui};

/// Width from which two panels stand side by side.
const WIDE: f32 = 680.0;
/// What else stands in the column of the curves, and around both columns.
const BESIDE_CURVES: f32 = 512.0;

/// The curves of the settings on the screen; they are computed once for each change.
#[derive(Default)]
pub struct State {
    known: Option<Known>,
}

pub(crate) struct Known {
    settings: Settings,
    dims: Dims,
    limits: Limits,
    pub curves: Vec<Curve>,
    /// Planned bytes at the current length.
    pub here: [(Method, u64); 5],
    /// (method, against the matrix, against the online softmax).
    pub crossovers: Vec<(Method, Crossover, Crossover)>,
}

impl Known {
    fn new(settings: &Settings, dims: &Dims, limits: Limits) -> Self {
        let curves = memory::curves(settings, dims, limits);
        let against = |curve: &Curve, other: Method| {
            let other = curves.iter().find(|curve| curve.method == other)?;
            memory::crossover(settings, dims, curve, other)
        };
        let clever = curves.iter().filter(|curve| matches!(curve.method, Method::Lsh | Method::Linformer));
        let crossovers = clever
            .filter_map(|curve| {
                Some((curve.method, against(curve, Method::FullMaterialized)?, against(curve, Method::Full)?))
            })
            .collect();
        let here = memory::METHODS.map(|method| (method, memory::planned_bytes(settings, dims, method, dims.n_q)));
        Self { settings: settings.clone(), dims: *dims, limits, curves, here, crossovers }
    }
}

impl State {
    fn known(&mut self, scene: &Scene<'_>) -> &Known {
        let dims = &scene.input.problem.dims;
        let fresh = self
            .known
            .take()
            .filter(|known| known.settings == *scene.settings && known.dims == *dims && known.limits == scene.limits);
        self.known.insert(fresh.unwrap_or_else(|| Known::new(scene.settings, dims, scene.limits)))
    }
}

pub fn show(ui: &mut Ui, scene: &Scene<'_>, state: &mut State, commands: &mut Vec<Command>) {
    let known = state.known(scene);
    // Inside a scroll area the height that is left has no end; what is seen of it has.
    let room = ui.clip_rect().height();
    title(ui, Text::MemoryTitle);
    if ui.available_width() > WIDE {
        let height = (room - BESIDE_CURVES).clamp(170.0, curves::HEIGHT);
        ui.columns_const(|[left, right]| {
            column(left, |ui| {
                bars::measured(ui, scene, commands);
                ui.add_space(4.0);
                sentences(ui, scene, known);
            });
            column(right, |ui| {
                curves::show(ui, scene, known, height);
                ui.add_space(4.0);
                bars::compared(ui, scene, known);
            });
        });
    } else {
        bars::measured(ui, scene, commands);
        ui.add_space(12.0);
        curves::show(ui, scene, known, curves::HEIGHT);
        ui.add_space(8.0);
        bars::compared(ui, scene, known);
        ui.add_space(8.0);
        sentences(ui, scene, known);
    }
    caption(ui, Text::MemoryCaption.get());
}

/// The crossovers in words, those where the clever method holds more included.
fn sentences(ui: &mut Ui, scene: &Scene<'_>, known: &Known) {
    let n = scene.input.problem.dims.n_q;
    let bytes = |method| known.here.iter().find(|(other, _)| *other == method).map_or(0, |(_, bytes)| *bytes);
    let matrix = bytes(Method::FullMaterialized);
    let mut say = |text: String| {
        ui.label(text);
    };
    for (method, against_matrix, _) in &known.crossovers {
        let name = contender::name(*method);
        let here = bytes(*method);
        let ratio = here as f64 / matrix as f64;
        let [at, held, whole] = [format::count(u64::from(n)), format::bytes(here), format::bytes(matrix)];
        let here = if here < matrix {
            fill(Text::MemoryRatioLess, &[&at, name, &held, &format::percent(ratio), &whole])
        } else {
            fill(Text::MemoryRatioMore, &[&at, name, &held, &format::number(ratio), &whole])
        };
        let over_n = match against_matrix {
            Crossover::Between { ahead, .. } => fill(Text::MemoryCrossFrom, &[name, &format::count(u64::from(*ahead))]),
            Crossover::Always => fill(Text::MemoryCrossAlways, &[name]),
            Crossover::Never => fill(Text::MemoryCrossNever, &[name]),
        };
        say(format!("{here} {over_n}"));
    }
    if known.crossovers.iter().all(|(_, _, against_online)| *against_online == Crossover::Never) {
        say(Text::MemoryOnlineLess.get().to_owned());
    }
    say(Text::MemoryPaperPoint.get().to_owned());
}

/// A heading inside the view, with its definition on hover.
fn section(ui: &mut Ui, title: impl Into<String>, hover: Text) {
    ui.label(RichText::new(title).strong()).on_hover_text(hover.get());
}
