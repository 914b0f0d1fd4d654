//! Forward and backward pass moment by moment: which bytes stand in memory when a layer has run.

use crate::app::views::layout::legend;
use crate::lab::stack::{Moment, Passage, Phase, Share};
use crate::text::{Text, fill};
use crate::units::bytes_in_words;
use egui::{
    Align2, CollapsingHeader, Color32, Rect, Role, Sense, Slider, Stroke, StrokeKind, TextStyle, Ui, WidgetInfo, pos2,
    vec2,
};
use std::time::Duration;

const HEIGHT: f32 = 130.0;
/// Width of the axis of bytes.
const AXIS: f32 = 60.0;
/// Time that a moment is shown while the pass is played.
const BEAT: f64 = 0.5;

#[derive(Default)]
pub struct State {
    /// The moment shown, from 0.
    at: usize,
    /// When it began to be shown, while the pass is played.
    since: Option<f64>,
}

/// What an ordinary stack stores.
pub const STORED: Color32 = Color32::from_rgb(190, 100, 170);

fn colour(share: Share) -> Color32 {
    match share {
        Share::Streams => Color32::from_rgb(64, 120, 220),
        Share::Layer => Color32::from_rgb(222, 110, 30),
        Share::Kept => Color32::from_rgb(20, 160, 110),
        Share::Stored => STORED,
        Share::Parameters => Color32::from_gray(120),
        Share::Gradients => Color32::from_gray(165),
    }
}

fn words(share: Share) -> (Text, Text) {
    match share {
        Share::Streams => (Text::ShareStreams, Text::ShareStreamsHelp),
        Share::Layer => (Text::ShareLayer, Text::ShareLayerHelp),
        Share::Kept => (Text::ShareKept, Text::ShareKeptHelp),
        Share::Stored => (Text::ShareStored, Text::ShareStoredHelp),
        Share::Parameters => (Text::ShareParameters, Text::ShareParametersHelp),
        Share::Gradients => (Text::ShareGradients, Text::ShareGradientsHelp),
    }
}

/// `forward, layer 3`, or `loss`.
fn named(moment: &Moment) -> String {
    let text = match moment.phase {
        Phase::Forward => Text::LayersForward,
        Phase::Loss => Text::LayersLossMoment,
        Phase::Backward => Text::LayersBackward,
    };
    fill(text, &[&(moment.layer + 1).to_string()])
}

pub fn show(ui: &mut Ui, reversible: &Passage, stored: Option<&Passage>, state: &mut State) {
    ui.strong(Text::LayersTimeline.get()).on_hover_text(Text::LayersTimelineHelp.get());
    let last = reversible.moments.len().saturating_sub(1);
    state.at = state.at.min(last);
    play(ui, state, last);
    ui.horizontal_wrapped(|ui| {
        for share in Share::ALL {
            let (name, help) = words(share);
            legend(ui, colour(share), name.get(), help.get());
        }
    });
    // One scale for both, so that their heights compare.
    let passages = [(Text::LayersReversible, Some(reversible)), (Text::LayersStored, stored)];
    let shown = passages.iter().filter_map(|(_, passage)| *passage);
    let most = shown.flat_map(|passage| &passage.moments).map(|moment| moment.ledger).max().unwrap_or(0);
    let top = most.max(1).next_multiple_of(unit(most));
    for (name, passage) in passages {
        let Some(passage) = passage else { continue };
        let held = passage.moments.get(state.at).map_or(0, |moment| moment.ledger);
        ui.label(fill(Text::LayersHeld, &[name.get(), &bytes_in_words(held)]));
        bars(ui, name, passage, top, state);
    }
    phases(ui, &reversible.moments);
    if let Some(moment) = reversible.moments.get(state.at) {
        ui.label(fill(Text::LayersMoment, &[&named(moment), &bytes_in_words(moment.ledger)]));
        buffers(ui, moment);
    }
}

fn play(ui: &mut Ui, state: &mut State, last: usize) {
    let now = ui.input(|input| input.time);
    ui.horizontal_wrapped(|ui| {
        let text = if state.since.is_some() { Text::LayersPause } else { Text::LayersPlay };
        if ui.button(text.get()).on_hover_text(Text::LayersPlayHelp.get()).clicked() {
            state.since = if state.since.is_some() { None } else { Some(now) };
            state.at = if state.at == last { 0 } else { state.at };
        }
        let slider = Slider::new(&mut state.at, 0..=last).show_value(false).text(Text::LayersMomentSlider.get());
        ui.add(slider).on_hover_text(Text::LayersPlayHelp.get());
    });
    if let Some(since) = state.since {
        if now - since >= BEAT {
            state.at = (state.at + 1).min(last);
            state.since = (state.at < last).then_some(now);
        }
        ui.ctx().request_repaint_after(Duration::from_secs_f64(BEAT));
    }
}

/// Between marks of an axis of bytes up to `most`: a power of two, at most four of which it holds.
fn unit(most: u64) -> u64 {
    most.div_ceil(4).max(1).next_power_of_two()
}

/// Marks of an axis of bytes. A `usize` of the page does not count 4 GiB.
fn marks(top: u64) -> impl Iterator<Item = u64> {
    let unit = unit(top);
    (0..=top / unit).map(move |at| at * unit)
}

/// What the axis of bytes leaves of a rectangle.
fn beside_axis(rect: Rect) -> Rect {
    Rect::from_min_max(pos2(rect.left() + AXIS, rect.top()), rect.max)
}

/// Bytes from 0 to `top`, to the left of the columns, with lines across them.
fn axis(ui: &Ui, rect: Rect, top: u64) {
    let font = TextStyle::Small.resolve(ui.style());
    let line = Stroke::new(1.0, ui.visuals().weak_text_color().gamma_multiply(0.4));
    for mark in marks(top) {
        let y = rect.bottom() - (mark as f64 / top as f64) as f32 * rect.height();
        let anchor = if mark == 0 { Align2::RIGHT_BOTTOM } else { Align2::RIGHT_TOP };
        let at = pos2(rect.left() - 4.0, y);
        ui.painter().text(at, anchor, bytes_in_words(mark), font.clone(), ui.visuals().text_color());
        ui.painter().hline(rect.left()..=rect.right(), y, line);
    }
}

/// A column a moment, its shares on top of each other.
fn bars(ui: &mut Ui, name: Text, passage: &Passage, top: u64, state: &mut State) {
    let (whole, response) = ui.allocate_exact_size(vec2(ui.available_width(), HEIGHT), Sense::click_and_drag());
    let rect = beside_axis(whole);
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, name.get()));
    axis(ui, rect, top);
    let painter = ui.painter_at(rect);
    painter.rect_stroke(rect, 2.0, Stroke::new(1.0, ui.visuals().weak_text_color()), StrokeKind::Inside);
    let count = passage.moments.len().max(1);
    let width = rect.width() / count as f32;
    for (at, moment) in passage.moments.iter().enumerate() {
        let left = rect.left() + width * at as f32;
        let mut bottom = rect.bottom();
        for share in Share::ALL {
            let height = (moment.of(share) as f64 / top as f64) as f32 * rect.height();
            let bar = Rect::from_min_max(pos2(left + 1.0, bottom - height), pos2(left + width - 1.0, bottom));
            painter.rect_filled(bar, 0.0, colour(share));
            bottom -= height;
        }
        if at == state.at {
            let whole = Rect::from_min_max(pos2(left, rect.top()), pos2(left + width, rect.bottom()));
            painter.rect_stroke(whole, 0.0, Stroke::new(2.0, ui.visuals().strong_text_color()), StrokeKind::Inside);
        }
    }
    let under = |x: f32| (((x - rect.left()).max(0.0) / width) as usize).min(count - 1);
    if let Some(pointer) = response.interact_pointer_pos() {
        state.at = under(pointer.x);
        state.since = None;
    }
    let hovered = response.hover_pos().and_then(|pointer| passage.moments.get(under(pointer.x)));
    let hint = hovered.map_or_else(|| Text::LayersTimelineHelp.get().to_owned(), told);
    response.on_hover_text(hint);
}

/// Under the columns: which of them belong to which phase.
fn phases(ui: &mut Ui, moments: &[Moment]) {
    let font = TextStyle::Small.resolve(ui.style());
    let (rect, _) =
        ui.allocate_exact_size(vec2(ui.available_width(), ui.text_style_height(&TextStyle::Small)), Sense::hover());
    let rect = beside_axis(rect);
    let width = rect.width() / moments.len().max(1) as f32;
    let mut start = 0;
    for phase in moments.chunk_by(|a, b| a.phase == b.phase) {
        let text = match phase[0].phase {
            Phase::Forward => Text::LayersForwardPhase,
            Phase::Loss => Text::LayersLossMoment,
            Phase::Backward => Text::LayersBackwardPhase,
        };
        let middle = rect.left() + width * (start as f32 + phase.len() as f32 / 2.0);
        ui.painter().text(
            pos2(middle, rect.top()),
            Align2::CENTER_TOP,
            text.get(),
            font.clone(),
            ui.visuals().text_color(),
        );
        start += phase.len();
    }
}

/// A moment in words.
fn told(moment: &Moment) -> String {
    let shares = Share::ALL.into_iter().filter(|share| moment.of(*share) > 0);
    let lines = shares.map(|share| format!("{}: {}", words(share).0.get(), bytes_in_words(moment.of(share))));
    std::iter::once(named(moment)).chain(lines).collect::<Vec<_>>().join("\n")
}

fn buffers(ui: &mut Ui, moment: &Moment) {
    let list = CollapsingHeader::new(Text::LayersBuffers.get()).show(ui, |ui| {
        ui.horizontal_wrapped(|ui| {
            for (name, share, bytes) in &moment.buffers {
                legend(ui, colour(*share), &format!("{name} {}", bytes_in_words(*bytes)), words(*share).1.get());
            }
        });
    });
    list.header_response.on_hover_text(Text::LayersBuffersHelp.get());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_of_bytes_has_at_most_four_marks_above_zero_and_one_at_its_top() {
        assert_eq!(marks(4 << 10).collect::<Vec<_>>(), [0, 1 << 10, 2 << 10, 3 << 10, 4 << 10]);
        // Units that the page's `usize` does not hold.
        assert_eq!(marks(12 << 30).collect::<Vec<_>>(), [0, 4 << 30, 8 << 30, 12 << 30]);
        for most in [0, 1, 5, 1000, (4 << 30) + 1, 1 << 40] {
            let top = u64::max(most, 1).next_multiple_of(unit(most));
            let marks: Vec<u64> = marks(top).collect();
            assert!(marks.len() <= 5 && marks.last() == Some(&top), "{most}: {marks:?}");
        }
    }
}
