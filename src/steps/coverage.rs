//! How much of exact attention LSH attention can see: the exact probability on visible keys, and
//! how many of the strongest keys are visible.

use super::top_keys::TOP;
use super::visibility::{self, Geometry, Lists};
use super::{Access, Data, Kernel, LONGEST_LOOP, NO_KEY, ROW_WORKGROUP, Widths, params, read_params};

params! {
    /// `groups = rows`, once for each slice of keys. Rows to queries as in the exact block.
    Params as "Params" {
        first_group: u32,
        rows: u32,
        row_start: u32,
        /// Strongest keys looked at.
        count: u32,
        lsh: Geometry,
        query_base: u32,
        query_stride: u32,
        query_count: u32,
        /// The slice of keys; a later one adds to what the one before wrote.
        key_start: u32,
        key_count: u32,
        pad_0: u32,
        pad_1: u32,
        pad_2: u32,
    }
}

/// Keys of a slice: a lane looks at every 128th, each in all steps of the window of every round.
pub fn slice_keys(lsh: &Geometry) -> u32 {
    ROW_WORKGROUP * (LONGEST_LOOP / (lsh.rounds * lsh.steps() + 1))
}

/// Writes (mass, hits) for row `row_start + r`.
pub static COVERAGE: Kernel = Kernel {
    stem: "coverage",
    entry: "coverage",
    source: include_str!("../../shaders/coverage.wgsl"),
    params: &[Geometry::WGSL, Params::WGSL],
    include: visibility::WGSL,
    bindings: &[Access::Read, Access::Read, Access::Read, Access::Read, Access::ReadWrite],
    twin,
};

fn twin(params: &[u8], _: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let n = p.lsh.n as usize;
    for row in 0..p.rows {
        let i = p.query_base + ((p.row_start + row) * p.query_stride) % p.query_count;
        let at = (p.row_start + row) as usize;
        let lists = Lists { geometry: p.lsh, chunk_of: buffers[2].u(), buckets: buffers[3].u() };
        let weights = &buffers[0].f()[row as usize * n..][..n];
        let keys = p.key_start..p.key_start + p.key_count;
        let mass: f64 = keys.filter(|j| lists.visible(i, *j)).map(|j| weights[j as usize]).sum();
        let hits = buffers[1].u()[at * TOP as usize..][..p.count as usize]
            .iter()
            .filter(|j| **j != NO_KEY && lists.visible(i, **j))
            .count();
        // The strongest keys are all counted with the first slice.
        let before = if p.key_start > 0 { buffers[4].f()[at * 2] } else { 0.0 };
        buffers[4].f_mut()[at * 2] = before + mass;
        buffers[4].f_mut()[at * 2 + 1] = hits as f64;
    }
}
