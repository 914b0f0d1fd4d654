//! `sums = [sums +] sum_i x_i`: the gradient of whatever is added to every row. No atomics: a
//! workgroup owns its column.

use super::{Access, Data, Kernel, WORKGROUP, Widths, params, read_params};

/// Rows of one pass: a lane adds every 64th, see [`super::LONGEST_LOOP`].
pub const SLICE: u32 = super::LONGEST_LOOP / 2 * WORKGROUP;

params! {
    /// `groups = row`, one workgroup a column.
    Params as "Params" {
        first_group: u32,
        /// Words of a row, padding included.
        row: u32,
        /// The rows that this pass adds.
        start: u32,
        end: u32,
        /// 1 to go on from what `sums` holds; otherwise that is not read.
        accumulate: u32,
    }
}

pub static ADD: Kernel = Kernel {
    stem: "column_sums",
    entry: "add",
    source: include_str!("../../shaders/column_sums.wgsl"),
    params: &[Params::WGSL],
    include: "",
    bindings: &[Access::Read, Access::ReadWrite],
    twin,
};

fn twin(params: &[u8], _: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    for column in 0..p.row as usize {
        let sum: f64 = (p.start..p.end).map(|i| buffers[0].f()[i as usize * p.row as usize + column]).sum();
        let held = &mut buffers[1].f_mut()[column];
        *held = if p.accumulate != 0 { *held + sum } else { sum };
    }
}
