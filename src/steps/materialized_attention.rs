//! Exact attention with its score matrix in memory, Reformer equation (1): the thing that
//! everything is compared with. A block of one row is "one query at a time"; a block of sampled
//! rows gives the figures of quality and the maps.

use super::chunked_attention::score;
use super::full_attention::allowed;
use super::{Access, Data, EMPTY, Kernel, ROW_REDUCTION, ROW_WORKGROUP, Widths, params, read_params};

params! {
    /// Row `r` of the block belongs to query
    /// `query_base + ((row_start + r) * query_stride) % query_count`.
    /// Groups: `scores` `ceil(rows / 32) * ceil(n_kv / 32)`, `softmax` `rows`,
    /// `weighted_sum` `ceil(ceil(rows / 4) * dv4 / 64)`.
    Params as "Params" {
        first_group: u32,
        rows: u32,
        n_kv: u32,
        row_start: u32,
        query_base: u32,
        query_stride: u32,
        query_count: u32,
        flags: u32,
        scale: f32,
        self_value: f32,
        /// Keys that one pass of `weighted_sum` adds; all but the first add to what is there.
        key_start: u32,
        key_count: u32,
    }
}

impl Params {
    /// The query of a row of the block.
    pub fn query(&self, row: u32) -> u32 {
        self.query_base + ((self.row_start + row) * self.query_stride) % self.query_count
    }
}

/// Scores of a block of rows; a masked pair holds [`EMPTY`].
pub static SCORES: Kernel =
    kernel("scores", &[Access::Read, Access::Read, Access::Read, Access::ReadWrite], scores_twin);
/// Scores to weights in place, and the log-sum-exp of each row at `row_start + r`.
pub static SOFTMAX: Kernel = kernel("softmax", &[Access::ReadWrite, Access::ReadWrite], softmax_twin);
/// Weights times values over a slice of keys, written or added to row `row_start + r`.
pub static WEIGHTED_SUM: Kernel =
    kernel("weighted_sum", &[Access::Read, Access::Read, Access::ReadWrite], weighted_sum_twin);

/// Side of the square of scores that one workgroup computes.
pub const SCORE_TILE: u32 = 32;
/// Rows that one thread of `weighted_sum` adds up.
pub const SUM_ROWS: u32 = 4;

const fn kernel(entry: &'static str, bindings: &'static [Access], twin: fn(&[u8], Widths, &mut [Data])) -> Kernel {
    Kernel {
        stem: "materialized_attention",
        entry,
        source: include_str!("../../shaders/materialized_attention.wgsl"),
        params: &[Params::WGSL],
        include: ROW_REDUCTION,
        bindings,
        twin,
    }
}

/// Workgroups of each entry point for a block of `rows` by `n_kv`.
pub fn groups(rows: u32, n_kv: u32, widths: Widths) -> [u32; 3] {
    [
        rows.div_ceil(SCORE_TILE) * n_kv.div_ceil(SCORE_TILE),
        rows,
        (rows.div_ceil(SUM_ROWS) * widths.dv4).div_ceil(super::WORKGROUP),
    ]
}

fn scores_twin(params: &[u8], widths: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let ds = widths.d_stride();
    for row in 0..p.rows {
        let i = p.query(row);
        for j in 0..p.n_kv {
            let b = j as usize;
            let value = if allowed(i, j, p.flags) {
                let (q, k) = (&buffers[0].f()[i as usize * ds..][..ds], &buffers[1].f()[b * ds..][..ds]);
                score(q, buffers[2].f()[b], k, p.scale, i == j, p.self_value, p.flags)
            } else {
                f64::from(EMPTY)
            };
            buffers[3].f_mut()[(row * p.n_kv + j) as usize] = value;
        }
    }
}

fn softmax_twin(params: &[u8], _: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let n = p.n_kv as usize;
    for row in 0..p.rows as usize {
        let scores = &mut buffers[0].f_mut()[row * n..][..n];
        let top = scores.iter().copied().fold(f64::from(EMPTY), f64::max);
        let weight = |s: f64| if s == f64::from(EMPTY) { 0.0 } else { (s - top).exp() };
        let total: f64 = scores.iter().map(|s| weight(*s)).sum();
        for s in scores {
            *s = if total > 0.0 { weight(*s) / total } else { 0.0 };
        }
        buffers[1].f_mut()[p.row_start as usize + row] = if total > 0.0 { top + total.ln() } else { f64::from(EMPTY) };
    }
}

fn weighted_sum_twin(params: &[u8], widths: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let (n, dvs) = (p.n_kv as usize, widths.dv_stride());
    let keys = p.key_start as usize..(p.key_start + p.key_count) as usize;
    for row in 0..p.rows as usize {
        for c in 0..dvs {
            let sum: f64 = keys.clone().map(|j| buffers[0].f()[row * n + j] * buffers[1].f()[j * dvs + c]).sum();
            let out = &mut buffers[2].f_mut()[(p.row_start as usize + row) * dvs + c];
            *out = if p.key_start == 0 { sum } else { *out + sum };
        }
    }
}

const _: () = assert!(SCORE_TILE == 32 && ROW_WORKGROUP.is_power_of_two());
