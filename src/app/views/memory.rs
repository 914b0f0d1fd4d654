use crate::app::scene::{Command, Scene};
use crate::app::text::Text;

#[derive(Default)]
pub struct State {}

pub fn show(ui: &mut egui::Ui, _scene: &Scene, _state: &mut State, _commands: &mut Vec<Command>) {
    ui.heading(Text::MemoryTitle.get());
}
