//! The strip of a pipeline's steps: what each cost, and which view shows it.

use super::scene::View;
use super::views::format;
use super::views::ticks::written;
use crate::outcome::{Outcome, StepReport};
use crate::plan::Step;
use crate::text::{Text, fill};
use crate::units::bytes_in_words;
use egui::{Button, RichText, Ui, vec2};

/// What a step does.
fn help(step: Step) -> Text {
    match step {
        Step::KeyNorm => Text::StepKeyNormHelp,
        Step::Hash => Text::StepHashHelp,
        Step::Sort => Text::StepSortHelp,
        Step::Attend => Text::StepAttendHelp,
        Step::Combine => Text::StepCombineHelp,
        Step::ProjectKeys => Text::StepProjectKeysHelp,
        Step::ProjectValues => Text::StepProjectValuesHelp,
        Step::ProjectedAttention => Text::StepProjectedHelp,
        Step::FullAttention => Text::StepFullHelp,
        Step::Scores => Text::StepScoresHelp,
        Step::Softmax => Text::StepSoftmaxHelp,
        Step::WeightedSum => Text::StepWeightedSumHelp,
        Step::AttentionBackward => Text::StepAttentionBackwardHelp,
        Step::LayerNorm => Text::StepLayerNormHelp,
        Step::Project => Text::StepProjectHelp,
        Step::FeedForward => Text::StepFeedForwardHelp,
        Step::LayerBackward => Text::StepLayerBackwardHelp,
        Step::Store => Text::StepStoreHelp,
        Step::Loss => Text::StepLossHelp,
        Step::Measure => Text::StepMeasureHelp,
    }
}

/// The view in which a step is seen.
pub fn view_of(step: Step) -> View {
    match step {
        Step::KeyNorm | Step::Hash | Step::Sort => View::Buckets,
        Step::Attend
        | Step::ProjectedAttention
        | Step::FullAttention
        | Step::Scores
        | Step::Softmax
        | Step::AttentionBackward => View::Attention,
        Step::Combine | Step::WeightedSum => View::Result,
        Step::ProjectKeys | Step::ProjectValues => View::Projection,
        Step::LayerNorm | Step::Project | Step::FeedForward | Step::LayerBackward | Step::Store | Step::Loss => {
            View::Layers
        }
        Step::Measure => View::Compare,
    }
}

/// Shows the steps of an outcome; the view of the one that was clicked.
pub fn show(ui: &mut Ui, outcome: &Outcome) -> Option<View> {
    let mut opened = None;
    egui::ScrollArea::horizontal().id_salt("strip").show(ui, |ui| {
        ui.horizontal(|ui| {
            ui.spacing_mut().item_spacing.x = 4.0;
            for (at, step) in outcome.steps.iter().enumerate() {
                if at > 0 {
                    ui.label(RichText::new("›").weak());
                }
                if show_step(ui, outcome, step) {
                    opened = Some(view_of(step.step));
                }
            }
        });
    });
    opened
}

fn show_step(ui: &mut Ui, outcome: &Outcome, step: &StepReport) -> bool {
    let (name, help) = (step.step.name(), help(step.step));
    let time = step.ms.map_or_else(|| Text::NoTime.get().to_owned(), format::time);
    let bytes = bytes_in_words(step.bytes as u64);
    let button = Button::new(format!("{name}\n{time}   {bytes}")).min_size(vec2(96.0, 38.0));
    let told = step.ms.map_or_else(|| Text::StepNoTime.get().to_owned(), format::time);
    let hover = fill(Text::StepHover, &[help.get(), &told, &bytes, &written(step.flops)]);
    let response = ui.add(button).on_hover_text(hover);
    // The bar is the step's share of the time, or of the operations where times are not known.
    let share = match step.ms {
        Some(ms) => ms / outcome.ms.max(f64::MIN_POSITIVE),
        None => step.flops / outcome.steps.iter().map(|step| step.flops).sum::<f64>().max(f64::MIN_POSITIVE),
    };
    let mut bar = response.rect.shrink2(vec2(3.0, 0.0));
    bar.min.y = bar.max.y - 3.0;
    bar.max.x = bar.min.x + bar.width() * share.clamp(0.0, 1.0) as f32;
    ui.painter().rect_filled(bar, 1.0, ui.visuals().selection.bg_fill);
    response.clicked()
}
