//! Singular values and their normalised cumulative sum over the index.

use crate::app::views::layout::legend;
use crate::app::views::{format, ticks};
use crate::lab::rank::LowRank;
use crate::spectrum::{Between, Spectrum, Way};
use crate::text::{Text, fill};
use egui::{Color32, RichText, Ui};
use egui_plot::{AxisHints, FilledArea, GridMark, HoverPosition, Line, LineStyle, Plot, PlotUi, VLine};

pub const OWN: Color32 = Color32::from_rgb(64, 120, 220);
const RANDOM: Color32 = Color32::from_rgb(222, 110, 30);
const HEIGHT: f32 = 210.0;
/// Values below this share of the largest are rounding, since P is float32, and not drawn.
pub const FLOOR: f64 = 1e-7;
/// Marks of the cumulative sum, those that ranks are told for among them.
const SHARES: [f64; 6] = [0.0, 25.0, 50.0, 75.0, 90.0, 100.0];

#[derive(Default)]
pub struct State {
    /// Sums of squares instead of sums.
    energy: bool,
}

impl State {
    /// What the colours mean, and what is summed.
    pub fn legend(&mut self, ui: &mut Ui) {
        ui.horizontal_wrapped(|ui| {
            legend(ui, OWN, Text::RankOwn.get(), Text::RankOwnHelp.get());
            legend(ui, RANDOM, Text::RankRandom.get(), Text::RankRandomHelp.get());
            ui.separator();
            for (energy, name, help) in
                [(false, Text::RankSums, Text::RankSumsHelp), (true, Text::RankSquares, Text::RankSquaresHelp)]
            {
                if ui.radio(self.energy == energy, name.get()).on_hover_text(help.get()).clicked() {
                    self.energy = energy;
                }
            }
        });
    }

    fn shares(&self, spectrum: &Spectrum) -> Vec<Between> {
        if self.energy { spectrum.cumulative_energy() } else { spectrum.cumulative() }
    }

    /// Linformer's Figure 1.
    pub fn cumulative(&self, ui: &mut Ui, own: &LowRank, random: Option<&LowRank>) {
        let label = if self.energy { Text::RankAxisSquares } else { Text::RankAxisSums };
        ui.label(RichText::new(label.get()).small());
        let marks = |_| SHARES.map(|value| GridMark { value, step_size: 25.0 }).to_vec();
        plot("rank cumulative", own, |value| format!("{} %", format::number(value)))
            .include_y(0.0)
            .include_y(100.0)
            .y_grid_spacer(marks)
            .show(ui, |plot| {
                quarter(plot, own);
                for (low_rank, name, colour, style) in traces(own, random) {
                    let shares = self.shares(&low_rank.spectrum);
                    let xs: Vec<f64> = (1..=shares.len()).map(|at| at as f64).collect();
                    let [low, high] = [|s: &Between| s.low * 100.0, |s: &Between| s.high * 100.0]
                        .map(|end| shares.iter().map(end).collect::<Vec<f64>>());
                    let ends = if low == high { vec![low] } else { vec![low.clone(), high.clone()] };
                    if let [low, high] = &ends[..] {
                        plot.add(FilledArea::new(name, &xs, low, high).fill_color(colour.gamma_multiply(0.25)));
                    }
                    for end in ends {
                        let points: Vec<[f64; 2]> = xs.iter().zip(end).map(|(x, y)| [*x, y]).collect();
                        plot.line(Line::new(name, points).color(colour).width(2.0).style(style));
                    }
                }
            });
    }

    /// The singular values themselves, on a logarithmic axis.
    pub fn values(&self, ui: &mut Ui, own: &LowRank, random: Option<&LowRank>) {
        ui.label(RichText::new(Text::RankAxisValues.get()).small());
        let marks = |input: egui_plot::GridInput| {
            let (low, high) = (10f64.powf(input.bounds.0), 10f64.powf(input.bounds.1));
            let decades = ticks::decades(low, high, 6).into_iter();
            decades.map(|value| GridMark { value: value.log10(), step_size: 1.0 }).collect()
        };
        plot("rank values", own, |value| ticks::written(10f64.powf(value)))
            .include_y(0.0)
            .include_y(-1.0)
            .y_grid_spacer(marks)
            .show(ui, |plot| {
                quarter(plot, own);
                for (low_rank, name, colour, style) in traces(own, random) {
                    let drawn = drawn(&low_rank.spectrum.svd.values);
                    let points: Vec<[f64; 2]> =
                        drawn.enumerate().map(|(at, value)| [at as f64 + 1.0, value.log10()]).collect();
                    plot.line(Line::new(name, points).color(colour).width(2.0).style(style));
                }
            });
    }
}

/// The values that are no rounding.
fn drawn(values: &[f32]) -> impl Iterator<Item = f64> {
    let floor = f64::from(values.first().copied().unwrap_or_default()) * FLOOR;
    values.iter().map(|value| f64::from(*value)).take_while(move |value| *value > floor)
}

fn traces<'a>(
    own: &'a LowRank,
    random: Option<&'a LowRank>,
) -> impl Iterator<Item = (&'a LowRank, &'static str, Color32, LineStyle)> {
    let own = (own, Text::RankOwn.get(), OWN, LineStyle::Solid);
    let random = random.map(|random| (random, Text::RankRandom.get(), RANDOM, LineStyle::dashed_dense()));
    random.into_iter().chain([own])
}

fn plot<'a>(id: &'static str, own: &LowRank, write: fn(f64) -> String) -> Plot<'a> {
    let last = f64::from(own.spectrum.known());
    let marks = move |_| {
        let marks = ticks::linear(0.0, last, 6);
        let step_size = marks.windows(2).map(|pair| pair[1] - pair[0]).next().unwrap_or(last);
        marks.into_iter().map(|value| GridMark { value, step_size }).collect()
    };
    Plot::new(id)
        .height(HEIGHT)
        .allow_zoom(false)
        .allow_drag(false)
        .allow_scroll(false)
        .allow_boxed_zoom(false)
        .allow_double_click_reset(false)
        .show_crosshair(false)
        .include_x(0.0)
        .include_x(last)
        .x_grid_spacer(marks)
        .custom_x_axes(vec![
            AxisHints::new_x()
                .label(Text::RankAxisIndex.get())
                .label_spacing(10.0..=14.0)
                .formatter(|mark, _| format::count(mark.value.round() as u64)),
        ])
        .custom_y_axes(vec![
            AxisHints::new_y()
                .label_spacing(8.0..=14.0)
                .min_thickness(34.0)
                .formatter(move |mark, _| write(mark.value)),
        ])
        .label_formatter(move |hover| {
            let HoverPosition::NearDataPoint { plot_name, position, .. } = hover else { return None };
            let words = [*plot_name, &format::count(position.x.round() as u64), &write(position.y)];
            Some(fill(Text::RankPoint, &words))
        })
}

/// Where the figure at a quarter of the length is read off; not reached by a few leading values.
fn quarter(plot: &mut PlotUi<'_>, own: &LowRank) {
    if own.spectrum.way == Way::Exact {
        let at = f64::from(own.spectrum.n / 4);
        let line = VLine::new(Text::RankQuarterLine.get(), at).style(LineStyle::dashed_loose());
        plot.vline(line.color(Color32::GRAY).width(1.0).allow_hover(false));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_to_be_rounding_is_not_drawn() {
        let values = [2.0, 0.5, 3e-7, 1e-7, 0.0];
        assert_eq!(drawn(&values).count(), 3);
        assert_eq!(drawn(&[]).count(), 0);
    }
}
