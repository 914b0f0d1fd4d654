//! One file a view: `show(ui, &Scene, &mut State, &mut Vec<Command>)`.

pub mod attention;
pub mod buckets;
pub mod chart;
pub mod codes;
pub mod colour;
pub mod compare;
pub mod contender;
pub mod drawn;
pub mod format;
pub mod layers;
pub mod layout;
pub mod memory;
pub mod projection;
pub mod rank;
pub mod result;
pub mod tables;
pub mod theory;
pub mod ticks;
pub mod tokens;

use super::scene::{Answer, Command, Missing, Scene};
use super::summary::method_tab;
use crate::settings::{Method, Settings};
use crate::text::{Text, fill};
use egui::{CollapsingHeader, RichText, Ui};

/// The name of a method on the screen.
pub fn method_name(method: Method) -> &'static str {
    match method {
        Method::Full | Method::FullRowwise | Method::FullMaterialized => Text::MethodFull.get(),
        Method::Lsh => Text::MethodLsh.get(),
        Method::Linformer => Text::MethodLinformer.get(),
    }
}

/// The title of a view.
pub fn title(ui: &mut Ui, text: Text) {
    ui.heading(text.get());
}

/// One or two sentences under a view: what is seen, what to try.
pub fn caption(ui: &mut Ui, text: &str) {
    ui.add_space(2.0);
    ui.label(RichText::new(text).color(ui.visuals().weak_text_color()));
}

/// A part of a view that is folded until it is clicked.
pub fn section(ui: &mut Ui, name: Text, contents: impl FnOnce(&mut Ui)) {
    CollapsingHeader::new(RichText::new(name.get()).strong()).id_salt(name).show(ui, contents);
}

/// Says that an answer is on its way, or why there is none.
pub fn waiting(ui: &mut Ui, answer: Option<Answer>) {
    waiting_for(ui, answer, Text::AnswerSoon.get());
}

/// The same, with words of its own for an answer that is on its way.
pub fn waiting_for(ui: &mut Ui, answer: Option<Answer>, soon: &str) {
    match answer {
        Some(Answer::Failed(why)) => ui.colored_label(ui.visuals().error_fg_color, why),
        _ => ui.label(soon),
    };
}

/// Says that another method is on the screen than the one that a view is about, with a button that shows it, and
/// what would be seen.
pub fn elsewhere(ui: &mut Ui, scene: &Scene<'_>, about: Method, why: Text, seen: Text, commands: &mut Vec<Command>) {
    ui.label(fill(why, &[method_name(scene.method)]));
    let (name, help) = method_tab(about);
    if ui.button(fill(Text::ShowMethod, &[name.get()])).on_hover_text(help.get()).clicked() {
        commands.push(Command::Set(Box::new(Settings { method: about, ..scene.settings.clone() })));
    }
    caption(ui, seen.get());
}

/// Says why a method has no outcome, with a button where it waits to be asked.
pub fn missing(ui: &mut Ui, method: Method, why: &Missing, commands: &mut Vec<Command>) {
    let name = method_name(method);
    match why {
        Missing::Soon => {
            ui.label(fill(Text::MissingSoon, &[name]));
        }
        Missing::PutOff { seconds } => {
            let seconds = ticks::written(seconds.max(1.0).round());
            ui.label(fill(Text::MissingPutOff, &[name, &seconds]));
            let run = ui.button(fill(Text::MissingRun, &[name]));
            if run.on_hover_text(fill(Text::MissingRunHint, &[name, &seconds])).clicked() {
                commands.push(Command::RunNow(method));
            }
        }
        Missing::Failed(why) => {
            ui.label(RichText::new(fill(Text::MissingFailed, &[name, why])).color(ui.visuals().error_fg_color));
        }
    }
}
