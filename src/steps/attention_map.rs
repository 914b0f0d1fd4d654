//! The map of computed pairs of LSH attention, in integer counts from all pairs.

use super::visibility::{self, Geometry, Lists};
use super::{Access, Data, Kernel, Widths, params, read_params};

params! {
    /// `groups = rounds * tiles`, `tiles = ceil(n / 64)`. The window is
    /// `[row_start, row_start + row_count) x [col_start, col_start + col_count)`.
    Params as "Params" {
        first_group: u32,
        tiles: u32,
        row_start: u32,
        row_count: u32,
        lsh: Geometry,
        col_start: u32,
        col_count: u32,
        width: u32,
        height: u32,
    }
}

/// Adds to zeroed buffers: distinct pairs and visits of each query over all rounds, and distinct
/// pairs of the window by pixel. A pair met again in a later round is one pair and two visits.
pub static PAIRS: Kernel = Kernel {
    stem: "attention_map",
    entry: "pairs",
    source: include_str!("../../shaders/attention_map.wgsl"),
    params: &[Geometry::WGSL, Params::WGSL],
    include: visibility::WGSL,
    bindings: &[Access::Read, Access::Read, Access::Read, Access::ReadWrite, Access::ReadWrite, Access::ReadWrite],
    twin,
};

/// The pixel of an offset into a window: `floor(offset * pixels / count)`.
pub fn pixel(offset: u32, count: u32, pixels: u32) -> u32 {
    (u64::from(offset) * u64::from(pixels) / u64::from(count)) as u32
}

/// Asks every pair whether it is visible, instead of walking the chunks.
fn twin(params: &[u8], _: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let g = p.lsh;
    let (mut pairs, mut visits, mut pixels) =
        (buffers[3].u().to_vec(), buffers[4].u().to_vec(), buffers[5].u().to_vec());
    let lists = Lists { geometry: g, chunk_of: buffers[1].u(), buckets: buffers[2].u() };
    for i in 0..g.n {
        for j in 0..g.n {
            if !lists.visible(i, j) {
                continue;
            }
            pairs[i as usize] += 1;
            visits[i as usize] += (0..g.rounds)
                .map(|round| (0..g.steps()).filter(|step| lists.sees(i, j, round, *step)).count() as u32)
                .sum::<u32>();
            let (row, col) = (i.wrapping_sub(p.row_start), j.wrapping_sub(p.col_start));
            if row < p.row_count && col < p.col_count {
                let y = pixel(row, p.row_count, p.height);
                let x = pixel(col, p.col_count, p.width);
                pixels[(y * p.width + x) as usize] += 1;
            }
        }
    }
    buffers[3].u_mut().copy_from_slice(&pairs);
    buffers[4].u_mut().copy_from_slice(&visits);
    buffers[5].u_mut().copy_from_slice(&pixels);
}
