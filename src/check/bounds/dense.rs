//! Bounds of the dense layers' kernels.

use super::{Data, FLUSHED, gamma};
use crate::steps::matrix_product;

/// A product and a sum a term, then the bias, and what the pass goes on from; the sign is exact.
pub(super) fn product(p: &matrix_product::Params, inputs: &[Data]) -> Vec<f64> {
    let mut bound = vec![0.0; inputs[3].len()];
    let roundings = f64::from(p.inner_end - p.inner_start) + 3.0;
    matrix_product::walk(p, inputs, |at, start, terms| {
        let sum: f64 = terms.map(f64::abs).sum();
        bound[at] = gamma(roundings) * (sum + start.abs()) + FLUSHED;
    });
    bound
}
