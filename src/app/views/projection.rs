//! Linformer's projections: E and F as pictures, the n x n map that they make of P-bar, a fit of both to
//! the input, the error over k, and what sharing saves.

mod curve;
mod fit;
mod maps;
mod picture;
mod sharing;

use super::layout::column;
use super::{caption, elsewhere, missing, title, waiting};
use crate::app::scene::{Answer, Command, Question, Scene};
use crate::problem::Source;
use crate::settings::{Method, Projection};
use crate::text::Text;
use egui::Ui;
use picture::{Canvas, Grid};

/// Width from which two pictures stand side by side.
const WIDE: f32 = 640.0;
/// Height of a picture of E.
const MATRIX_HEIGHT: f32 = 150.0;

#[derive(Default)]
pub struct State {
    matrices: [Canvas; 2],
    maps: maps::State,
    fit: fit::State,
    curve: curve::State,
    sharing: sharing::State,
}

pub fn show(ui: &mut Ui, scene: &Scene<'_>, state: &mut State, commands: &mut Vec<Command>) {
    title(ui, Text::ProjectionTitle);
    if scene.method != Method::Linformer {
        // Answers are about the method on the screen.
        let (why, seen) = (Text::ProjectionOfLinformer, Text::ViewProjectionHelp);
        return elsewhere(ui, scene, Method::Linformer, why, seen, commands);
    }
    if let Err(why) = scene.linformer {
        return missing(ui, scene.method, why, commands);
    }
    matrices(ui, scene, &mut state.matrices, commands);
    ui.separator();
    state.maps.show(ui, scene, commands);
    ui.separator();
    state.fit.show(ui, scene, commands);
    ui.separator();
    state.curve.show(ui, scene, commands);
    ui.separator();
    state.sharing.show(ui, scene);
}

/// E, and F where it is another matrix.
fn matrices(ui: &mut Ui, scene: &Scene<'_>, canvases: &mut [Canvas; 2], commands: &mut Vec<Command>) {
    let projection = scene.settings.projection;
    ui.strong(Text::MatrixTitle.get());
    if projection == Projection::Max {
        ui.label(Text::MatrixNone.get());
        return;
    }
    let (shared, _) = scene.settings.projection_sharing();
    let [e, f] = canvases;
    if shared {
        matrix(ui, scene, Source::E, Text::MatrixShared, e, commands);
    } else {
        pair(ui, |ui, second| {
            let (source, name, canvas) =
                if second { (Source::F, Text::MatrixF, &mut *f) } else { (Source::E, Text::MatrixE, &mut *e) };
            matrix(ui, scene, source, name, canvas, commands);
        });
    }
    let words = match projection {
        Projection::Mean | Projection::Max => Text::MatrixCaptionMean,
        Projection::Gaussian => Text::MatrixCaptionGaussian,
        Projection::Convolution => Text::MatrixCaptionConvolution,
    };
    caption(ui, words.get());
}

/// Two things, side by side where there is room.
fn pair(ui: &mut Ui, mut show: impl FnMut(&mut Ui, bool)) {
    if ui.available_width() > WIDE {
        ui.columns_const(|[left, right]| {
            column(left, |ui| show(ui, false));
            column(right, |ui| show(ui, true));
        });
    } else {
        show(ui, false);
        show(ui, true);
    }
}

fn matrix(
    ui: &mut Ui,
    scene: &Scene<'_>,
    source: Source,
    name: Text,
    canvas: &mut Canvas,
    commands: &mut Vec<Command>,
) {
    let question = Question::Matrix { source, head: scene.head };
    commands.push(Command::Ask(question));
    match (scene.answer)(question) {
        Some(Answer::Matrix(Some(matrix))) => {
            let grid = Grid::of_matrix(&matrix, name.get());
            canvas.show(ui, &matrix, &grid, picture::Scale::of(grid.values, false), MATRIX_HEIGHT);
        }
        other => waiting(ui, other),
    }
}
