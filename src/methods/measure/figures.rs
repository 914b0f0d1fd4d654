//! What the figures of quality need of sampled queries.

use super::block::{Block, Exact, batches, output, weighted_sum};
use super::strongest::{select, top_buffers};
use super::weights::effective_rows;
use super::{Measured, PLAIN, RECALL_KEYS, Sample, Weights, instruments};
use crate::methods::full::Rows;
use crate::methods::lsh::{self, Lsh};
use crate::methods::{bytes_of, value_buffer, words};
use crate::plan::{Binding, BufferId, Builder, Kind, Limits, Plan, Refusal, Role, Step};
use crate::problem::Dims;
use crate::steps::coverage;
use std::sync::Arc;

/// Plans the figures of quality: exact outputs under the method's own rule (`exact out`) and the
/// plain one (`plain out`), the strongest keys (`top index`), for LSH mass and hits (`covered`), for
/// Linformer the strongest entries of `abs(P-bar E)` (`effective index`). Rows follow `sample`.
///
/// # Errors
/// The first buffer that the device cannot hold.
pub fn figures(dims: &Dims, measured: &Measured, sample: Sample, limits: Limits) -> Result<Plan, Refusal> {
    let mut b = Builder::new(limits, dims.widths());
    let v = value_buffer(&mut b, dims);
    let rows = sample.count;
    let exact = Exact::new(&mut b, dims, measured.exact(), "exact key scale", "exact lse", rows);
    let plain = Exact::new(&mut b, dims, PLAIN, "plain key scale", "plain lse", rows);
    let exact_out = output(&mut b, dims, "exact out", dims.heads, rows);
    let plain_out = output(&mut b, dims, "plain out", dims.heads, rows);
    let top = top_buffers(&mut b, "top index", "top score", dims.heads, rows);
    for head in 0..dims.heads {
        let mut block = Block::new(&mut b, dims, "weights", sample, dims.n_kv);
        for rows in batches(sample, block.rows) {
            exact.scores(&mut block, head, rows);
            select(&mut block, rows, head, top, RECALL_KEYS);
            exact.softmax(&mut block, rows);
            if let Measured::Lsh(lsh) = measured {
                coverage_pass(&mut block, rows, head, lsh, top[0]);
            }
            weighted_sum(&mut block, rows, head, v, exact_out);
            plain.scores(&mut block, head, rows);
            plain.softmax(&mut block, rows);
            weighted_sum(&mut block, rows, head, v, plain_out);
        }
    }
    if let Measured::Linformer(linformer) = measured
        && !linformer.max_pooling
    {
        let lists = top_buffers(&mut b, "effective index", "effective weight", dims.heads, rows);
        for head in 0..dims.heads {
            let mut block = Block::new(&mut b, dims, "weights", sample, dims.n_kv);
            for rows in batches(sample, block.rows) {
                effective_rows(&mut block, rows, head, linformer, Weights::Effective);
                select(&mut block, rows, head, lists, RECALL_KEYS);
            }
        }
    }
    instruments(b)
}

/// Plans rows of exact attention, `softmax(Q K^T / sqrt d)`, of the first head: the last batch stands in
/// `weights`, all outputs in `exact out`. Rows follow `sample`.
///
/// # Errors
/// The first buffer that the device cannot hold.
pub fn exact_rows(dims: &Dims, sample: Sample, limits: Limits) -> Result<Plan, Refusal> {
    let mut b = Builder::new(limits, dims.widths());
    let v = value_buffer(&mut b, dims);
    let exact = Exact::new(&mut b, dims, PLAIN, "exact key scale", "exact lse", sample.count);
    let out = output(&mut b, dims, "exact out", 1, sample.count);
    let mut block = Block::new(&mut b, dims, "weights", sample, dims.n_kv);
    for rows in batches(sample, block.rows) {
        exact.scores(&mut block, 0, rows);
        exact.softmax(&mut block, rows);
        weighted_sum(&mut block, rows, 0, v, out);
    }
    instruments(b)
}

fn coverage_pass(block: &mut Block<'_>, rows: Rows, head: u32, lsh: &Lsh, top: BufferId) {
    let dims = block.dims;
    let shared = lsh::buffers(block.b, dims, lsh);
    let covered = words(block.b, "covered", Kind::F32, Role::Instrument, dims.heads, &[block.sample.count, 2]);
    let weights = block.binding(rows.count, dims.n_kv);
    let [top, chunk_of, buckets, covered] =
        [top, shared.chunk_of, shared.buckets, covered].map(|id| block.b.range(id, head));
    let geometry = lsh.geometry(dims.n_q);
    let slice = coverage::slice_keys(&geometry);
    let bindings: Arc<[Binding]> = Arc::new([weights, top, chunk_of, buckets, covered]);
    for key_start in (0..dims.n_kv).step_by(slice as usize) {
        let key_count = slice.min(dims.n_kv - key_start);
        let params = coverage::Params {
            first_group: 0,
            rows: rows.count,
            row_start: rows.start,
            count: RECALL_KEYS,
            lsh: geometry,
            query_base: rows.base,
            query_stride: rows.stride,
            query_count: rows.modulus,
            key_start,
            key_count,
            pad_0: 0,
            pad_1: 0,
            pad_2: 0,
        };
        let looks = f64::from(rows.count) * f64::from(key_count) * f64::from(lsh.rounds);
        let cost = (looks, bytes_of(&bindings));
        block.b.pass(Step::Measure, &coverage::COVERAGE, &params, &bindings, rows.count, cost);
    }
}
