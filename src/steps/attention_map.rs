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
    include: visibility::WALK_WGSL,
    bindings: &[Access::Read, Access::Read, Access::Read, Access::ReadWrite, Access::ReadWrite, Access::ReadWrite],
    twin,
};

/// The pixel of an offset into a window: `floor(offset * pixels / count)`.
pub fn pixel(offset: u32, count: u32, pixels: u32) -> u32 {
    (u64::from(offset) * u64::from(pixels) / u64::from(count)) as u32
}

/// Asks every pair where it is met, instead of walking the chunks.
fn twin(params: &[u8], _: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let g = p.lsh;
    let (mut pairs, mut visits, mut pixels) =
        (buffers[3].u().to_vec(), buffers[4].u().to_vec(), buffers[5].u().to_vec());
    let lists = Lists { geometry: g, chunk_of: buffers[1].u(), buckets: buffers[2].u() };
    let mut entry_of = vec![0; (g.rounds * g.n) as usize];
    for (at, position) in (0..).zip(buffers[0].u()) {
        entry_of[(at / g.n * g.n + position) as usize] = at % g.n % g.chunk_len;
    }
    for i in 0..g.n {
        for j in (0..g.n).filter(|j| lists.allowed(i, *j)) {
            // Whether this pass walks each meeting; the first one counts as the pair.
            let mut meetings = (0..g.rounds)
                .flat_map(|round| (0..g.steps()).map(move |step| (round, step)))
                .filter(|(round, step)| lists.sees(i, j, *round, *step))
                .map(|(round, step)| {
                    let chunk = lists.chunk_of[(round * g.n + i) as usize];
                    let other = g.seen_chunk(round, chunk, step).map_or(round, |place| place.0);
                    g.walks(step, entry_of[(other * g.n + j) as usize])
                });
            let Some(first) = meetings.next() else { continue };
            visits[i as usize] += u32::from(first) + meetings.filter(|walked| *walked).count() as u32;
            if !first {
                continue;
            }
            pairs[i as usize] += 1;
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
