//! The strongest keys of each query, and attention over them alone.

use super::block::{Block, Exact, batches, output};
use super::{Measured, RECALL_KEYS, Sample, instruments};
use crate::methods::full::Rows;
use crate::methods::{bytes_of, value_buffer, words};
use crate::plan::{Binding, BufferId, Builder, Kind, Limits, Plan, Refusal, Role, Step};
use crate::problem::Dims;
use crate::steps::{WORKGROUP, top_attention, top_keys};
use std::sync::Arc;

/// The lists of strongest keys: (index, score), each `[heads, rows, TOP]`.
pub(super) fn top_buffers(
    b: &mut Builder,
    index: &'static str,
    score: &'static str,
    heads: u32,
    rows: u32,
) -> [BufferId; 2] {
    [(index, Kind::U32), (score, Kind::F32)]
        .map(|(name, kind)| words(b, name, kind, Role::Instrument, heads, &[rows, top_keys::TOP]))
}

pub(super) fn select(block: &mut Block<'_>, rows: Rows, head: u32, lists: [BufferId; 2], count: u32) {
    let n = block.dims.n_kv;
    let [index, score] = lists.map(|id| block.b.range(id, head));
    let bindings: Arc<[Binding]> = Arc::new([block.binding(rows.count, n), index, score]);
    let slice = top_keys::slice_keys(count);
    for key_start in (0..n).step_by(slice as usize) {
        let key_count = slice.min(n - key_start);
        let (rows, row_start) = (rows.count, rows.start);
        let params = top_keys::Params { first_group: 0, rows, n_kv: n, count, row_start, key_start, key_count };
        let looks = f64::from(rows) * f64::from(key_count);
        let cost = (8.0 * looks, 4.0 * looks);
        block.b.pass(Step::Measure, &top_keys::SELECT, &params, &bindings, rows.div_ceil(WORKGROUP), cost);
    }
}

/// Plans the [`RECALL_KEYS`] strongest keys of exact attention under the method's own rule (`top index`,
/// strongest first). Rows follow `sample`.
///
/// # Errors
/// The first buffer that the device cannot hold.
pub fn strongest_keys(dims: &Dims, measured: &Measured, sample: Sample, limits: Limits) -> Result<Plan, Refusal> {
    let mut b = Builder::new(limits, dims.widths());
    let exact = Exact::new(&mut b, dims, measured.exact(), "exact key scale", "exact lse", sample.count);
    let top = top_buffers(&mut b, "top index", "top score", dims.heads, sample.count);
    for head in 0..dims.heads {
        let mut block = Block::new(&mut b, dims, "weights", sample, dims.n_kv);
        for rows in batches(sample, block.rows) {
            exact.scores(&mut block, head, rows);
            select(&mut block, rows, head, top, RECALL_KEYS);
        }
    }
    b.finish()
}

/// Plans exact attention of one head over the `count` strongest keys of every query alone
/// (`top out`, `[n, d_v]`).
///
/// # Errors
/// The first buffer that the device cannot hold.
pub fn strongest(dims: &Dims, measured: &Measured, head: u32, count: u32, limits: Limits) -> Result<Plan, Refusal> {
    let mut b = Builder::new(limits, dims.widths());
    let sample = Sample::all(0, dims.n_q);
    let v = value_buffer(&mut b, dims);
    let exact = Exact::new(&mut b, dims, measured.exact(), "exact key scale", "exact lse", dims.n_q);
    let lists = top_buffers(&mut b, "strongest index", "strongest score", 1, dims.n_q);
    let out = output(&mut b, dims, "top out", 1, dims.n_q);
    let mut block = Block::new(&mut b, dims, "weights", sample, dims.n_kv);
    for rows in batches(sample, block.rows) {
        exact.scores(&mut block, head, rows);
        select(&mut block, rows, head, lists, count);
        let params = top_attention::Params { first_group: 0, rows: rows.count, row_start: rows.start, count };
        let [index, score] = lists.map(|id| block.b.range(id, 0));
        let bindings: Arc<[Binding]> = Arc::new([index, score, block.b.range(v, head), block.b.range(out, 0)]);
        let flops = f64::from(rows.count) * f64::from(count) * 2.0 * f64::from(dims.d_v);
        let groups = rows.count.div_ceil(WORKGROUP);
        block.b.pass(Step::Measure, &top_attention::ATTEND, &params, &bindings, groups, (flops, bytes_of(&bindings)));
    }
    instruments(b)
}
