//! The transpose of P = softmax(QK^T / sqrt d) times a thin block of columns, without P in memory.

use super::attention_backward::transposed_product;
use super::full::{self, Full, FullBuffers};
use super::row_vectors;
use crate::plan::{Builder, Limits, Plan, Refusal, Role, Step};
use crate::problem::Dims;

/// The buffer that takes `P^T X`, `[n_kv, d_v]`.
pub const TRANSPOSED_OUT: &str = "transposed out";

/// `P^T X` of the one head of a problem whose values are X, after its plan of full attention has left key scales and
/// log-sum-exp in the same buffers.
///
/// # Errors
/// The first buffer that the device cannot hold.
pub fn transposed_plan(dims: &Dims, full: &Full, limits: Limits) -> Result<Plan, Refusal> {
    let mut b = Builder::new(limits, dims.widths());
    let FullBuffers { q, k, v, key_scale, lse, .. } = full::buffers(&mut b, dims, full);
    let out = row_vectors(&mut b, TRANSPOSED_OUT, Role::Method, 1, dims.n_kv, dims.d_v);
    let bindings = [q, k, key_scale, lse, v, out].map(|id| b.range(id, 0));
    transposed_product(&mut b, Step::WeightedSum, dims, &full.semantics, bindings, false);
    b.finish()
}
