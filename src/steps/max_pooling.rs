//! Max pooling of keys and values, one of the projections that Linformer section 4 names: row i is the
//! largest of window i, component by component. It is not linear, so no matrix E stands for it.

use super::{Access, Data, Kernel, Widths, params, read_params};
use std::ops::Range;

params! {
    /// `groups = ceil(k * width4 / 64)`, for a slice of positions; every thread makes one vector.
    Params as "Params" {
        first_group: u32,
        n: u32,
        k: u32,
        /// Vectors of four floats in a row of `x`: D4 for keys, DV4 for values.
        width4: u32,
        /// The slice of positions that `x` shows.
        start: u32,
        count: u32,
    }
}

pub static POOL: Kernel = Kernel {
    stem: "max_pooling",
    entry: "max_pooling",
    source: include_str!("../../shaders/max_pooling.wgsl"),
    params: &[Params::WGSL],
    include: "",
    bindings: &[Access::Read, Access::ReadWrite],
    twin,
};

/// The positions of window `i` of `k` over `n` positions: `floor(n / k)` of them, and one more in the
/// first `n mod k` windows.
pub fn window(i: u32, n: u32, k: u32) -> Range<u32> {
    let edge = |i: u32| i * (n / k) + i.min(n % k);
    edge(i)..edge(i + 1)
}

fn twin(params: &[u8], _: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let width = p.width4 as usize * 4;
    for i in 0..p.k {
        let whole = window(i, p.n, p.k);
        let here = whole.start.max(p.start)..whole.end.min(p.start + p.count);
        if here.is_empty() {
            continue;
        }
        for c in 0..width {
            let at = i as usize * width + c;
            let mut top = if here.start > whole.start { buffers[1].f()[at] } else { f64::NEG_INFINITY };
            for j in here.clone() {
                top = top.max(buffers[0].f()[(j - p.start) as usize * width + c]);
            }
            buffers[1].f_mut()[at] = top;
        }
    }
}
