//! Attention of one round over the sorted order: a query sees its own chunk and its neighbours.
//! Reformer equations (5) and (12) to (16); keys are the queries at unit length (shared QK).

use super::visibility::{self, Geometry, Lists};
use super::{Access, Data, EMPTY, Kernel, Widths, dot, params, read_params, softmax_sum};
use crate::semantics::flags;

params! {
    /// `groups = ceil(n / 64)`. All slots but the first go on from what `round_out` and `round_lse` hold.
    Params as "Params" {
        first_group: u32,
        round: u32,
        scale: f32,
        self_value: f32,
        lsh: Geometry,
    }
}

pub static ATTEND: Kernel = Kernel {
    stem: "chunked_attention",
    entry: "attend",
    source: include_str!("../../shaders/chunked_attention.wgsl"),
    params: &[Geometry::WGSL, Params::WGSL],
    include: visibility::WALK_WGSL,
    bindings: &[
        Access::Read,
        Access::Read,
        Access::Read,
        Access::Read,
        Access::Read,
        Access::Read,
        Access::ReadWrite,
        Access::ReadWrite,
    ],
    twin,
};

/// The score of an allowed pair before the pair count, in float64.
pub(crate) fn score(
    q: &[f64],
    key_scale: f64,
    k: &[f64],
    scale: f32,
    is_self: bool,
    self_value: f32,
    word: u32,
) -> f64 {
    if is_self && word & flags::SELF_VALUE != 0 {
        f64::from(self_value)
    } else {
        dot(q, k) * key_scale * f64::from(scale)
    }
}

/// The positions of every chunk of every round, in the sorted order.
pub(crate) fn members(g: &Geometry, order: &[u32], chunk_of: &[u32]) -> Vec<Vec<u32>> {
    let mut members = vec![Vec::new(); (g.rounds * g.chunks) as usize];
    for (at, &position) in (0..).zip(order) {
        let round = at / g.n;
        let chunk = chunk_of[(round * g.n + position) as usize];
        members[(round * g.chunks + chunk) as usize].push(position);
    }
    members
}

/// For each query the log-sum-exp of earlier passes over the round, if they saw anything, and the keys
/// that it meets in this one, with their scores in float64. Built from the lists of each chunk's
/// members, not from the sorted order.
pub(crate) fn walk(p: &Params, widths: Widths, buffers: &[Data], mut row: impl FnMut(u32, Option<f64>, &[(u32, f64)])) {
    let (g, ds) = (p.lsh, widths.d_stride());
    let members = members(&g, buffers[3].u(), buffers[4].u());
    let (q, key_scale, lse) = (buffers[0].f(), buffers[2].f(), buffers[7].f());
    let lists = Lists { geometry: g, chunk_of: buffers[4].u(), buckets: buffers[5].u() };
    let mut met = Vec::new();
    for i in 0..g.n {
        met.clear();
        let chunk = lists.chunk_of[(p.round * g.n + i) as usize];
        for step in 0..g.steps() {
            let Some((round, chunk)) = g.seen_chunk(p.round, chunk, step) else { continue };
            for (entry, &j) in (0..).zip(&members[(round * g.chunks + chunk) as usize]) {
                let same = round == p.round
                    && lists.buckets[(round * g.n + i) as usize] == lists.buckets[(round * g.n + j) as usize];
                let bucket_ok = g.flags & flags::SAME_BUCKET == 0 || same;
                if g.walks(step, entry) && lists.allowed(i, j) && bucket_ok {
                    let (a, b) = (&q[i as usize * ds..][..ds], &q[j as usize * ds..][..ds]);
                    let s = score(a, key_scale[j as usize], b, p.scale, i == j, p.self_value, g.flags);
                    met.push((j, s - lists.correction(i, j)));
                }
            }
        }
        row(i, Some(lse[i as usize]).filter(|lse| g.slot_start > 0 && *lse != f64::from(EMPTY)), &met);
    }
}

fn twin(params: &[u8], widths: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let width = widths.dv_stride();
    let (mut outs, mut sums) = (Vec::new(), Vec::new());
    let (v, before) = (buffers[1].f(), buffers[6].f());
    walk(&p, widths, buffers, |i, earlier, met| {
        // Earlier passes count as one key of their log-sum-exp and output.
        let earlier = earlier.map(|lse| (lse, &before[i as usize * width..][..width]));
        let keys = met.iter().map(|(j, s)| (*s, &v[*j as usize * width..][..width]));
        let (out, lse) = softmax_sum(&earlier.into_iter().chain(keys).collect::<Vec<_>>(), width);
        outs.extend(out);
        sums.push(lse);
    });
    buffers[6].f_mut().copy_from_slice(&outs);
    buffers[7].f_mut().copy_from_slice(&sums);
}
