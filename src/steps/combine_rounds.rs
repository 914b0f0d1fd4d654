//! Rounds weighted by the softmax of their log-sum-exp, one after the other into a running output.
//! Reformer equations (6) and (16): `o = sum_r exp(z_r - z) o_r`.

use super::{Access, Data, EMPTY, Kernel, Widths, params, read_params, softmax_sum};

params! {
    /// `groups = ceil(n / 64)`.
    Params as "Params" {
        first_group: u32,
        n: u32,
        /// 1 for the first round: what `out` and `lse` hold is not read.
        first_round: u32,
    }
}

pub static COMBINE: Kernel = Kernel {
    stem: "combine_rounds",
    entry: "combine",
    source: include_str!("../../shaders/combine_rounds.wgsl"),
    params: &[Params::WGSL],
    include: "",
    bindings: &[Access::Read, Access::Read, Access::ReadWrite, Access::ReadWrite],
    twin,
};

fn twin(params: &[u8], widths: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let width = widths.dv_stride();
    for i in 0..p.n as usize {
        let row = i * width..(i + 1) * width;
        let before = (p.first_round == 0).then(|| (buffers[3].f()[i], &buffers[2].f()[row.clone()]));
        let terms: Vec<_> = [Some((buffers[1].f()[i], &buffers[0].f()[row.clone()])), before]
            .into_iter()
            .flatten()
            .filter(|(lse, _)| *lse > f64::from(EMPTY) / 2.0)
            .collect();
        let (out, lse) = softmax_sum(&terms, width);
        buffers[2].f_mut()[row].copy_from_slice(&out);
        buffers[3].f_mut()[i] = lse;
    }
}
