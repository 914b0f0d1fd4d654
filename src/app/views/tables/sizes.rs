//! The sizes that the tables are evaluated at.

use crate::app::scene::Scene;
use crate::settings::MAX_N;
use crate::tables::Sizes;
use crate::text::Text;
use egui::{ComboBox, DragValue, Grid, Ui};
use std::ops::RangeInclusive;

/// Widths of a head that the kernels know.
const WIDTHS: RangeInclusive<u32> = 4..=128;

/// Width of a control with its name.
const CONTROL: f32 = 164.0;

pub fn show(ui: &mut Ui, scene: &Scene<'_>, sizes: &mut Sizes) {
    let heads = sizes.d_model.div_ceil(*WIDTHS.end())..=(sizes.d_model / WIDTHS.start()).min(16);
    let controls = [
        control(Text::TablesLength, Text::TablesLengthHelp, |s| &mut s.length, Kind::Power(128..=MAX_N)),
        control(Text::TablesBatch, Text::TablesBatchHelp, |s| &mut s.batch, Kind::Whole(1..=16)),
        control(Text::TablesHeads, Text::TablesHeadsHelp, |s| &mut s.heads, Kind::Power(heads)),
        control(Text::TablesModel, Text::TablesModelHelp, |s| &mut s.d_model, Kind::Power(64..=2048)),
        control(Text::TablesFeedForward, Text::TablesFeedForwardHelp, |s| &mut s.d_ff, Kind::Power(64..=8192)),
        control(Text::TablesLayers, Text::TablesLayersHelp, |s| &mut s.layers, Kind::Whole(1..=96)),
        control(Text::TablesRounds, Text::TablesRoundsHelp, |s| &mut s.rounds, Kind::Whole(1..=16)),
        control(Text::TablesChunk, Text::TablesChunkHelp, |s| &mut s.chunk, Kind::Whole(2..=1024)),
        control(Text::TablesK, Text::TablesKHelp, |s| &mut s.k, Kind::Whole(1..=4096)),
    ];
    let columns = ((ui.available_width() / CONTROL) as usize).clamp(1, 5);
    Grid::new("sizes").num_columns(2 * columns).spacing([8.0, 4.0]).show(ui, |ui| {
        for (at, control) in controls.iter().enumerate() {
            control.show(ui, sizes);
            if (at + 1) % columns == 0 {
                ui.end_row();
            }
        }
    });
    if ui.button(Text::TablesTake.get()).on_hover_text(Text::TablesTakeHelp.get()).clicked() {
        take(scene, sizes);
    }
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
    fn show(&self, ui: &mut Ui, sizes: &mut Sizes) {
        let label = ui.label(self.name.get()).on_hover_text(self.help.get());
        let value = (self.size)(sizes);
        let response = match &self.kind {
            Kind::Whole(range) => ui.add(DragValue::new(value).range(range.clone())),
            Kind::Power(range) => {
                // Another size may have moved the range.
                *value = (*value).clamp(*range.start(), *range.end());
                let menu = ComboBox::from_id_salt(self.name).selected_text(value.to_string()).width(72.0);
                let powers = (0..u32::BITS).map(|bit| 1 << bit).filter(|power| range.contains(power));
                menu.show_ui(ui, |ui| {
                    for power in powers {
                        ui.selectable_value(value, power, power.to_string());
                    }
                })
                .response
            }
        };
        response.labelled_by(label.id).on_hover_text(self.help.get());
    }
}

/// Length, heads, widths, rounds, chunk length and k of the settings.
fn take(scene: &Scene<'_>, sizes: &mut Sizes) {
    let settings = scene.settings;
    let d_model = settings.heads * settings.d;
    *sizes = Sizes {
        length: settings.n,
        heads: settings.heads,
        d_model,
        d_ff: 4 * d_model,
        rounds: settings.rounds,
        chunk: settings.chunk_len(),
        k: settings.projected_len(),
        ..*sizes
    };
}
