//! The leading singular vectors: on the photograph's grid where there is one, else as lines.

use crate::app::scene::{Command, Scene};
use crate::app::views::colour::{self, Scale};
use crate::app::views::format;
use crate::app::views::layout::column;
use crate::app::views::tokens::{Canvas, Face, Tokens};
use crate::inputs::Shown;
use crate::lab::rank::{LEADING, LowRank};
use crate::spectrum::pooled;
use crate::text::{Text, fill};
use egui::{Color32, RichText, Ui};
use egui_plot::{AxisHints, Line, Plot};
use std::rc::Rc;

/// Vectors side by side on a wide and on a narrow screen.
const WIDE: usize = LEADING;
const NARROW: usize = 3;
const HEIGHT: f32 = 130.0;
/// Points of a line at most.
const POINTS: usize = 512;

/// The colours of a left and of a right vector, token by token.
type Both = [Rc<[Color32]>; 2];

#[derive(Default)]
pub struct State {
    painted: Option<(Rc<LowRank>, Vec<Both>)>,
    canvases: [[Canvas; 2]; WIDE],
}

impl State {
    pub fn show(&mut self, ui: &mut Ui, scene: &Scene<'_>, own: &Rc<LowRank>, commands: &mut Vec<Command>) {
        ui.label(RichText::new(Text::RankVectors.get()).strong());
        let most = if ui.available_width() > super::WIDE { WIDE } else { NARROW };
        let svd = &own.leading;
        let count = most.min(svd.values.len());
        let on_grid = matches!(scene.input.shown, Shown::Picture(_));
        if on_grid && self.painted.as_ref().is_none_or(|(of, _)| !Rc::ptr_eq(of, own)) {
            let both = |part| [painted(svd.left.row(part)), painted(svd.right.row(part))];
            self.painted = Some((own.clone(), (0..svd.values.len()).map(both).collect()));
        }
        for (side, axis) in [Text::RankLeft, Text::RankRight].into_iter().enumerate() {
            ui.label(axis.get());
            ui.columns(count, |columns| {
                for (part, (ui, canvases)) in columns.iter_mut().zip(&mut self.canvases).enumerate() {
                    let name = [Text::RankU, Text::RankV][side];
                    let value = format::number(svd.values[part].into());
                    let name = fill(name, &[&(part + 1).to_string(), &value]);
                    let vector = [&svd.left, &svd.right][side].row(part);
                    column(ui, |ui| {
                        ui.label(RichText::new(&name).small());
                        match &self.painted {
                            Some((_, painted)) if on_grid => {
                                let overlay = Some(&painted[part][side]);
                                let tokens = Tokens {
                                    name: &name,
                                    face: Face::Input,
                                    overlay,
                                    opacity: 1.0,
                                    max_height: HEIGHT,
                                };
                                tokens.show(ui, scene, &mut canvases[side]).tell(commands);
                            }
                            _ => line(ui, &name, vector),
                        }
                    });
                }
            });
        }
        if on_grid {
            let scale = Scale::linear(-1.0, 1.0);
            colour::bar(ui, |t| colour::signed(2.0 * t - 1.0), scale, Text::RankVectorBar.get());
        }
    }
}

fn largest(vector: &[f32]) -> f32 {
    vector.iter().fold(f32::MIN_POSITIVE, |most, x| most.max(x.abs()))
}

fn painted(vector: &[f32]) -> Rc<[Color32]> {
    let most = largest(vector);
    vector.iter().map(|x| colour::signed(x / most)).collect()
}

fn line(ui: &mut Ui, name: &str, vector: &[f32]) {
    let (most, count) = (f64::from(largest(vector)), vector.len().min(POINTS));
    let step = vector.len() as f64 / count as f64;
    let points = pooled(vector, count as u32).into_iter().enumerate();
    let points: Vec<[f64; 2]> = points.map(|(at, x)| [at as f64 * step, f64::from(x) / most]).collect();
    Plot::new(name)
        .height(HEIGHT)
        .allow_zoom(false)
        .allow_drag(false)
        .allow_scroll(false)
        .allow_boxed_zoom(false)
        .allow_double_click_reset(false)
        .show_crosshair(false)
        .include_y(-1.0)
        .include_y(1.0)
        .custom_x_axes(vec![
            AxisHints::new_x()
                .label_spacing(24.0..=40.0)
                .formatter(|mark, _| format::count(mark.value.max(0.0) as u64)),
        ])
        .custom_y_axes(vec![AxisHints::new_y().label_spacing(14.0..=24.0).min_thickness(20.0)])
        .show(ui, |plot| plot.line(Line::new(name, points).color(super::curves::OWN).width(1.2)));
}
