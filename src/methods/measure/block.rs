//! The block of rows that the instruments work in, and what is done to it.

use super::Sample;
use crate::methods::full::{self, Full, Rows, block_params, weighted_sum_passes};
use crate::methods::{bytes_of, key_norm_pass, query_buffer, words};
use crate::plan::{Binding, BufferId, Builder, Kind, New, Role, Step};
use crate::problem::Dims;
use crate::semantics::Semantics;
use crate::steps::materialized_attention::{self, SCORES, SOFTMAX};
use std::sync::Arc;

/// Bytes of the block.
pub(super) const BLOCK_BYTES: u64 = 32 << 20;

/// What stands in a block of rows.
pub(super) struct Block<'a> {
    pub b: &'a mut Builder,
    pub dims: &'a Dims,
    pub sample: Sample,
    /// Rows of a batch.
    pub rows: u32,
    id: BufferId,
}

impl<'a> Block<'a> {
    pub fn new(b: &'a mut Builder, dims: &'a Dims, name: &'static str, sample: Sample, columns: u32) -> Self {
        let bytes = BLOCK_BYTES.min(b.limits().binding);
        let rows = ((bytes / (u64::from(columns) * 4)) as u32).clamp(1, sample.count);
        let id = words(b, name, Kind::F32, Role::Instrument, 1, &[rows, columns]);
        Self { b, dims, sample, rows, id }
    }

    pub fn binding(&mut self, count: u32, columns: u32) -> Binding {
        self.b.part(self.id, 0, 0, u64::from(count) * u64::from(columns))
    }
}

/// The tensors of one rule of exact attention.
pub(super) struct Exact {
    full: Full,
    q: BufferId,
    k: BufferId,
    scale: BufferId,
    lse: BufferId,
}

impl Exact {
    /// Adds the buffers and the key norms of all heads.
    pub fn new(b: &mut Builder, dims: &Dims, full: Full, scales: &'static str, lse: &'static str, rows: u32) -> Self {
        let q = query_buffer(b, dims);
        let (k, scale) = full::keys(b, dims, &full, scales);
        let lse = words(b, lse, Kind::F32, Role::Instrument, 1, &[rows]);
        let heads = if full.shared_qk { dims.heads } else { dims.k_heads };
        for head in 0..heads {
            let (keys, scales) = (b.range(k, head), b.range(scale, head));
            key_norm_pass(b, Step::Measure, dims.n_kv, dims.d, &full.semantics, keys, scales);
        }
        Self { full, q, k, scale, lse }
    }

    pub fn scores(&self, block: &mut Block<'_>, head: u32, rows: Rows) {
        let (dims, n) = (block.dims, block.dims.n_kv);
        let matrix = block.binding(rows.count, n);
        let [q, k, scale] = [self.q, self.k, self.scale].map(|id| block.b.range(id, head));
        let params = block_params(dims, n, &self.full.semantics, rows);
        scores_pass(block.b, dims, &params, [q, k, scale, matrix]);
    }

    pub fn softmax(&self, block: &mut Block<'_>, rows: Rows) {
        let matrix = block.binding(rows.count, block.dims.n_kv);
        let lse = block.b.range(self.lse, 0);
        softmax_pass(block.b, &block_params(block.dims, block.dims.n_kv, &self.full.semantics, rows), [matrix, lse]);
    }
}

pub(super) fn scores_pass(
    b: &mut Builder,
    dims: &Dims,
    params: &materialized_attention::Params,
    bindings: [Binding; 4],
) {
    let groups = materialized_attention::groups(params.rows, params.n_kv, b.widths())[0];
    let flops = 2.0 * f64::from(params.rows) * f64::from(params.n_kv) * f64::from(dims.d);
    let bindings: Arc<[Binding]> = Arc::new(bindings);
    b.pass(Step::Measure, &SCORES, params, &bindings, groups, (flops, bytes_of(&bindings)));
}

pub(super) fn softmax_pass(b: &mut Builder, params: &materialized_attention::Params, bindings: [Binding; 2]) {
    let flops = 3.0 * f64::from(params.rows) * f64::from(params.n_kv);
    let bindings: Arc<[Binding]> = Arc::new(bindings);
    b.pass(Step::Measure, &SOFTMAX, params, &bindings, params.rows, (flops, bytes_of(&bindings)));
}

/// Batches of a sample.
pub(super) fn batches(sample: Sample, rows: u32) -> impl Iterator<Item = Rows> {
    (0..sample.count.div_ceil(rows)).map(move |batch| {
        let start = batch * rows;
        sample.rows(start, rows.min(sample.count - start))
    })
}

pub(super) fn output(b: &mut Builder, dims: &Dims, name: &'static str, heads: u32, rows: u32) -> BufferId {
    let range_words = u64::from(rows) * b.widths().dv_stride() as u64;
    b.buffer(New {
        name,
        kind: Kind::F32,
        role: Role::Instrument,
        ranges: heads,
        range_words,
        shape: &[heads, rows, dims.d_v],
    })
}

pub(super) fn weighted_sum(block: &mut Block<'_>, rows: Rows, head: u32, v: BufferId, out: BufferId) {
    let n = block.dims.n_kv;
    let bindings = [block.binding(rows.count, n), block.b.range(v, head), block.b.range(out, head)];
    let params = block_params(block.dims, n, &Semantics::PLAIN, rows);
    weighted_sum_passes(block.b, Step::Measure, block.dims, params, bindings);
}
