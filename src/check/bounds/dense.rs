//! Bounds of the dense layers' kernels.

use super::{DIVISION, Data, FLUSHED, LOG_NEAR_ONE, SECOND_ORDER, SQUARE_ROOT, Softmax, U, gamma};
use crate::steps::{ROW_WORKGROUP, WORKGROUP, column_sums, cross_entropy, gelu as step, layer_norm, matrix_product};

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

/// A lane adds every 64th row, then the lanes are added in a tree.
pub(super) fn column_sums(p: &column_sums::Params, inputs: &[Data]) -> Vec<f64> {
    let roundings = f64::from((p.end - p.start).div_ceil(WORKGROUP) + WORKGROUP.ilog2() + 1);
    let column = |column: usize| {
        let sum: f64 = (p.start..p.end).map(|i| inputs[0].f()[i as usize * p.row as usize + column].abs()).sum();
        let start = if p.accumulate != 0 { inputs[1].f()[column].abs() } else { 0.0 };
        gamma(roundings) * (sum + start) + FLUSHED
    };
    (0..p.row as usize).map(column).collect()
}

/// A row at unit deviation, how far each of its numbers may lie off, `1 / deviation`, and that one's
/// relative error.
struct Unit {
    values: Vec<f64>,
    off: Vec<f64>,
    inverse: f64,
    relative: f64,
}

impl Unit {
    /// The mean's error is taken from every number; the variance of what is left errs by it too.
    fn new(x: &[f64], eps: f32) -> Self {
        let width = x.len() as f64;
        let (values, inverse) = layer_norm::unit(x, eps);
        let mean_off = gamma(width + DIVISION) * x.iter().map(|x| x.abs()).sum::<f64>() / width;
        let apart: Vec<f64> = values.iter().map(|unit| (unit / inverse).abs()).collect();
        let apart_off: Vec<f64> = apart.iter().map(|apart| mean_off + U * (apart + mean_off)).collect();
        let square_off: f64 = apart.iter().zip(&apart_off).map(|(a, off)| 2.0 * a * off + off * off).sum();
        let square: f64 = apart.iter().map(|apart| apart * apart).sum();
        let variance_off = (square_off + gamma(width + DIVISION) * (square + square_off)) / width + FLUSHED;
        // Of the sum with the epsilon; the root and the division are rounded as well.
        let held = 1.0 / (inverse * inverse);
        let lowest = (held - variance_off - U * held).max(f64::from(eps) * (1.0 - U));
        let relative = (held / lowest).sqrt() * (1.0 + gamma(SQUARE_ROOT + DIVISION)) - 1.0;
        let off = apart
            .iter()
            .zip(&apart_off)
            .map(|(apart, off)| inverse * ((off + apart * relative) * (1.0 + relative) + U * apart) * SECOND_ORDER)
            .collect();
        Self { values, off, inverse, relative }
    }
}

pub(super) fn norm(p: &layer_norm::Params, inputs: &[Data]) -> Vec<f64> {
    let (width, stride) = (p.width as usize, p.row as usize);
    let mut bound = vec![0.0; inputs[3].len()];
    for i in 0..p.rows as usize {
        let unit = Unit::new(&inputs[0].f()[i * stride..][..width], p.eps);
        for c in 0..width {
            let (gain, bias) = (inputs[1].f()[c], inputs[2].f()[c]);
            let rounded = gamma(2.0) * ((unit.values[c] * gain).abs() + bias.abs());
            bound[i * stride + c] = SECOND_ORDER * (unit.off[c] * gain.abs() + rounded) + FLUSHED;
        }
    }
    bound
}

/// What becomes of dy, and dx.
pub(super) fn norm_backward(p: &layer_norm::Params, inputs: &[Data]) -> [Vec<f64>; 2] {
    let (width, stride) = (p.width as usize, p.row as usize);
    let mut bounds = [vec![0.0; inputs[2].len()], vec![0.0; inputs[3].len()]];
    for i in 0..p.rows as usize {
        let row = i * stride..i * stride + width;
        let Unit { values, off, inverse, relative } = Unit::new(&inputs[0].f()[row.clone()], p.eps);
        let dy = &inputs[2].f()[row.clone()];
        let g: Vec<f64> = dy.iter().zip(inputs[1].f()).map(|(dy, gain)| dy * gain).collect();
        let mean = |terms: &mut dyn Iterator<Item = f64>| terms.sum::<f64>() / width as f64;
        let level = mean(&mut g.iter().copied());
        let slope = mean(&mut g.iter().zip(&values).map(|(g, unit)| g * unit));
        let sums = gamma(width as f64 + 2.0 + DIVISION);
        let level_off = sums * mean(&mut g.iter().map(|g| g.abs()));
        let of_unit = mean(&mut g.iter().zip(&off).map(|(g, off)| (g * off).abs()));
        let slope_off = of_unit * (1.0 + sums) + sums * mean(&mut g.iter().zip(&values).map(|(g, u)| (g * u).abs()));
        for (c, at) in row.enumerate() {
            let terms = g[c].abs() + level.abs() + (values[c] * slope).abs();
            let terms_off = level_off + values[c].abs() * slope_off + off[c] * (slope.abs() + slope_off);
            let added = inverse * (terms_off + gamma(4.0) * terms);
            let whole = inverse * terms;
            let dx = inputs[3].f()[at].abs();
            bounds[0][at] = SECOND_ORDER * ((dy[c] * off[c]).abs() + U * (dy[c] * values[c]).abs()) + FLUSHED;
            bounds[1][at] =
                SECOND_ORDER * (added * (1.0 + relative) + whole * relative + gamma(2.0) * (whole + dx)) + FLUSHED;
        }
    }
    bounds
}

/// `e = exp(-2 y)` with its relative error, and that of `1 / (1 + e)`.
fn fall(x: f64) -> (f64, f64, f64) {
    let z = (2.0 * step::gelu(x).0).clamp(-80.0, 80.0);
    let e = (-z).exp();
    // Seven roundings of z; its cube has terms of one sign.
    let off = SECOND_ORDER * (gamma(7.0) * z.abs() + U * (6.0 + 4.0 * z.abs()));
    (e, off, SECOND_ORDER * (off * e / (1.0 + e) + U * (1.0 + DIVISION)))
}

pub(super) fn gelu(x: &[f64]) -> Vec<f64> {
    // Beyond the clamp the weight is 0 or 1 to float32, times x.
    let cut = |x: f64| x.abs() * (-80.0f64).exp();
    x.iter().map(|x| step::gelu(*x).1.abs() * (fall(*x).2 + U) + cut(*x) + FLUSHED).collect()
}

pub(super) fn gelu_backward(x: &[f64], gradient: &[f64]) -> Vec<f64> {
    let each = x.iter().zip(gradient).map(|(x, gradient)| {
        let (e, e_off, open_off) = fall(*x);
        let open = 1.0 / (1.0 + e);
        let slope = step::gelu(*x).2;
        let second = slope - open;
        let second_off = second.abs() * (e_off + 2.0 * open_off + gamma(9.0));
        // Beyond the clamp the second term is lost, and it is this small.
        let cut = (-80.0f64).exp() * (1.0 + x.abs().powi(3));
        let off = open * open_off + second_off + U * slope.abs() + cut;
        gradient.abs() * SECOND_ORDER * (off + U * slope.abs()) + FLUSHED
    });
    each.collect()
}

/// The gradient, and the loss.
pub(super) fn cross_entropy(p: &cross_entropy::Params, inputs: &[Data]) -> [Vec<f64>; 2] {
    let (stride, width) = (p.row as usize, p.vocabulary as usize);
    let roundings = f64::from(p.vocabulary.div_ceil(ROW_WORKGROUP) + ROW_WORKGROUP.ilog2());
    let mut bounds = [vec![0.0; inputs[0].len()], vec![0.0; inputs[2].len()]];
    for row in 0..p.rows as usize {
        let at = p.row_start as usize + row;
        let meant = inputs[1].u()[at] as usize;
        let logits = &inputs[0].f()[row * stride..][..width];
        let softmax = Softmax::new(&logits.iter().map(|logit| (*logit, 0.0)).collect::<Vec<_>>(), roundings);
        for (c, (weight, off)) in softmax.weights.iter().enumerate() {
            let less = if c == meant { 1.0 } else { 0.0 };
            bounds[0][row * stride + c] = off + U * (weight - less).abs();
        }
        let top = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let below = top - logits[meant];
        let total: f64 = logits.iter().map(|logit| (logit - top).exp()).sum();
        // The log-sum-exp's own bound has more roundings of the top than the loss has.
        bounds[1][at] = softmax.lse + LOG_NEAR_ONE + gamma(2.0) * (below + total.ln()) + FLUSHED;
    }
    bounds
}
