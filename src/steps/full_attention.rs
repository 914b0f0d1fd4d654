//! Exact attention without a score matrix: an online softmax over tiles of keys, Reformer
//! equation (1). With `keys = E K`, `values = F V` it is Linformer's equation (7).

use super::chunked_attention::score;
use super::{Access, Data, EMPTY, Kernel, Widths, params, read_params, softmax_sum};
use crate::semantics::flags;

/// Keys whose scores are held at once.
pub const KEY_TILE: u32 = 8;
/// Keys of a slice: a tile may take some 50 iterations, see [`super::LONGEST_LOOP`].
pub const SLICE_KEYS: u32 = 8192;

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

fn twin(params: &[u8], widths: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let (ds, dvs) = (widths.d_stride(), widths.dv_stride());
    for i in 0..p.n_q {
        let (out, lse) = {
            let (q, k, v, key_scale) = (buffers[0].f(), buffers[1].f(), buffers[2].f(), buffers[3].f());
            let before = (buffers[5].f()[i as usize], &buffers[4].f()[i as usize * dvs..][..dvs]);
            // Earlier slices count as one key of their log-sum-exp and output.
            let earlier = (p.key_start > 0 && before.0 != f64::from(EMPTY)).then_some(before);
            let keys = (p.key_start..p.key_end).filter(|j| allowed(i, *j, p.flags)).map(|j| {
                let b = j as usize;
                let query = &q[i as usize * ds..][..ds];
                let s = score(query, key_scale[b], &k[b * ds..][..ds], p.scale, i == j, p.self_value, p.flags);
                (s, &v[b * dvs..][..dvs])
            });
            softmax_sum(&earlier.into_iter().chain(keys).collect::<Vec<_>>(), dvs)
        };
        buffers[4].f_mut()[i as usize * dvs..][..dvs].copy_from_slice(&out);
        buffers[5].f_mut()[i as usize] = lse;
    }
}
