//! The matrix of the proof of Linformer's theorem 1: `P R^T R V`, P being the exact softmax and R a random
//! projection. It needs all of P and saves nothing: it is measured, not used.

use super::dense::{Matrix, Product, product_passes};
use super::{key_buffer, key_norm_pass, online_pass, output_buffers, query_buffer, row_vectors, value_buffer, words};
use crate::plan::{Builder, Kind, Limits, Plan, Refusal, Role, Step};
use crate::problem::{Dims, Fill, Source};
use crate::semantics::Semantics;

/// Plans `softmax(Q K^T / sqrt d) R^T R V` with R `[k, n]` as E of the problem, one for all heads.
///
/// # Errors
/// The first buffer that the device cannot hold.
pub fn plan(dims: &Dims, k: u32, limits: Limits) -> Result<Plan, Refusal> {
    let mut b = Builder::new(limits, dims.widths());
    let (q, keys, v) = (query_buffer(&mut b, dims), key_buffer(&mut b, dims), value_buffer(&mut b, dims));
    let scale = words(&mut b, "key scale", Kind::F32, Role::Instrument, dims.k_heads, &[dims.n_kv]);
    let (out, lse) = output_buffers(&mut b, dims);
    let rows = |b: &mut Builder, name, rows, width| row_vectors(b, name, Role::Instrument, 1, rows, width);
    let r = rows(&mut b, "R", dims.n_kv, k);
    b.fill(r, Fill { k, ..Fill::whole(Source::E, dims.n_kv) });
    let short = rows(&mut b, "R V", k, dims.d_v);
    let values = rows(&mut b, "R^T R V", dims.n_kv, dims.d_v);
    for head in 0..dims.heads {
        let (r, v, short, values) = (b.range(r, 0), b.range(v, head), b.range(short, 0), b.range(values, 0));
        // Stored as columns: row j of the buffer is column j of R.
        let columns = Matrix::rows(r, k);
        let down = [k, dims.n_kv, dims.d_v];
        product_passes(
            &mut b,
            Step::Measure,
            &Product::new(columns.transposed(), Matrix::rows(v, dims.d_v), down, short),
        );
        let up = [dims.n_kv, k, dims.d_v];
        product_passes(&mut b, Step::Measure, &Product::new(columns, Matrix::rows(short, dims.d_v), up, values));
        let (keys, scale) = (b.range(keys, head), b.range(scale, head));
        key_norm_pass(&mut b, Step::Measure, dims.n_kv, dims.d, &Semantics::PLAIN, keys, scale);
        let [q, out, lse] = [q, out, lse].map(|id| b.range(id, head));
        online_pass(&mut b, Step::Measure, dims, dims.n_kv, &Semantics::PLAIN, [q, keys, values, scale, out, lse]);
    }
    b.finish()
}
