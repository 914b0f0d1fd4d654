//! What grows: bytes over depth, stored and reversible; bytes over the chunks of the feed-forward
//! layer and over those of the loss; and what parameters in host memory save and cost.

use super::{HEIGHT, Known, REVERSIBLE, STORED, WIDE, ask};
use crate::app::scene::{Command, Scene};
use crate::app::views::chart::{Axis, Chart, Dot, Trace};
use crate::app::views::layout::column;
use crate::app::views::ticks::written;
use crate::lab::stack::{Moment, Passage, Phase, Stacked, Way};
use crate::settings::Settings;
use crate::text::{Text, fill};
use crate::units::bytes_in_words;
use egui::{Color32, RichText, Ui};
use std::collections::BTreeSet;

const DEPTHS: [u32; 5] = [1, 2, 4, 8, 12];
const CHUNKS: [u32; 5] = [1, 2, 4, 8, 16];

pub fn show(ui: &mut Ui, scene: &Scene<'_>, swept: &mut Option<Settings>, commands: &mut Vec<Command>) {
    ui.add_space(8.0);
    let sweep = ui.button(Text::LayersSweep.get()).on_hover_text(Text::LayersSweepHelp.get());
    if sweep.clicked() {
        *swept = Some(scene.settings.clone());
        commands.push(Command::Resume);
    }
    if swept.as_ref() != Some(scene.settings) {
        return;
    }
    let mut failures = BTreeSet::new();
    let mut known = |stacked: Stacked| {
        let known = ask(scene, stacked, commands);
        if let Known::Failed(why) = &known {
            failures.insert(why.clone());
        }
        known
    };
    let own = Stacked { way: Way::default(), ..Stacked::of(scene.settings) };
    let swapped = known(Stacked { way: Way { swap: true, ..Way::default() }, ..own });
    let resident = known(own);
    let one = Stacked { layers: 1, ..own };
    let sections = series(&CHUNKS, |loss_chunks| known(Stacked { loss_chunks, ..one }), Passage::loss_bytes);
    let chunks = series(&CHUNKS, |chunks| known(Stacked { chunks, ..one }), layer_bytes);
    let way = Way { stored: true, ..Way::default() };
    let stored = series(&DEPTHS, |layers| known(Stacked { layers, way, ..own }), Passage::activation_bytes);
    let reversible = series(&DEPTHS, |layers| known(Stacked { layers, ..own }), Passage::activation_bytes);
    // One sentence for all that failed alike.
    for why in &failures {
        ui.label(RichText::new(why).color(ui.visuals().error_fg_color));
    }
    let depth = [trace(Text::LayersReversible, REVERSIBLE, reversible), trace(Text::LayersStored, STORED, stored)];
    let [chunks, sections] = [chunks, sections].map(|dots| [trace(Text::LayersReversible, REVERSIBLE, dots)]);
    let charts = [
        ("layer bytes", Text::LayersGrowth, Text::LayersDepthAxis, &DEPTHS, &depth[..]),
        ("chunk bytes", Text::LayersChunkBytes, Text::LayersChunksAxis, &CHUNKS, &chunks[..]),
        ("loss bytes", Text::LayersLossBytes, Text::LayersLossChunksAxis, &CHUNKS, &sections[..]),
    ];
    if ui.available_width() > WIDE {
        ui.columns_const(|columns: &mut [Ui; 3]| {
            for (ui, chart) in columns.iter_mut().zip(charts) {
                column(ui, |ui| plot(ui, chart));
            }
        });
    } else {
        for chart in charts {
            plot(ui, chart);
        }
    }
    if let (Some(swapped), Some(resident)) = (swapped.passage(), resident.passage()) {
        ui.label(saved(swapped, resident));
    }
}

/// Bytes saved and time lost by parameters in host memory.
fn saved(swapped: &Passage, resident: &Passage) -> String {
    let wall = |of: &Passage| of.forward.wall_ms + of.loss.wall_ms + of.backward.wall_ms;
    let bytes = resident.parameter_bytes().saturating_sub(swapped.parameter_bytes());
    let held = bytes_in_words(swapped.parameter_bytes());
    fill(Text::LayersSwapped, &[&bytes_in_words(bytes), &held, &written(wall(swapped)), &written(wall(resident))])
}

/// The most while a layer is on.
fn layer_bytes(passage: &Passage) -> u64 {
    let layers = passage.moments.iter().filter(|moment| moment.phase != Phase::Loss);
    layers.map(Moment::activation_bytes).max().unwrap_or(0)
}

fn series(at: &[u32], mut known: impl FnMut(u32) -> Known, bytes: fn(&Passage) -> u64) -> Vec<Dot> {
    let mut dots = Vec::new();
    // The question that was asked last is answered first.
    for at in at.iter().rev() {
        if let Some(passage) = known(*at).passage() {
            let mebibytes = bytes(passage) as f64 / f64::from(1u32 << 20);
            dots.push(Dot { at: [f64::from(*at), mebibytes], error: 0.0 });
        }
    }
    dots
}

fn trace(name: Text, colour: Color32, dots: Vec<Dot>) -> Trace {
    Trace::dots(name.get(), colour, dots)
}

fn plot(ui: &mut Ui, (id, title, x, marks, traces): (&str, Text, Text, &[u32; 5], &[Trace])) {
    ui.strong(title.get()).on_hover_text(Text::LayersSweepHelp.get());
    let top = traces.iter().flat_map(|trace| &trace.dots).map(|dot| dot.at[1]).fold(1.0, f64::max);
    let chart = Chart {
        id,
        x: Axis {
            label: x.get(),
            log: true,
            marks: marks.iter().map(|mark| f64::from(*mark)).collect(),
            write: |value| format!("{value:.0}"),
        },
        y: Axis {
            label: Text::LayersBytesAxis.get(),
            log: false,
            marks: crate::app::views::ticks::linear(0.0, top * 1.1, 5),
            write: written,
        },
        height: HEIGHT,
    };
    chart.show(ui, traces);
}
