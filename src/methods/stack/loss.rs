//! From the outputs of a stack to a loss and its gradient. With a vocabulary, the logits of one section of
//! the sequence stand in memory at a time: Reformer section 3, "Chunking".

use super::{LayerBuilder, Parameter};
use crate::methods::dense::{Matrix, Product, copy_pass, cross_entropy_pass, product_passes};
use crate::methods::words;
use crate::plan::{Binding, Kind, Role, Step};

/// What is asked of the outputs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// `factor / 2` times the sum of squares of the outputs.
    Squares(f32),
    /// The mean over the tokens of `-log softmax(logits)[target]`, where the logits are the streams side by
    /// side times a matrix `[streams width, vocabulary]`.
    Vocabulary { vocabulary: u32, sections: u32 },
}

/// The word that a token should give, u32 `[n]`; whoever runs the plan writes it.
pub const TARGETS: &str = "targets";
/// The loss of every token, `[n]`, in nats.
pub const LOSSES: &str = "losses";

impl Loss {
    /// Whether tokens have words to give, and a loss each.
    pub fn has_words(self) -> bool {
        matches!(self, Self::Vocabulary { .. })
    }

    /// The matrix to the vocabulary, a range a stream.
    pub fn parameters(self, width: u32, streams: usize) -> Vec<Parameter> {
        let Self::Vocabulary { vocabulary, .. } = self else { return Vec::new() };
        let ranges = streams as u32;
        let (name, gradient) = ("W vocabulary", "W vocabulary gradient");
        vec![Parameter { name, gradient, ranges, rows: width, width: vocabulary, inputs: ranges * width }]
    }
}

impl LayerBuilder<'_> {
    /// The loss of the streams: its gradients by them, and by its own parameters.
    pub(super) fn loss(&mut self, loss: Loss, pairs: &[(&'static str, &'static str)]) {
        let streams: Vec<(Binding, Binding)> =
            pairs.iter().map(|(stream, gradient)| (self.stream(stream), self.stream(gradient))).collect();
        match loss {
            Loss::Squares(factor) => {
                streams.into_iter().for_each(|(x, dx)| copy_pass(&mut self.b, Step::Loss, factor, x, dx));
            }
            Loss::Vocabulary { vocabulary, sections } => self.vocabulary_loss(loss, [vocabulary, sections], &streams),
        }
    }

    fn vocabulary_loss(&mut self, loss: Loss, [vocabulary, sections]: [u32; 2], streams: &[(Binding, Binding)]) {
        let (n, width) = (self.layer.n, self.layer.width);
        let matrix = loss.parameters(width, streams.len());
        let [weights, gradients] = [false, true].map(|gradient| {
            let ranges = matrix.iter().flat_map(|p| (0..p.ranges).map(move |range| (p, range)));
            ranges.map(|(p, range)| self.parameter_of(p, gradient, range)).collect::<Vec<Binding>>()
        });
        let logits = self.scratch("logits", self.chunk_rows(sections), vocabulary);
        let targets = words(&mut self.b, TARGETS, Kind::U32, Role::Method, 1, &[n]);
        let losses = words(&mut self.b, LOSSES, Kind::F32, Role::Method, 1, &[n]);
        let [targets, losses] = [targets, losses].map(|id| self.b.range(id, 0));
        // The mean over all tokens.
        let share = 1.0 / n as f32;
        for part in self.chunks(sections) {
            let [start, count] = part;
            let logits = Self::rows(logits, vocabulary, [0, count]);
            let rows = |stream: Binding| Self::rows(stream, width, part);
            for (at, (x, _)) in streams.iter().enumerate() {
                let weight = Matrix::rows(weights[at], vocabulary);
                let x = Matrix::rows(rows(*x), width);
                let product = Product::new(x, weight, [count, width, vocabulary], logits);
                product_passes(&mut self.b, Step::Loss, &Product { accumulate: at > 0, ..product });
            }
            cross_entropy_pass(&mut self.b, Step::Loss, [start, count, vocabulary], [logits, targets, losses]);
            let slopes = Matrix::rows(logits, vocabulary);
            for (at, (x, dx)) in streams.iter().enumerate() {
                let x = Matrix::rows(rows(*x), width).transposed();
                let product = Product::new(x, slopes, [width, count, vocabulary], gradients[at]);
                let accumulate = start > 0;
                product_passes(&mut self.b, Step::Loss, &Product { sign: share, accumulate, ..product });
                let weight = Matrix::rows(weights[at], vocabulary).transposed();
                let product = Product::new(slopes, weight, [count, vocabulary, width], rows(*dx));
                product_passes(&mut self.b, Step::Loss, &Product { sign: share, ..product });
            }
        }
    }
}
