//! Rows of `P-bar E`, or of its absolute value: how much of each position Linformer's projected weights
//! reach. Linformer equation (7); P-bar is n x k, so P-bar E (or P-bar F) is an n x n map.

use super::{Access, Data, Kernel, Widths, dot, params, read_params};

params! {
    /// `groups = rows * tiles`, `tiles = ceil(columns / 64)`, for a slice of columns of E.
    Params as "Params" {
        first_group: u32,
        tiles: u32,
        n: u32,
        k: u32,
        k4: u32,
        column_start: u32,
        columns: u32,
        /// 0 takes the absolute value.
        is_signed: u32,
    }
}

pub static WEIGHTS: Kernel = Kernel {
    stem: "effective_weights",
    entry: "effective_weights",
    source: include_str!("../../shaders/effective_weights.wgsl"),
    params: &[Params::WGSL],
    include: "",
    bindings: &[Access::Read, Access::Read, Access::ReadWrite],
    twin,
};

fn twin(params: &[u8], _: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let (n, k, stride) = (p.n as usize, p.k as usize, p.k4 as usize * 4);
    for row in 0..buffers[2].len() / n {
        for column in 0..p.columns as usize {
            let projected = &buffers[0].f()[row * k..][..k];
            let sum = dot(projected, &buffers[1].f()[column * stride..][..k]);
            let weight = if p.is_signed == 0 { sum.abs() } else { sum };
            buffers[2].f_mut()[row * n + p.column_start as usize + column] = weight;
        }
    }
}
