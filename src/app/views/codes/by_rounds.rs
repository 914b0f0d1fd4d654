//! Union or intersection of rounds: pairs and recall when a pair must be visible in some or in all.

use super::super::{caption, format, waiting};
use super::wide;
use crate::app::scene::{Answer, Command, Question, Scene};
use crate::text::{Text, fill};
use egui::{RichText, Ui};

pub fn show(ui: &mut Ui, scene: &Scene<'_>, commands: &mut Vec<Command>) {
    commands.push(Command::Ask(Question::ByRounds));
    let counted = match (scene.answer)(Question::ByRounds) {
        Some(Answer::ByRounds(Some(counted))) => counted,
        Some(Answer::ByRounds(None)) => return drop(ui.label(Text::CodesNothingHashed.get())),
        other => return waiting(ui, other),
    };
    let rounds = counted.pairs.len() as u32;
    wide(ui, "by rounds", |ui| {
        for name in [Text::ByRoundsVisible, Text::CompareShare, Text::CompareRecall] {
            ui.strong(name.get());
        }
        ui.end_row();
        for least in 1..=rounds {
            let text = match least {
                1 => Text::ByRoundsUnion,
                _ if least == rounds => Text::ByRoundsIntersection,
                _ => Text::ByRoundsLeast,
            };
            let edge = least == 1 || least == rounds;
            let shown = |text: String| if edge { RichText::new(text).strong() } else { RichText::new(text) };
            ui.label(shown(fill(text, &[&least.to_string()])));
            ui.label(shown(format::percent(counted.share(least))));
            ui.label(shown(format::percent(counted.recall(least))));
            ui.end_row();
        }
    });
    let note = match counted.sampled {
        Some(queries) => fill(Text::ByRoundsSampled, &[&queries.to_string()]),
        None => Text::CompareAll.get().to_owned(),
    };
    ui.label(RichText::new(note).weak());
    caption(ui, Text::ByRoundsCaption.get());
}
