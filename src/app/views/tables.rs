//! The tables of both papers, live: formulas, plans, printed values and measurements, each in a place of
//! its own.

mod linformer;
mod reformer;
mod sizes;
mod speed;

use super::{caption, title};
use crate::app::scene::{Command, Scene};
use crate::text::Text;
use egui::{Grid, RichText, ScrollArea, TextWrapMode, Ui};

#[derive(Default)]
pub struct State {
    sizes: sizes::State,
    planned: Option<reformer::Planned>,
    savings: linformer::State,
    speed: speed::State,
}

pub fn show(ui: &mut Ui, scene: &Scene<'_>, state: &mut State, commands: &mut Vec<Command>) {
    title(ui, Text::TablesTitle);
    caption(ui, Text::TablesCaption.get());
    ui.add_space(4.0);
    sizes::show(ui, scene, &mut state.sizes);
    let sizes = &state.sizes.sizes;
    ui.add_space(8.0);
    reformer::show(ui, sizes, &mut state.planned);
    ui.add_space(8.0);
    linformer::show(ui, scene, sizes, &mut state.savings, commands);
    ui.add_space(8.0);
    speed::show(ui, scene, sizes, &mut state.speed, commands);
}

/// A heading, with its source on hover.
fn section(ui: &mut Ui, name: Text, hover: Text) {
    ui.strong(name.get()).on_hover_text(hover.get());
}

/// A table that is moved sideways where it is wider than the page.
fn wide(ui: &mut Ui, name: &str, rows: impl FnOnce(&mut Ui)) {
    ScrollArea::horizontal().id_salt(name).auto_shrink([true, true]).show(ui, |ui| {
        ui.style_mut().wrap_mode = Some(TextWrapMode::Extend);
        Grid::new(name).striped(true).spacing([16.0, 3.0]).show(ui, rows);
    });
}

/// A value with the words that it comes from below it.
fn two_lines(ui: &mut Ui, value: &str, below: &str) {
    ui.vertical(|ui| {
        ui.spacing_mut().item_spacing.y = 0.0;
        ui.label(value);
        ui.label(RichText::new(below).small().weak());
    });
}
