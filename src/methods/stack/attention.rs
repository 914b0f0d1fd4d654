//! The branch F: layer norm, a projection to the queries and values of each head, attention, and the
//! projection of the heads' outputs back.

use super::{Attention, BUCKETS, Branches, KEPT, LayerBuilder};
use crate::methods::attention_backward::{self, Head, LshLists};
use crate::methods::dense::{Matrix, Product, column_sum_passes, norm_backward_pass, norm_pass, product_passes};
use crate::methods::full::{self, Full, Way};
use crate::methods::{bytes_of, key_norm_pass, lsh, online_pass, output_buffers, row_vectors, words};
use crate::plan::{Binding, Kind, Role, Step};
use crate::problem::Dims;
use crate::steps::packed_ids::{self, PACK};
use crate::steps::{Kernel, WORKGROUP};
use std::sync::Arc;

/// The buffers of all heads that attention leaves, as its gradients read them.
const QUERIES: &str = "q";
const VALUES: &str = "v";

impl LayerBuilder<'_> {
    /// Attention of the normed x up to the heads' outputs; hashes, or takes the buckets as they are.
    pub(super) fn attend(&mut self, dims: &Dims, attention: &Attention, x: Binding, hash: bool) {
        let (n, width) = (self.layer.n, self.layer.width);
        let normed = self.scratch("F normed", n, width);
        let [gain, bias] = ["F gain", "F bias"].map(|name| self.parameter(name, 0));
        norm_pass(&mut self.b, Step::LayerNorm, [n, width], [x, gain, bias, normed]);
        for (name, weight) in [(QUERIES, "W query"), (VALUES, "W value")] {
            let rows = row_vectors(&mut self.b, name, Role::Tensor, dims.heads, n, dims.d);
            for head in 0..dims.heads {
                let weight = Matrix::rows(self.parameter(weight, head), dims.d);
                let to = self.b.range(rows, head);
                let product = Product::new(Matrix::rows(normed, width), weight, [n, width, dims.d], to);
                product_passes(&mut self.b, Step::Project, &product);
            }
        }
        let b = &mut self.b;
        match attention {
            Attention::Lsh(rule) => lsh::passes(b, dims, rule, hash),
            Attention::Full(rule) => {
                let full = Full { way: Way::Online, shared_qk: true, semantics: *rule };
                let held = full::buffers(b, dims, &full);
                for head in 0..dims.heads {
                    let [q, v, scale, out, lse] =
                        [held.q, held.v, held.key_scale, held.out, held.lse].map(|id| b.range(id, head));
                    key_norm_pass(b, Step::KeyNorm, n, dims.d, rule, q, scale);
                    online_pass(b, Step::FullAttention, dims, n, rule, [q, q, v, scale, out, lse]);
                }
            }
        }
    }

    /// Packs the bucket ids of all heads, or unpacks them; full attention has none.
    pub(super) fn ids(&mut self, kernel: &'static Kernel) {
        let Branches::Reformer { dims, attention: Attention::Lsh(rule), .. } = &self.layer.branches else { return };
        let params = packed_ids::Params::new(rule.rounds * dims.n_q, rule.buckets());
        let buckets = words(&mut self.b, BUCKETS, Kind::U32, Role::Method, dims.heads, &[rule.rounds, dims.n_q]);
        let kept = words(&mut self.b, KEPT, Kind::U32, Role::Method, dims.heads, &[params.words()]);
        let packs = kernel.entry == PACK.entry;
        let threads = if packs { params.words() } else { params.count };
        for head in 0..dims.heads {
            let [ids, words] = [buckets, kept].map(|id| self.b.range(id, head));
            let bindings: Arc<[Binding]> = Arc::new(if packs { [ids, words] } else { [words, ids] });
            let cost = (0.0, bytes_of(&bindings));
            self.b.pass(Step::Store, kernel, &params, &bindings, threads.div_ceil(WORKGROUP), cost);
        }
    }

    /// `to += sign` the heads' outputs, projected back.
    pub(super) fn project_out(&mut self, dims: &Dims, to: Binding, sign: f32) {
        let (n, width) = (self.layer.n, self.layer.width);
        let (out, _) = output_buffers(&mut self.b, dims);
        for head in 0..dims.heads {
            let out = Matrix::rows(self.b.range(out, head), dims.d);
            let weight = Matrix::rows(self.parameter("W out", head), width);
            let product = Product::new(out, weight, [n, dims.d, width], to);
            product_passes(&mut self.b, Step::Project, &Product { sign, accumulate: true, ..product });
        }
    }

    /// The gradients of F, from what [`LayerBuilder::attend`] left and the gradient `dy` by its output:
    /// those of the parameters, and that by x, added to `dx`.
    pub(super) fn attention_backward(
        &mut self,
        dims: &Dims,
        attention: &Attention,
        x: Binding,
        dy: Binding,
        dx: Binding,
    ) {
        let (n, width, d) = (self.layer.n, self.layer.width, dims.d);
        let step = Step::LayerBackward;
        let [normed, dnormed] = ["F normed", "F normed gradient"].map(|name| self.scratch(name, n, width));
        let [dout, dq, dv] = ["dout", "dq", "dv"].map(|name| self.scratch(name, n, d));
        let lists = match attention {
            Attention::Lsh(rule) => Some((rule, lsh::buffers(&mut self.b, dims, rule))),
            Attention::Full(_) => None,
        };
        let rule = Full { way: Way::Online, shared_qk: true, semantics: attention.semantics() };
        let held = full::buffers(&mut self.b, dims, &rule);
        let (terms, du) = attention_backward::work_buffers(&mut self.b, dims);
        let [terms, du] = [terms, du].map(|id| self.b.range(id, 0));
        for at in 0..dims.heads {
            let [q, v, key_scale, out, lse] =
                [held.q, held.v, held.key_scale, held.out, held.lse].map(|id| self.b.range(id, at));
            let weight = Matrix::rows(self.parameter("W out", at), width);
            let dy = Matrix::rows(dy, width);
            product_passes(&mut self.b, step, &Product::new(dy, weight.transposed(), [n, width, d], dout));
            let to = self.parameter("W out gradient", at);
            product_passes(&mut self.b, step, &Product::new(Matrix::rows(out, d).transposed(), dy, [d, n, width], to));
            let head = Head {
                q,
                k: q,
                v,
                key_scale,
                out,
                lse,
                dout,
                terms,
                du,
                dq,
                dk: dq,
                dv,
                add_keys: false,
                add_values: false,
            };
            match &lists {
                Some((rule, held)) => {
                    let [order, chunk_of, buckets] =
                        [held.order, held.chunk_of, held.buckets].map(|id| self.b.range(id, at));
                    let lists = LshLists { order, chunk_of, buckets };
                    attention_backward::lsh_passes(&mut self.b, dims, rule, &head, &lists);
                }
                None => attention_backward::full_passes(&mut self.b, dims, &rule.semantics, &head),
            }
            for (gradient, weight, of_weight) in
                [(dq, "W query", "W query gradient"), (dv, "W value", "W value gradient")]
            {
                let gradient_rows = Matrix::rows(gradient, d);
                let to = self.parameter(of_weight, at);
                let product = Product::new(Matrix::rows(normed, width).transposed(), gradient_rows, [width, n, d], to);
                product_passes(&mut self.b, step, &product);
                let weight = Matrix::rows(self.parameter(weight, at), d).transposed();
                let product = Product::new(gradient_rows, weight, [n, d, width], dnormed);
                let accumulate = at > 0 || gradient == dv;
                product_passes(&mut self.b, step, &Product { accumulate, ..product });
            }
        }
        self.norm_gradients(["F gain", "F gain gradient", "F bias gradient"], [0, n], [x, dnormed, dx]);
    }

    /// Gradients of a layer norm over `count` rows from `start` on, of which the bindings x, dy and dx
    /// are; those of gain and bias go on from earlier rows.
    pub(super) fn norm_gradients(
        &mut self,
        [gain, gain_gradient, bias_gradient]: [&'static str; 3],
        [start, count]: [u32; 2],
        [x, dy, dx]: [Binding; 3],
    ) {
        let width = self.layer.width;
        let step = Step::LayerBackward;
        let [gain, dgain, dbias] = [gain, gain_gradient, bias_gradient].map(|name| self.parameter(name, 0));
        column_sum_passes(&mut self.b, step, [count, width], dy, dbias, start > 0);
        norm_backward_pass(&mut self.b, step, [count, width], [x, gain, dy, dx]);
        column_sum_passes(&mut self.b, step, [count, width], dy, dgain, start > 0);
    }
}
