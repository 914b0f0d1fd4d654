//! What each published code does: the input under the rules of the paper, of reformer-pytorch and of
//! Hugging Face, side by side; and three questions that students of these codes ask.

mod by_rounds;
mod last_token;
mod rules;
mod separate_keys;

use super::drawn::Drawn;
use super::layout::column;
use super::tokens::{Canvas, Tokens, Turn};
use super::{caption, elsewhere, section, title};
use crate::app::controls::preset_words;
use crate::app::scene::{Answer, Command, Question, Scene};
use crate::outcome::Outcome;
use crate::presets::{PRESETS, Preset};
use crate::settings::Method;
use crate::text::Text;
use egui::{Grid, Label, RichText, ScrollArea, Ui};
use std::rc::Rc;

/// Most height of an output.
const HEIGHT: f32 = 220.0;

#[derive(Default)]
pub struct State {
    sides: [Side; PRESETS.len()],
    turn: Turn,
    last_token: last_token::State,
}

/// One code's output, rebuilt when the outcome or the head changes.
#[derive(Default)]
struct Side {
    drawn: Option<(Rc<Outcome>, u32, Drawn)>,
    canvas: Canvas,
}

/// What is known about one code.
enum Known {
    Soon,
    Failed(String),
    Ran(Rc<Outcome>),
}

impl Known {
    fn outcome(&self) -> Option<&Outcome> {
        if let Self::Ran(outcome) = self { Some(outcome) } else { None }
    }
}

pub fn show(ui: &mut Ui, scene: &Scene<'_>, state: &mut State, commands: &mut Vec<Command>) {
    title(ui, Text::CodesTitle);
    if scene.method != Method::Lsh {
        // Answers are about the method on the screen.
        return elsewhere(ui, scene, Method::Lsh, Text::CodesOfLsh, Text::ViewCodesHelp, commands);
    }
    let known = PRESETS.each_ref().map(|preset| ask(scene, preset, commands));
    ui.columns(PRESETS.len(), |columns| {
        for (((ui, preset), known), side) in columns.iter_mut().zip(&PRESETS).zip(&known).zip(&mut state.sides) {
            column(ui, |ui| {
                heading(ui, scene, preset, commands);
                match known {
                    Known::Soon => drop(ui.label(Text::AnswerSoon.get())),
                    Known::Failed(why) => drop(ui.label(RichText::new(why).color(ui.visuals().error_fg_color))),
                    Known::Ran(outcome) => output(ui, scene, (preset.title, outcome), side, &mut state.turn, commands),
                }
            });
        }
    });
    ui.add_space(6.0);
    rules::show(ui, scene, &known);
    let short = known.iter().filter_map(Known::outcome).any(Outcome::is_short);
    if short {
        ui.label(RichText::new(Text::CodesShort.get()).color(ui.visuals().warn_fg_color));
    }
    for preset in &PRESETS {
        ui.horizontal_wrapped(|ui| {
            ui.label(RichText::new(preset.title).strong());
            ui.label(preset_words(preset).get());
        });
    }
    caption(ui, Text::CodesCaption.get());
    ui.add_space(6.0);
    section(ui, Text::LastToken, |ui| last_token::show(ui, scene, &mut state.last_token, commands));
    section(ui, Text::SeparateKeys, |ui| separate_keys::show(ui, scene, commands));
    section(ui, Text::ByRounds, |ui| by_rounds::show(ui, scene, commands));
}

fn ask(scene: &Scene<'_>, preset: &'static Preset, commands: &mut Vec<Command>) -> Known {
    let question = Question::Under { preset };
    commands.push(Command::Ask(question));
    match (scene.answer)(question) {
        Some(Answer::Under(outcome)) => Known::Ran(outcome),
        Some(Answer::Failed(why)) => Known::Failed(why),
        _ => Known::Soon,
    }
}

/// The name of a code, and a button that takes its rules.
fn heading(ui: &mut Ui, scene: &Scene<'_>, preset: &'static Preset, commands: &mut Vec<Command>) {
    ui.add(Label::new(RichText::new(preset.title).strong()).truncate()).on_hover_text(preset_words(preset).get());
    if Preset::of(scene.settings) == Some(preset) {
        ui.add_enabled(false, egui::Button::new(Text::CodesNow.get()));
    } else if ui.button(Text::CodesUse.get()).on_hover_text(Text::CodesUseHelp.get()).clicked() {
        let mut settings = scene.settings.clone();
        preset.apply(&mut settings);
        commands.push(Command::Set(Box::new(settings)));
    }
}

fn output(
    ui: &mut Ui,
    scene: &Scene<'_>,
    (name, outcome): (&str, &Rc<Outcome>),
    side: &mut Side,
    turn: &mut Turn,
    commands: &mut Vec<Command>,
) {
    let head = scene.head.min(outcome.dims.heads - 1);
    let kept = side.drawn.take().filter(|(old, of, _)| Rc::ptr_eq(old, outcome) && *of == head);
    let (_, _, drawn) = side.drawn.insert(kept.unwrap_or_else(|| {
        let size = (outcome.dims.n_q * outcome.dims.d_v) as usize;
        let rows = &outcome.out[head as usize * size..][..size];
        (outcome.clone(), head, Drawn::new(&scene.input.shown, rows, outcome.dims.d_v as usize))
    }));
    side.canvas.turn = *turn;
    let tokens = Tokens { name, face: drawn.face(), overlay: None, opacity: 1.0, max_height: HEIGHT };
    tokens.show(ui, scene, &mut side.canvas).tell(commands);
    *turn = side.canvas.turn;
}

/// A table that is moved sideways where it is wider than the page.
fn wide(ui: &mut Ui, name: &str, rows: impl FnOnce(&mut Ui)) {
    ScrollArea::horizontal().id_salt(name).auto_shrink([true, true]).show(ui, |ui| {
        Grid::new(name).striped(true).spacing([14.0, 2.0]).show(ui, rows);
    });
}
