//! Linformer, equation (7): `softmax(Q (E K)^T / sqrt d) (F V)`. Large E and F are walked in slices
//! of columns and count as memory.

use super::{bytes_of, key_buffer, key_norm_pass, online_pass, output_buffers, query_buffer, value_buffer, words};
use crate::plan::{Binding, BufferId, Builder, Kind, Limits, New, Plan, Refusal, Role, Step};
use crate::problem::{Dims, Fill, Source};
use crate::semantics::{ScoreScale, Semantics};
use crate::steps::linear_projection::{self, PROJECT};
use crate::steps::max_pooling::{self, POOL};
use crate::steps::{LONGEST_LOOP, WORKGROUP};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Linformer {
    pub k: u32,
    /// Keys and values are max pooled: there is no E and no F, and nothing that shares or biases them.
    pub max_pooling: bool,
    /// E and F are one matrix.
    pub shared_ef: bool,
    /// Matrices E: 1 for all heads, or one a head.
    pub projection_heads: u32,
    /// A number is added to each row of `E K` and of `F V`, as linformer-pytorch does by default.
    pub biased: bool,
    /// Row i sees projected columns up to i only. That does not make attention causal: every
    /// projected column mixes all positions.
    pub triangle: bool,
    pub score_scale: ScoreScale,
}

impl Linformer {
    /// The rule of the projected scores.
    pub fn semantics(&self) -> Semantics {
        Semantics { causal: self.triangle, score_scale: self.score_scale, ..Semantics::PLAIN }
    }
}

/// Columns of E in a slice, a multiple of 64 so that slices of K and V begin aligned.
pub(crate) fn slice_columns(n: u32, k: u32, binding: u64) -> u32 {
    let column_bytes = u64::from(k.next_multiple_of(4)) * 4;
    let fit = (binding / column_bytes).min(u64::from(LONGEST_LOOP)).min(u64::from(n)) as u32;
    if fit == n { n } else { (fit / 64 * 64).max(64).min(n) }
}

/// E or F, transposed, as slices of columns.
pub(crate) fn matrix(b: &mut Builder, dims: &Dims, linformer: &Linformer, source: Source) -> BufferId {
    let name = if source == Source::E { "E" } else { "F" };
    let columns = slice_columns(dims.n_kv, linformer.k, b.limits().binding);
    let slices = dims.n_kv.div_ceil(columns);
    let id = b.buffer(New {
        name,
        kind: Kind::F32,
        role: Role::Method,
        ranges: linformer.projection_heads * slices,
        range_words: u64::from(columns) * u64::from(linformer.k.next_multiple_of(4)),
        shape: &[linformer.projection_heads, linformer.k, dims.n_kv],
    });
    b.fill(id, Fill { source, rows: dims.n_kv, range_rows: columns, rounds: 0, columns: 0, k: linformer.k });
    id
}

/// The buffers that also the figures and maps of Linformer read.
pub(crate) struct LinformerBuffers {
    pub q: BufferId,
    pub projected_keys: BufferId,
    pub projected_scale: BufferId,
}

pub(crate) fn buffers(b: &mut Builder, dims: &Dims, linformer: &Linformer) -> LinformerBuffers {
    let q = query_buffer(b, dims);
    let projected_keys = projected(b, "E K", dims.heads, linformer.k, dims.d);
    let projected_scale = words(b, "E K scale", Kind::F32, Role::Method, dims.heads, &[linformer.k]);
    LinformerBuffers { q, projected_keys, projected_scale }
}

pub(crate) fn projected(b: &mut Builder, name: &'static str, heads: u32, k: u32, width: u32) -> BufferId {
    let range_words = u64::from(k) * u64::from(width.next_multiple_of(4));
    b.buffer(New { name, kind: Kind::F32, role: Role::Method, ranges: heads, range_words, shape: &[heads, k, width] })
}

/// E, or F, transposed; one matrix where they are shared.
pub(crate) fn side_matrix(b: &mut Builder, dims: &Dims, linformer: &Linformer, source: Source) -> BufferId {
    matrix(b, dims, linformer, if linformer.shared_ef { Source::E } else { source })
}

/// # Errors
/// The first buffer that the device cannot hold.
pub fn plan(dims: &Dims, linformer: &Linformer, limits: Limits) -> Result<Plan, Refusal> {
    let mut b = Builder::new(limits, dims.widths());
    let rule = linformer.semantics();
    let shared = buffers(&mut b, dims, linformer);
    let (k, v) = (key_buffer(&mut b, dims), value_buffer(&mut b, dims));
    let keys = Side { step: Step::ProjectKeys, how: how(&mut b, dims, linformer, Source::E), width: dims.d };
    let values = Side { step: Step::ProjectValues, how: how(&mut b, dims, linformer, Source::F), width: dims.d_v };
    let projected_values = projected(&mut b, "F V", dims.heads, linformer.k, dims.d_v);
    let (out, lse) = output_buffers(&mut b, dims);
    for head in 0..dims.heads {
        let (ek, fv) = (b.range(shared.projected_keys, head), b.range(projected_values, head));
        let x = [b.range(k, head), b.range(v, head)];
        keys.project(&mut b, dims, linformer, head, x[0], ek);
        values.project(&mut b, dims, linformer, head, x[1], fv);
        let scale = b.range(shared.projected_scale, head);
        key_norm_pass(&mut b, Step::ProjectedAttention, linformer.k, dims.d, &rule, ek, scale);
        let [q, out, lse] = [shared.q, out, lse].map(|id| b.range(id, head));
        online_pass(&mut b, Step::ProjectedAttention, dims, linformer.k, &rule, [q, ek, fv, scale, out, lse]);
    }
    b.finish()
}

fn bias(b: &mut Builder, linformer: &Linformer, source: Source) -> BufferId {
    let name = if source == Source::EBias { "E bias" } else { "F bias" };
    let id = words(b, name, Kind::F32, Role::Method, linformer.projection_heads, &[linformer.k]);
    b.fill(id, Fill { k: linformer.k, ..Fill::whole(source, 1) });
    id
}

/// What makes k rows of n.
enum How {
    Matrix { matrix: BufferId, bias: Option<BufferId> },
    MaxPooling,
}

fn how(b: &mut Builder, dims: &Dims, linformer: &Linformer, source: Source) -> How {
    if linformer.max_pooling {
        return How::MaxPooling;
    }
    let bias_source = if source == Source::E { Source::EBias } else { Source::FBias };
    How::Matrix {
        matrix: side_matrix(b, dims, linformer, source),
        bias: linformer.biased.then(|| bias(b, linformer, bias_source)),
    }
}

/// One of the two projections, and the width of what it projects.
struct Side {
    step: Step,
    how: How,
    width: u32,
}

impl Side {
    /// Adds `to = matrix x + bias`, or the pooled `x`, slice by slice of positions.
    fn project(&self, b: &mut Builder, dims: &Dims, linformer: &Linformer, head: u32, x: Binding, to: Binding) {
        let columns = match self.how {
            How::Matrix { .. } => slice_columns(dims.n_kv, linformer.k, b.limits().binding),
            How::MaxPooling => LONGEST_LOOP.min(dims.n_kv),
        };
        let slices = dims.n_kv.div_ceil(columns);
        let (k4, width4) = (linformer.k.div_ceil(4), self.width.div_ceil(4));
        for slice in 0..slices {
            let start = slice * columns;
            let here = columns.min(dims.n_kv - start);
            let row_bytes = u64::from(width4) * 16;
            let offset = x.offset + u64::from(start) * row_bytes;
            let rows = Binding { buffer: x.buffer, offset, bytes: u64::from(here) * row_bytes };
            let numbers = f64::from(here) * f64::from(self.width);
            let How::Matrix { matrix, bias } = self.how else {
                let params =
                    max_pooling::Params { first_group: 0, n: dims.n_kv, k: linformer.k, width4, start, count: here };
                let bindings: Arc<[Binding]> = Arc::new([rows, to]);
                let groups = (linformer.k * width4).div_ceil(WORKGROUP);
                b.pass(self.step, &POOL, &params, &bindings, groups, (numbers, bytes_of(&bindings)));
                continue;
            };
            let range = (head % linformer.projection_heads) * slices + slice;
            let e = b.part(matrix, range, 0, u64::from(here) * u64::from(k4) * 4);
            let biased = bias.map_or(e, |id| b.range(id, head));
            let bindings: Arc<[Binding]> = Arc::new([e, rows, biased, to]);
            let params = linear_projection::Params {
                first_group: 0,
                columns: here,
                k: linformer.k,
                k4,
                width4,
                first_slice: u32::from(slice == 0),
                biased: u32::from(bias.is_some()),
            };
            let flops = 2.0 * numbers * f64::from(linformer.k);
            let groups = (k4 * width4).div_ceil(WORKGROUP);
            b.pass(self.step, &PROJECT, &params, &bindings, groups, (flops, bytes_of(&bindings)));
        }
    }
}
