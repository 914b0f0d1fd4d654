//! Reformer, tables 1 to 3.

use super::{section, two_lines, wide};
use crate::app::views::format;
use crate::semantics::Wrap;
use crate::tables::{self, Attention, FEED_FORWARD_CHUNKS, Model, REFORMER_2, Row, Sizes};
use crate::text::{Text, fill};
use egui::{CollapsingHeader, RichText, Ui};

/// What the plans of tables 1 and 3 allocate, and the visits of LSH attention without and with a wrap, for some
/// sizes.
pub struct Planned {
    sizes: Sizes,
    bytes: [u64; 2],
    models: [u64; 5],
    visits: [u64; 2],
}

const ATTENTION: [Attention; 2] = [Attention::ScaledDotProduct, Attention::Lsh];

impl Planned {
    fn new(sizes: &Sizes) -> Self {
        Self {
            sizes: *sizes,
            bytes: ATTENTION.map(|name| tables::planned(sizes, name)),
            models: tables::reformer_3(sizes).map(|row| tables::planned_model(sizes, row.name)),
            visits: [Wrap::None, Wrap::InRound].map(|wrap| sizes.visits(wrap)),
        }
    }
}

pub fn show(ui: &mut Ui, sizes: &Sizes, planned: &mut Option<Planned>) {
    let kept = planned.take().filter(|planned| planned.sizes == *sizes);
    let planned = planned.insert(kept.unwrap_or_else(|| Planned::new(sizes)));
    section(ui, Text::TablesReformer1, Text::TablesReformer1Help);
    wide(ui, "reformer 1", |ui| first(ui, sizes, planned));
    let [m, c] = [sizes.chunk, 4 * sizes.chunk].map(|size| format::count(u64::from(size)));
    ui.label(RichText::new(fill(Text::TablesReformer1Words, &[&m, &c])).small());
    ui.add_space(8.0);
    section(ui, Text::TablesReformer3, Text::TablesReformer3Help);
    wide(ui, "reformer 3", |ui| third(ui, sizes, planned));
    let c = u64::from(4 * sizes.chunk).pow(2);
    ui.label(
        RichText::new(fill(Text::TablesReformer3Words, &[&format::count(c), &FEED_FORWARD_CHUNKS.to_string()])).small(),
    );
    CollapsingHeader::new(Text::TablesReformer2.get()).show(ui, |ui| {
        wide(ui, "reformer 2", second);
        ui.label(RichText::new(Text::TablesReformer2Words.get()).small());
    });
}

/// Numbers in float32.
fn bytes(numbers: f64) -> String {
    format::bytes((numbers * 4.0) as u64)
}

fn heads(ui: &mut Ui, names: &[(Text, Text)]) {
    for (name, help) in names {
        ui.label(RichText::new(name.get()).strong()).on_hover_text(help.get());
    }
    ui.end_row();
}

fn first(ui: &mut Ui, sizes: &Sizes, planned: &Planned) {
    heads(
        ui,
        &[
            (Text::TablesMethod, Text::TablesReformer1Help),
            (Text::TablesMemoryFormula, Text::TablesMemoryFormulaHelp),
            (Text::TablesMemoryPlan, Text::TablesMemoryPlanHelp),
            (Text::TablesTimeFormula, Text::TablesTimeFormulaHelp),
            (Text::TablesVisits, Text::TablesVisitsHelp),
        ],
    );
    for (Row { name, memory, time }, bytes_planned) in tables::reformer_1(sizes).into_iter().zip(planned.bytes) {
        let (words, formula) = match name {
            Attention::ScaledDotProduct => (Text::TablesScaled, Text::TablesScaledFormula),
            Attention::Lsh => (Text::TablesLsh, Text::TablesLshFormula),
        };
        ui.label(words.get());
        two_lines(ui, &bytes(memory), formula.get());
        ui.label(format::bytes(bytes_planned));
        two_lines(ui, &format::count(time as u64), formula.get());
        ui.vertical(|ui| {
            ui.spacing_mut().item_spacing.y = 0.0;
            let heads = u64::from(sizes.batch * sizes.heads);
            match name {
                Attention::ScaledDotProduct => {
                    let all = heads * u64::from(sizes.length).pow(2);
                    two_lines(ui, &format::count(all), Text::TablesAllPairs.get());
                }
                Attention::Lsh => {
                    for (visits, words) in planned.visits.into_iter().zip([Text::TablesNoWrap, Text::TablesWrap]) {
                        two_lines(ui, &format::count(visits), words.get());
                    }
                }
            }
        });
        ui.end_row();
    }
}

fn third(ui: &mut Ui, sizes: &Sizes, planned: &Planned) {
    heads(
        ui,
        &[
            (Text::TablesModelName, Text::TablesReformer3Help),
            (Text::TablesMemoryFormula, Text::TablesMemoryFormulaHelp),
            (Text::TablesMemoryPlan, Text::TablesModelPlanHelp),
            (Text::TablesTimeFormula, Text::TablesTimeFormulaHelp),
        ],
    );
    for (Row { name, memory, time }, held) in tables::reformer_3(sizes).into_iter().zip(planned.models) {
        let (words, memory_formula, time_formula) = match name {
            Model::Transformer => (Text::TablesTransformer, Text::TablesTransformerMemory, Text::TablesFullTime),
            Model::ReversibleTransformer => {
                (Text::TablesReversible, Text::TablesReversibleMemory, Text::TablesFullTime)
            }
            Model::ChunkedReversibleTransformer => {
                (Text::TablesChunked, Text::TablesChunkedMemory, Text::TablesFullTime)
            }
            Model::LshTransformer => (Text::TablesLshModel, Text::TablesLshModelMemory, Text::TablesLshTime),
            Model::Reformer => (Text::TablesReformer, Text::TablesReformerMemory, Text::TablesLshTime),
        };
        ui.label(words.get());
        two_lines(ui, &bytes(memory), memory_formula.get());
        ui.label(format::bytes(held));
        two_lines(ui, &format::count(time as u64), time_formula.get());
        ui.end_row();
    }
}

fn second(ui: &mut Ui) {
    ui.label(RichText::new(Text::TablesTrained.get()).strong());
    for name in ["Full", "LSH-8", "LSH-4", "LSH-2", "LSH-1"] {
        ui.label(RichText::new(name).strong());
    }
    ui.end_row();
    for (name, row) in REFORMER_2 {
        ui.label(name);
        for accuracy in row {
            ui.label(format::number(accuracy));
        }
        ui.end_row();
    }
}
