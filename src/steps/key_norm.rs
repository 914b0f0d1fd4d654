//! `u(x) = x * scale(x)`: the factor that takes out a key's length. Reformer section 2, shared QK.

use super::{Access, Data, Kernel, Widths, dot, params, read_params};
use crate::semantics::flags;

params! {
    /// `groups = ceil(n / 64)`.
    Params as "Params" {
        first_group: u32,
        n: u32,
        d: u32,
        flags: u32,
        eps: f32,
    }
}

/// A key no longer than this has no direction: the square of its length, or what a device flushes of it,
/// would be lost in float32.
pub const SHORTEST: f32 = 1e-14;

pub static KEY_NORM: Kernel = Kernel {
    stem: "key_norm",
    entry: "key_norm",
    source: include_str!("../../shaders/key_norm.wgsl"),
    params: &[Params::WGSL],
    include: "",
    bindings: &[Access::Read, Access::ReadWrite],
    twin,
};

fn twin(params: &[u8], widths: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let scales: Vec<f64> = buffers[0]
        .f()
        .chunks(widths.d_stride())
        .take(p.n as usize)
        .map(|x| {
            let square = dot(x, x);
            let eps = f64::from(p.eps);
            let length = if p.flags & flags::KEY_NORM_RMS != 0 {
                (square + f64::from(p.d) * eps).sqrt()
            } else if p.flags & flags::KEY_NORM_MAX != 0 {
                square.sqrt().max(eps)
            } else {
                1.0
            };
            if length > f64::from(SHORTEST) { 1.0 / length } else { 0.0 }
        })
        .collect();
    buffers[1].f_mut()[..scales.len()].copy_from_slice(&scales);
}
