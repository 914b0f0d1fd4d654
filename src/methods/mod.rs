//! The methods: which steps, in which order, with which buffers and at which cost. Each is a pure
//! function from sizes and rules to a [`Plan`](crate::plan::Plan).

pub mod attention_backward;
pub(crate) mod dense;
pub mod fit;
pub mod full;
pub mod linformer;
pub mod lsh;
pub mod measure;
pub mod random_projection;
pub mod stack;
pub mod thin_block;

use crate::plan::{Binding, BufferId, Builder, Kind, New, Role, Step};
use crate::problem::{Dims, Fill, Source};
use crate::semantics::Semantics;
use crate::steps::{WORKGROUP, full_attention, key_norm};
use std::sync::Arc;

/// Multiply-adds of a score and of adding its value, as flops; the exponential counts as one.
pub(crate) fn pair_flops(dims: &Dims) -> f64 {
    2.0 * f64::from(dims.d) + 2.0 * f64::from(dims.d_v) + 1.0
}

pub(crate) fn query_buffer(b: &mut Builder, dims: &Dims) -> BufferId {
    rows_buffer(b, "q", Source::Q, dims.heads, dims.n_q, dims.d)
}

pub(crate) fn key_buffer(b: &mut Builder, dims: &Dims) -> BufferId {
    rows_buffer(b, "k", Source::K, dims.k_heads, dims.n_kv, dims.d)
}

pub(crate) fn value_buffer(b: &mut Builder, dims: &Dims) -> BufferId {
    rows_buffer(b, "v", Source::V, dims.v_heads, dims.n_kv, dims.d_v)
}

fn rows_buffer(b: &mut Builder, name: &'static str, source: Source, heads: u32, rows: u32, width: u32) -> BufferId {
    // What earlier passes write is not filled.
    let written = b.holds(name);
    let id = row_vectors(b, name, Role::Tensor, heads, rows, width);
    if !written {
        b.fill(id, Fill::whole(source, rows));
    }
    id
}

/// A buffer `[heads, rows, width]` of rows that are padded to multiples of four floats.
pub(crate) fn row_vectors(
    b: &mut Builder,
    name: &'static str,
    role: Role,
    heads: u32,
    rows: u32,
    width: u32,
) -> BufferId {
    let range_words = u64::from(rows) * u64::from(width.next_multiple_of(4));
    b.buffer(New { name, kind: Kind::F32, role, ranges: heads, range_words, shape: &[heads, rows, width] })
}

/// The output `[heads, n_q, d_v]` and its log-sum-exp `[heads, n_q]`.
pub(crate) fn output_buffers(b: &mut Builder, dims: &Dims) -> (BufferId, BufferId) {
    let out = row_vectors(b, "out", Role::Tensor, dims.heads, dims.n_q, dims.d_v);
    let lse = words(b, "lse", Kind::F32, Role::Method, dims.heads, &[dims.n_q]);
    (out, lse)
}

/// A buffer of single words, `shape` without the ranges.
pub(crate) fn words(
    b: &mut Builder,
    name: &'static str,
    kind: Kind,
    role: Role,
    ranges: u32,
    shape: &[u32],
) -> BufferId {
    let range_words = shape.iter().map(|size| u64::from(*size)).product();
    let mut whole = vec![ranges];
    whole.extend_from_slice(shape);
    b.buffer(New { name, kind, role, ranges, range_words, shape: &whole })
}

/// Adds the pass that writes `u(x) = x * scale` for `n` keys.
pub(crate) fn key_norm_pass(
    b: &mut Builder,
    step: Step,
    n: u32,
    d: u32,
    rule: &Semantics,
    keys: Binding,
    scales: Binding,
) {
    let params = key_norm::Params { first_group: 0, n, d, flags: rule.flags(), eps: rule.key_norm_eps };
    let bindings: Arc<[Binding]> = Arc::new([keys, scales]);
    let flops = f64::from(n) * 2.0 * f64::from(d);
    b.pass(step, &key_norm::KEY_NORM, &params, &bindings, n.div_ceil(WORKGROUP), (flops, bytes_of(&bindings)));
}

/// Adds full attention of one head with an online softmax.
pub(crate) fn online_pass(
    b: &mut Builder,
    step: Step,
    dims: &Dims,
    n_kv: u32,
    rule: &Semantics,
    bindings: [Binding; 6],
) {
    let bindings: Arc<[Binding]> = Arc::new(bindings);
    let slice = full_attention::slice(dims.widths());
    for key_start in (0..n_kv).step_by(slice as usize) {
        let key_end = (key_start + slice).min(n_kv);
        let params = full_attention::Params {
            first_group: 0,
            n_q: dims.n_q,
            key_start,
            key_end,
            flags: rule.flags(),
            scale: rule.score_scale.factor(dims.d),
            self_value: rule.self_value(),
        };
        let keys = f64::from(key_end - key_start);
        let cost = (pair_flops(dims) * f64::from(dims.n_q) * keys, bytes_of(&bindings) * keys / f64::from(n_kv));
        b.pass(step, &full_attention::ATTEND, &params, &bindings, dims.n_q.div_ceil(WORKGROUP), cost);
    }
}

/// Bytes of all bindings: each read or written once.
pub(crate) fn bytes_of(bindings: &[Binding]) -> f64 {
    bindings.iter().map(|binding| binding.bytes as f64).sum()
}
