//! The n x n map that Linformer multiplies the values with, beside the exact one.

use super::pair;
use super::picture::{Canvas, Grid, Scale};
use crate::app::scene::{Answer, Command, Question, Scene};
use crate::app::views::{caption, waiting};
use crate::methods::measure::{Weights, Window};
use crate::settings::Projection;
use crate::text::Text;
use egui::Ui;

/// Height of a map.
pub const HEIGHT: f32 = 260.0;

pub struct State {
    /// P-bar E instead of P-bar F, where they differ.
    keys: bool,
    log: bool,
    canvases: [Canvas; 2],
}

impl Default for State {
    /// Weights differ by orders of magnitude: linear colours show next to nothing.
    fn default() -> Self {
        Self { keys: false, log: true, canvases: Default::default() }
    }
}

/// The map of a window over the whole matrix.
pub fn question(scene: &Scene<'_>, which: Weights) -> Question {
    let dims = &scene.input.problem.dims;
    Question::WeightMap { which, head: scene.head, window: Window::whole(dims.n_q, dims.n_kv) }
}

impl State {
    pub fn show(&mut self, ui: &mut Ui, scene: &Scene<'_>, commands: &mut Vec<Command>) {
        ui.strong(Text::MapTitle.get());
        if scene.settings.projection == Projection::Max {
            ui.label(Text::MapNone.get());
            return;
        }
        let (shared, _) = scene.settings.projection_sharing();
        ui.horizontal_wrapped(|ui| {
            if !shared {
                for (keys, name, help) in
                    [(false, Text::MapOfF, Text::MapOfFHelp), (true, Text::MapOfE, Text::MapOfEHelp)]
                {
                    if ui.selectable_label(self.keys == keys, name.get()).on_hover_text(help.get()).clicked() {
                        self.keys = keys;
                    }
                }
            }
            ui.checkbox(&mut self.log, Text::AttentionLog.get()).on_hover_text(Text::MapLogHelp.get());
        });
        let keys = self.keys && !shared;
        let which = if keys { Weights::SignedE } else { Weights::SignedF };
        let name = match (shared, keys) {
            (true, _) => Text::MapShared,
            (false, true) => Text::MapOfE,
            (false, false) => Text::MapOfF,
        };
        let answers = [which, Weights::Exact].map(|which| {
            let question = question(scene, which);
            commands.push(Command::Ask(question));
            (scene.answer)(question)
        });
        let high = answers.iter().fold(0.0f32, |high, answer| match answer {
            Some(Answer::Map(map)) => high.max(Scale::of(&map.values, self.log).high),
            _ => high,
        });
        // One scale for both, so that colours can be compared.
        let scale = Scale { high, log: self.log };
        let [first, second] = &mut self.canvases;
        pair(ui, |ui, exact| {
            let (answer, name, canvas) =
                if exact { (&answers[1], Text::MapExact, &mut *second) } else { (&answers[0], name, &mut *first) };
            match answer {
                Some(Answer::Map(map)) => canvas.show(ui, map, &Grid::of_map(map, name.get()), scale, HEIGHT),
                other => waiting(ui, other.clone()),
            }
        });
        caption(ui, if shared { Text::MapCaptionShared.get() } else { Text::MapCaption.get() });
    }
}
