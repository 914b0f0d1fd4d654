//! The n x n matrix: which pairs are computed, what they weigh, and what one query looks at.

mod frame;
mod layer;
mod map;
mod row;
mod sparsity;

use super::layout::column;
use super::{caption, missing, title};
use crate::app::scene::{Command, Scene};
use crate::settings::{Method, Settings};
use crate::text::Text;
use egui::Ui;
use layer::Layer;

/// Width from which the map and the row stand side by side.
const WIDE: f32 = 700.0;

#[derive(Default)]
pub struct State {
    layer: Layer,
    map: map::Map,
    row: row::Rows,
    sparsity: sparsity::Sparse,
}

pub fn show(ui: &mut Ui, scene: &Scene<'_>, state: &mut State, commands: &mut Vec<Command>) {
    // Inside a scroll area the height that is left has no end; what is seen of it has.
    let room = ui.clip_rect().height();
    title(ui, Text::AttentionTitle);
    let outcome = match scene.current() {
        Ok(outcome) => outcome,
        Err(why) => return missing(ui, scene.method, why, commands),
    };
    let layer = choices(ui, scene.settings, state);
    let max_height = (room * 0.62).clamp(220.0, 480.0);
    if ui.available_width() > WIDE {
        ui.columns_const(|[left, right]| {
            column(left, |ui| state.map.show(ui, scene, outcome, layer, max_height, commands));
            column(right, |ui| state.row.show(ui, scene, outcome, commands));
        });
    } else {
        state.map.show(ui, scene, outcome, layer, max_height, commands);
        state.row.show(ui, scene, outcome, commands);
    }
    caption(ui, explained(scene.method, layer).get());
    ui.separator();
    state.sparsity.show(ui, scene, outcome, commands);
}

/// What the map shows of the method on the screen.
fn choices(ui: &mut Ui, settings: &Settings, state: &mut State) -> Layer {
    let shown = state.layer.on(settings);
    ui.horizontal_wrapped(|ui| {
        for layer in Layer::of(settings) {
            let (name, help) = layer.words();
            if ui.selectable_label(*layer == shown, name.get()).on_hover_text(help.get()).clicked() {
                state.layer = *layer;
            }
        }
        if shown.is_weights() {
            ui.checkbox(&mut state.map.log, Text::AttentionLog.get()).on_hover_text(Text::AttentionLogHelp.get());
        }
    });
    state.layer.on(settings)
}

fn explained(method: Method, layer: Layer) -> Text {
    match (layer, method) {
        (Layer::Pattern, Method::Lsh) => Text::CaptionPatternLsh,
        (Layer::Pattern, _) => Text::CaptionPatternFull,
        (Layer::Method, _) => Text::CaptionMethod,
        (Layer::Projected, _) => Text::CaptionProjected,
        (Layer::Effective, _) => Text::CaptionEffective,
        (Layer::Exact, _) => Text::CaptionExact,
    }
}
