//! Exact attention that keeps only the strongest keys of each query: what is lost when all others
//! are left out, which is why hashing works at all. Reformer section 2.

use super::top_keys::TOP;
use super::{Access, Data, Kernel, NO_KEY, Widths, params, read_params, softmax_sum};

params! {
    /// `groups = ceil(rows / 64)`. Lists and outputs both begin at `row_start`.
    Params as "Params" {
        first_group: u32,
        rows: u32,
        row_start: u32,
        count: u32,
    }
}

pub static ATTEND: Kernel = Kernel {
    stem: "top_attention",
    entry: "attend",
    source: include_str!("../../shaders/top_attention.wgsl"),
    params: &[Params::WGSL],
    include: "",
    bindings: &[Access::Read, Access::Read, Access::Read, Access::ReadWrite],
    twin,
};

fn twin(params: &[u8], widths: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let width = widths.dv_stride();
    for row in p.row_start as usize..(p.row_start + p.rows) as usize {
        let out = {
            let terms: Vec<_> = (row * TOP as usize..)
                .take(p.count as usize)
                .filter(|t| buffers[0].u()[*t] != NO_KEY)
                .map(|t| (buffers[1].f()[t], &buffers[2].f()[buffers[0].u()[t] as usize * width..][..width]))
                .collect();
            softmax_sum(&terms, width).0
        };
        buffers[3].f_mut()[row * width..][..width].copy_from_slice(&out);
    }
}
