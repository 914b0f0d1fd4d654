//! The bend of the feed-forward layer, `gelu(x) = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`
//! (Hendrycks and Gimpel 2016), and its gradient. Both work in place, so that the hidden numbers stand
//! in memory once.

use super::{Access, Data, Kernel, Widths, params, read_params};

const CUBE: f64 = 0.044715;
const ROOT: f64 = 0.797_884_560_802_865_4;

params! {
    /// `groups = ceil(count / 64)`.
    Params as "Params" {
        first_group: u32,
        count: u32,
    }
}

const fn kernel(entry: &'static str, bindings: &'static [Access], twin: fn(&[u8], Widths, &mut [Data])) -> Kernel {
    Kernel {
        stem: "gelu",
        entry,
        source: include_str!("../../shaders/gelu.wgsl"),
        params: &[Params::WGSL],
        include: "",
        bindings,
        twin,
    }
}

/// `x` becomes `gelu(x)`.
pub static ACTIVATE: Kernel = kernel("activate", &[Access::ReadWrite], activate);

/// `x` becomes `gelu(x)`, and the gradient by that becomes the gradient by `x`.
pub static BACKWARD: Kernel = kernel("backward", &[Access::ReadWrite, Access::ReadWrite], backward);

/// The argument y of tanh, gelu and its slope; `(1 + tanh y) / 2 = 1 / (1 + exp(-2 y))` keeps its digits.
pub(crate) fn gelu(x: f64) -> (f64, f64, f64) {
    let inner = ROOT * (x + CUBE * x * x * x);
    let open = 1.0 / (1.0 + (-2.0 * inner).exp());
    let slope = open + x * 2.0 * ROOT * (1.0 + 3.0 * CUBE * x * x) * open * (1.0 - open);
    (inner, x * open, slope)
}

fn activate(params: &[u8], _: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    for x in &mut buffers[0].f_mut()[..p.count as usize] {
        *x = gelu(*x).1;
    }
}

fn backward(params: &[u8], _: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    for at in 0..p.count as usize {
        let (_, value, slope) = gelu(buffers[0].f()[at]);
        buffers[1].f_mut()[at] *= slope;
        buffers[0].f_mut()[at] = value;
    }
}
