//! How few keys hold the mass of exact attention, and the output when only those are kept: why
//! LSH attention works at all.

use crate::app::scene::{Answer, Command, Question, Scene};
use crate::app::views::drawn::Drawn;
use crate::app::views::format;
use crate::app::views::layout::column;
use crate::app::views::tokens::{Canvas, Face, Tokens};
use crate::outcome::{Distance, Outcome, Sparsity};
use crate::settings::Method;
use crate::text::{Text, fill};
use egui::Ui;
use egui_plot::{AxisHints, GridMark, HoverPosition, Line, LineStyle, Plot, PlotPoint, PlotPoints, Points, VLine};
use std::rc::Rc;

const WIDE: f32 = 700.0;
/// Keys that may be kept.
const COUNTS: [u32; 2] = [32, 64];

#[derive(Default)]
pub struct Sparse {
    /// Keys that each query keeps, once asked for.
    count: Option<u32>,
    kept: Option<(Rc<Vec<f32>>, Drawn)>,
    full: Option<(Rc<Outcome>, u32, Drawn)>,
    canvases: [Canvas; 2],
}

impl Sparse {
    pub fn show(&mut self, ui: &mut Ui, scene: &Scene<'_>, outcome: &Rc<Outcome>, commands: &mut Vec<Command>) {
        ui.strong(Text::SparsityTitle.get());
        if ui.available_width() > WIDE {
            ui.columns_const(|[left, right]| {
                column(left, |ui| curve(ui, scene, commands));
                column(right, |ui| self.output(ui, scene, outcome, commands));
            });
        } else {
            curve(ui, scene, commands);
            self.output(ui, scene, outcome, commands);
        }
    }

    /// The output when only the strongest keys are kept, beside that of all keys.
    fn output(&mut self, ui: &mut Ui, scene: &Scene<'_>, outcome: &Rc<Outcome>, commands: &mut Vec<Command>) {
        ui.horizontal_wrapped(|ui| {
            ui.label(Text::StrongestKeep.get());
            for count in COUNTS {
                let chosen = self.count == Some(count);
                let button = ui.selectable_label(chosen, fill(Text::StrongestCount, &[&count.to_string()]));
                if button.on_hover_text(Text::StrongestHelp.get()).clicked() {
                    self.count = (!chosen).then_some(count);
                }
            }
        });
        let Some(count) = self.count else {
            ui.label(Text::StrongestNone.get());
            return;
        };
        let question = Question::Strongest { head: scene.head, count };
        commands.push(Command::Ask(question));
        let rows = match (scene.answer)(question) {
            Some(Answer::Strongest(rows)) => rows,
            Some(Answer::Failed(why)) => {
                ui.colored_label(ui.visuals().error_fg_color, why);
                return;
            }
            _ => {
                ui.label(Text::StrongestSoon.get());
                return;
            }
        };
        let (shown, width) = (&scene.input.shown, outcome.dims.d_v as usize);
        if self.kept.as_ref().is_none_or(|(old, _)| !Rc::ptr_eq(old, &rows)) {
            let drawn = Drawn::new(shown, &rows, width);
            self.kept = Some((rows.clone(), drawn));
        }
        let full = scene.full.ok().filter(|full| is_comparable(scene.method, full));
        let is_full =
            |old: &(Rc<Outcome>, u32, Drawn), new: &Rc<Outcome>| Rc::ptr_eq(&old.0, new) && old.1 == scene.head;
        if let Some(full) = full
            && self.full.as_ref().is_none_or(|old| !is_full(old, full))
        {
            let drawn = Drawn::new(shown, full.head(scene.head), width);
            self.full = Some((full.clone(), scene.head, drawn));
        }
        let name = fill(Text::StrongestOutput, &[&count.to_string()]);
        let Some((_, kept)) = &self.kept else { return };
        let [first, second] = &mut self.canvases;
        match (&self.full, full) {
            (Some((_, _, all)), Some(full)) => {
                ui.columns_const(|[left, right]| {
                    column(left, |ui| paint(ui, scene, &name, kept.face(), first, commands));
                    second.turn = first.turn;
                    column(right, |ui| paint(ui, scene, Text::StrongestAll.get(), all.face(), second, commands));
                    first.turn = second.turn;
                });
                let error = format::percent(Distance::between(&rows, full.head(scene.head)).relative());
                ui.label(fill(Text::StrongestError, &[&error]));
            }
            _ => paint(ui, scene, &name, kept.face(), first, commands),
        }
    }
}

fn paint(ui: &mut Ui, scene: &Scene<'_>, name: &str, face: Face<'_>, canvas: &mut Canvas, commands: &mut Vec<Command>) {
    ui.label(name);
    let tokens = Tokens { name, face, overlay: None, opacity: 1.0, max_height: 240.0 };
    tokens.show(ui, scene, canvas).tell(commands);
}

/// Whether full attention on the screen follows the rule of which the strongest keys are kept.
fn is_comparable(method: Method, full: &Outcome) -> bool {
    match method {
        Method::Lsh => full.settings.shared_qk,
        Method::Linformer => !full.settings.shared_qk,
        Method::Full | Method::FullRowwise | Method::FullMaterialized => true,
    }
}

/// Exact mass over the number of strongest keys, the numbers on a logarithmic axis.
fn curve(ui: &mut Ui, scene: &Scene<'_>, commands: &mut Vec<Command>) {
    let question = Question::Sparsity { head: scene.head };
    commands.push(Command::Ask(question));
    let sparsity = match (scene.answer)(question) {
        Some(Answer::Sparsity(sparsity)) => sparsity,
        Some(Answer::Failed(why)) => {
            ui.colored_label(ui.visuals().error_fg_color, why);
            return;
        }
        _ => {
            ui.label(Text::SparsitySoon.get());
            return;
        }
    };
    let points: Vec<[f64; 2]> =
        sparsity.keys.iter().zip(&sparsity.mass).map(|(keys, mass)| [f64::from(*keys).log2(), mass * 100.0]).collect();
    let most = points.last().map_or(1.0, |point| point[0]);
    // Labels up to 65,536 stand side by side.
    let step = if most > 6.0 { 2 } else { 1 };
    let marks =
        move |_| (0..=most as u32).step_by(step).map(|bit| GridMark { value: bit.into(), step_size: 1.0 }).collect();
    let colour = ui.visuals().hyperlink_color;
    let ink = ui.visuals().weak_text_color();
    ui.label(Text::SparsityAxisMass.get());
    Plot::new("sparsity")
        .height(220.0)
        .allow_zoom(false)
        .allow_scroll(false)
        .allow_drag(false)
        .allow_boxed_zoom(false)
        .allow_double_click_reset(false)
        .include_y(0.0)
        .include_y(100.0)
        .custom_x_axes(vec![
            AxisHints::new_x()
                .label(Text::SparsityAxisKeys.get())
                .label_spacing(10.0..=14.0)
                .formatter(|mark, _| format::count(mark.value.exp2().round() as u64)),
        ])
        .custom_y_axes(vec![AxisHints::new_y().label_spacing(10.0..=20.0).min_thickness(28.0)])
        .x_grid_spacer(marks)
        .y_grid_spacer(|_| {
            (0..=4).map(|quarter| GridMark { value: f64::from(quarter) * 25.0, step_size: 25.0 }).collect()
        })
        .label_formatter(|hover| {
            let HoverPosition::NearDataPoint { position: PlotPoint { x, y }, .. } = *hover else { return None };
            Some(fill(Text::SparsityHover, &[&format::count(x.exp2().round() as u64), &format::number(y)]))
        })
        .show(ui, |plot| {
            if most > 5.0 {
                plot.vline(VLine::new("32", 5.0).color(ink).style(LineStyle::dashed_loose()));
            }
            plot.line(Line::new(Text::SparsityTitle.get(), points.clone()).color(colour).width(2.0));
            plot.points(Points::new(Text::SparsityTitle.get(), PlotPoints::from(points)).color(colour).radius(3.0));
        });
    ui.label(words(&sparsity));
}

fn words(sparsity: &Sparsity) -> String {
    let n = sparsity.keys.last().copied().unwrap_or_default();
    let at = sparsity.keys.iter().position(|keys| *keys == 32.min(n)).unwrap_or_default();
    let keys = format::count(u64::from(sparsity.keys.get(at).copied().unwrap_or_default()));
    let mass = format::percent(sparsity.mass.get(at).copied().unwrap_or_default());
    let [n, queries] = [n, sparsity.queries].map(|count| format::count(u64::from(count)));
    fill(Text::SparsityWords, &[&keys, &n, &mass, &queries])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_sequences_have_words_too() {
        let one = Sparsity { keys: vec![1], mass: vec![1.0], queries: 1 };
        assert!(words(&one).contains("100 %"), "{}", words(&one));
    }
}
