//! E and F fitted to the current input, live.

use super::maps::HEIGHT;
use super::picture::{Canvas, Grid, Scale};
use super::{MATRIX_HEIGHT, pair};
use crate::app::scene::{Answer, Command, Question, Scene};
use crate::app::views::{caption, format};
use crate::lab::{Fitted, Start};
use crate::methods::fit::{Loss, MOST_K};
use crate::outcome::Outcome;
use crate::settings::Projection;
use crate::text::{Text, fill};
use egui::{ComboBox, RichText, Ui};
use egui_plot::{AxisHints, Line, Plot};
use std::rc::Rc;

/// A look at the fit takes about this long, in milliseconds.
const LOOK_MS: f64 = 300.0;
/// Steps of the first look, and most of any.
const FIRST: u32 = 5;
const MOST: u32 = 100;
/// The fit stops by itself.
const LAST: u32 = 5000;
/// Learning rates in units of 0.0001.
const RATES: [u32; 5] = [3, 10, 30, 100, 300];

pub struct State {
    loss: Loss,
    rate: u32,
    /// What the rest is about: another outcome or start clears it.
    about: Option<(Rc<Outcome>, Start)>,
    going: bool,
    /// Steps that were asked for and have not come.
    asked: Option<u32>,
    shown: Option<Rc<Fitted>>,
    failed: Option<String>,
    canvases: [Canvas; 3],
}

impl Default for State {
    fn default() -> Self {
        Self {
            loss: Loss::Output,
            rate: 30,
            about: None,
            going: false,
            asked: None,
            shown: None,
            failed: None,
            canvases: Default::default(),
        }
    }
}

/// Why the current input cannot be fitted.
pub fn too_large(scene: &Scene<'_>, loss: Loss, k: u32) -> Option<String> {
    let count = |number: u32| format::count(u64::from(number));
    let (n, longest) = (scene.settings.n, loss.longest());
    if n > longest {
        let words = if loss == Loss::Map { Text::FitTooLongMap } else { Text::FitTooLong };
        return Some(fill(words, &[&count(longest), &count(n)]));
    }
    (k > MOST_K).then(|| fill(Text::FitTooWide, &[&count(MOST_K), &count(k)]))
}

impl State {
    pub fn show(&mut self, ui: &mut Ui, scene: &Scene<'_>, commands: &mut Vec<Command>) {
        ui.strong(Text::FitTitle.get());
        let Ok(outcome) = scene.linformer else { return };
        self.choices(ui);
        let start = Start { head: scene.head, k: scene.settings.projected_len(), loss: self.loss, rate: self.rate };
        // New settings clear the fit.
        if self.about.as_ref().is_none_or(|(of, from)| !Rc::ptr_eq(of, outcome) || *from != start) {
            self.clear();
            self.about = Some((outcome.clone(), start));
        }
        if let Some(why) = too_large(scene, self.loss, start.k) {
            self.clear();
            ui.label(why);
            return;
        }
        self.buttons(ui, commands);
        self.follow(scene, start, commands);
        if let Some(why) = &self.failed {
            ui.colored_label(ui.visuals().error_fg_color, why);
        }
        if scene.settings.projection == Projection::Max {
            ui.label(RichText::new(Text::FitFromMean.get()).small().weak());
        }
        match &self.shown {
            Some(fitted) => {
                ui.label(words(fitted));
                curve(ui, fitted);
                pictures(ui, fitted, &mut self.canvases);
            }
            None if self.going => drop(ui.label(Text::FitSoon.get())),
            None => {}
        }
        caption(ui, Text::FitCaption.get());
    }

    fn clear(&mut self) {
        (self.going, self.asked, self.shown, self.failed) = (false, None, None, None);
    }

    fn choices(&mut self, ui: &mut Ui) {
        ui.horizontal_wrapped(|ui| {
            for (loss, name, help) in
                [(Loss::Output, Text::FitOutput, Text::FitOutputHelp), (Loss::Map, Text::FitMap, Text::FitMapHelp)]
            {
                if ui.selectable_label(self.loss == loss, name.get()).on_hover_text(help.get()).clicked() {
                    self.loss = loss;
                }
            }
            let label = ui.label(Text::FitRate.get()).on_hover_text(Text::FitRateHelp.get());
            let written = |rate: u32| format::number(f64::from(rate) * 1e-4);
            let menu = ComboBox::from_id_salt("fit rate").selected_text(written(self.rate)).width(72.0);
            let menu = menu.show_ui(ui, |ui| {
                for rate in RATES {
                    ui.selectable_value(&mut self.rate, rate, written(rate));
                }
            });
            menu.response.labelled_by(label.id).on_hover_text(Text::FitRateHelp.get());
        });
    }

    /// Steps that were made.
    fn done(&self) -> u32 {
        self.shown.as_ref().map_or(0, |fitted| fitted.losses.len() as u32)
    }

    fn is_over(&self) -> bool {
        self.done() >= LAST
    }

    fn buttons(&mut self, ui: &mut Ui, commands: &mut Vec<Command>) {
        let last = format::count(LAST.into());
        ui.horizontal_wrapped(|ui| {
            let (name, help) = match (self.going, &self.shown) {
                (true, _) => (Text::FitStop, Text::FitStopHelp.get().to_owned()),
                (false, Some(_)) => (Text::FitGoOn, Text::FitGoOnHelp.get().to_owned()),
                (false, None) => (Text::FitStart, fill(Text::FitStartHelp, &[&last])),
            };
            let button = ui.add_enabled(!self.is_over(), egui::Button::new(name.get()));
            if button.on_hover_text(help).clicked() {
                self.going = !self.going;
                if self.failed.take().is_some() {
                    commands.push(Command::Resume);
                }
            }
            let again = ui.add_enabled(self.shown.is_some(), egui::Button::new(Text::FitAgain.get()));
            if again.on_hover_text(Text::FitAgainHelp.get()).clicked() {
                self.clear();
            }
        });
        if self.is_over() {
            ui.label(fill(Text::FitEnd, &[&last]));
        }
    }

    /// Takes what has come, and asks for more while the fit goes on. What was asked for is waited for
    /// even after a stop, since a fit that is dropped half-way begins anew.
    fn follow(&mut self, scene: &Scene<'_>, start: Start, commands: &mut Vec<Command>) {
        if let Some(until) = self.asked {
            match (scene.answer)(Question::Fit { start, until }) {
                Some(Answer::Fit(fitted)) => {
                    self.asked = None;
                    self.shown = Some(fitted);
                }
                Some(Answer::Failed(why)) => {
                    (self.going, self.asked) = (false, None);
                    self.failed = Some(why);
                }
                _ => {}
            }
        }
        self.going &= !self.is_over();
        if self.going && self.asked.is_none() {
            let more = self
                .shown
                .as_ref()
                .map_or(FIRST, |fitted| ((LOOK_MS / fitted.step_ms.max(0.01)) as u32).clamp(1, MOST));
            self.asked = Some((self.done() + more).min(LAST));
        }
        commands.extend(self.asked.map(|until| Command::Ask(Question::Fit { start, until })));
    }
}

fn words(fitted: &Fitted) -> String {
    let steps = format::count(fitted.losses.len() as u64);
    let percent = |error: f64| format::percent(error);
    let map = |error: Option<f64>| error.map_or_else(|| "-".to_owned(), percent);
    let mut words = fill(
        Text::FitWords,
        &[
            &steps,
            &percent(fitted.errors.output),
            &percent(fitted.untrained.output),
            &map(fitted.errors.map),
            &map(fitted.untrained.map),
            &format::time(fitted.step_ms),
            &format::bytes(fitted.bytes),
        ],
    );
    if let Some(sampled) = fitted.sampled {
        words = format!("{words} {}", fill(Text::ErrorsSampled, &[&format::count(u64::from(sampled))]));
    }
    words
}

/// The relative error before each step.
fn curve(ui: &mut Ui, fitted: &Fitted) {
    let points: Vec<[f64; 2]> = (0..)
        .zip(&fitted.losses)
        .map(|(step, loss)| [f64::from(step), f64::from(*loss).max(0.0).sqrt() * 100.0])
        .collect();
    let name = if fitted.start.loss == Loss::Map { Text::FitCurveMap } else { Text::FitCurveOutput };
    let colour = ui.visuals().hyperlink_color;
    ui.label(name.get());
    Plot::new("fit")
        .height(150.0)
        .allow_zoom(false)
        .allow_scroll(false)
        .allow_drag(false)
        .allow_boxed_zoom(false)
        .allow_double_click_reset(false)
        .include_y(0.0)
        .custom_x_axes(vec![AxisHints::new_x().label(Text::FitAxisSteps.get())])
        .custom_y_axes(vec![AxisHints::new_y().min_thickness(28.0)])
        .show(ui, |plot| plot.line(Line::new(name.get(), points).color(colour).width(2.0)));
}

fn pictures(ui: &mut Ui, fitted: &Rc<Fitted>, canvases: &mut [Canvas; 3]) {
    let [e, f, map] = canvases;
    let matrix = |ui: &mut Ui, matrix: &crate::lab::Matrix, name: Text, canvas: &mut Canvas| {
        let grid = Grid::of_matrix(matrix, name.get());
        canvas.show(ui, fitted, &grid, Scale::of(grid.values, false), MATRIX_HEIGHT);
    };
    match &fitted.f {
        Some(of_f) => pair(ui, |ui, second| {
            if second {
                matrix(ui, of_f, Text::FitMatrixF, f);
            } else {
                matrix(ui, &fitted.e, Text::FitMatrixE, e);
            }
        }),
        None => matrix(ui, &fitted.e, Text::FitMatrixShared, e),
    }
    let grid = Grid::of_map(&fitted.map, Text::FitMapPicture.get());
    map.show(ui, fitted, &grid, Scale::of(grid.values, true), HEIGHT);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::{Errors, Matrix};
    use crate::outcome::MapImage;
    use egui_kittest::Harness;
    use egui_kittest::kittest::{NodeT, Queryable};

    fn fitted(steps: u32) -> Rc<Fitted> {
        let errors = Errors { output: 0.5, map: Some(0.5) };
        let matrix = Matrix { k: 1, n: 1, width: 1, height: 1, values: vec![1.0] };
        let map = MapImage {
            values: vec![1.0],
            width: 1,
            height: 1,
            row_start: 0,
            row_count: 1,
            col_start: 0,
            col_count: 1,
            sampled: None,
        };
        Rc::new(Fitted {
            start: Start { head: 0, k: 1, loss: Loss::Output, rate: 30 },
            losses: vec![0.25; steps as usize],
            untrained: errors,
            errors,
            sampled: None,
            e: matrix,
            f: None,
            map,
            step_ms: 1.0,
            bytes: 1,
        })
    }

    #[test]
    fn the_last_step_is_the_end_and_is_said_to_be() {
        for (steps, goes_on) in [(LAST - 1, true), (LAST, false)] {
            let mut state = State { shown: Some(fitted(steps)), ..State::default() };
            let mut harness = Harness::new_ui(|ui| state.buttons(ui, &mut Vec::new()));
            harness.run();
            let button = harness.get_by_label(Text::FitGoOn.get());
            assert_eq!(!button.accesskit_node().is_disabled(), goes_on, "after {steps} steps");
            let end = harness.query_by_label_contains("5,000 steps are made, and the fit ends there").is_some();
            assert_eq!(end, !goes_on, "after {steps} steps");
        }
    }
}
