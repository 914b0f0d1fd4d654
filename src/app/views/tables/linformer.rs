//! Linformer, table 3: what the paper prints, and what is measured here when asked.

use super::{section, two_lines, wide};
use crate::app::scene::{Answer, Command, Question, Scene};
use crate::app::views::format;
use crate::tables::{LINFORMER_3, LINFORMER_K, Saved, Sizes};
use crate::text::{Text, fill};
use egui::{RichText, Ui};

/// Short enough to be measured without being asked.
const SHORT: u32 = 512;

#[derive(Default)]
pub struct State {
    /// Lengths that were asked for.
    asked: Vec<u32>,
}

pub fn show(ui: &mut Ui, scene: &Scene<'_>, sizes: &Sizes, state: &mut State, commands: &mut Vec<Command>) {
    section(ui, Text::TablesLinformer3, Text::TablesLinformer3Help);
    let mut failures = Vec::new();
    wide(ui, "linformer 3", |ui| {
        ui.label(RichText::new("n").strong());
        for k in LINFORMER_K {
            ui.label(RichText::new(fill(Text::TablesColumnK, &[&format::count(u64::from(k))])).strong());
        }
        ui.end_row();
        for (n, row) in LINFORMER_3 {
            let measured = (n <= SHORT || state.asked.contains(&n)).then(|| ask(scene, sizes, n, commands));
            ui.vertical(|ui| {
                let length = format::count(u64::from(n));
                ui.label(&length);
                match &measured {
                    Some(Some(Err(why))) => failures.push(fill(Text::TablesNotMeasured, &[&length, why])),
                    Some(None) => drop(ui.label(RichText::new(Text::TablesSoon.get()).small().weak())),
                    Some(Some(Ok(_))) => {}
                    None => {
                        let button = ui.small_button(fill(Text::TablesMeasure, &[&length]));
                        if button.on_hover_text(Text::TablesMeasureHelp.get()).clicked() {
                            state.asked.push(n);
                        }
                    }
                }
            });
            for (at, cell) in row.into_iter().enumerate() {
                let Some(Saved { time, memory }) = cell else {
                    ui.label("");
                    continue;
                };
                let printed = fill(Text::TablesPrinted, &[&format::number(time), &format::number(memory)]);
                let here = measured.as_ref().and_then(|known| known.as_ref()?.as_ref().ok()?[at]);
                let words = here.map_or_else(String::new, |Saved { time, memory }| {
                    fill(Text::TablesMeasured, &[&format::number(time), &format::number(memory)])
                });
                two_lines(ui, &words, &printed);
            }
            ui.end_row();
        }
    });
    for why in failures {
        ui.colored_label(ui.visuals().error_fg_color, why);
    }
    let shape = [sizes.batch, sizes.heads, sizes.d()].map(|size| size.to_string());
    ui.label(RichText::new(fill(Text::TablesLinformer3Words, &shape.each_ref().map(String::as_str))).small());
}

/// What is known about the savings at one length.
fn ask(
    scene: &Scene<'_>,
    sizes: &Sizes,
    n: u32,
    commands: &mut Vec<Command>,
) -> Option<Result<[Option<Saved>; LINFORMER_K.len()], String>> {
    // What does not matter to the answer does not ask again.
    let sizes = Sizes { length: n, batch: sizes.batch, heads: sizes.heads, d_model: sizes.d_model, ..Sizes::default() };
    let question = Question::Savings { sizes };
    commands.push(Command::Ask(question));
    match (scene.answer)(question) {
        Some(Answer::Savings(savings)) => Some(Ok(savings)),
        Some(Answer::Failed(why)) => Some(Err(why)),
        _ => None,
    }
}
