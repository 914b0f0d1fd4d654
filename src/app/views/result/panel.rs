//! Outputs as something to look at, and how far each token is from full attention's output.

use crate::app::views::colour::{self, Scale};
use crate::app::views::drawn::Drawn;
use crate::inputs::row_errors;
use crate::inputs::{DuplicationInput, Shown};
use crate::outcome::{Distance, Outcome};
use egui::Color32;
use std::rc::Rc;

/// One method's output, of one head or the mean of all.
pub struct Panel {
    pub drawn: Drawn,
    /// What is known when full attention has an outcome, too.
    pub errors: Option<Errors>,
    /// A colour over each token: the error on the shared scale, or right and wrong.
    pub marks: Option<Rc<[Color32]>>,
    /// Of the duplication task, for the heads shown.
    pub accuracy: Option<f64>,
}

/// `norm(o_i - full_i)` of every token, and the same over all tokens in units of `norm(full)`.
pub struct Errors {
    pub rows: Vec<f32>,
    pub relative: f64,
}

impl Errors {
    fn new(out: &[f32], full: &[f32], width: usize) -> Self {
        Self { rows: row_errors(out, full, width), relative: Distance::between(out, full).relative() }
    }
}

/// Full attention, LSH attention and Linformer, with one scale of errors.
pub struct Panels {
    pub of: [Option<Panel>; 3],
    pub scale: Scale,
    outcomes: [Option<Rc<Outcome>>; 3],
    head: Option<u32>,
}

impl Panels {
    /// `head` is one head, or `None` for the mean of all.
    pub fn new(shown: &Shown, outcomes: [Option<&Rc<Outcome>>; 3], head: Option<u32>) -> Self {
        let outs = outcomes.map(|outcome| outcome.map(|outcome| (output(outcome, head), outcome.dims.d_v as usize)));
        let full = outs[0].as_ref().map(|(rows, _)| rows.as_slice());
        let errors = |at: usize| Some(Errors::new(&outs[at].as_ref()?.0, full?, outs[at].as_ref()?.1));
        let mut errors = [None, errors(1), errors(2)];
        let largest = errors.iter().flatten().flat_map(|errors| &errors.rows).fold(0.0f32, |a, b| a.max(*b));
        let scale = Scale::linear(0.0, if largest > 0.0 { largest } else { 1.0 });
        let of = [0, 1, 2].map(|at| {
            let (rows, width) = outs[at].as_ref()?;
            let drawn = Drawn::new(shown, rows, *width);
            let errors = errors[at].take();
            let (marks, accuracy) = match (shown, &drawn) {
                // Linformer cannot leave a position itself out, which gives the answer away.
                (Shown::Duplication(_), _) if at == 2 => (None, None),
                (Shown::Duplication(task), Drawn::Symbols(decoded)) => {
                    (Some(right_and_wrong(task, decoded)), Some(task.accuracy(rows, None)))
                }
                _ => {
                    let colour = |error: &f32| colour::magnitude(scale.place(*error));
                    (errors.as_ref().map(|errors: &Errors| errors.rows.iter().map(colour).collect()), None)
                }
            };
            Some(Panel { drawn, errors, marks, accuracy })
        });
        Self { of, scale, outcomes: outcomes.map(Option::<&Rc<Outcome>>::cloned), head }
    }

    /// True while they show these very outcomes.
    pub fn show_the_same(&self, outcomes: [Option<&Rc<Outcome>>; 3], head: Option<u32>) -> bool {
        let same = |(old, new): (&Option<Rc<Outcome>>, Option<&Rc<Outcome>>)| match (old, new) {
            (Some(old), Some(new)) => Rc::ptr_eq(old, new),
            (None, None) => true,
            _ => false,
        };
        self.head == head && self.outcomes.iter().zip(outcomes).all(same)
    }
}

fn output(outcome: &Outcome, head: Option<u32>) -> Vec<f32> {
    match head {
        Some(head) => outcome.head(head).to_vec(),
        None => outcome.mean_of_heads(),
    }
}

pub const RIGHT: Color32 = Color32::from_rgb(40, 170, 120);
pub const WRONG: Color32 = Color32::from_rgb(225, 75, 45);

/// Of the positions that are asked; the others stay as they are.
fn right_and_wrong(task: &DuplicationInput, decoded: &[u32]) -> Rc<[Color32]> {
    let asked = task.asked();
    decoded
        .iter()
        .zip(0..)
        .map(|(symbol, position)| match asked.contains(&position) {
            false => Color32::TRANSPARENT,
            true if *symbol == task.next(position) => RIGHT,
            true => WRONG,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs;
    use crate::settings::{InputKind, Settings};

    #[test]
    fn errors_are_distances_of_rows() {
        let errors = Errors::new(&[1.0, 2.0, 3.0, 0.0], &[1.0, 2.0, 0.0, 4.0], 2);
        assert_eq!(errors.rows, [0.0, 5.0]);
        assert!((errors.relative - 5.0 / 21f64.sqrt()).abs() < 1e-9);
        assert_eq!(Errors::new(&[0.0, 3.0], &[0.0, 0.0], 2).relative, 3.0);
    }

    /// The values are the codes of the next symbols, so as an output they answer everything right.
    #[test]
    fn the_answers_of_the_second_half_are_marked() {
        let settings = Settings { n: 64, input: InputKind::Duplication, ..Settings::default() };
        let input = pollster::block_on(inputs::build(&settings, None)).expect("an input");
        let Shown::Duplication(task) = &input.shown else { panic!("not the task") };
        let width = input.problem.dims.d_v as usize;
        let Drawn::Symbols(decoded) = Drawn::new(&input.shown, &input.problem.v, width) else { panic!("no symbols") };
        let marks = right_and_wrong(task, &decoded);
        let count = |colour| marks.iter().filter(|mark| **mark == colour).count();
        assert_eq!((count(RIGHT), count(WRONG)), (task.asked().len(), 0));
        let mut wrong = decoded.to_vec();
        let first = task.asked().start as usize;
        wrong[first] = (wrong[first] + 1) % 128;
        assert_eq!(right_and_wrong(task, &wrong)[first], WRONG);
    }
}
