//! The outputs of the three methods side by side, and where they depart from full attention.

mod panel;

use super::colour;
use super::drawn::Drawn;
use super::layout::{column, legend};
use super::tokens::{self, Canvas, Face, Tokens, Turn};
use super::{caption, format, method_name, missing, title};
use crate::app::scene::{Answer, Command, Question, Scene};
use crate::inputs::Shown;
use crate::settings::Method;
use crate::text::{Text, fill};
use egui::{Grid, Label, RichText, Ui};
use panel::{Panel, Panels};

/// Width from which all methods stand in one row.
const WIDE: f32 = 640.0;
/// Rounds of the table of the duplication task, as in table 2 of the Reformer paper.
const ROUNDS: [u32; 4] = [1, 2, 4, 8];
const METHODS: [Method; 3] = [Method::Full, Method::Lsh, Method::Linformer];

#[derive(Default)]
pub struct State {
    /// The mean of all heads instead of the head of the scene.
    mean: bool,
    panels: Option<Panels>,
    canvases: Canvases,
}

#[derive(Default)]
struct Canvases {
    input: Canvas,
    outputs: [Canvas; 3],
    errors: [Canvas; 3],
    turn: Turn,
}

impl Canvases {
    /// Paints; every scatter turns with the others.
    fn paint(turn: &mut Turn, canvas: &mut Canvas, show: impl FnOnce(&mut Canvas)) {
        canvas.turn = *turn;
        show(canvas);
        *turn = canvas.turn;
    }
}

/// What one cell needs to be drawn.
struct Place<'a, 'b> {
    scene: &'a Scene<'b>,
    panels: &'a Panels,
    max_height: f32,
}

pub fn show(ui: &mut Ui, scene: &Scene<'_>, state: &mut State, commands: &mut Vec<Command>) {
    // Inside a scroll area the height that is left has no end; what is seen of it has.
    let room = ui.clip_rect().height();
    title(ui, Text::ResultTitle);
    heads(ui, scene, state);
    let outcomes = [scene.full, scene.lsh, scene.linformer].map(Result::ok);
    let head = (!state.mean).then_some(scene.head);
    let kept = state.panels.take().filter(|panels| panels.show_the_same(outcomes, head));
    let panels = state.panels.insert(kept.unwrap_or_else(|| Panels::new(&scene.input.shown, outcomes, head)));
    let wide = ui.available_width() > WIDE;
    let max_height = if wide { ((room - 190.0) / 2.0).clamp(120.0, 420.0) } else { 260.0 };
    let place = Place { scene, panels, max_height };
    let canvases = &mut state.canvases;
    if wide {
        ui.columns_const(|[first, second, third, fourth]| {
            column(first, |ui| {
                place.input(ui, canvases, commands);
                place.explain(ui);
            });
            column(second, |ui| {
                place.output(ui, 0, canvases, commands);
                place.errors(ui, 0, canvases, commands);
            });
            for (ui, at) in [(third, 1), (fourth, 2)] {
                column(ui, |ui| {
                    place.output(ui, at, canvases, commands);
                    place.errors(ui, at, canvases, commands);
                });
            }
        });
    } else {
        ui.columns_const(|[left, right]| {
            column(left, |ui| place.input(ui, canvases, commands));
            column(right, |ui| place.output(ui, 0, canvases, commands));
        });
        for at in [1, 2] {
            ui.columns_const(|[left, right]| {
                column(left, |ui| place.output(ui, at, canvases, commands));
                column(right, |ui| place.errors(ui, at, canvases, commands));
            });
        }
        place.explain(ui);
    }
    if let Shown::Duplication(_) = &scene.input.shown {
        accuracies(ui, scene, commands);
    }
    let words = match &scene.input.shown {
        Shown::Picture(_) => Text::ResultCaptionPicture,
        Shown::Points(_) => Text::ResultCaptionPoints,
        Shown::Duplication(_) => Text::ResultCaptionDuplication,
    };
    caption(ui, words.get());
}

/// The mean of all heads instead of the scene's.
fn heads(ui: &mut Ui, scene: &Scene<'_>, state: &mut State) {
    if scene.input.problem.dims.heads > 1 {
        ui.checkbox(&mut state.mean, Text::ResultMean.get()).on_hover_text(Text::ResultMeanHover.get());
    } else {
        state.mean = false;
    }
}

impl Place<'_, '_> {
    fn paint(
        &self,
        ui: &mut Ui,
        tokens: Tokens<'_>,
        turn: &mut Turn,
        canvas: &mut Canvas,
        commands: &mut Vec<Command>,
    ) {
        Canvases::paint(turn, canvas, |canvas| tokens.show(ui, self.scene, canvas).tell(commands));
    }

    fn tokens<'a>(&self, name: &'a str, face: Face<'a>) -> Tokens<'a> {
        Tokens { name, face, overlay: None, opacity: 1.0, max_height: self.max_height }
    }

    fn input(&self, ui: &mut Ui, canvases: &mut Canvases, commands: &mut Vec<Command>) {
        heading(ui, Text::ResultInput.get(), Text::ResultInputHover);
        let tokens = self.tokens(Text::ResultInput.get(), Face::Input);
        self.paint(ui, tokens, &mut canvases.turn, &mut canvases.input, commands);
        let n = u64::from(self.scene.input.problem.dims.n_q);
        line(ui, &fill(Text::ResultInputLine, &[&format::count(n)]));
    }

    fn output(&self, ui: &mut Ui, at: usize, canvases: &mut Canvases, commands: &mut Vec<Command>) {
        let method = METHODS[at];
        let name = method_name(method);
        heading(ui, name, Text::ResultOutputHover);
        let Some(panel) = &self.panels.of[at] else {
            let outcome = [self.scene.full, self.scene.lsh, self.scene.linformer][at];
            if let Err(why) = outcome {
                missing(ui, method, why, commands);
            }
            return;
        };
        let tokens = self.tokens(name, panel.drawn.face());
        self.paint(ui, tokens, &mut canvases.turn, &mut canvases.outputs[at], commands);
        let words = match &panel.errors {
            None if at == 0 => Text::ResultReference.get().to_owned(),
            None => Text::ResultNoReference.get().to_owned(),
            Some(errors) => fill(Text::ResultError, &[&format::number(errors.relative)]),
        };
        line(ui, &words).on_hover_text(Text::ResultErrorHover.get());
    }

    fn errors(&self, ui: &mut Ui, at: usize, canvases: &mut Canvases, commands: &mut Vec<Command>) {
        let Some(panel) = &self.panels.of[at] else { return };
        let Panel { drawn, marks: Some(marks), .. } = panel else {
            if let Drawn::Symbols(_) = panel.drawn {
                line(ui, Text::ResultNoAnswers.get());
            }
            return;
        };
        let text = match drawn {
            Drawn::Symbols(_) => Text::ResultRight,
            Drawn::Picture(_) | Drawn::Points(_) => Text::ResultErrorOf,
        };
        let name = fill(text, &[method_name(METHODS[at])]);
        heading(ui, &name, Text::ResultErrorOfHover);
        let tokens = Tokens { overlay: Some(marks), ..self.tokens(&name, drawn.face()) };
        self.paint(ui, tokens, &mut canvases.turn, &mut canvases.errors[at], commands);
        if let Some(accuracy) = panel.accuracy {
            line(ui, &fill(Text::ResultAccuracy, &[&format::percent(accuracy)]))
                .on_hover_text(Text::CompareAccuracyHover.get());
        }
    }

    /// The scale that the errors share, and the lit token's own.
    fn explain(&self, ui: &mut Ui) {
        ui.add_space(4.0);
        if let Shown::Duplication(_) = &self.scene.input.shown {
            for (colour, words) in [(panel::RIGHT, Text::ResultLegendRight), (panel::WRONG, Text::ResultLegendWrong)] {
                legend(ui, colour, words.get(), Text::ResultErrorOfHover.get());
            }
        } else if self.panels.of.iter().flatten().any(|panel| panel.errors.is_some()) {
            colour::bar(ui, colour::magnitude, self.panels.scale, Text::ResultBar.get());
        }
        let Some(token) = self.scene.token else {
            line(ui, Text::ResultPoint.get());
            return;
        };
        ui.label(tokens::describe(self.scene.input, token));
        for (panel, method) in self.panels.of.iter().zip(METHODS) {
            let error = panel.as_ref().and_then(|panel| panel.errors.as_ref()?.rows.get(token as usize));
            if let Some(error) = error {
                line(ui, &fill(Text::ResultTokenError, &[method_name(method), &format::number(f64::from(*error))]));
            }
        }
    }
}

/// A title of one line, cut where the column ends, so that neighbours stay in line.
fn heading(ui: &mut Ui, words: &str, hover: Text) {
    ui.add(Label::new(RichText::new(words).strong()).truncate()).on_hover_text(hover.get());
}

fn line(ui: &mut Ui, words: &str) -> egui::Response {
    ui.label(RichText::new(words).weak())
}

/// Accuracy on the second half of 0w0w for exact attention and some numbers of rounds.
fn accuracies(ui: &mut Ui, scene: &Scene<'_>, commands: &mut Vec<Command>) {
    ui.add_space(6.0);
    heading(ui, Text::ResultRoundsTitle.get(), Text::ResultRoundsHover);
    let exact = scene.full.ok().and_then(|outcome| outcome.figures.accuracy);
    let known = exact.map_or_else(|| Text::ResultPending.get().to_owned(), format::percent);
    let mut cells = vec![(Text::ResultExact.get().to_owned(), known)];
    for rounds in ROUNDS {
        let question = Question::Accuracy { rounds };
        commands.push(Command::Ask(question));
        let value = match (scene.answer)(question) {
            Some(Answer::Accuracy(Some(accuracy))) => format::percent(accuracy),
            Some(Answer::Failed(why)) => why,
            _ => Text::ResultPending.get().to_owned(),
        };
        let text = if rounds == 1 { Text::ResultOneRound } else { Text::ResultRounds };
        cells.push((fill(text, &[&rounds.to_string()]), value));
    }
    Grid::new("accuracy by rounds").striped(true).spacing([16.0, 4.0]).show(ui, |ui| {
        cells.iter().for_each(|(name, _)| {
            ui.label(RichText::new(name).weak());
        });
        ui.end_row();
        cells.iter().for_each(|(_, value)| {
            ui.label(value);
        });
        ui.end_row();
    });
}
