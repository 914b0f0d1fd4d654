//! The backward pass of attention: gradients by q, k and v of one head after the other, from what
//! the forward pass left (out, its log-sum-exp, the sorted lists) and the gradient by out.
//!
//! Passes gather: each number of a gradient is written by one thread. A caller gives the bindings of
//! a head as [`Head`] and adds [`full_passes`] or [`lsh_passes`] to its own plan; [`full_plan`] and
//! [`lsh_plan`] are the plans of all heads that the check runs.

use super::full::{self, Full, FullBuffers, Way};
use super::lsh::{self, Lsh, LshBuffers};
use super::{bytes_of, output_buffers, row_vectors, value_buffer, words};
use crate::plan::{Binding, BufferId, Builder, Kind, Limits, Plan, Refusal, Role, Step};
use crate::problem::Dims;
use crate::semantics::Semantics;
use crate::steps::chunked_attention_backward as chunked;
use crate::steps::full_attention_backward::{self as full_backward, KEYS, QUERIES, VALUES};
use crate::steps::key_norm_backward::{self, KEY_NORM_BACKWARD};
use crate::steps::pair_gradient;
use crate::steps::row_terms::{self, ROW_TERMS};
use crate::steps::{Kernel, WORKGROUP};
use std::sync::Arc;

const STEP: Step = Step::AttentionBackward;

/// The bindings of one head; rows are padded to multiples of four floats.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// `[n_q, d]`, `[n_kv, d]`, `[n_kv, d_v]`; with shared QK `k` is `q`.
    pub q: Binding,
    pub k: Binding,
    pub v: Binding,
    /// `[n_kv]`, as the key norm wrote it.
    pub key_scale: Binding,
    /// `[n_q, d_v]` and `[n_q]`, over all rounds.
    pub out: Binding,
    pub lse: Binding,
    /// The gradient by `out`, `[n_q, d_v]`.
    pub dout: Binding,
    /// Work space for one head, see [`work_buffers`].
    pub terms: Binding,
    pub du: Binding,
    /// What comes out: `[n_q, d]`, `[n_kv, d]`, `[n_kv, d_v]`. With shared QK `dk` is the
    /// binding of `dq`, which becomes the whole gradient, as a query and as a key, key norm included.
    pub dq: Binding,
    pub dk: Binding,
    pub dv: Binding,
    /// Whether `dk` and `dv` are added to, by later ones of the heads that share keys or values.
    pub add_keys: bool,
    pub add_values: bool,
}

/// Work space that all heads use in turn: row terms `[3, max(n_q, n_kv)]` and the gradient by `u(k)`,
/// `[n_kv, d]`.
pub fn work_buffers(b: &mut Builder, dims: &Dims) -> (BufferId, BufferId) {
    let terms = words(b, "row terms", Kind::F32, Role::Method, 1, &[3, dims.n_q.max(dims.n_kv)]);
    let du = row_vectors(b, "gradient by u(k)", Role::Method, 1, dims.n_kv, dims.d);
    (terms, du)
}

/// Adds the backward pass of exact attention of one head.
pub fn full_passes(b: &mut Builder, dims: &Dims, rule: &Semantics, head: &Head) {
    row_terms_pass(b, dims, head);
    let Head { q, k, v, terms, du, dq, .. } = *head;
    sliced(b, STEP, &QUERIES, dims, rule, [q, k, v, terms, head.dout, dq], false);
    sliced(b, STEP, &KEYS, dims, rule, [q, k, v, terms, head.dout, du], false);
    transposed_product(b, STEP, dims, rule, [q, k, head.key_scale, head.lse, head.dout, head.dv], head.add_values);
    key_norm_pass(b, dims, rule, head);
}

/// The sorted and chunked lists of one head, `[rounds, n]` each.
#[derive(Clone, Copy, Debug)]
pub struct LshLists {
    pub order: Binding,
    pub chunk_of: Binding,
    pub buckets: Binding,
}

/// Adds the backward pass of LSH attention of one head, all rounds: `k` is `q`, `dk` is `dq`. The buckets
/// are taken as they are: no gradient goes through the hash.
pub fn lsh_passes(b: &mut Builder, dims: &Dims, lsh: &Lsh, head: &Head, lists: &LshLists) {
    let dims = Dims { n_kv: dims.n_q, ..*dims };
    row_terms_pass(b, &dims, head);
    let Head { q, v, key_scale, lse, dout, terms, du, dq, dv, .. } = *head;
    let LshLists { order, chunk_of, buckets } = *lists;
    rounds(b, &dims, lsh, &chunked::QUERIES, [q, v, order, chunk_of, buckets, dout, terms, dq], false);
    rounds(b, &dims, lsh, &chunked::KEYS, [q, v, order, chunk_of, buckets, dout, terms, du], false);
    let values = [q, key_scale, order, chunk_of, buckets, dout, lse, dv];
    rounds(b, &dims, lsh, &chunked::VALUES, values, head.add_values);
    key_norm_pass(b, &dims, &lsh.semantics, head);
}

/// One gradient of LSH attention, round by round in parts of the window.
fn rounds(b: &mut Builder, dims: &Dims, lsh: &Lsh, kernel: &'static Kernel, bindings: [Binding; 8], add: bool) {
    let bindings: Arc<[Binding]> = Arc::new(bindings);
    let n = dims.n_q;
    let vectors = pair_gradient::vectors(b.widths());
    let visits = lsh.visits(n) as f64 / f64::from(lsh.rounds);
    for round in 0..lsh.rounds {
        for (geometry, share) in lsh.passes(n, vectors) {
            let params = chunked::Params {
                first_group: 0,
                round,
                scale: lsh.semantics.score_scale.factor(dims.d),
                self_value: lsh.semantics.self_value(),
                lsh: geometry,
                add: u32::from(add || round > 0 || geometry.slot_start > 0),
                ..chunked::Params::default()
            };
            let cost = (pair_flops(kernel, dims) * visits * share, bytes_of(&bindings) * share);
            b.pass(STEP, kernel, &params, &bindings, n.div_ceil(WORKGROUP), cost);
        }
    }
}

/// Adds `y = P^T x` of exact attention of one head, `P = softmax(q k^T)` under the rule, from its
/// log-sum-exp: the gradient by the values where x is that by the output. Bindings are q `[n_q, d]`,
/// k `[n_kv, d]`, key scale `[n_kv]`, log-sum-exp `[n_q]`, x `[n_q, d_v]` and y `[n_kv, d_v]`; `d` and
/// `d_v` must be those of the builder's widths. With `add` y goes on from what it holds.
pub fn transposed_product(
    b: &mut Builder,
    step: Step,
    dims: &Dims,
    rule: &Semantics,
    bindings: [Binding; 6],
    add: bool,
) {
    sliced(b, step, &VALUES, dims, rule, bindings, add);
}

/// One gradient of exact attention in slices of what it sums over.
fn sliced(
    b: &mut Builder,
    step: Step,
    kernel: &'static Kernel,
    dims: &Dims,
    rule: &Semantics,
    bindings: [Binding; 6],
    add: bool,
) {
    let bindings: Arc<[Binding]> = Arc::new(bindings);
    let (rows, summed) = if kernel.entry == QUERIES.entry { (dims.n_q, dims.n_kv) } else { (dims.n_kv, dims.n_q) };
    let slice = full_backward::slice(b.widths());
    for start in (0..summed).step_by(slice as usize) {
        let end = (start + slice).min(summed);
        let params = full_backward::Params {
            first_group: 0,
            n_q: dims.n_q,
            n_kv: dims.n_kv,
            start,
            end,
            add: u32::from(add || start > 0),
            flags: rule.flags(),
            scale: rule.score_scale.factor(dims.d),
            self_value: rule.self_value(),
        };
        let share = f64::from(end - start) / f64::from(summed);
        let pairs = f64::from(dims.n_q) * f64::from(dims.n_kv);
        let cost = (pair_flops(kernel, dims) * pairs * share, bytes_of(&bindings) * share);
        b.pass(step, kernel, &params, &bindings, rows.div_ceil(WORKGROUP), cost);
    }
}

/// The score, for q and k the slope, and what is added; the exponential counts as one.
fn pair_flops(kernel: &Kernel, dims: &Dims) -> f64 {
    let (d, d_v) = (f64::from(dims.d), f64::from(dims.d_v));
    if kernel.entry == VALUES.entry { 2.0 * (d + d_v) + 1.0 } else { 2.0 * (2.0 * d + d_v) + 1.0 }
}

fn row_terms_pass(b: &mut Builder, dims: &Dims, head: &Head) {
    let params = row_terms::Params { first_group: 0, n_q: dims.n_q, n_kv: dims.n_kv };
    let bindings: Arc<[Binding]> = Arc::new([head.out, head.dout, head.lse, head.key_scale, head.terms]);
    let cost = (2.0 * f64::from(dims.n_q) * f64::from(dims.d_v), bytes_of(&bindings));
    b.pass(STEP, &ROW_TERMS, &params, &bindings, dims.n_q.max(dims.n_kv).div_ceil(WORKGROUP), cost);
}

fn key_norm_pass(b: &mut Builder, dims: &Dims, rule: &Semantics, head: &Head) {
    let add = u32::from(head.add_keys || head.dk == head.dq);
    let params =
        key_norm_backward::Params { first_group: 0, n: dims.n_kv, flags: rule.flags(), eps: rule.key_norm_eps, add };
    let bindings: Arc<[Binding]> = Arc::new([head.k, head.key_scale, head.du, head.dk]);
    let cost = (8.0 * f64::from(dims.n_kv) * f64::from(dims.d), bytes_of(&bindings));
    b.pass(STEP, &KEY_NORM_BACKWARD, &params, &bindings, dims.n_kv.div_ceil(WORKGROUP), cost);
}

/// The gradients, `[heads, n_q, d]`, `[k_heads, n_kv, d]` and `[v_heads, n_kv, d_v]`; with shared QK
/// that of the keys is that of the queries.
fn gradient_buffers(b: &mut Builder, dims: &Dims, shared_qk: bool) -> [BufferId; 3] {
    let dq = row_vectors(b, "dq", Role::Tensor, dims.heads, dims.n_q, dims.d);
    let dk = if shared_qk { dq } else { row_vectors(b, "dk", Role::Tensor, dims.k_heads, dims.n_kv, dims.d) };
    [dq, dk, row_vectors(b, "dv", Role::Tensor, dims.v_heads, dims.n_kv, dims.d_v)]
}

/// Buffers of a forward pass and of its gradients, by head.
struct Heads {
    q: BufferId,
    k: BufferId,
    v: BufferId,
    key_scale: BufferId,
    out: BufferId,
    lse: BufferId,
}

impl Heads {
    /// Every head, where the gradient by `out` is `out` itself.
    fn each(&self, b: &mut Builder, dims: &Dims, shared_qk: bool) -> Vec<Head> {
        let (terms, du) = work_buffers(b, dims);
        let [dq, dk, dv] = gradient_buffers(b, dims, shared_qk);
        let mut head = |head: u32| Head {
            q: b.range(self.q, head),
            k: b.range(self.k, head),
            v: b.range(self.v, head),
            key_scale: b.range(self.key_scale, head),
            out: b.range(self.out, head),
            lse: b.range(self.lse, head),
            dout: b.range(self.out, head),
            terms: b.range(terms, 0),
            du: b.range(du, 0),
            dq: b.range(dq, head),
            dk: b.range(dk, head),
            dv: b.range(dv, head),
            add_keys: head >= dims.k_heads,
            add_values: head >= dims.v_heads,
        };
        (0..dims.heads).map(&mut head).collect()
    }
}

/// Plans the gradients of `|out|^2 / 2`, so that the gradient by out is out, after a plan of
/// [`full::plan`] with an online softmax on the same buffers.
///
/// # Errors
/// The first buffer that the device cannot hold.
pub fn full_plan(dims: &Dims, full: &Full, limits: Limits) -> Result<Plan, Refusal> {
    let mut b = Builder::new(limits, dims.widths());
    let full = Full { way: Way::Online, ..*full };
    let FullBuffers { q, k, v, key_scale, out, lse, .. } = full::buffers(&mut b, dims, &full);
    for head in (Heads { q, k, v, key_scale, out, lse }).each(&mut b, dims, full.shared_qk) {
        full_passes(&mut b, dims, &full.semantics, &head);
    }
    b.finish()
}

/// The same for LSH attention, after a plan of [`lsh::plan`].
///
/// # Errors
/// The first buffer that the device cannot hold.
pub fn lsh_plan(dims: &Dims, lsh: &Lsh, limits: Limits) -> Result<Plan, Refusal> {
    let dims = Dims { n_kv: dims.n_q, ..*dims };
    let mut b = Builder::new(limits, dims.widths());
    let v = value_buffer(&mut b, &dims);
    let LshBuffers { q, key_scale, buckets, order, chunk_of, lse } = lsh::buffers(&mut b, &dims, lsh);
    let out = output_buffers(&mut b, &dims).0;
    let heads = Heads { q, k: q, v, key_scale, out, lse }.each(&mut b, &dims, true);
    for (at, head) in (0..).zip(&heads) {
        let [order, chunk_of, buckets] = [order, chunk_of, buckets].map(|id| b.range(id, at));
        lsh_passes(&mut b, &dims, lsh, head, &LshLists { order, chunk_of, buckets });
    }
    b.finish()
}
