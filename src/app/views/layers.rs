//! A stack of reversible layers beside the ordinary one: what stands in memory at each moment, how well
//! inputs are rebuilt, and what it costs.

mod growth;
mod split;
mod timeline;

use super::chart::{Axis, Chart, Dot, Trace};
use super::layout::column;
use super::ticks::written;
use super::{caption, elsewhere, title};
use crate::app::scene::{Answer, Command, Question, Scene};
use crate::lab::stack::{Cost, Passage, Stacked, Way};
use crate::semantics::Choice;
use crate::settings::{LayerAttention, Method, Settings};
use crate::text::{Text, fill};
use crate::units::{bytes_in_words, grouped, ungrouped};
use egui::{Align, Color32, ComboBox, Grid, Layout, RichText, Slider, Ui, vec2};
use std::rc::Rc;

/// Width from which two panels stand side by side.
const WIDE: f32 = 680.0;
const HEIGHT: f32 = 200.0;
/// Width of a control with its words.
const CONTROL: f32 = 300.0;
/// The stored stack has the colour of what it stores; that of the reversible one stands for nothing else.
const STORED: Color32 = timeline::STORED;
const REVERSIBLE: Color32 = Color32::from_rgb(190, 150, 20);

#[derive(Default)]
pub struct State {
    /// The settings that the layers, and the sweeps over depth and chunks, were asked for.
    asked: Option<Settings>,
    swept: Option<Settings>,
    timeline: timeline::State,
}

/// What is known of one run of a stack.
enum Known {
    Not,
    Here(Rc<Passage>),
    Failed(String),
}

impl Known {
    fn passage(&self) -> Option<&Passage> {
        if let Self::Here(passage) = self { Some(passage) } else { None }
    }
}

/// Asks for a run of a stack, and tells what is known of it.
fn ask(scene: &Scene<'_>, stacked: Stacked, commands: &mut Vec<Command>) -> Known {
    let question = Question::Layers(stacked);
    commands.push(Command::Ask(question));
    match (scene.answer)(question) {
        Some(Answer::Layers(passage)) => Known::Here(passage),
        Some(Answer::Failed(why)) => Known::Failed(why),
        _ => Known::Not,
    }
}

fn hundredths(value: f64) -> String {
    format!("{value:.2}")
}

pub fn show(ui: &mut Ui, scene: &Scene<'_>, state: &mut State, commands: &mut Vec<Command>) {
    title(ui, Text::LayersTitle);
    if scene.method != Method::Lsh {
        let (why, seen) = (Text::LayersOnlyReformer, Text::ViewLayersHelp);
        return elsewhere(ui, scene, Method::Lsh, why, seen, commands);
    }
    if let Err(why) = scene.current() {
        super::missing(ui, scene.method, why, commands);
        return;
    }
    controls(ui, scene, state, commands);
    split::show(ui);
    let own = Stacked::of(scene.settings);
    if state.asked.as_ref() == Some(scene.settings) {
        // The question that was asked last is answered first.
        let stored = ask(scene, Stacked { way: Way { stored: true, ..Way::default() }, ..own }, commands);
        let reversible = ask(scene, own, commands);
        if let (Known::Failed(why), _) | (_, Known::Failed(why)) = (&reversible, &stored) {
            ui.label(RichText::new(why).color(ui.visuals().error_fg_color));
        }
        match &reversible {
            Known::Here(passage) => results(ui, passage, stored.passage(), scene.settings, state),
            Known::Not => {
                ui.label(Text::LayersRunning.get());
            }
            Known::Failed(_) => {}
        }
        growth::show(ui, scene, &mut state.swept, commands);
    }
    caption(ui, Text::LayersCaption.get());
}

/// What the stack is made of, and the button that runs it.
fn controls(ui: &mut Ui, scene: &Scene<'_>, state: &mut State, commands: &mut Vec<Command>) {
    let mut settings = scene.settings.clone();
    ui.horizontal_wrapped(|ui| {
        slider(ui, &mut settings.layers, 24, Text::LayersDepth, Text::SetLayers);
        whole(ui, |ui| attention(ui, &mut settings.attention));
        let mut hidden = settings.hidden_width();
        slider(ui, &mut hidden, 8192, Text::LayersHidden, Text::SetDff);
        if hidden != settings.hidden_width() {
            settings.d_ff = Some(hidden);
        }
        slider(ui, &mut settings.ff_chunks, 64, Text::LayersChunks, Text::SetFfChunks);
        slider(ui, &mut settings.vocabulary, 65_536, Text::LayersVocabulary, Text::SetVocabulary);
        slider(ui, &mut settings.loss_chunks, 64, Text::LayersLossChunks, Text::SetLossChunks);
        ui.checkbox(&mut settings.rehash, Text::LayersRehash.get()).on_hover_text(Text::SetRehash.get());
        ui.checkbox(&mut settings.swap, Text::LayersSwap.get()).on_hover_text(Text::SetSwap.get());
        if settings != *scene.settings {
            commands.push(Command::Set(Box::new(settings)));
        }
        let run = ui.button(Text::LayersRun.get()).on_hover_text(Text::LayersRunHelp.get());
        if run.clicked() {
            state.asked = Some(scene.settings.clone());
            commands.push(Command::Resume);
        }
    });
}

/// A control with its words that goes to the next line as one.
fn whole(ui: &mut Ui, add: impl FnOnce(&mut Ui)) {
    let size = vec2(CONTROL, ui.spacing().interact_size.y);
    ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
        ui.set_min_width(CONTROL);
        add(ui);
    });
}

/// Whole numbers from 1 on.
fn slider(ui: &mut Ui, value: &mut u32, most: u32, name: Text, help: Text) {
    whole(ui, |ui| {
        let slider = Slider::new(value, 1..=most).logarithmic(most > 24).text(name.get());
        let slider = slider.custom_formatter(|value, _| grouped(value as u64)).custom_parser(ungrouped);
        ui.add(slider).on_hover_text(help.get());
    });
}

fn attention(ui: &mut Ui, attention: &mut LayerAttention) {
    let name = |attention: LayerAttention| match attention {
        LayerAttention::Lsh => Text::LayersLsh.get(),
        LayerAttention::Full => Text::LayersFull.get(),
    };
    let menu = ComboBox::from_label(Text::LayersAttention.get()).selected_text(name(*attention));
    let menu = menu.show_ui(ui, |ui| {
        for (value, _) in LayerAttention::ALL {
            ui.selectable_value(attention, *value, name(*value));
        }
    });
    menu.response.on_hover_text(Text::SetAttention.get());
}

fn results(ui: &mut Ui, reversible: &Passage, stored: Option<&Passage>, of: &Settings, state: &mut State) {
    timeline::show(ui, reversible, stored, &mut state.timeline);
    ui.add_space(8.0);
    if ui.available_width() > WIDE {
        ui.columns_const(|[left, right]: &mut [Ui; 2]| {
            column(left, |ui| costs(ui, reversible, stored, of.vocabulary));
            column(right, |ui| errors(ui, reversible, of.n));
        });
    } else {
        costs(ui, reversible, stored, of.vocabulary);
        ui.add_space(8.0);
        errors(ui, reversible, of.n);
    }
}

/// Bytes, multiply-adds and time of both, with the papers' counts beside what was counted.
fn costs(ui: &mut Ui, reversible: &Passage, stored: Option<&Passage>, vocabulary: u32) {
    ui.strong(Text::LayersCosts.get()).on_hover_text(Text::LayersCostsHelp.get());
    let whole = |pick: fn(&Cost) -> f64| move |of: &Passage| pick(&of.forward) + pick(&of.backward);
    let (adds, ms) = (whole(|cost| cost.multiply_adds), whole(|cost| cost.ms));
    let n = |of: &Passage| hundredths(adds(of) / of.forward.multiply_adds);
    let time = |of: &Passage| hundredths(ms(of) / of.forward.ms.max(1e-9));
    let row = |ui: &mut Ui, words: Text, value: &dyn Fn(&Passage) -> String| {
        ui.label(words.get());
        ui.label(value(reversible));
        ui.label(stored.map_or_else(|| "…".to_owned(), value));
        ui.end_row();
    };
    Grid::new("layer costs").num_columns(3).striped(true).show(ui, |ui| {
        ui.label("");
        ui.strong(Text::LayersReversible.get());
        ui.strong(Text::LayersStored.get());
        ui.end_row();
        row(ui, Text::LayersActivations, &|of| bytes_in_words(of.activation_bytes()));
        row(ui, Text::LayersAtLoss, &|of| bytes_in_words(of.loss_bytes()));
        row(ui, Text::LayersParameters, &|of| bytes_in_words(of.parameter_bytes()));
        row(ui, Text::LayersAdds, &|of| grouped(adds(of) as u64));
        row(ui, Text::LayersInN, &n);
        row(ui, Text::LayersMs, &|of| fill(Text::LayersMsValue, &[&written(ms(of))]));
        row(ui, Text::LayersTimeInN, &time);
    });
    ui.label(RichText::new(Text::LayersPapers.get()).small().weak());
    if let Some(mean) = reversible.mean_loss {
        let even = f64::from(vocabulary).ln();
        let millions = written(reversible.loss.multiply_adds / 1e6);
        let words = grouped(u64::from(vocabulary));
        let values = [&words, &hundredths(mean), &written(reversible.loss.ms), &millions, &hundredths(even)];
        ui.label(fill(Text::LayersLoss, &values.map(String::as_str))).on_hover_text(Text::LayersLossHelp.get());
    }
    if !reversible.flips.is_empty() {
        ui.label(fill(Text::LayersFlips, &[&grouped(reversible.flips.iter().sum())]));
    }
}

/// The error of rebuilt inputs, layer by layer.
fn errors(ui: &mut Ui, reversible: &Passage, n: u32) {
    ui.strong(Text::LayersErrors.get()).on_hover_text(Text::LayersErrorsHelp.get());
    let dots: Vec<Dot> = (1u32..)
        .zip(&reversible.errors)
        // A logarithmic axis has no place for 0.
        .filter(|(_, error)| **error > 0.0)
        .map(|(layer, error)| Dot { at: [f64::from(layer), *error], error: 0.0 })
        .collect();
    let depth = reversible.errors.len() as f64;
    let step = (depth / 6.0).ceil().max(1.0);
    let marks = std::iter::successors(Some(1.0), |at| Some(at + step)).take_while(|at| *at < depth).chain([depth]);
    let chart = Chart {
        id: "layer errors",
        x: Axis { label: Text::LayersLayer.get(), log: false, marks: marks.collect(), write: |v| format!("{v:.0}") },
        y: Axis {
            label: Text::LayersErrorAxis.get(),
            log: true,
            marks: [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3].to_vec(),
            write: written,
        },
        height: HEIGHT,
    };
    let name = Text::LayersReversible.get().to_owned();
    chart.show(ui, &[Trace::dots(name, REVERSIBLE, dots)]);
    let [rows, all] = [reversible.compared_rows, n].map(|rows| grouped(u64::from(rows)));
    let words = fill(Text::LayersErrorWords, &[&written(reversible.reconstruction_error()), &rows, &all]);
    ui.label(RichText::new(words).small().weak());
}
