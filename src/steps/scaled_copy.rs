//! `to = factor from`: the gradient of a sum of squares, and activations that are stored.

use super::{Access, Data, Kernel, Widths, params, read_params};

params! {
    /// `groups = ceil(count / 64)`.
    Params as "Params" {
        first_group: u32,
        count: u32,
        factor: f32,
    }
}

pub static COPY: Kernel = Kernel {
    stem: "scaled_copy",
    entry: "copy",
    source: include_str!("../../shaders/scaled_copy.wgsl"),
    params: &[Params::WGSL],
    include: "",
    bindings: &[Access::Read, Access::ReadWrite],
    twin,
};

fn twin(params: &[u8], _: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    for at in 0..p.count as usize {
        buffers[1].f_mut()[at] = f64::from(p.factor) * buffers[0].f()[at];
    }
}
