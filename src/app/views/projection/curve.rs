//! The error over k: untrained projections, and fitted ones where that was asked for.

use super::fit::too_large;
use super::picture::series;
use super::{pair, waiting};
use crate::app::scene::{Answer, Command, Question, Scene};
use crate::app::views::layout::legend;
use crate::app::views::{caption, format};
use crate::lab::{Errors, Start, Untrained};
use crate::methods::fit::Loss;
use crate::settings::Projection;
use crate::text::{Text, fill};
use egui::Ui;
use egui_plot::{AxisHints, GridMark, Line, Plot, PlotPoints, Points, VLine};
use std::rc::Rc;

/// Projected lengths that are measured, besides the one on the slider.
const LENGTHS: [u32; 6] = [8, 16, 32, 64, 128, 256];
/// Steps of each fit, and its learning rate in units of 0.0001.
const STEPS: u32 = 200;
const RATE: u32 = 100;
const NAMES: [(Projection, Text); 4] = [
    (Projection::Mean, Text::ProjectionMean),
    (Projection::Max, Text::ProjectionMax),
    (Projection::Gaussian, Text::ProjectionGaussian),
    (Projection::Convolution, Text::ProjectionConvolution),
];

#[derive(Default)]
pub struct State {
    measuring: bool,
    fitting: bool,
}

/// Errors over k of one kind.
struct Series {
    name: Text,
    at: usize,
    errors: Vec<(u32, Errors)>,
}

impl State {
    pub fn show(&mut self, ui: &mut Ui, scene: &Scene<'_>, commands: &mut Vec<Command>) {
        ui.strong(Text::CurveTitle.get());
        let lengths = lengths(scene);
        ui.horizontal_wrapped(|ui| {
            ui.toggle_value(&mut self.measuring, Text::CurveMeasure.get()).on_hover_text(Text::CurveMeasureHelp.get());
            let most = lengths.last().copied().unwrap_or(1);
            if self.measuring && too_large(scene, Loss::Output, most).is_none() {
                let name = fill(Text::CurveFit, &[&format::count(u64::from(STEPS))]);
                ui.toggle_value(&mut self.fitting, name).on_hover_text(Text::CurveFitHelp.get());
            } else {
                self.fitting = false;
            }
        });
        if !self.measuring {
            ui.label(Text::CurveNone.get());
            return;
        }
        let mut waits = None;
        let mut ask = |question: Question| {
            commands.push(Command::Ask(question));
            let answer = (scene.answer)(question);
            if matches!(answer, None | Some(Answer::Failed(_))) {
                waits.get_or_insert(answer.clone());
            }
            answer
        };
        let untrained: Vec<Rc<Untrained>> = lengths
            .iter()
            .filter_map(|k| match ask(Question::Untrained { head: scene.head, k: *k }) {
                Some(Answer::Untrained(untrained)) => Some(untrained),
                _ => None,
            })
            .collect();
        let mut all: Vec<Series> = NAMES
            .iter()
            .enumerate()
            .map(|(at, (projection, name))| {
                let of = |point: &Rc<Untrained>| {
                    let found = point.errors.iter().find(|(kind, _)| kind == projection);
                    found.map(|(_, errors)| (point.k, *errors))
                };
                Series { name: *name, at, errors: untrained.iter().filter_map(of).collect() }
            })
            .collect();
        if self.fitting {
            let errors = lengths.iter().filter_map(|k| {
                let start = Start { head: scene.head, k: *k, loss: Loss::Output, rate: RATE, attempt: 0 };
                match ask(Question::FittedErrors { start, steps: STEPS }) {
                    Some(Answer::FittedErrors(errors)) => Some((*k, errors)),
                    _ => None,
                }
            });
            all.push(Series { name: Text::CurveFitted, at: NAMES.len(), errors: errors.collect() });
        }
        if let Some(answer) = waits {
            waiting(ui, answer);
        }
        charts(ui, scene, &all);
        if let Some(sampled) = untrained.first().and_then(|point| point.sampled) {
            ui.label(fill(Text::ErrorsSampled, &[&format::count(u64::from(sampled))]));
        }
        if let Some(words) = honest(&all) {
            ui.label(words);
        }
        caption(ui, Text::CurveCaption.get());
    }
}

fn lengths(scene: &Scene<'_>) -> Vec<u32> {
    let n = scene.settings.n;
    let mut lengths: Vec<u32> =
        LENGTHS.into_iter().filter(|k| *k <= n).chain([scene.settings.projected_len()]).collect();
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

fn charts(ui: &mut Ui, scene: &Scene<'_>, all: &[Series]) {
    ui.horizontal_wrapped(|ui| {
        for series_of in all {
            legend(ui, series(ui, series_of.at), series_of.name.get(), Text::CurveLegendHelp.get());
        }
    });
    let k = f64::from(scene.settings.projected_len()).log2();
    pair(ui, |ui, output| {
        ui.label(if output { Text::CurveOutput.get() } else { Text::CurveMap.get() });
        let value = |errors: &Errors| if output { Some(errors.output) } else { errors.map };
        let colours: Vec<_> = all.iter().map(|one| series(ui, one.at)).collect();
        let ink = ui.visuals().weak_text_color();
        Plot::new(("errors over k", output))
            .height(220.0)
            .allow_zoom(false)
            .allow_scroll(false)
            .allow_drag(false)
            .allow_boxed_zoom(false)
            .allow_double_click_reset(false)
            .include_y(0.0)
            .custom_x_axes(vec![
                AxisHints::new_x()
                    .label(Text::CurveAxisK.get())
                    .formatter(|mark, _| format::count(mark.value.exp2().round() as u64)),
            ])
            .custom_y_axes(vec![AxisHints::new_y().min_thickness(28.0)])
            .x_grid_spacer(|_| (0..=18).map(|bit| GridMark { value: f64::from(bit), step_size: 1.0 }).collect())
            .show(ui, |plot| {
                plot.vline(VLine::new("k", k).color(ink).style(egui_plot::LineStyle::dashed_loose()));
                for (one, colour) in all.iter().zip(colours) {
                    let points: Vec<[f64; 2]> = one
                        .errors
                        .iter()
                        .filter_map(|(k, errors)| Some([f64::from(*k).log2(), value(errors)? * 100.0]))
                        .collect();
                    plot.line(Line::new(one.name.get(), points.clone()).color(colour).width(2.0));
                    plot.points(Points::new(one.name.get(), PlotPoints::from(points)).color(colour).radius(3.0));
                }
            });
    });
}

/// In numbers, how far an untrained random E is from good.
fn honest(all: &[Series]) -> Option<String> {
    let random = all.iter().find(|one| one.name == Text::ProjectionGaussian)?;
    let (k, errors) = random.errors.last()?;
    let mean = all.iter().find(|one| one.name == Text::ProjectionMean)?.errors.last()?.1;
    let numbers = [format::count(u64::from(*k)), format::percent(errors.output), format::percent(mean.output)];
    Some(fill(Text::CurveHonest, &[&numbers[0], &numbers[1], &numbers[2]]))
}
