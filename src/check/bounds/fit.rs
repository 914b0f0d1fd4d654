//! Bounds of the kernels that fit E and F.

use super::{DIVISION, Data, FLUSHED, SQUARE_ROOT, U, gamma};
use crate::steps::{ROW_WORKGROUP, adam, residual, softmax_backward};

/// Roundings of a sum whose lanes add every 128th term and are then added in a tree.
fn by_lanes(terms: u32) -> f64 {
    f64::from(terms.div_ceil(ROW_WORKGROUP) + ROW_WORKGROUP.ilog2())
}

/// A difference and a product; the squares of differences are all positive.
pub(super) fn residual(p: &residual::Params, inputs: &[Data], want: &[Data]) -> [Vec<f64>; 2] {
    let mut value = vec![0.0; inputs[0].len()];
    for row in 0..p.rows as usize {
        let start = row * p.value_row as usize;
        let here = start..start + p.columns as usize;
        for (value, want) in value[here.clone()].iter_mut().zip(&want[0].f()[here]) {
            *value = gamma(2.0) * want.abs() + FLUSHED;
        }
    }
    let roundings = gamma(by_lanes(p.columns) + 4.0);
    [value, want[2].f().iter().map(|loss| roundings * loss + FLUSHED).collect()]
}

pub(super) fn total(p: &residual::Params, inputs: &[Data]) -> Vec<f64> {
    let mut bound = vec![0.0; inputs[1].len()];
    let sum: f64 = inputs[0].f()[..p.rows as usize].iter().sum();
    bound[p.step as usize] = gamma(by_lanes(p.rows) + 2.0) * 0.5 * f64::from(p.weight) * sum + FLUSHED;
    bound
}

/// The sum is off by its terms; the slope loses it, and is multiplied twice.
pub(super) fn softmax_backward(p: &softmax_backward::Params, inputs: &[Data]) -> Vec<f64> {
    let mut bound = vec![0.0; inputs[1].len()];
    let columns = p.columns as usize;
    for row in 0..p.rows as usize {
        let weights = &inputs[0].f()[row * columns..][..columns];
        let start = row * p.gradient_row as usize;
        let gradient = &inputs[1].f()[start..][..columns];
        let terms = weights.iter().zip(gradient).map(|(weight, slope)| weight * slope);
        let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
        let off = gamma(by_lanes(p.columns) + 1.0) * size + FLUSHED;
        for (at, (weight, slope)) in weights.iter().zip(gradient).enumerate() {
            let factor = f64::from(p.scale).abs() * weight;
            bound[start + at] = factor * (off + gamma(4.0) * ((slope - sum).abs() + off)) + FLUSHED;
        }
    }
    bound
}

/// `1 - decay` is exact, since decay lies between a half and 1.
pub(super) fn adam(p: &adam::Params, inputs: &[Data], want: &[Data]) -> [Vec<f64>; 3] {
    let [first, rate] = [p.decay_first, p.rate].map(f64::from);
    let mut bounds = [(); 3].map(|()| Vec::with_capacity(p.count as usize));
    for at in 0..p.count as usize {
        let slope = inputs[0].f()[at];
        let mean_off = gamma(2.0) * ((first * inputs[1].f()[at]).abs() + (1.0 - first) * slope.abs()) + FLUSHED;
        let square = want[2].f()[at];
        // Every term is positive: two products, or one, and a sum.
        let square_off = gamma(4.0) * square + FLUSHED;
        let unbiased = square * f64::from(p.unbias_second);
        let length = unbiased.sqrt() + f64::from(p.epsilon);
        // What flushing may take from a small square shows beside the root, never beside epsilon.
        let root_off = (unbiased + FLUSHED).sqrt() - unbiased.sqrt();
        let relative = gamma(2.0 + 5.0 / 2.0 + SQUARE_ROOT + 1.0 + DIVISION + 1.0) + root_off / length;
        let factor = rate * f64::from(p.unbias_first) / length;
        let move_by = factor * want[1].f()[at].abs();
        let off = factor * mean_off * (1.0 + relative) + relative * move_by;
        bounds[0].push(mean_off);
        bounds[1].push(square_off);
        bounds[2].push(off + U * (want[3].f()[at].abs() + off) + FLUSHED);
    }
    bounds
}
