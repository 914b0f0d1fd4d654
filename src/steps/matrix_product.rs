//! `C = [C +] sign (A B [+ bias])`: the projections, the feed-forward layer and every gradient that is
//! a product. Tiled through workgroup memory; long inner loops are cut into passes that add up.

use super::{Access, Data, Kernel, Widths, params, read_params};

/// Rows and columns of C that a workgroup makes.
pub const TILE: u32 = 32;
/// Rows of B that are held at once.
pub const DEPTH: u32 = 16;
/// Terms of a sum in one pass: a step of [`DEPTH`] takes some 20 iterations, see
/// [`super::LONGEST_LOOP`].
pub const SLICE: u32 = 16_384;

params! {
    /// `groups = ceil(rows / 32) * ceil(c_row / 32)`.
    Params as "Params" {
        first_group: u32,
        /// C is `[rows, columns]`, in rows of `c_row` words; what pads them is set to 0.
        rows: u32,
        columns: u32,
        c_row: u32,
        /// The terms of the sum that this pass adds.
        inner_start: u32,
        inner_end: u32,
        /// Words from one row of A to the next, and from one column; swapped, A is transposed.
        a_row: u32,
        a_column: u32,
        b_row: u32,
        b_column: u32,
        sign: f32,
        /// 1 to go on from what C holds; otherwise that is not read.
        accumulate: u32,
        /// 1 to add `bias` to each row of the product; otherwise `bias` is not read.
        biased: u32,
    }
}

pub static MULTIPLY: Kernel = Kernel {
    stem: "matrix_product",
    entry: "multiply",
    source: include_str!("../../shaders/matrix_product.wgsl"),
    params: &[Params::WGSL],
    include: "",
    bindings: &[Access::Read, Access::Read, Access::Read, Access::ReadWrite],
    twin,
};

/// Workgroups of a pass.
pub fn groups(rows: u32, c_row: u32) -> u32 {
    rows.div_ceil(TILE) * c_row.div_ceil(TILE)
}

/// For each cell of C its place, what it starts from, and the terms of its sum, in float64.
pub(crate) fn walk(p: &Params, buffers: &[Data], mut cell: impl FnMut(usize, f64, &mut dyn Iterator<Item = f64>)) {
    let (a, b, c) = (buffers[0].f(), buffers[1].f(), buffers[3].f());
    for i in 0..p.rows {
        for j in 0..p.columns {
            let at = (i * p.c_row + j) as usize;
            let start = if p.accumulate != 0 { c[at] } else { 0.0 };
            let bias = (p.biased != 0).then(|| buffers[2].f()[j as usize]);
            let products = (p.inner_start..p.inner_end)
                .map(|k| a[(i * p.a_row + k * p.a_column) as usize] * b[(k * p.b_row + j * p.b_column) as usize]);
            cell(at, start, &mut products.chain(bias));
        }
    }
}

fn twin(params: &[u8], _: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let mut cells = Vec::with_capacity((p.rows * p.columns) as usize);
    walk(&p, buffers, |at, start, terms| cells.push((at, start + f64::from(p.sign) * terms.sum::<f64>())));
    let c = buffers[3].f_mut();
    for row in c.chunks_mut(p.c_row as usize).take(p.rows as usize) {
        row[p.columns as usize..].fill(0.0);
    }
    for (at, value) in cells {
        c[at] = value;
    }
}
