//! Rows of the weights that LSH attention really used, over all rounds:
//! `sum_r exp(s_ij - ln N_ij - z_i)` over the rounds in which the pair is met. Reformer appendix A.

use super::chunked_attention::score;
use super::visibility::{self, Geometry, Lists};
use super::{Access, Data, EMPTY, Kernel, Widths, params, read_params};

params! {
    /// `groups = rows * tiles`, `tiles = ceil(n / 64)`. Rows to queries as in the exact block.
    Params as "Params" {
        first_group: u32,
        tiles: u32,
        rows: u32,
        row_start: u32,
        lsh: Geometry,
        query_base: u32,
        query_stride: u32,
        query_count: u32,
        scale: f32,
        self_value: f32,
        pad_0: u32,
        pad_1: u32,
        pad_2: u32,
    }
}

pub static WEIGHTS: Kernel = Kernel {
    stem: "approximate_weights",
    entry: "approximate_weights",
    source: include_str!("../../shaders/approximate_weights.wgsl"),
    params: &[Geometry::WGSL, Params::WGSL],
    include: visibility::WGSL,
    bindings: &[Access::Read, Access::Read, Access::Read, Access::Read, Access::Read, Access::ReadWrite],
    twin,
};

fn twin(params: &[u8], widths: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let (g, ds) = (p.lsh, widths.d_stride());
    let mut weights = Vec::new();
    {
        let (q, key_scale, lse) = (buffers[0].f(), buffers[1].f(), buffers[4].f());
        let lists = Lists { geometry: g, chunk_of: buffers[2].u(), buckets: buffers[3].u() };
        for row in 0..p.rows {
            let i = p.query_base + ((p.row_start + row) * p.query_stride) % p.query_count;
            for j in 0..g.n {
                let meetings = (0..g.rounds)
                    .map(|r| (0..g.steps()).filter(|step| lists.sees(i, j, r, *step)).count())
                    .sum::<usize>();
                if meetings == 0 || !lists.allowed(i, j) || lse[i as usize] == f64::from(EMPTY) {
                    weights.push(0.0);
                    continue;
                }
                let (a, b) = (i as usize, j as usize);
                let s =
                    score(&q[a * ds..][..ds], key_scale[b], &q[b * ds..][..ds], p.scale, i == j, p.self_value, g.flags);
                weights.push(meetings as f64 * (s - lists.correction(i, j) - lse[a]).exp());
            }
        }
    }
    buffers[5].f_mut()[..weights.len()].copy_from_slice(&weights);
}
