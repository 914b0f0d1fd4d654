//! What sharing saves: matrices and parameters of a model of layers and heads.

use crate::app::scene::Scene;
use crate::app::views::{caption, format};
use crate::semantics::Choice;
use crate::settings::{MAX_N, Sharing};
use crate::text::{Text, fill};
use egui::{DragValue, Grid, RichText, ScrollArea, Ui};
use std::ops::RangeInclusive;

pub struct State {
    layers: u32,
    heads: u32,
    /// Projected length of the first and of the last layer.
    k: [u32; 2],
}

impl Default for State {
    /// The model of the paper, section 4.
    fn default() -> Self {
        Self { layers: 12, heads: 12, k: [256, 256] }
    }
}

/// The projected length of every layer, on a straight line from the first to the last.
fn by_layer(layers: u32, [first, last]: [u32; 2]) -> Vec<u64> {
    let part = |layer: u32| f64::from(layer) / f64::from((layers - 1).max(1));
    let (first, last) = (f64::from(first), f64::from(last));
    (0..layers).map(|layer| (first + (last - first) * part(layer)).round() as u64).collect()
}

impl State {
    pub fn show(&mut self, ui: &mut Ui, scene: &Scene<'_>) {
        ui.strong(Text::SharingTitle.get());
        let n = scene.settings.n;
        ui.horizontal_wrapped(|ui| {
            number(ui, Text::SharingLayers, Text::SharingLayersHelp, &mut self.layers, 1..=96);
            number(ui, Text::SharingHeads, Text::SharingHeadsHelp, &mut self.heads, 1..=96);
            number(ui, Text::SharingFirst, Text::SharingFirstHelp, &mut self.k[0], 1..=MAX_N);
            number(ui, Text::SharingLast, Text::SharingLastHelp, &mut self.k[1], 1..=MAX_N);
        });
        let k = by_layer(self.layers, self.k);
        ScrollArea::horizontal().id_salt("sharing table").auto_shrink([true, true]).show(ui, |ui| {
            Grid::new("sharing").striped(true).spacing([16.0, 2.0]).show(ui, |ui| {
                for head in [Text::Sharing, Text::SharingMatrices, Text::SharingParameters, Text::SharingBytes] {
                    ui.strong(head.get());
                }
                ui.end_row();
                for (sharing, _) in Sharing::ALL {
                    let matrices = sharing.matrices(u64::from(self.layers), u64::from(self.heads));
                    let parameters = sharing.parameters(u64::from(n), u64::from(self.heads), &k);
                    let runs = scene.settings.sharing == *sharing && scene.settings.projection.has_parameters();
                    let words = |text: String| if runs { RichText::new(text).strong() } else { RichText::new(text) };
                    ui.label(words(name(*sharing).get().to_owned())).on_hover_text(Text::SharingHelp.get());
                    ui.label(words(format::count(matrices)));
                    ui.label(words(format::count(parameters)));
                    ui.label(words(format::bytes(parameters * 4)));
                    ui.end_row();
                }
            });
        });
        let listed: Vec<String> = k.iter().map(|k| format::count(*k)).collect();
        ui.label(fill(Text::SharingByLayer, &[&format::count(u64::from(n)), &listed.join(", ")]));
        caption(ui, Text::SharingCaption.get());
    }
}

fn name(sharing: Sharing) -> Text {
    match sharing {
        Sharing::None => Text::SharingNameNone,
        Sharing::Headwise => Text::SharingNameHeadwise,
        Sharing::KeyValue => Text::SharingNameKeyValue,
        Sharing::Layerwise => Text::SharingNameLayerwise,
    }
}

fn number(ui: &mut Ui, name: Text, help: Text, value: &mut u32, range: RangeInclusive<u32>) {
    let label = ui.label(name.get()).on_hover_text(help.get());
    let control = DragValue::new(value).range(range).speed(0.1).update_while_editing(false);
    ui.add(control).labelled_by(label.id).on_hover_text(help.get());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projected_lengths_fall_on_a_line() {
        assert_eq!(by_layer(1, [128, 64]), [128]);
        assert_eq!(by_layer(3, [128, 64]), [128, 96, 64]);
        assert_eq!(by_layer(4, [10, 10]), [10; 4]);
        assert_eq!(by_layer(2, [1, 5]), [1, 5]);
    }
}
