//! Rows of weights, exact and those that a method gives.

use super::block::{Block, Exact, batches, scores_pass, softmax_pass};
use super::{Measured, Sample, instruments};
use crate::methods::full::{Rows, block_params};
use crate::methods::linformer::{self, Linformer, slice_columns};
use crate::methods::lsh::{self, Lsh};
use crate::methods::{bytes_of, words};
use crate::plan::{Binding, Builder, Kind, Limits, Plan, Refusal, Role, Step};
use crate::problem::{Dims, Source};
use crate::steps::{WORKGROUP, approximate_weights, effective_weights, map_pixels};
use std::sync::Arc;

/// Whose weights a row shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Weights {
    /// Exact attention under the method's own rule.
    Exact,
    /// What the method used: LSH over all rounds, or P-bar (n x k) of Linformer.
    Method,
    /// `abs(P-bar E)`, the n x n map that Linformer stands for; the same as `Method` elsewhere. Max
    /// pooling has neither this nor the next two.
    Effective,
    /// `P-bar E` of Linformer with its signs.
    SignedE,
    /// `P-bar F` of Linformer with its signs: what the values are multiplied with.
    SignedF,
}

/// Plans rows of weights of one head. With `columns = Some((start, count, width))` they are summed
/// into `weight pixels` `[rows, width]`; otherwise the last batch stands in `weights` (or `projected
/// weights`), so ask for few rows.
///
/// # Errors
/// The first buffer that the device cannot hold.
pub fn weights(
    dims: &Dims,
    measured: &Measured,
    which: Weights,
    head: u32,
    sample: Sample,
    columns: Option<(u32, u32, u32)>,
    limits: Limits,
) -> Result<Plan, Refusal> {
    let mut b = Builder::new(limits, dims.widths());
    let exact = (which == Weights::Exact || matches!(measured, Measured::Full(_)))
        .then(|| Exact::new(&mut b, dims, measured.exact(), "exact key scale", "exact lse", sample.count));
    let pixels = columns
        .map(|(_, _, width)| words(&mut b, "weight pixels", Kind::F32, Role::Instrument, 1, &[sample.count, width]));
    let mut block = Block::new(&mut b, dims, "weights", sample, dims.n_kv);
    for rows in batches(sample, block.rows) {
        let mut shown = (block.binding(rows.count, dims.n_kv), dims.n_kv);
        match (&exact, measured) {
            (Some(exact), _) => {
                exact.scores(&mut block, head, rows);
                exact.softmax(&mut block, rows);
            }
            (None, Measured::Lsh(lsh)) => approximate_rows(&mut block, rows, head, lsh),
            (None, Measured::Linformer(linformer)) if which == Weights::Method => {
                shown = (projected_rows(&mut block, rows, head, linformer), linformer.k);
            }
            (None, Measured::Linformer(linformer)) => effective_rows(&mut block, rows, head, linformer, which),
            (None, Measured::Full(_)) => {}
        }
        if let (Some(pixels), Some((col_start, col_count, width))) = (pixels, columns) {
            let params = map_pixels::Params {
                first_group: 0,
                rows: rows.count,
                n_kv: shown.1,
                col_start,
                col_count,
                width,
                row_start: rows.start,
            };
            let bindings: Arc<[Binding]> = Arc::new([shown.0, block.b.range(pixels, 0)]);
            let groups = (rows.count * width).div_ceil(WORKGROUP);
            let cost = (f64::from(rows.count) * f64::from(col_count), bytes_of(&bindings));
            block.b.pass(Step::Measure, &map_pixels::PIXELS, &params, &bindings, groups, cost);
        }
    }
    instruments(b)
}

fn approximate_rows(block: &mut Block<'_>, rows: Rows, head: u32, lsh: &Lsh) {
    let dims = block.dims;
    let shared = lsh::buffers(block.b, dims, lsh);
    let tiles = dims.n_q.div_ceil(WORKGROUP);
    let params = approximate_weights::Params {
        first_group: 0,
        tiles,
        rows: rows.count,
        row_start: rows.start,
        lsh: lsh.geometry(dims.n_q),
        query_base: rows.base,
        query_stride: rows.stride,
        query_count: rows.modulus,
        scale: lsh.semantics.score_scale.factor(dims.d),
        self_value: lsh.semantics.self_value(),
        pad_0: 0,
        pad_1: 0,
        pad_2: 0,
    };
    let weights = block.binding(rows.count, dims.n_q);
    let [q, key_scale, chunk_of, buckets, lse] =
        [shared.q, shared.key_scale, shared.chunk_of, shared.buckets, shared.lse].map(|id| block.b.range(id, head));
    let bindings: Arc<[Binding]> = Arc::new([q, key_scale, chunk_of, buckets, lse, weights]);
    let looks = f64::from(rows.count) * f64::from(dims.n_q) * f64::from(lsh.rounds);
    let cost = (looks, bytes_of(&bindings));
    block.b.pass(Step::Measure, &approximate_weights::WEIGHTS, &params, &bindings, rows.count * tiles, cost);
}

/// `P-bar` of a batch into the buffer `projected weights`.
fn projected_rows(block: &mut Block<'_>, rows: Rows, head: u32, linformer: &Linformer) -> Binding {
    let dims = block.dims;
    let shared = linformer::buffers(block.b, dims, linformer);
    let projected = words(block.b, "projected weights", Kind::F32, Role::Instrument, 1, &[block.rows, linformer.k]);
    let lse = words(block.b, "projected lse", Kind::F32, Role::Instrument, 1, &[block.sample.count]);
    let matrix = block.b.part(projected, 0, 0, u64::from(rows.count) * u64::from(linformer.k));
    let [q, k, scale, lse] =
        [shared.q, shared.projected_keys, shared.projected_scale, lse].map(|id| block.b.range(id, head));
    let params = block_params(dims, linformer.k, &linformer.semantics(), rows);
    scores_pass(block.b, dims, &params, [q, k, scale, matrix]);
    softmax_pass(block.b, &params, [matrix, lse]);
    matrix
}

/// `abs(P-bar E)`, `P-bar E` or `P-bar F` of a batch into the block.
pub(super) fn effective_rows(block: &mut Block<'_>, rows: Rows, head: u32, linformer: &Linformer, which: Weights) {
    let dims = block.dims;
    let projected = projected_rows(block, rows, head, linformer);
    let source = if which == Weights::SignedF { Source::F } else { Source::E };
    let e = linformer::side_matrix(block.b, dims, linformer, source);
    let columns = slice_columns(dims.n_kv, linformer.k, block.b.limits().binding);
    let slices = dims.n_kv.div_ceil(columns);
    let k4 = linformer.k.div_ceil(4);
    let weights = block.binding(rows.count, dims.n_kv);
    for slice in 0..slices {
        let column_start = slice * columns;
        let here = columns.min(dims.n_kv - column_start);
        let range = (head % linformer.projection_heads) * slices + slice;
        let matrix = block.b.part(e, range, 0, u64::from(here) * u64::from(k4) * 4);
        let tiles = here.div_ceil(WORKGROUP);
        let params = effective_weights::Params {
            first_group: 0,
            tiles,
            n: dims.n_kv,
            k: linformer.k,
            k4,
            column_start,
            columns: here,
            is_signed: u32::from(which != Weights::Effective),
        };
        let bindings: Arc<[Binding]> = Arc::new([projected, matrix, weights]);
        let flops = 2.0 * f64::from(rows.count) * f64::from(here) * f64::from(linformer.k);
        let cost = (flops, bytes_of(&bindings));
        block.b.pass(Step::Measure, &effective_weights::WEIGHTS, &params, &bindings, rows.count * tiles, cost);
    }
}
