//! The strongest keys of each row of a block, strongest first; equal scores go by position.

use super::{Access, Data, EMPTY, Kernel, NO_KEY, Widths, params, read_params};

/// Most keys kept of a row, and the stride of the lists.
pub const TOP: u32 = 64;

params! {
    /// `groups = rows`. Keys that hold [`EMPTY`] are masked and never chosen.
    Params as "Params" {
        first_group: u32,
        rows: u32,
        n_kv: u32,
        /// Keys wanted, at most [`TOP`]; the rest of a list is [`NO_KEY`].
        count: u32,
        /// Lists are written from this row on.
        row_start: u32,
    }
}

pub static SELECT: Kernel = Kernel {
    stem: "top_keys",
    entry: "top_keys",
    source: include_str!("../../shaders/top_keys.wgsl"),
    params: &[Params::WGSL],
    include: "",
    bindings: &[Access::Read, Access::ReadWrite, Access::ReadWrite],
    twin,
};

fn twin(params: &[u8], _: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let (n, top) = (p.n_kv as usize, TOP as usize);
    for row in 0..p.rows as usize {
        let scores = &buffers[0].f()[row * n..][..n];
        let mut keys: Vec<usize> = (0..n).filter(|j| scores[*j] != f64::from(EMPTY)).collect();
        // Adding 0 makes -0 equal to it, as the shader sees it.
        keys.sort_by(|a, b| (scores[*b] + 0.0).total_cmp(&(scores[*a] + 0.0)));
        keys.truncate(p.count as usize);
        let values: Vec<f64> = keys.iter().map(|j| scores[*j]).collect();
        let start = (p.row_start as usize + row) * top;
        for t in 0..top {
            buffers[1].u_mut()[start + t] = keys.get(t).map_or(NO_KEY, |j| *j as u32);
            buffers[2].f_mut()[start + t] = values.get(t).copied().unwrap_or(f64::from(EMPTY));
        }
    }
}
