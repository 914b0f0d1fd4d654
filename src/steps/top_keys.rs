//! The strongest keys of each row of a block, strongest first; equal scores go by position.

use super::{Access, Data, EMPTY, Kernel, LONGEST_LOOP, NO_KEY, Widths, params, read_params};

/// Most keys kept of a row, and the stride of the lists.
pub const TOP: u32 = 64;

params! {
    /// `groups = ceil(rows / 64)`, once for each slice of keys. Keys that hold [`EMPTY`] are masked
    /// and never chosen.
    Params as "Params" {
        first_group: u32,
        rows: u32,
        n_kv: u32,
        /// Keys wanted, at most [`TOP`]; the rest of a list is [`NO_KEY`].
        count: u32,
        /// Lists are written from this row on.
        row_start: u32,
        /// The slice of keys; a later one goes on from the lists of the one before.
        key_start: u32,
        key_count: u32,
    }
}

/// Keys of a slice when `count` are wanted: each may pass all that are in the list.
pub fn slice_keys(count: u32) -> u32 {
    LONGEST_LOOP / (count + 1)
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
        let list = (p.row_start as usize + row) * top..(p.row_start as usize + row + 1) * top;
        let held = buffers[1].u()[list.clone()].iter().zip(&buffers[2].f()[list.clone()]);
        let earlier = held.filter(|(key, _)| p.key_start > 0 && **key != NO_KEY).map(|(key, score)| (*key, *score));
        let slice = p.key_start..p.key_start + p.key_count;
        let here = slice.map(|j| (j, buffers[0].f()[row * n + j as usize])).filter(|(_, s)| *s != f64::from(EMPTY));
        let mut keys: Vec<(u32, f64)> = earlier.chain(here).collect();
        // Adding 0 makes -0 equal to it, as the shader sees it.
        keys.sort_by(|a, b| (b.1 + 0.0).total_cmp(&(a.1 + 0.0)));
        keys.truncate(p.count as usize);
        for (t, at) in list.enumerate() {
            let (key, score) = keys.get(t).copied().unwrap_or((NO_KEY, f64::from(EMPTY)));
            buffers[1].u_mut()[at] = key;
            buffers[2].f_mut()[at] = score;
        }
    }
}
