//! Exact attention without a score matrix: an online softmax over tiles of keys, Reformer
//! equation (1). With `keys = E K`, `values = F V` it is Linformer's equation (7).

use super::chunked_attention::score;
use super::{Access, Data, EMPTY, Kernel, LONGEST_LOOP, Widths, params, read_params, softmax_sum};
use crate::semantics::flags;

/// Keys whose scores are held at once.
pub const KEY_TILE: u32 = 8;
/// Keys of one pass. A tile may take some thirty iterations when the compiler unrolls nothing.
pub const KEYS_OF_PASS: u32 = LONGEST_LOOP / 4;

params! {
    /// `groups = ceil(n_q / 64)`.
    Params as "Params" {
        first_group: u32,
        n_q: u32,
        /// Keys that this pass sees; all but the first go on from what `out` and `lse` hold.
        key_start: u32,
        key_count: u32,
        flags: u32,
        scale: f32,
        self_value: f32,
    }
}

pub static ATTEND: Kernel = Kernel {
    stem: "full_attention",
    entry: "attend",
    source: include_str!("../../shaders/full_attention.wgsl"),
    params: &[Params::WGSL],
    include: "",
    bindings: &[Access::Read, Access::Read, Access::Read, Access::Read, Access::ReadWrite, Access::ReadWrite],
    twin,
};

/// Whether the masks of full attention let `query` see `key`.
pub(crate) fn allowed(query: u32, key: u32, word: u32) -> bool {
    !(word & flags::CAUSAL != 0 && key > query || word & flags::SELF_EXCLUDE != 0 && key == query)
}

/// The keys that each query sees in this pass, with their scores in float64.
pub(crate) fn walk(p: &Params, widths: Widths, buffers: &[Data], mut row: impl FnMut(u32, &[(u32, f64)])) {
    let ds = widths.d_stride();
    let (q, k, key_scale) = (buffers[0].f(), buffers[1].f(), buffers[3].f());
    let mut seen = Vec::new();
    for i in 0..p.n_q {
        seen.clear();
        for j in (p.key_start..p.key_start + p.key_count).filter(|j| allowed(i, *j, p.flags)) {
            let (a, b) = (&q[i as usize * ds..][..ds], &k[j as usize * ds..][..ds]);
            seen.push((j, score(a, key_scale[j as usize], b, p.scale, i == j, p.self_value, p.flags)));
        }
        row(i, &seen);
    }
}

/// What the keys of earlier passes gave a query, as one key: (log-sum-exp, output).
pub(crate) fn before<'a>(p: &Params, widths: Widths, buffers: &'a [Data], i: u32) -> Option<(f64, &'a [f64])> {
    let (i, width) = (i as usize, widths.dv_stride());
    let goes_on = p.key_start > 0 && buffers[5].f()[i] != f64::from(EMPTY);
    goes_on.then(|| (buffers[5].f()[i], &buffers[4].f()[i * width..][..width]))
}

fn twin(params: &[u8], widths: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let width = widths.dv_stride();
    let (mut outs, mut sums) = (Vec::new(), Vec::new());
    let v = buffers[2].f();
    walk(&p, widths, buffers, |i, seen| {
        let here = seen.iter().map(|(j, s)| (*s, &v[*j as usize * width..][..width]));
        let terms: Vec<_> = here.chain(before(&p, widths, buffers, i)).collect();
        let (out, lse) = softmax_sum(&terms, width);
        outs.extend(out);
        sums.push(lse);
    });
    buffers[4].f_mut().copy_from_slice(&outs);
    buffers[5].f_mut().copy_from_slice(&sums);
}
