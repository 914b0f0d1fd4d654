//! The sizes that the tables are evaluated at.

use crate::app::scene::Scene;
use crate::app::views::format;
use crate::settings::{MAX_N, Settings};
use crate::tables::Sizes;
use crate::text::{Text, fill};
use egui::{ComboBox, DragValue, Grid, Ui};
use std::ops::RangeInclusive;

/// Widths of a head that the kernels know, of a model, and its heads.
const WIDTHS: RangeInclusive<u32> = 4..=128;
const MODELS: RangeInclusive<u32> = 64..=2048;
const HEADS: RangeInclusive<u32> = 1..=16;

/// Width of a control with its name.
const CONTROL: f32 = 164.0;

#[derive(Default)]
pub struct State {
    pub sizes: Sizes,
    /// Sizes that were taken, and in words which of them are not those of the settings.
    moved: Option<(Sizes, String)>,
}

pub fn show(ui: &mut Ui, scene: &Scene<'_>, state: &mut State) {
    let columns = ((ui.available_width() / CONTROL) as usize).clamp(1, 5);
    Grid::new("sizes").num_columns(2 * columns).spacing([8.0, 4.0]).show(ui, |ui| {
        for (at, control) in controls(&state.sizes).iter().enumerate() {
            control.show(ui, &mut state.sizes);
            if (at + 1) % columns == 0 {
                ui.end_row();
            }
        }
    });
    if ui.button(Text::TablesTake.get()).on_hover_text(Text::TablesTakeHelp.get()).clicked() {
        let (sizes, moved) = taken(scene.settings, &state.sizes);
        state.sizes = sizes;
        state.moved = (!moved.is_empty()).then(|| (sizes, fill(Text::TablesMoved, &[&moved.join(", ")])));
    }
    // It is said until another size is chosen.
    if let Some((_, words)) = state.moved.as_ref().filter(|(sizes, _)| *sizes == state.sizes) {
        ui.label(words);
    }
}

fn controls(sizes: &Sizes) -> [Control; 9] {
    let heads = sizes.d_model.div_ceil(*WIDTHS.end())..=(sizes.d_model / WIDTHS.start()).min(*HEADS.end());
    [
        control(Text::TablesLength, Text::TablesLengthHelp, |s| &mut s.length, Kind::Power(128..=MAX_N)),
        control(Text::TablesBatch, Text::TablesBatchHelp, |s| &mut s.batch, Kind::Whole(1..=16)),
        control(Text::TablesHeads, Text::TablesHeadsHelp, |s| &mut s.heads, Kind::Power(heads)),
        control(Text::TablesModel, Text::TablesModelHelp, |s| &mut s.d_model, Kind::Power(MODELS)),
        control(Text::TablesFeedForward, Text::TablesFeedForwardHelp, |s| &mut s.d_ff, Kind::Power(64..=8192)),
        control(Text::TablesLayers, Text::TablesLayersHelp, |s| &mut s.layers, Kind::Whole(1..=96)),
        control(Text::TablesRounds, Text::TablesRoundsHelp, |s| &mut s.rounds, Kind::Whole(1..=16)),
        control(Text::TablesChunk, Text::TablesChunkHelp, |s| &mut s.chunk, Kind::Whole(2..=1024)),
        control(Text::TablesK, Text::TablesKHelp, |s| &mut s.k, Kind::Whole(1..=4096)),
    ]
}

/// What may be chosen.
enum Kind {
    Whole(RangeInclusive<u32>),
    /// Powers of two.
    Power(RangeInclusive<u32>),
}

struct Control {
    name: Text,
    help: Text,
    size: fn(&mut Sizes) -> &mut u32,
    kind: Kind,
}

fn control(name: Text, help: Text, size: fn(&mut Sizes) -> &mut u32, kind: Kind) -> Control {
    Control { name, help, size, kind }
}

impl Control {
    /// Moves a size to the nearest that may be chosen.
    fn clamp(&self, sizes: &mut Sizes) {
        let (Kind::Whole(range) | Kind::Power(range)) = &self.kind;
        let size = (self.size)(sizes);
        *size = (*size).clamp(*range.start(), *range.end());
    }

    fn show(&self, ui: &mut Ui, sizes: &mut Sizes) {
        let label = ui.label(self.name.get()).on_hover_text(self.help.get());
        // Another size may have moved the range.
        self.clamp(sizes);
        let value = (self.size)(sizes);
        let response = match &self.kind {
            Kind::Whole(range) => ui.add(DragValue::new(value).range(range.clone())),
            Kind::Power(range) => {
                let menu = ComboBox::from_id_salt(self.name).selected_text(format::count((*value).into())).width(72.0);
                let powers = (0..u32::BITS).map(|bit| 1 << bit).filter(|power| range.contains(power));
                menu.show_ui(ui, |ui| {
                    for power in powers {
                        ui.selectable_value(value, power, format::count(power.into()));
                    }
                })
                .response
            }
        };
        response.labelled_by(label.id).on_hover_text(self.help.get());
    }
}

/// Length, heads, widths, rounds, chunk length and k of the settings, and what was moved to a size that may be chosen:
/// its name, what the settings have, and what was taken.
fn taken(settings: &Settings, before: &Sizes) -> (Sizes, Vec<String>) {
    let wanted = Sizes {
        length: settings.n,
        heads: settings.heads,
        d_model: settings.heads * settings.d,
        rounds: settings.rounds,
        chunk: settings.chunk_len(),
        k: settings.projected_len(),
        ..*before
    };
    // Heads of the least width that a model may have, so that they stay as many.
    let heads = settings.heads.clamp(*HEADS.start(), *HEADS.end());
    let least = MODELS.start().div_ceil(heads).max(*WIDTHS.start());
    let d_model = heads * settings.d.clamp(least, *WIDTHS.end());
    // The settings have none.
    let wanted = Sizes { d_ff: 4 * d_model, ..wanted };
    let mut sizes = Sizes { heads, d_model, ..wanted };
    let controls = controls(&sizes);
    controls.iter().for_each(|control| control.clamp(&mut sizes));
    let moved = controls.iter().filter_map(|control| {
        let [from, to] = [wanted, sizes].map(|mut sizes| *(control.size)(&mut sizes));
        let words = [control.name.get(), &format::count(from.into()), &format::count(to.into())];
        (from != to).then(|| fill(Text::TablesMovedSize, &words))
    });
    let moved = moved.collect();
    (sizes, moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is taken may be chosen, whatever the settings are, and what the settings do not have is told.
    #[test]
    fn all_settings_can_be_taken() {
        for heads in [1, 2, 3, 5, 16, 64] {
            for d in [1, 2, 3, 4, 63, 64, 128, 256] {
                let settings = Settings { n: 100, heads, d, ..Settings::default() };
                let (sizes, moved) = taken(&settings, &Sizes::default());
                for control in controls(&sizes) {
                    let (Kind::Whole(range) | Kind::Power(range)) = &control.kind;
                    let size = *(control.size)(&mut sizes.clone());
                    assert!(range.contains(&size), "{heads} x {d}: {:?} is {size} of {range:?}", control.name);
                }
                assert_eq!(sizes.d() * sizes.heads, sizes.d_model, "{heads} x {d}");
                for (name, same) in [("d_model", sizes.d_model == heads * d), ("heads", sizes.heads == heads)] {
                    let told = moved.iter().any(|words| words.starts_with(name));
                    assert!(told != same, "{heads} x {d}: {moved:?}");
                }
                assert!(moved.iter().any(|words| words == "length from 100 to 128"), "{moved:?}");
            }
        }
    }
}
