//! What a fit is wrong by: the loss `|value - target|^2 / |target|^2` and its gradient
//! `2 (value - target) / |target|^2`, in place.

use super::{Access, Data, Kernel, ROW_REDUCTION, Widths, params, read_params};

params! {
    /// Groups: `residual` `rows`, `total` 1.
    Params as "Params" {
        first_group: u32,
        rows: u32,
        columns: u32,
        /// Words from one row to the next; what pads a row of `value` is left alone.
        value_row: u32,
        target_row: u32,
        /// `2 / |target|^2`.
        weight: f32,
        /// The place of the loss.
        step: u32,
    }
}

/// `value <- weight (value - target)`, and `|value - target|^2` of each row.
pub static RESIDUAL: Kernel = kernel("residual", &[Access::ReadWrite, Access::Read, Access::ReadWrite], residual_twin);
/// The loss: `weight / 2` times the sum over all rows.
pub static TOTAL: Kernel = kernel("total", &[Access::Read, Access::ReadWrite], total_twin);

const fn kernel(entry: &'static str, bindings: &'static [Access], twin: fn(&[u8], Widths, &mut [Data])) -> Kernel {
    Kernel {
        stem: "residual",
        entry,
        source: include_str!("../../shaders/residual.wgsl"),
        params: &[Params::WGSL],
        include: ROW_REDUCTION,
        bindings,
        twin,
    }
}

fn residual_twin(params: &[u8], _: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    for row in 0..p.rows as usize {
        let mut sum = 0.0;
        for c in 0..p.columns as usize {
            let at = row * p.value_row as usize + c;
            let apart = buffers[0].f()[at] - buffers[1].f()[row * p.target_row as usize + c];
            sum += apart * apart;
            buffers[0].f_mut()[at] = f64::from(p.weight) * apart;
        }
        buffers[2].f_mut()[row] = sum;
    }
}

fn total_twin(params: &[u8], _: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let sum: f64 = buffers[0].f()[..p.rows as usize].iter().sum();
    buffers[1].f_mut()[p.step as usize] = 0.5 * f64::from(p.weight) * sum;
}
