//! Exact attention without a score matrix: an online softmax over tiles of keys, Reformer
//! equation (1). With `keys = E K`, `values = F V` it is Linformer's equation (7).

use super::chunked_attention::score;
use super::{Access, Data, EMPTY, Kernel, LONGEST_LOOP, Widths, params, read_params, softmax_sum};
use crate::semantics::flags;

/// Keys whose scores are held at once.
pub const KEY_TILE: u32 = 8;

/// Keys of a slice, see [`LONGEST_LOOP`]: a tile goes through the row of each of its keys twice, and once through
/// the output.
pub fn slice(widths: Widths) -> u32 {
    let of_key = 2 + widths.d4 + widths.dv4;
    LONGEST_LOOP / (1 + widths.dv4 + KEY_TILE * of_key) * KEY_TILE
}

params! {
    /// `groups = ceil(n_q / 64)`.
    Params as "Params" {
        first_group: u32,
        n_q: u32,
        /// The slice of keys; all but the first go on from what `out` and `lse` hold.
        key_start: u32,
        key_end: u32,
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

/// For each query the log-sum-exp of earlier slices, if they saw anything, and the keys of this slice
/// that it sees, with their scores in float64.
pub(crate) fn walk(p: &Params, widths: Widths, buffers: &[Data], mut row: impl FnMut(u32, Option<f64>, &[(u32, f64)])) {
    let ds = widths.d_stride();
    let (q, k, key_scale, lse) = (buffers[0].f(), buffers[1].f(), buffers[3].f(), buffers[5].f());
    let mut seen = Vec::new();
    for i in 0..p.n_q {
        seen.clear();
        for j in (p.key_start..p.key_end).filter(|j| allowed(i, *j, p.flags)) {
            let (a, b) = (&q[i as usize * ds..][..ds], &k[j as usize * ds..][..ds]);
            seen.push((j, score(a, key_scale[j as usize], b, p.scale, i == j, p.self_value, p.flags)));
        }
        row(i, Some(lse[i as usize]).filter(|lse| p.key_start > 0 && *lse != f64::from(EMPTY)), &seen);
    }
}

fn twin(params: &[u8], widths: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let width = widths.dv_stride();
    let (mut outs, mut sums) = (Vec::new(), Vec::new());
    let (v, before) = (buffers[2].f(), buffers[4].f());
    walk(&p, widths, buffers, |i, earlier, seen| {
        // Earlier slices count as one key of their log-sum-exp and output.
        let earlier = earlier.map(|lse| (lse, &before[i as usize * width..][..width]));
        let keys = seen.iter().map(|(j, s)| (*s, &v[*j as usize * width..][..width]));
        let (out, lse) = softmax_sum(&earlier.into_iter().chain(keys).collect::<Vec<_>>(), width);
        outs.extend(out);
        sums.push(lse);
    });
    buffers[4].f_mut().copy_from_slice(&outs);
    buffers[5].f_mut().copy_from_slice(&sums);
}
