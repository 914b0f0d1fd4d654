//! What theory says, as lines, and what this device measures, as dots beside them.

mod bounds;
mod experiments;

use super::{caption, title};
use crate::app::scene::{Command, Scene};
use crate::text::Text;
use egui::Ui;

#[derive(Default)]
pub struct State {
    experiments: experiments::State,
    bounds: bounds::State,
}

pub fn show(ui: &mut Ui, scene: &Scene<'_>, state: &mut State, commands: &mut Vec<Command>) {
    title(ui, Text::TheoryTitle);
    experiments::show(ui, scene, &mut state.experiments, commands);
    caption(ui, Text::TheoryCaption.get());
    ui.add_space(8.0);
    bounds::show(ui, scene, &mut state.bounds, commands);
}
