//! Every question that a view can ask, drawn at random about what is on the screen.

use super::Draw;
use crate::app::scene::Question;
use crate::lab::Start;
use crate::lab::stack::{Stacked, Way};
use crate::lab::theory::Experiment;
use crate::methods::fit::Loss;
use crate::methods::measure::{Weights, Window};
use crate::presets::PRESETS;
use crate::problem::Source;
use crate::settings::{Method, Projection, Settings};
use crate::tables::Sizes;

/// Kinds of questions.
const KINDS: u32 = 21;
/// Numbers that the parameters of a stack and its loss may have: they are drawn before anything can be left.
const LARGEST_STACK: u64 = 4 << 20;
/// Most projected rows of what is measured or fitted beside the method, and most steps of a fit.
const MOST_K: u32 = 256;
const MOST_STEPS: u32 = 8;

/// A question that a view could ask with these settings.
pub fn question(draw: &mut Draw, shown: &Settings) -> Question {
    loop {
        let kind = draw.below(KINDS);
        if let Some(question) = of_kind(kind, draw, shown) {
            return question;
        }
    }
}

/// One question of every kind that makes sense with these settings.
pub fn of_every_kind(draw: &mut Draw, shown: &Settings) -> Vec<Question> {
    (0..KINDS).filter_map(|kind| of_kind(kind, draw, shown)).collect()
}

/// None where the settings leave nothing to ask.
fn of_kind(kind: u32, draw: &mut Draw, shown: &Settings) -> Option<Question> {
    let head = draw.below(shown.heads);
    let k = draw.log_uniform(1, shown.n.min(MOST_K));
    Some(match kind {
        0 => Question::PairMap { head, window: window(draw, shown.n, shown.n) },
        1 => {
            let linformer = shown.method == Method::Linformer;
            // Max pooling has no matrix to multiply with.
            let kinds = if linformer && shown.projection == Projection::Max { 2 } else { 5 };
            let which = [Weights::Exact, Weights::Method, Weights::Effective, Weights::SignedE, Weights::SignedF]
                [draw.below(kinds) as usize];
            let projected = linformer && which == Weights::Method;
            let columns = if projected { shown.projected_len() } else { shown.n };
            Question::WeightMap { which, head, window: window(draw, shown.n, columns) }
        }
        2 => Question::Row { head, query: draw.below(shown.n) },
        3 => Question::Sparsity { head },
        4 => Question::Strongest { head, count: 32 << draw.below(2) },
        5 => Question::Accuracy { rounds: 1 + draw.below(16) },
        6 => Question::Under { preset: &PRESETS[draw.below(PRESETS.len() as u32) as usize] },
        7 => Question::LastToken,
        8 => Question::SeparateKeys,
        9 => Question::ByRounds,
        10 => Question::LowRank { head, random: draw.once_in(2) },
        11 => Question::Trained,
        12 => Question::Theorem { k },
        13 => Question::Savings { sizes: Sizes { length: 512, ..small() } },
        14 => Question::Speed { sizes: Sizes { length: 128 << draw.below(2), ..small() } },
        15 => Question::Matrix { source: [Source::E, Source::F][draw.below(2) as usize], head },
        16 => Question::Untrained { head, k },
        17 => Question::Fit { start: start(draw, shown, head, k)?, until: 1 + draw.below(MOST_STEPS) },
        18 => Question::FittedErrors { start: start(draw, shown, head, k)?, steps: 1 + draw.below(MOST_STEPS) },
        19 => Question::Layers(stacked(draw, shown)?),
        _ => {
            let buckets = 2 << draw.below(6);
            let experiments =
                [Experiment::Collisions { buckets }, Experiment::Recall { cosine: 90 }, Experiment::Overfull];
            Question::Experiment { experiment: experiments[draw.below(3) as usize], seed: draw.below(1 << 16) }
        }
    })
}

fn window(draw: &mut Draw, rows: u32, columns: u32) -> Window {
    if draw.once_in(2) {
        return Window::whole(rows, columns);
    }
    let (row_start, col_start) = (draw.below(rows), draw.below(columns));
    Window { row_start, row_count: rows - row_start, col_start, col_count: columns - col_start }
}

/// Sizes that are timed in a moment.
fn small() -> Sizes {
    Sizes { heads: 1, d_model: 64, k: 64, ..Sizes::default() }
}

fn start(draw: &mut Draw, shown: &Settings, head: u32, k: u32) -> Option<Start> {
    let loss = [Loss::Output, Loss::Map][draw.below(2) as usize];
    (shown.n <= loss.longest()).then(|| Start { head, k, loss, rate: [30, 100][draw.below(2) as usize] })
}

fn stacked(draw: &mut Draw, shown: &Settings) -> Option<Stacked> {
    let own = Stacked::of(shown);
    let way = if draw.once_in(2) { own.way } else { Way { stored: true, ..Way::default() } };
    let layers = 1 + draw.below(own.layers.min(2));
    let width = u64::from(shown.heads) * u64::from(shown.d);
    let numbers = u64::from(layers) * width * (4 * width + 2 * u64::from(shown.hidden_width()))
        + 2 * width * u64::from(shown.vocabulary);
    (numbers <= LARGEST_STACK).then_some(Stacked { layers, way, ..own })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kinds in the order in which they are drawn: a new one does not compile here until it has a number.
    fn kind(question: &Question) -> u32 {
        match question {
            Question::PairMap { .. } => 0,
            Question::WeightMap { .. } => 1,
            Question::Row { .. } => 2,
            Question::Sparsity { .. } => 3,
            Question::Strongest { .. } => 4,
            Question::Accuracy { .. } => 5,
            Question::Under { .. } => 6,
            Question::LastToken => 7,
            Question::SeparateKeys => 8,
            Question::ByRounds => 9,
            Question::LowRank { .. } => 10,
            Question::Trained => 11,
            Question::Theorem { .. } => 12,
            Question::Savings { .. } => 13,
            Question::Speed { .. } => 14,
            Question::Matrix { .. } => 15,
            Question::Untrained { .. } => 16,
            Question::Fit { .. } => 17,
            Question::FittedErrors { .. } => 18,
            Question::Layers(_) => 19,
            Question::Experiment { .. } => 20,
        }
    }

    #[test]
    fn every_kind_is_asked() {
        let shown = Settings { n: 100, ..Settings::default() };
        let all = of_every_kind(&mut Draw::new(1), &shown);
        assert!((0..KINDS).eq(all.iter().map(kind)), "{all:?}");
        let mut draw = Draw::new(1);
        let drawn: Vec<Question> = (0..2000).map(|_| question(&mut draw, &shown)).collect();
        let maps = drawn.iter().filter_map(|question| match question {
            Question::WeightMap { which, .. } => Some(*which as u32),
            _ => None,
        });
        assert_eq!(maps.collect::<std::collections::BTreeSet<u32>>().len(), 5, "every map");
        assert!((0..KINDS).all(|number| drawn.iter().any(|question| kind(question) == number)));
    }
}
