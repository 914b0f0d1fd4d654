//! How much of exact attention LSH attention can see: the exact probability on visible keys, and
//! how many of the strongest keys are visible.

use super::top_keys::TOP;
use super::visibility::{self, Geometry, Lists};
use super::{Access, Data, Kernel, NO_KEY, Widths, params, read_params};

params! {
    /// `groups = rows`. Rows to queries as in the exact block.
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
        pad_0: u32,
    }
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
        let mass: f64 = (0..p.lsh.n).filter(|j| lists.visible(i, *j)).map(|j| weights[j as usize]).sum();
        let hits = buffers[1].u()[at * TOP as usize..][..p.count as usize]
            .iter()
            .filter(|j| **j != NO_KEY && lists.visible(i, **j))
            .count();
        buffers[4].f_mut()[at * 2] = mass;
        buffers[4].f_mut()[at * 2 + 1] = hits as f64;
    }
}
