//! Planned bytes over the sequence length, both logarithmic.

use super::{Known, bars};
use crate::app::scene::Scene;
use crate::app::views::layout::legend;
use crate::app::views::{contender, format};
use crate::memory::{Curve, MIN_N, score_matrix_bytes};
use crate::outcome::Outcome;
use crate::plan::Role;
use crate::settings::{MAX_N, Method};
use crate::text::{Text, fill};
use egui::{Align2, Color32, Label, Rangef, RichText, Stroke, Ui};
use egui_plot::{
    AxisHints, GridInput, GridMark, HLine, HoverPosition, Line, LineStyle, MarkerShape, Plot, PlotPoint, PlotUi,
    Points, VLine,
};

/// The example of the Reformer paper.
const PAPER_N: u32 = 65_536;
/// Most height of the plot.
pub const HEIGHT: f32 = 300.0;

pub fn show(ui: &mut Ui, scene: &Scene<'_>, known: &Known, height: f32) {
    super::section(ui, Text::MemoryCurves.get(), Text::MemoryCurvesHover);
    ui.horizontal_wrapped(|ui| {
        for curve in &known.curves {
            let hover = bars::table_words(curve.method).get();
            legend(ui, contender::colour(curve.method), contender::name(curve.method), hover);
        }
    });
    ui.horizontal_wrapped(|ui| {
        for (words, hover) in [
            (Text::MemoryMeasuredPoint, Text::MemoryMeasuredPointHover),
            (Text::MemoryRefused, Text::MemoryRefusedHover),
            (Text::MemoryStar, Text::MemoryPaperHover),
            (Text::MemoryLimits, Text::MemoryLimitHover),
        ] {
            ui.add(Label::new(RichText::new(words.get()).small().weak()).extend()).on_hover_text(hover.get());
        }
    });
    let ink = ui.visuals().text_color();
    let n = scene.input.problem.dims.n_q;
    Plot::new("memory over n")
        .height(height)
        .allow_zoom(false)
        .allow_drag(false)
        .allow_scroll(false)
        .allow_boxed_zoom(false)
        .allow_double_click_reset(false)
        .show_crosshair(false)
        .include_x(f64::from(MIN_N).log2())
        .include_x(f64::from(MAX_N).log2() + 0.5)
        .x_grid_spacer(|input| marks(input, 2, MIN_N.ilog2() as i32))
        .y_grid_spacer(|input| marks(input, 5, 0))
        .custom_x_axes(vec![
            AxisHints::new_x()
                .label(Text::MemoryAxisN.get())
                .label_spacing(Rangef::new(36.0, 60.0))
                .formatter(|mark, _| format::count(mark.value.exp2().round() as u64)),
        ])
        .custom_y_axes(vec![
            AxisHints::new_y().label(Text::MemoryAxisBytes.get()).formatter(|mark, _| power(mark.value)),
        ])
        .label_formatter(hover)
        .show(ui, |plot| {
            let here = fill(Text::MemoryHere, &[&format::count(u64::from(n))]);
            let [left, right] = [MIN_N, MAX_N].map(|n| f64::from(n).log2());
            let log_n = f64::from(n).log2();
            let faint = ink.gamma_multiply(0.6);
            plot.vline(VLine::new("", log_n).color(faint).width(1.0).allow_hover(false));
            // They may be equal: one is named above its line, the other below.
            for (limit, text, anchor) in [
                (scene.limits.buffer, Text::MemoryLimitBuffer, Align2::LEFT_BOTTOM),
                (scene.limits.binding, Text::MemoryLimitBinding, Align2::LEFT_TOP),
            ] {
                let log = (limit as f64).log2();
                plot.hline(HLine::new("", log).color(faint).style(LineStyle::dashed_loose()).allow_hover(false));
                note(plot, [left, log], anchor, fill(text, &[&format::bytes(limit)]), faint);
            }
            known.curves.iter().for_each(|curve| draw(plot, curve));
            for outcome in [scene.full, scene.lsh, scene.linformer].into_iter().flatten() {
                measured(plot, outcome);
            }
            let paper = [f64::from(PAPER_N).log2(), (score_matrix_bytes(PAPER_N) as f64).log2()];
            let star = Points::new(Text::MemoryPaper.get(), vec![paper]).shape(MarkerShape::Asterisk);
            plot.points(star.radius(7.0).color(ink));
            note(plot, [paper[0] - 0.3, paper[1]], Align2::RIGHT_CENTER, Text::MemoryPaper.get().to_owned(), ink);
            let lowest = known.curves.iter().filter_map(|curve| curve.points.first()).map(|(_, bytes)| *bytes).min();
            let foot = lowest.map_or(0.0, |bytes| (bytes as f64).log2());
            let (anchor, gap) =
                if log_n > (left + right) / 2.0 { (Align2::RIGHT_BOTTOM, -0.1) } else { (Align2::LEFT_BOTTOM, 0.1) };
            note(plot, [log_n + gap, foot], anchor, here, ink);
        });
}

/// Words inside the plot.
fn note(plot: &mut PlotUi<'_>, [x, y]: [f64; 2], anchor: Align2, words: String, colour: Color32) {
    let text = egui_plot::Text::new("", PlotPoint::new(x, y), RichText::new(words).size(11.0));
    plot.text(text.anchor(anchor).color(colour));
}

/// Points as logarithms to base 2.
fn logs(points: &[(u32, u64)]) -> Vec<[f64; 2]> {
    points.iter().map(|(n, bytes)| [f64::from(*n).log2(), (*bytes as f64).log2()]).collect()
}

/// A curve, thin and with a cross from where the device refuses it.
fn draw<'a>(plot: &mut PlotUi<'a>, curve: &Curve) {
    let colour = contender::colour(curve.method);
    let name = contender::name(curve.method);
    let cut = curve
        .refused
        .as_ref()
        .and_then(|refused| curve.points.iter().position(|(n, _)| *n == refused.n))
        .unwrap_or(curve.points.len());
    let line = |points: &[(u32, u64)], width| Line::new(name, logs(points)).stroke(Stroke::new(width, colour));
    plot.line(line(&curve.points[..cut], width(curve.method)));
    if cut < curve.points.len() {
        plot.line(line(&curve.points[cut.saturating_sub(1)..], 1.0));
        let cross = Points::new(name, logs(&curve.points[cut..=cut])).shape(MarkerShape::Cross);
        plot.points(cross.radius(6.0).color(colour));
    }
}

/// One query at a time and the online softmax differ by one row of scores: their lines lie on each
/// other, the second inside the first.
fn width(method: Method) -> f32 {
    if method == Method::FullRowwise { 6.0 } else { 2.5 }
}

fn measured(plot: &mut PlotUi<'_>, outcome: &Outcome) {
    let method = outcome.settings.method;
    let own = outcome.buffers.iter().filter(|buffer| buffer.role != Role::Instrument);
    let at = logs(&[(outcome.dims.n_q, own.map(|buffer| buffer.bytes).sum())]);
    let name = format!("{}, {}", contender::name(method), Text::MemoryMeasuredWord.get());
    plot.points(Points::new(name, at).radius(5.0).color(contender::colour(method)));
}

/// Marks of an axis of logarithms, `step` apart and one of them at `through`; every second one is
/// the more important.
fn marks(input: GridInput, step: i32, through: i32) -> Vec<GridMark> {
    let (low, high) = input.bounds;
    (low.ceil() as i32..=high.floor() as i32)
        .map(|bit| (bit, (bit - through) / step))
        .filter(|(bit, at)| at * step + through == *bit)
        .map(|(bit, at)| {
            let step_size = if at % 2 == 0 { 2 * step } else { step };
            GridMark { value: f64::from(bit), step_size: f64::from(step_size) }
        })
        .collect()
}

fn power(log: f64) -> String {
    format::bytes(log.exp2().round() as u64).replace(".0", "")
}

fn hover(position: &HoverPosition<'_>) -> Option<String> {
    let HoverPosition::NearDataPoint { plot_name, position, .. } = position else { return None };
    let [n, bytes] = [position.x, position.y].map(|log| log.exp2().round() as u64);
    Some(fill(Text::MemoryPointHover, &[plot_name, &format::count(n), &format::bytes(bytes)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_lengths_and_units_that_people_know() {
        let input = |bounds| GridInput { bounds, base_step_size: 0.1 };
        let values = |marks: Vec<GridMark>| marks.into_iter().map(|mark| mark.value.exp2()).collect::<Vec<f64>>();
        assert_eq!(values(marks(input((5.4, 10.9)), 2, 6)), [64.0, 256.0, 1024.0]);
        assert_eq!(power(30.0), "1 GiB");
        assert_eq!(power(15.0), "32 KiB");
    }

    #[test]
    fn a_point_says_its_length_and_bytes() {
        let position = PlotPoint::new(16.0, 34.0);
        let near = HoverPosition::NearDataPoint { plot_name: "matrix", position, index: 0 };
        assert_eq!(hover(&near).as_deref(), Some("matrix\nn = 65,536\n16.0 GiB"));
        assert_eq!(hover(&HoverPosition::Elsewhere { position }), None);
    }
}
