//! One layer of a Reformer as plans: forward, inverse and backward, reversible or with stored
//! activations. Reformer section 3, equations (7) and (8).
//!
//! `y1 = x1 + F(x2)`, `y2 = x2 + G(y1)`, in place: the streams x1 and x2 become y1 and y2, and the
//! backward pass turns them back. Layer norm stands inside the branches. The plans of a layer share
//! their names with those of all others; whoever runs them decides which buffers outlive a layer.

mod attention;
mod feed_forward;
mod loss;

use super::dense::{Matrix, Product, column_sum_passes, copy_pass, product_passes};
use super::lsh::Lsh;
use super::row_vectors;
use crate::plan::{Binding, BufferId, Builder, Limits, Plan, Refusal, Role, Step};
use crate::problem::{Dims, Fill, Source};
use crate::semantics::Semantics;
use crate::steps::Widths;
use crate::steps::packed_ids::{PACK, UNPACK};
pub use loss::{LOSSES, Loss, TARGETS};

/// Attention of the branch F, with shared queries and keys.
#[derive(Clone, Debug, PartialEq)]
pub enum Attention {
    Full(Semantics),
    Lsh(Lsh),
}

impl Attention {
    /// The rules of its pairs.
    pub fn semantics(&self) -> Semantics {
        match self {
            Self::Full(rule) => *rule,
            Self::Lsh(lsh) => lsh.semantics,
        }
    }
}

/// What F and G are.
#[derive(Clone, Debug, PartialEq)]
pub enum Branches {
    /// `F(x) = W x + b`, and G alike with numbers of its own.
    Linear,
    /// F is attention, G feed-forward, both after a layer norm.
    Reformer {
        /// `width = heads d`; d_v is d.
        dims: Dims,
        attention: Attention,
        d_ff: u32,
        /// Parts of the sequence that the feed-forward layer walks one after the other.
        chunks: u32,
    },
}

/// A layer of two streams of `[n, width]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    pub n: u32,
    pub width: u32,
    pub branches: Branches,
}

/// A parameter `[ranges, rows, width]`, the buffer of its gradient, and by how many inputs a sum over
/// it grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    pub name: &'static str,
    pub gradient: &'static str,
    pub ranges: u32,
    pub rows: u32,
    pub width: u32,
    /// A normal entry has the variance `1 / inputs`; 0 where the parameter is a gain or a bias.
    pub inputs: u32,
}

impl Parameter {
    /// Numbers, padding left out.
    pub fn len(&self) -> usize {
        self.ranges as usize * self.rows as usize * self.width as usize
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The streams that a layer reads and writes in place.
pub const STREAMS: [&str; 2] = ["x1", "x2"];
/// The gradients by them.
pub const GRADIENTS: [&str; 2] = ["dx1", "dx2"];
/// The bucket ids of the layer that is on, u32 `[heads, rounds, n]`.
pub const BUCKETS: &str = "buckets";
/// The same in few bits: what the backward pass of LSH attention needs to hash nothing again.
pub const KEPT: &str = "kept ids";
/// The one stream of the ordinary residual layer, and its gradient.
pub const STREAM: &str = "x";
pub const GRADIENT: &str = "dx";

impl Layer {
    pub fn parameters(&self) -> Vec<Parameter> {
        let one =
            |name, gradient, ranges, rows, width, inputs| Parameter { name, gradient, ranges, rows, width, inputs };
        let w = self.width;
        match &self.branches {
            Branches::Linear => vec![
                one("F weight", "F weight gradient", 1, w, w, w),
                one("F bias", "F bias gradient", 1, 1, w, 0),
                one("G weight", "G weight gradient", 1, w, w, w),
                one("G bias", "G bias gradient", 1, 1, w, 0),
            ],
            Branches::Reformer { dims, d_ff, .. } => vec![
                one("F gain", "F gain gradient", 1, 1, w, 0),
                one("F bias", "F bias gradient", 1, 1, w, 0),
                one("W query", "W query gradient", dims.heads, w, dims.d, w),
                one("W value", "W value gradient", dims.heads, w, dims.d, w),
                one("W out", "W out gradient", dims.heads, dims.d, w, w),
                one("G gain", "G gain gradient", 1, 1, w, 0),
                one("G bias", "G bias gradient", 1, 1, w, 0),
                one("W 1", "W 1 gradient", 1, w, *d_ff, w),
                one("b 1", "b 1 gradient", 1, 1, *d_ff, 0),
                one("W 2", "W 2 gradient", 1, *d_ff, w, *d_ff),
                one("b 2", "b 2 gradient", 1, 1, w, 0),
            ],
        }
    }

    fn builder(&self, limits: Limits) -> LayerBuilder<'_> {
        let widths = match &self.branches {
            Branches::Linear => Widths::new(1, 1),
            Branches::Reformer { dims, .. } => dims.widths(),
        };
        LayerBuilder { b: Builder::new(limits, widths), layer: self }
    }

    /// `x1 += F(x2)`, `x2 += G(x1)`; unless the way back is to `rehash`, LSH attention leaves its buckets in
    /// [`KEPT`].
    ///
    /// # Errors
    /// The first buffer that the device cannot hold.
    pub fn forward(&self, rehash: bool, limits: Limits) -> Result<Plan, Refusal> {
        let mut l = self.builder(limits);
        let [x1, x2] = STREAMS.map(|name| l.stream(name));
        l.f(x2, x1, 1.0);
        if !rehash {
            l.ids(&PACK);
        }
        l.g(x1, x2, 1.0);
        l.b.finish()
    }

    /// `x2 -= G(x1)`, `x1 -= F(x2)`.
    ///
    /// # Errors
    /// The first buffer that the device cannot hold.
    pub fn inverse(&self, limits: Limits) -> Result<Plan, Refusal> {
        let mut l = self.builder(limits);
        let [x1, x2] = STREAMS.map(|name| l.stream(name));
        l.g(x1, x2, -1.0);
        l.f(x2, x1, -1.0);
        l.b.finish()
    }

    /// Turns the streams and the gradients by them back to the layer's input, and adds up the gradients
    /// of its parameters, from the outputs alone. What G and F compute for the way back serves their
    /// gradients too: 3 N multiply-adds for N of the forward pass. LSH attention takes its buckets from
    /// [`KEPT`], unless it is to `rehash` the rebuilt stream.
    ///
    /// # Errors
    /// The first buffer that the device cannot hold.
    pub fn backward(&self, rehash: bool, limits: Limits) -> Result<Plan, Refusal> {
        let mut l = self.builder(limits);
        let [x1, x2] = STREAMS.map(|name| l.stream(name));
        let [dx1, dx2] = GRADIENTS.map(|name| l.stream(name));
        match &self.branches {
            Branches::Linear => {
                l.linear("G weight", "G bias", x1, x2, -1.0);
                l.linear_backward(["G weight gradient", "G bias gradient"], "G weight", x1, dx2, dx1);
                l.linear("F weight", "F bias", x2, x1, -1.0);
                l.linear_backward(["F weight gradient", "F bias gradient"], "F weight", x2, dx1, dx2);
            }
            Branches::Reformer { dims, attention, d_ff, chunks } => {
                l.feed_forward_backward(*d_ff, *chunks, x1, Some(x2), dx2, dx1);
                if !rehash {
                    l.ids(&UNPACK);
                }
                l.attend(dims, attention, x2, rehash);
                l.project_out(dims, x1, -1.0);
                l.attention_backward(dims, attention, x2, dx1, dx2);
            }
        }
        l.b.finish()
    }

    /// The ordinary residual layer of the same branches, `x += F(x)`, `x += G(x)`. What the names of
    /// [`Layer::residual_backward`] hold is stored until then.
    ///
    /// # Errors
    /// The first buffer that the device cannot hold.
    pub fn residual_forward(&self, limits: Limits) -> Result<Plan, Refusal> {
        let mut l = self.builder(limits);
        let x = l.stream(STREAM);
        if let Branches::Reformer { dims, attention, d_ff, .. } = &self.branches {
            let before = ["x before F", "x before G"].map(|name| l.stream(name));
            copy_pass(&mut l.b, Step::Store, 1.0, x, before[0]);
            l.attend(dims, attention, before[0], true);
            l.project_out(dims, x, 1.0);
            copy_pass(&mut l.b, Step::Store, 1.0, x, before[1]);
            l.feed_forward_stored(*d_ff, before[1], x);
        }
        l.b.finish()
    }

    /// The gradients of [`Layer::residual_forward`], from what it stored.
    ///
    /// # Errors
    /// The first buffer that the device cannot hold.
    pub fn residual_backward(&self, limits: Limits) -> Result<Plan, Refusal> {
        let mut l = self.builder(limits);
        let dx = l.stream(GRADIENT);
        if let Branches::Reformer { dims, attention, d_ff, .. } = &self.branches {
            let before = ["x before F", "x before G"].map(|name| l.stream(name));
            // The gradient by a branch's output is read while that by its input is added to.
            let branch = l.stream("gradient of a branch");
            copy_pass(&mut l.b, Step::Store, 1.0, dx, branch);
            l.feed_forward_gradients(*d_ff, [0, self.n], before[1], None, branch, dx, true);
            copy_pass(&mut l.b, Step::Store, 1.0, dx, branch);
            l.attention_backward(dims, attention, before[0], branch, dx);
        }
        l.b.finish()
    }

    /// The loss of outputs of this shape: its gradients by the streams of `pairs`, each with the buffer of its
    /// gradient, and by the parameters of the loss.
    ///
    /// # Errors
    /// The first buffer that the device cannot hold.
    pub fn loss(&self, loss: Loss, pairs: &[(&'static str, &'static str)], limits: Limits) -> Result<Plan, Refusal> {
        let mut l = self.builder(limits);
        l.loss(loss, pairs);
        l.b.finish()
    }
}

struct LayerBuilder<'a> {
    b: Builder,
    layer: &'a Layer,
}

impl LayerBuilder<'_> {
    /// A buffer `[n, width]` of the streams' shape; the inputs are filled with what has their name.
    fn stream(&mut self, name: &'static str) -> Binding {
        let (n, width) = (self.layer.n, self.layer.width);
        let id = row_vectors(&mut self.b, name, Role::Tensor, 1, n, width);
        if STREAMS.contains(&name) || name == STREAM {
            self.fill(id, name, n, width);
        }
        self.b.range(id, 0)
    }

    fn fill(&mut self, id: BufferId, name: &'static str, rows: u32, width: u32) {
        self.b.fill(id, Fill { k: width, ..Fill::whole(Source::Named(name), rows) });
    }

    /// Working space `[rows, width]`.
    fn scratch(&mut self, name: &'static str, rows: u32, width: u32) -> Binding {
        let id = row_vectors(&mut self.b, name, Role::Method, 1, rows, width);
        self.b.range(id, 0)
    }

    /// A range of a parameter of the layer, or of a gradient of one.
    fn parameter(&mut self, name: &'static str, range: u32) -> Binding {
        let all = self.layer.parameters();
        let is = |parameter: &&Parameter| parameter.name == name || parameter.gradient == name;
        let parameter = all.iter().find(is).unwrap_or_else(|| unreachable!("{name} is a parameter of the layer"));
        self.parameter_of(parameter, parameter.gradient == name, range)
    }

    /// A range of a parameter, or of its gradient.
    fn parameter_of(&mut self, parameter: &Parameter, gradient: bool, range: u32) -> Binding {
        let Parameter { ranges, rows, width, .. } = *parameter;
        let name = if gradient { parameter.gradient } else { parameter.name };
        let id = row_vectors(&mut self.b, name, Role::Tensor, ranges, rows, width);
        if !gradient {
            self.fill(id, name, rows, width);
        }
        self.b.range(id, range)
    }

    /// `to += sign F(x)`.
    fn f(&mut self, x: Binding, to: Binding, sign: f32) {
        match &self.layer.branches {
            Branches::Linear => self.linear("F weight", "F bias", x, to, sign),
            Branches::Reformer { dims, attention, .. } => {
                self.attend(dims, attention, x, true);
                self.project_out(dims, to, sign);
            }
        }
    }

    /// `to += sign G(x)`.
    fn g(&mut self, x: Binding, to: Binding, sign: f32) {
        match &self.layer.branches {
            Branches::Linear => self.linear("G weight", "G bias", x, to, sign),
            Branches::Reformer { d_ff, chunks, .. } => self.feed_forward(*d_ff, *chunks, x, to, sign),
        }
    }

    /// `to += sign (x W^T + b)`, W being `[outputs, inputs]`.
    fn linear(&mut self, weight: &'static str, bias: &'static str, x: Binding, to: Binding, sign: f32) {
        let (n, width) = (self.layer.n, self.layer.width);
        let weight = Matrix::rows(self.parameter(weight, 0), width).transposed();
        let bias = Some(self.parameter(bias, 0));
        let product = Product::new(Matrix::rows(x, width), weight, [n, width, width], to);
        product_passes(&mut self.b, Step::FeedForward, &Product { bias, sign, accumulate: true, ..product });
    }

    /// Gradients of the weight and the bias, and `dx += dy W`.
    fn linear_backward(
        &mut self,
        [weight_gradient, bias_gradient]: [&'static str; 2],
        weight: &'static str,
        x: Binding,
        dy: Binding,
        dx: Binding,
    ) {
        let (n, width) = (self.layer.n, self.layer.width);
        let step = Step::LayerBackward;
        let [x, dy_rows] = [x, dy].map(|binding| Matrix::rows(binding, width));
        let to = self.parameter(weight_gradient, 0);
        product_passes(&mut self.b, step, &Product::new(dy_rows.transposed(), x, [width, n, width], to));
        let to = self.parameter(bias_gradient, 0);
        column_sum_passes(&mut self.b, step, [n, width], dy, to, false);
        let weight = Matrix::rows(self.parameter(weight, 0), width);
        let product = Product::new(dy_rows, weight, [n, width, width], dx);
        product_passes(&mut self.b, step, &Product { accumulate: true, ..product });
    }
}
