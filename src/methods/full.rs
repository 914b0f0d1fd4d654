//! Exact attention in three ways, Reformer equation (1): the score matrix in memory, one query at
//! a time, and an online softmax without any matrix.

use super::{bytes_of, key_buffer, key_norm_pass, online_pass, output_buffers, query_buffer, value_buffer, words};
use crate::plan::{Binding, BufferId, Builder, Kind, Limits, Plan, Refusal, Role, Step};
use crate::problem::Dims;
use crate::semantics::Semantics;
use crate::steps::LONGEST_LOOP;
use crate::steps::materialized_attention::{self, SCORES, SOFTMAX, WEIGHTED_SUM};
use std::mem::offset_of;
use std::sync::Arc;

/// How exact attention is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Online softmax over tiles of keys.
    Online,
    /// One row of scores in memory.
    Rowwise,
    /// `heads` matrices of n x n scores in memory.
    Materialized,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Full {
    pub way: Way,
    /// Keys are the queries, as LSH attention has them.
    pub shared_qk: bool,
    /// Scale, key norm, self rule and causal mask are used.
    pub semantics: Semantics,
}

/// The keys of exact attention and their scales; the names tell the two rules of a comparison apart.
pub(crate) fn keys(b: &mut Builder, dims: &Dims, full: &Full, scales: &'static str) -> (BufferId, BufferId) {
    let (keys, heads) =
        if full.shared_qk { (query_buffer(b, dims), dims.heads) } else { (key_buffer(b, dims), dims.k_heads) };
    (keys, words(b, scales, Kind::F32, Role::Method, heads, &[dims.n_kv]))
}

/// Rows that a block of the score matrix may have, so that one binding shows it.
pub(crate) fn block_rows(n_q: u32, n_kv: u32, binding: u64) -> u32 {
    // Blocks begin at multiples of 64 rows, which are multiples of 256 bytes.
    let fit = (binding / (u64::from(n_kv) * 4)).min(u64::from(n_q)) as u32;
    if fit == n_q { n_q } else { (fit / 64 * 64).max(64).min(n_q) }
}

/// The buffers of exact attention.
pub(crate) struct FullBuffers {
    pub q: BufferId,
    pub k: BufferId,
    pub v: BufferId,
    pub key_scale: BufferId,
    pub out: BufferId,
    pub lse: BufferId,
    /// None with an online softmax.
    pub scores: Option<BufferId>,
}

pub(crate) fn buffers(b: &mut Builder, dims: &Dims, full: &Full) -> FullBuffers {
    let q = query_buffer(b, dims);
    let v = value_buffer(b, dims);
    let (k, key_scale) = keys(b, dims, full, "key scale");
    let (out, lse) = output_buffers(b, dims);
    let matrix = match full.way {
        Way::Online => None,
        Way::Rowwise => Some((1, 1)),
        Way::Materialized => Some((dims.heads, dims.n_q)),
    };
    let scores =
        matrix.map(|(matrices, rows)| words(b, "scores", Kind::F32, Role::Method, matrices, &[rows, dims.n_kv]));
    FullBuffers { q, k, v, key_scale, out, lse, scores }
}

/// # Errors
/// The first buffer that the device cannot hold.
pub fn plan(dims: &Dims, full: &Full, limits: Limits) -> Result<Plan, Refusal> {
    let mut b = Builder::new(limits, dims.widths());
    let FullBuffers { q, k, v, key_scale, out, lse, scores } = buffers(&mut b, dims, full);
    let key_heads = if full.shared_qk { dims.heads } else { dims.k_heads };
    for head in 0..key_heads {
        let (keys, scales) = (b.range(k, head), b.range(key_scale, head));
        key_norm_pass(&mut b, Step::KeyNorm, dims.n_kv, dims.d, &full.semantics, keys, scales);
    }
    for head in 0..dims.heads {
        let [q, k, v, key_scale, out, lse] = [q, k, v, key_scale, out, lse].map(|id| b.range(id, head));
        let Some(scores) = scores else {
            online_pass(&mut b, Step::FullAttention, dims, dims.n_kv, &full.semantics, [q, k, v, key_scale, out, lse]);
            continue;
        };
        if full.way == Way::Rowwise {
            let row = b.range(scores, head);
            let rows = Rows { start: 0, count: 1, base: 0, stride: 1, modulus: dims.n_q };
            b.repeat(dims.n_q, offset_of!(materialized_attention::Params, row_start), |b| {
                exact_rows(b, dims, &full.semantics, rows, [q, k, key_scale, row, lse, v, out]);
            });
            continue;
        }
        let block = block_rows(dims.n_q, dims.n_kv, limits.binding);
        let mut start = 0;
        while start < dims.n_q {
            let here = block.min(dims.n_q - start);
            let offset = u64::from(start) * u64::from(dims.n_kv);
            let matrix = b.part(scores, head, offset, u64::from(here) * u64::from(dims.n_kv));
            let rows = Rows { start, count: here, base: 0, stride: 1, modulus: dims.n_q };
            exact_rows(&mut b, dims, &full.semantics, rows, [q, k, key_scale, matrix, lse, v, out]);
            start += here;
        }
    }
    b.finish()
}

/// A block of rows of a score matrix: row `r` belongs to query `base + ((start + r) * stride) % modulus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    pub start: u32,
    pub count: u32,
    pub base: u32,
    pub stride: u32,
    pub modulus: u32,
}

pub(crate) fn block_params(dims: &Dims, n_kv: u32, rule: &Semantics, rows: Rows) -> materialized_attention::Params {
    materialized_attention::Params {
        first_group: 0,
        rows: rows.count,
        n_kv,
        row_start: rows.start,
        query_base: rows.base,
        query_stride: rows.stride,
        query_count: rows.modulus,
        flags: rule.flags(),
        scale: rule.score_scale.factor(dims.d),
        self_value: rule.self_value(),
        key_start: 0,
        key_count: n_kv,
    }
}

/// Scores, softmax and weighted sum of a block; bindings are q, k, key scale, block, lse, v, out.
fn exact_rows(
    b: &mut Builder,
    dims: &Dims,
    rule: &Semantics,
    rows: Rows,
    [q, k, key_scale, block, lse, v, out]: [Binding; 7],
) {
    let params = block_params(dims, dims.n_kv, rule, rows);
    let groups = materialized_attention::groups(rows.count, dims.n_kv, b.widths());
    let cells = f64::from(rows.count) * f64::from(dims.n_kv);
    let passes: [(Step, _, Arc<[Binding]>, f64); 2] = [
        (Step::Scores, &SCORES, Arc::new([q, k, key_scale, block]), 2.0 * cells * f64::from(dims.d)),
        (Step::Softmax, &SOFTMAX, Arc::new([block, lse]), 3.0 * cells),
    ];
    for ((step, kernel, bindings, flops), groups) in passes.into_iter().zip(groups) {
        b.pass(step, kernel, &params, &bindings, groups, (flops, bytes_of(&bindings)));
    }
    weighted_sum_passes(b, Step::WeightedSum, dims, params, [block, v, out]);
}

/// Weights of a block times the values, in slices of keys; bindings are block, v, out.
pub(crate) fn weighted_sum_passes(
    b: &mut Builder,
    step: Step,
    dims: &Dims,
    params: materialized_attention::Params,
    bindings: [Binding; 3],
) {
    let groups = materialized_attention::groups(params.rows, params.n_kv, b.widths())[2];
    let bindings: Arc<[Binding]> = Arc::new(bindings);
    for key_start in (0..params.n_kv).step_by(LONGEST_LOOP as usize) {
        let key_count = LONGEST_LOOP.min(params.n_kv - key_start);
        let flops = 2.0 * f64::from(params.rows) * f64::from(key_count) * f64::from(dims.d_v);
        let bytes = bytes_of(&bindings) * f64::from(key_count) / f64::from(params.n_kv);
        let params = materialized_attention::Params { key_start, key_count, ..params };
        b.pass(step, &WEIGHTED_SUM, &params, &bindings, groups, (flops, bytes));
    }
}
