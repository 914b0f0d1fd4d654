//! The pairs that LSH attention computes, counted.

use super::{Window, instruments};
use crate::methods::lsh::{self, Lsh};
use crate::methods::{bytes_of, words};
use crate::plan::{Binding, Builder, Kind, Limits, Plan, Refusal, Role, Step};
use crate::problem::Dims;
use crate::steps::{WORKGROUP, attention_map};
use std::ops::Range;
use std::sync::Arc;

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
        for (geometry, share) in lsh.passes(dims.n_q, 0) {
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
