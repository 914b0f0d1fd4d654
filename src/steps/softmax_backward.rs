//! The gradient of a softmax over rows, for `P = softmax(scale q k^T)`:
//! `d(q k^T) = scale P (dP - sum_j P dP)`, with every row's sum over its own columns.

use super::{Access, Data, Kernel, ROW_REDUCTION, Widths, params, read_params};

params! {
    /// `groups = rows`.
    Params as "Params" {
        first_group: u32,
        rows: u32,
        /// Weights of a row; P has no padding.
        columns: u32,
        /// Words from one row of the gradient to the next; what pads a row is left alone.
        gradient_row: u32,
        scale: f32,
    }
}

pub static BACKWARD: Kernel = Kernel {
    stem: "softmax_backward",
    entry: "softmax_backward",
    source: include_str!("../../shaders/softmax_backward.wgsl"),
    params: &[Params::WGSL],
    include: ROW_REDUCTION,
    bindings: &[Access::Read, Access::ReadWrite],
    twin,
};

fn twin(params: &[u8], _: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    for row in 0..p.rows as usize {
        let weights = buffers[0].f()[row * p.columns as usize..][..p.columns as usize].to_vec();
        let gradient = &mut buffers[1].f_mut()[row * p.gradient_row as usize..][..p.columns as usize];
        let mean: f64 = weights.iter().zip(&*gradient).map(|(weight, slope)| weight * slope).sum();
        for (slope, weight) in gradient.iter_mut().zip(&weights) {
            *slope = f64::from(p.scale) * weight * (*slope - mean);
        }
    }
}
