//! The branch G: layer norm, `gelu(x W1 + b1) W2 + b2`, in chunks along the sequence. Reformer
//! equation (10): the hidden numbers of one chunk stand in memory at a time, and every row is computed
//! as without chunks.

use super::LayerBuilder;
use crate::methods::dense::{
    Matrix, Product, column_sum_passes, copy_pass, gelu_backward_pass, gelu_pass, norm_pass, product_passes,
};
use crate::plan::{ALIGNMENT, Binding, Step};

impl LayerBuilder<'_> {
    /// Rows of a chunk when the sequence is cut into `chunks`: a part of a stream begins aligned.
    pub(super) fn chunk_rows(&self, chunks: u32) -> u32 {
        let words = self.layer.width.next_multiple_of(4);
        let aligned = (ALIGNMENT as u32 / 4) >> words.trailing_zeros().min(6);
        self.layer.n.div_ceil(chunks).next_multiple_of(aligned).min(self.layer.n)
    }

    /// `count` rows of a stream from `start` on.
    pub(super) fn rows(stream: Binding, width: u32, [start, count]: [u32; 2]) -> Binding {
        let row = u64::from(width.next_multiple_of(4)) * 4;
        Binding { offset: stream.offset + u64::from(start) * row, bytes: u64::from(count) * row, ..stream }
    }

    pub(super) fn chunks(&self, chunks: u32) -> impl Iterator<Item = [u32; 2]> + use<> {
        let (n, rows) = (self.layer.n, self.chunk_rows(chunks));
        (0..n).step_by(rows as usize).map(move |start| [start, rows.min(n - start)])
    }

    /// `to += sign G(x)`.
    pub(super) fn feed_forward(&mut self, d_ff: u32, chunks: u32, x: Binding, to: Binding, sign: f32) {
        let (width, rows) = (self.layer.width, self.chunk_rows(chunks));
        let normed = self.scratch("G normed", rows, width);
        let hidden = self.scratch("hidden", rows, d_ff);
        for part in self.chunks(chunks) {
            let [normed, hidden] = [(normed, width), (hidden, d_ff)].map(|(b, w)| Self::rows(b, w, [0, part[1]]));
            self.expand(d_ff, part[1], Self::rows(x, width, part), normed, hidden);
            gelu_pass(&mut self.b, Step::FeedForward, hidden);
            self.contract(d_ff, part[1], hidden, Self::rows(to, width, part), sign);
        }
    }

    /// As without chunks, with the normed x and the hidden numbers before gelu left to be stored.
    pub(super) fn feed_forward_stored(&mut self, d_ff: u32, x: Binding, to: Binding) {
        let (n, width) = (self.layer.n, self.layer.width);
        let normed = self.scratch("G normed", n, width);
        let [hidden, bent] = ["hidden", "hidden bent"].map(|name| self.scratch(name, n, d_ff));
        self.expand(d_ff, n, x, normed, hidden);
        copy_pass(&mut self.b, Step::Store, 1.0, hidden, bent);
        gelu_pass(&mut self.b, Step::FeedForward, bent);
        self.contract(d_ff, n, bent, to, 1.0);
    }

    /// `hidden = norm(x) W1 + b1`.
    fn expand(&mut self, d_ff: u32, count: u32, x: Binding, normed: Binding, hidden: Binding) {
        let width = self.layer.width;
        let [gain, bias] = ["G gain", "G bias"].map(|name| self.parameter(name, 0));
        norm_pass(&mut self.b, Step::LayerNorm, [count, width], [x, gain, bias, normed]);
        let weight = Matrix::rows(self.parameter("W 1", 0), d_ff);
        let bias = Some(self.parameter("b 1", 0));
        let product = Product::new(Matrix::rows(normed, width), weight, [count, width, d_ff], hidden);
        product_passes(&mut self.b, Step::FeedForward, &Product { bias, ..product });
    }

    /// `to += sign (bent W2 + b2)`.
    fn contract(&mut self, d_ff: u32, count: u32, bent: Binding, to: Binding, sign: f32) {
        let width = self.layer.width;
        let weight = Matrix::rows(self.parameter("W 2", 0), width);
        let bias = Some(self.parameter("b 2", 0));
        let product = Product::new(Matrix::rows(bent, d_ff), weight, [count, d_ff, width], to);
        product_passes(&mut self.b, Step::FeedForward, &Product { bias, sign, accumulate: true, ..product });
    }

    /// The gradients of G, chunk by chunk, with `undo -= G(x)` from the same numbers.
    pub(super) fn feed_forward_backward(
        &mut self,
        d_ff: u32,
        chunks: u32,
        x: Binding,
        undo: Option<Binding>,
        dy: Binding,
        dx: Binding,
    ) {
        for part in self.chunks(chunks) {
            self.feed_forward_gradients(d_ff, part, x, undo, dy, dx, false);
        }
    }

    /// The same of the rows `[start, count]` of whole streams; what is stored is not computed again.
    #[expect(clippy::too_many_arguments, reason = "streams that a chunk is cut from")]
    pub(super) fn feed_forward_gradients(
        &mut self,
        d_ff: u32,
        part: [u32; 2],
        x: Binding,
        undo: Option<Binding>,
        dy: Binding,
        dx: Binding,
        stored: bool,
    ) {
        let (width, [start, count]) = (self.layer.width, part);
        let step = Step::LayerBackward;
        // The first chunk is the longest, and all use its space.
        let [normed, dnormed] = ["G normed", "G normed gradient"].map(|name| {
            let whole = self.scratch(name, count, width);
            Self::rows(whole, width, [0, count])
        });
        let [hidden, dhidden] = ["hidden", "hidden gradient"].map(|name| {
            let whole = self.scratch(name, count, d_ff);
            Self::rows(whole, d_ff, [0, count])
        });
        let [x, dy, dx] = [x, dy, dx].map(|stream| Self::rows(stream, width, part));
        if !stored {
            self.expand(d_ff, count, x, normed, hidden);
        }
        let dy_rows = Matrix::rows(dy, width);
        let weight = Matrix::rows(self.parameter("W 2", 0), width).transposed();
        product_passes(&mut self.b, step, &Product::new(dy_rows, weight, [count, width, d_ff], dhidden));
        gelu_backward_pass(&mut self.b, step, hidden, dhidden);
        if let Some(undo) = undo {
            self.contract(d_ff, count, hidden, Self::rows(undo, width, part), -1.0);
        }
        let accumulate = start > 0;
        let (hidden, dhidden_rows) = (Matrix::rows(hidden, d_ff), Matrix::rows(dhidden, d_ff));
        let to = self.parameter("W 2 gradient", 0);
        let product = Product::new(hidden.transposed(), dy_rows, [d_ff, count, width], to);
        product_passes(&mut self.b, step, &Product { accumulate, ..product });
        let to = self.parameter("b 2 gradient", 0);
        column_sum_passes(&mut self.b, step, [count, width], dy, to, accumulate);
        let to = self.parameter("W 1 gradient", 0);
        let product = Product::new(Matrix::rows(normed, width).transposed(), dhidden_rows, [width, count, d_ff], to);
        product_passes(&mut self.b, step, &Product { accumulate, ..product });
        let to = self.parameter("b 1 gradient", 0);
        column_sum_passes(&mut self.b, step, [count, d_ff], dhidden, to, accumulate);
        let weight = Matrix::rows(self.parameter("W 1", 0), d_ff).transposed();
        product_passes(&mut self.b, step, &Product::new(dhidden_rows, weight, [count, d_ff, width], dnormed));
        self.norm_gradients(["G gain", "G gain gradient", "G bias gradient"], part, [x, dnormed, dx]);
    }
}
