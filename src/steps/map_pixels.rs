//! Weights of sampled rows of the n x n matrix, summed into the pixels of a window.

use super::attention_map::pixel;
use super::{Access, Data, Kernel, Widths, params, read_params};

params! {
    /// `groups = ceil(rows * width / 64)`.
    Params as "Params" {
        first_group: u32,
        rows: u32,
        n_kv: u32,
        col_start: u32,
        col_count: u32,
        width: u32,
        /// First row of the pixels to write.
        row_start: u32,
    }
}

/// Sum of the weights of a row over the columns of each pixel.
pub static PIXELS: Kernel = Kernel {
    stem: "map_pixels",
    entry: "pixels_of_rows",
    source: include_str!("../../shaders/map_pixels.wgsl"),
    params: &[Params::WGSL],
    include: "",
    bindings: &[Access::Read, Access::ReadWrite],
    twin,
};

fn twin(params: &[u8], _: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    for row in 0..p.rows {
        let mut sums = vec![0.0; p.width as usize];
        for col in 0..p.col_count {
            let weight = buffers[0].f()[(row * p.n_kv + p.col_start + col) as usize];
            sums[pixel(col, p.col_count, p.width) as usize] += weight;
        }
        let at = ((p.row_start + row) * p.width) as usize;
        buffers[1].f_mut()[at..at + sums.len()].copy_from_slice(&sums);
    }
}
