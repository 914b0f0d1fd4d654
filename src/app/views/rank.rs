//! The low rank of self-attention, Linformer's section 3 and Figure 1: the singular values of P on this input, always
//! beside those of random Q and K.

mod curves;
mod figures;
mod matrix;
mod plane;
mod reconstruction;
mod trained;
mod vectors;

use super::layout::column;
use super::{caption, format, section, title, waiting_for};
use crate::app::scene::{Answer, Command, Question, Scene};
use crate::lab::rank::{EXACT_UP_TO, LowRank, PRODUCTS};
use crate::text::{Text, fill};
use egui::Ui;
pub use figures::of_sum;
use std::rc::Rc;

/// Wide enough for two charts side by side.
const WIDE: f32 = 700.0;
/// Up to this length a GPU is not asked whether it may begin.
const AT_ONCE_UP_TO: u32 = 8192;

#[derive(Default)]
pub struct State {
    curves: curves::State,
    vectors: vectors::State,
    reconstruction: reconstruction::State,
    plane: plane::State,
    /// The length for which a long computation was asked for.
    asked: Option<u32>,
}

pub fn show(ui: &mut Ui, scene: &Scene<'_>, state: &mut State, commands: &mut Vec<Command>) {
    title(ui, Text::RankTitle);
    let n = scene.input.problem.dims.n_q;
    if at_once(scene) || state.asked == Some(n) {
        spectrum(ui, scene, state, commands);
    } else {
        let words = [format::count(n.into()), PRODUCTS.to_string(), format::count(EXACT_UP_TO.into())];
        ui.label(fill(Text::RankLarge, &words.each_ref().map(String::as_str)));
        if ui.button(Text::RankCompute.get()).on_hover_text(Text::RankComputeHelp.get()).clicked() {
            state.asked = Some(n);
        }
    }
    caption(ui, Text::RankCaption.get());
    ui.add_space(6.0);
    section(ui, Text::RankTrained, |ui| trained::show(ui, scene, commands));
    section(ui, Text::RankPlane, |ui| plane::show(ui, &mut state.plane));
}

/// Whether the singular values of P are computed unasked at this length.
pub fn at_once(scene: &Scene<'_>) -> bool {
    scene.input.problem.dims.n_q <= if scene.software { EXACT_UP_TO } else { AT_ONCE_UP_TO }
}

/// What is known of P or of its baseline; says why not, or that it is on its way.
fn known(ui: &mut Ui, scene: &Scene<'_>, question: Question, soon: &str) -> Option<Rc<LowRank>> {
    match (scene.answer)(question) {
        Some(Answer::LowRank(low_rank)) => Some(low_rank),
        other => {
            waiting_for(ui, other, soon);
            None
        }
    }
}

fn spectrum(ui: &mut Ui, scene: &Scene<'_>, state: &mut State, commands: &mut Vec<Command>) {
    let question = |random| Question::LowRank { head: scene.head, random };
    // What was asked last is answered first.
    commands.extend([true, false].map(|random| Command::Ask(question(random))));
    let n = scene.input.problem.dims.n_q;
    let soon = if n <= EXACT_UP_TO { Text::RankSoon } else { Text::RankSoonLeading };
    let soon = fill(soon, &[&format::count(n.into()), &PRODUCTS.to_string()]);
    let Some(own) = known(ui, scene, question(false), &soon) else { return };
    let random = known(ui, scene, question(true), Text::RankBaselineSoon.get());
    let random = random.as_deref();
    figures::say(ui, &own);
    state.curves.legend(ui);
    if ui.available_width() > WIDE {
        ui.columns_const(|[left, right]| {
            column(left, |ui| state.curves.cumulative(ui, &own, random));
            column(right, |ui| state.curves.values(ui, &own, random));
        });
    } else {
        state.curves.cumulative(ui, &own, random);
        state.curves.values(ui, &own, random);
    }
    figures::table(ui, &own, random);
    ui.add_space(6.0);
    state.reconstruction.show(ui, &own);
    ui.add_space(6.0);
    state.vectors.show(ui, scene, &own, commands);
}
