//! Plans of the instruments: figures of quality from sampled queries, the map of computed pairs,
//! rows of weights, and attention over the strongest keys alone.
//!
//! They read the buffers that a method's plan left behind, by name, and add buffers with the role
//! of an instrument, which are not counted as the method's memory.

mod sample;
mod window;

use super::full::{self, Full, Rows, Way, block_params, weighted_sum_passes};
use super::linformer::{self, Linformer, slice_columns};
use super::lsh::{self, Lsh};
use super::{bytes_of, key_norm_pass, query_buffer, value_buffer, words};
use crate::plan::{Binding, BufferId, Builder, Kind, Limits, New, Plan, Refusal, Role, Step};
use crate::problem::{Dims, Source};
use crate::semantics::Semantics;
use crate::steps::materialized_attention::{self, SCORES, SOFTMAX};
use crate::steps::{
    WORKGROUP, approximate_weights, attention_map, coverage, effective_weights, map_pixels, top_attention, top_keys,
};
pub use sample::{ALL_QUERIES_UP_TO, SAMPLED_QUERIES, Sample};
use std::ops::Range;
use std::sync::Arc;
pub use window::{MAP_ROWS, Window};

/// Strongest keys of exact attention that recall asks for.
pub const RECALL_KEYS: u32 = 32;
/// Bytes of the block of rows that the instruments work in.
const BLOCK_BYTES: u64 = 32 << 20;

/// The method whose result is measured.
#[derive(Clone, Debug, PartialEq)]
pub enum Measured {
    Full(Full),
    Lsh(Lsh),
    Linformer(Linformer),
}

impl Measured {
    /// Exact attention with the same keys, scale, self rule and causal mask.
    pub fn exact(&self) -> Full {
        match self {
            Self::Full(full) => Full { way: Way::Materialized, ..*full },
            Self::Lsh(lsh) => Full { way: Way::Materialized, shared_qk: true, semantics: lsh.semantics },
            Self::Linformer(_) => PLAIN,
        }
    }
}

/// `softmax(Q K^T / sqrt d) V` with the input's own keys.
pub const PLAIN: Full = Full { way: Way::Materialized, shared_qk: false, semantics: Semantics::PLAIN };

/// The plan of instruments. What the method's plan made before is found by name and keeps its role;
/// whatever else they need, keys and key scales too, goes when they go.
fn instruments(b: Builder) -> Result<Plan, Refusal> {
    let mut plan = b.finish()?;
    plan.buffers.iter_mut().for_each(|buffer| buffer.role = Role::Instrument);
    Ok(plan)
}

/// What stands in a block of rows.
struct Block<'a> {
    b: &'a mut Builder,
    dims: &'a Dims,
    sample: Sample,
    /// Rows of a batch.
    rows: u32,
    id: BufferId,
}

impl<'a> Block<'a> {
    fn new(b: &'a mut Builder, dims: &'a Dims, name: &'static str, sample: Sample, columns: u32) -> Self {
        let bytes = BLOCK_BYTES.min(b.limits().binding);
        let rows = ((bytes / (u64::from(columns) * 4)) as u32).clamp(1, sample.count);
        let id = words(b, name, Kind::F32, Role::Instrument, 1, &[rows, columns]);
        Self { b, dims, sample, rows, id }
    }

    fn binding(&mut self, count: u32, columns: u32) -> Binding {
        self.b.part(self.id, 0, 0, u64::from(count) * u64::from(columns))
    }
}

/// The tensors of one rule of exact attention.
struct Exact {
    full: Full,
    q: BufferId,
    k: BufferId,
    scale: BufferId,
    lse: BufferId,
}

impl Exact {
    /// Adds the buffers and the key norms of all heads.
    fn new(b: &mut Builder, dims: &Dims, full: Full, scales: &'static str, lse: &'static str, rows: u32) -> Self {
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

    fn scores(&self, block: &mut Block<'_>, head: u32, rows: Rows) {
        let (dims, n) = (block.dims, block.dims.n_kv);
        let matrix = block.binding(rows.count, n);
        let [q, k, scale] = [self.q, self.k, self.scale].map(|id| block.b.range(id, head));
        let params = block_params(dims, n, &self.full.semantics, rows);
        scores_pass(block.b, dims, &params, [q, k, scale, matrix]);
    }

    fn softmax(&self, block: &mut Block<'_>, rows: Rows) {
        let matrix = block.binding(rows.count, block.dims.n_kv);
        let lse = block.b.range(self.lse, 0);
        softmax_pass(block.b, &block_params(block.dims, block.dims.n_kv, &self.full.semantics, rows), [matrix, lse]);
    }
}

fn scores_pass(b: &mut Builder, dims: &Dims, params: &materialized_attention::Params, bindings: [Binding; 4]) {
    let groups = materialized_attention::groups(params.rows, params.n_kv, b.widths())[0];
    let flops = 2.0 * f64::from(params.rows) * f64::from(params.n_kv) * f64::from(dims.d);
    let bindings: Arc<[Binding]> = Arc::new(bindings);
    b.pass(Step::Measure, &SCORES, params, &bindings, groups, (flops, bytes_of(&bindings)));
}

fn softmax_pass(b: &mut Builder, params: &materialized_attention::Params, bindings: [Binding; 2]) {
    let flops = 3.0 * f64::from(params.rows) * f64::from(params.n_kv);
    let bindings: Arc<[Binding]> = Arc::new(bindings);
    b.pass(Step::Measure, &SOFTMAX, params, &bindings, params.rows, (flops, bytes_of(&bindings)));
}

/// Batches of a sample.
fn batches(sample: Sample, rows: u32) -> impl Iterator<Item = Rows> {
    (0..sample.count.div_ceil(rows)).map(move |batch| {
        let start = batch * rows;
        sample.rows(start, rows.min(sample.count - start))
    })
}

fn output(b: &mut Builder, dims: &Dims, name: &'static str, heads: u32, rows: u32) -> BufferId {
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

fn weighted_sum(block: &mut Block<'_>, rows: Rows, head: u32, v: BufferId, out: BufferId) {
    let n = block.dims.n_kv;
    let bindings = [block.binding(rows.count, n), block.b.range(v, head), block.b.range(out, head)];
    let params = block_params(block.dims, n, &Semantics::PLAIN, rows);
    weighted_sum_passes(block.b, Step::Measure, block.dims, params, bindings);
}

/// The lists of strongest keys: (index, score), each `[heads, rows, TOP]`.
fn top_buffers(b: &mut Builder, index: &'static str, score: &'static str, heads: u32, rows: u32) -> [BufferId; 2] {
    [(index, Kind::U32), (score, Kind::F32)]
        .map(|(name, kind)| words(b, name, kind, Role::Instrument, heads, &[rows, top_keys::TOP]))
}

fn select(block: &mut Block<'_>, rows: Rows, head: u32, lists: [BufferId; 2], count: u32) {
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
fn effective_rows(block: &mut Block<'_>, rows: Rows, head: u32, linformer: &Linformer, which: Weights) {
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

/// Plans, of these heads, the map of computed pairs over a window (`pair map`, `[height, width]` counts,
/// the heads added up) and, over the whole matrix, distinct pairs and visits of each query (`row
/// pairs`, `row visits`).
///
/// # Errors
/// The first buffer that the device cannot hold.
pub fn pairs(dims: &Dims, lsh: &Lsh, heads: Range<u32>, window: Window, limits: Limits) -> Result<Plan, Refusal> {
    let mut b = Builder::new(limits, dims.widths());
    let shared = lsh::buffers(&mut b, dims, lsh);
    let (width, height) = window.pixels();
    let rows = words(&mut b, "row pairs", Kind::U32, Role::Instrument, dims.heads, &[dims.n_q]);
    let visits = words(&mut b, "row visits", Kind::U32, Role::Instrument, dims.heads, &[dims.n_q]);
    let map = words(&mut b, "pair map", Kind::U32, Role::Instrument, 1, &[height, width]);
    for id in [rows, visits, map] {
        b.zeroed(id);
    }
    let tiles = dims.n_q.div_ceil(WORKGROUP);
    for head in heads {
        let [order, chunk_of, buckets, rows, visits, map] =
            [shared.order, shared.chunk_of, shared.buckets, rows, visits, map].map(|id| b.range(id, head));
        let bindings: Arc<[Binding]> = Arc::new([order, chunk_of, buckets, rows, visits, map]);
        // A slot asks every earlier step of every round whether its pair was met.
        for (geometry, share) in lsh.passes(dims.n_q, 2 + lsh.rounds * (2 + lsh.geometry(dims.n_q).steps())) {
            let params = attention_map::Params {
                first_group: 0,
                tiles,
                row_start: window.row_start,
                row_count: window.row_count,
                lsh: geometry,
                col_start: window.col_start,
                col_count: window.col_count,
                width,
                height,
            };
            let looks = lsh.visits(dims.n_q) as f64 * f64::from(lsh.rounds);
            let cost = (looks * share, bytes_of(&bindings) * share);
            b.pass(Step::Measure, &attention_map::PAIRS, &params, &bindings, lsh.rounds * tiles, cost);
        }
    }
    instruments(b)
}

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
