//! `E K` and `F V`, Linformer equation (7), one slice of columns of E after the other. Some published
//! code adds a bias to each row of `E K`.

use super::{Access, Data, Kernel, Widths, params, read_params};

params! {
    /// `groups = ceil(k4 * width4 / 64)`; one thread makes four projected rows of one vector.
    Params as "Params" {
        first_group: u32,
        /// Columns of E in this slice, which are rows of the transposed matrix.
        columns: u32,
        /// Projected rows, and in vectors of four.
        k: u32,
        k4: u32,
        /// Vectors of four floats in a row of `x`: D4 for keys, DV4 for values.
        width4: u32,
        /// 1 in the first slice: what `projected` holds is not read.
        first_slice: u32,
        /// 1 when the first slice starts from `bias`; otherwise `bias` is not read.
        biased: u32,
    }
}

pub static PROJECT: Kernel = Kernel {
    stem: "linear_projection",
    entry: "project",
    source: include_str!("../../shaders/linear_projection.wgsl"),
    params: &[Params::WGSL],
    include: "",
    bindings: &[Access::Read, Access::Read, Access::Read, Access::ReadWrite],
    twin,
};

fn twin(params: &[u8], _: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let (width, stride) = (p.width4 as usize * 4, p.k4 as usize * 4);
    for i in 0..p.k as usize {
        for c in 0..width {
            let added: f64 =
                (0..p.columns as usize).map(|j| buffers[0].f()[j * stride + i] * buffers[1].f()[j * width + c]).sum();
            let start = match (p.first_slice, p.biased) {
                (0, _) => buffers[3].f()[i * width + c],
                (_, 0) => 0.0,
                _ => buffers[2].f()[i],
            };
            buffers[3].f_mut()[i * width + c] = start + added;
        }
    }
}
