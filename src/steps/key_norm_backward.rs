//! The gradient by a key from that by `u(x) = x * scale(x)`, see [`super::key_norm`]. With
//! `scale = 1 / |x|` the part of it along the key is lost: a longer key is the same key.

use super::{Access, Data, Kernel, Widths, dot, params, read_params};
use crate::semantics::flags;

params! {
    /// `groups = ceil(n / 64)`.
    Params as "Params" {
        first_group: u32,
        n: u32,
        flags: u32,
        eps: f32,
        /// 1 adds to what `dx` holds: keys that are queries too, or that serve several heads.
        add: u32,
    }
}

pub static KEY_NORM_BACKWARD: Kernel = Kernel {
    stem: "key_norm_backward",
    entry: "key_norm_backward",
    source: include_str!("../../shaders/key_norm_backward.wgsl"),
    params: &[Params::WGSL],
    include: "",
    bindings: &[Access::Read, Access::Read, Access::Read, Access::ReadWrite],
    twin,
};

/// Whether the scale of a key changes with it.
pub(crate) fn moves(p: &Params, key: &[f64]) -> bool {
    let longer = dot(key, key).sqrt() > f64::from(p.eps);
    p.flags & flags::KEY_NORM_RMS != 0 || p.flags & flags::KEY_NORM_MAX != 0 && longer
}

fn twin(params: &[u8], widths: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let ds = widths.d_stride();
    for i in 0..p.n as usize {
        let row = i * ds..(i + 1) * ds;
        let (x, du, scale) = (&buffers[0].f()[row.clone()], &buffers[2].f()[row.clone()], buffers[1].f()[i]);
        let along = if moves(&p, x) { scale * scale * dot(x, du) } else { 0.0 };
        let dx: Vec<f64> = x.iter().zip(du).map(|(x, du)| scale * (du - along * x)).collect();
        for (held, new) in buffers[3].f_mut()[row].iter_mut().zip(dx) {
            *held = if p.add != 0 { *held + new } else { new };
        }
    }
}
