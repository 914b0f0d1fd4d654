//! A stack of reversible layers beside the ordinary one: what stands in memory at each moment, how well
//! inputs are rebuilt, and what it costs.

mod growth;
mod split;
mod timeline;

use super::chart::{Axis, COLOURS, Chart, Dot, Trace};
use super::layout::column;
use super::ticks::written;
use super::{caption, title};
use crate::app::scene::{Answer, Command, Question, Scene};
use crate::lab::stack::{COMPARED_ROWS, Cost, Passage, Stacked, Way};
use crate::plan::{bytes_in_words, grouped};
use crate::settings::{Method, Settings};
use crate::text::{Text, fill};
use egui::{Align, Grid, Layout, RichText, Slider, Ui, vec2};
use std::rc::Rc;

/// Width from which two panels stand side by side.
const WIDE: f32 = 680.0;
const HEIGHT: f32 = 200.0;

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
        ui.label(Text::LayersOnlyReformer.get());
        return;
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
            Known::Here(passage) => results(ui, passage, stored.passage(), scene.settings.vocabulary, state),
            Known::Not => {
                ui.label(Text::LayersRunning.get());
            }
            Known::Failed(_) => {}
        }
        growth::show(ui, scene, &mut state.swept, commands);
    }
    caption(ui, Text::LayersCaption.get());
}

/// Depth, and the button that runs it.
fn controls(ui: &mut Ui, scene: &Scene<'_>, state: &mut State, commands: &mut Vec<Command>) {
    // A slider with its words does not wrap: on a phone each has a line.
    let layout = if ui.available_width() > WIDE {
        Layout::left_to_right(Align::Center).with_main_wrap(true)
    } else {
        Layout::top_down(Align::Min)
    };
    let size = vec2(ui.available_width(), ui.spacing().interact_size.y);
    ui.allocate_ui_with_layout(size, layout, |ui| {
        let mut settings = scene.settings.clone();
        let depth = Slider::new(&mut settings.layers, 1..=24).text(Text::LayersDepth.get());
        ui.add(depth).on_hover_text(Text::SetLayers.get());
        let chunks = Slider::new(&mut settings.ff_chunks, 1..=64).logarithmic(true).text(Text::LayersChunks.get());
        ui.add(chunks).on_hover_text(Text::SetFfChunks.get());
        let words = Slider::new(&mut settings.vocabulary, 1..=65_536).logarithmic(true);
        ui.add(words.text(Text::LayersVocabulary.get())).on_hover_text(Text::SetVocabulary.get());
        let sections = Slider::new(&mut settings.loss_chunks, 1..=64).logarithmic(true);
        ui.add(sections.text(Text::LayersLossChunks.get())).on_hover_text(Text::SetLossChunks.get());
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

fn results(ui: &mut Ui, reversible: &Passage, stored: Option<&Passage>, vocabulary: u32, state: &mut State) {
    timeline::show(ui, reversible, stored, &mut state.timeline);
    ui.add_space(8.0);
    if ui.available_width() > WIDE {
        ui.columns_const(|[left, right]: &mut [Ui; 2]| {
            column(left, |ui| costs(ui, reversible, stored, vocabulary));
            column(right, |ui| errors(ui, reversible));
        });
    } else {
        costs(ui, reversible, stored, vocabulary);
        ui.add_space(8.0);
        errors(ui, reversible);
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
fn errors(ui: &mut Ui, reversible: &Passage) {
    ui.strong(Text::LayersErrors.get()).on_hover_text(Text::LayersErrorsHelp.get());
    let dots: Vec<Dot> = (1u32..)
        .zip(&reversible.errors)
        .map(|(layer, error)| Dot { at: [f64::from(layer), error.max(1e-9)], error: 0.0 })
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
    chart.show(ui, &[Trace::dots(name, COLOURS[0], dots)]);
    let rows = grouped(u64::from(COMPARED_ROWS));
    ui.label(
        RichText::new(fill(Text::LayersErrorWords, &[&written(reversible.reconstruction_error()), &rows]))
            .small()
            .weak(),
    );
}
