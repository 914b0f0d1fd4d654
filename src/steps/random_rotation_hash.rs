//! `h(x) = argmax([xR; -xR])` for every round of one head, Reformer section 2 after Andoni et al. 2015.
//!
//! With factors `b0, b1, ...` the columns of R fall into groups of `b0/2, b1/2, ...` and
//! `bucket = a0 + b0 a1 + b0 b1 a2 + ...`. The first maximum wins a tie.

use super::{Access, Data, Kernel, Widths, dot, params, read_params};

/// Most factors of a factorised hash.
pub const MAX_FACTORS: usize = 4;

params! {
    /// `groups = rounds * tiles`, `tiles = ceil(n / 64)`. A half of 0 ends the list of factors.
    Params as "Params" {
        first_group: u32,
        n: u32,
        tiles: u32,
        /// Columns of R in a round: the sum of the halves.
        columns: u32,
        half_0: u32,
        half_1: u32,
        half_2: u32,
        half_3: u32,
    }
}

pub static HASH: Kernel = Kernel {
    stem: "random_rotation_hash",
    entry: "hash",
    source: include_str!("../../shaders/random_rotation_hash.wgsl"),
    params: &[Params::WGSL],
    include: "",
    bindings: &[Access::Read, Access::Read, Access::ReadWrite],
    twin,
};

/// The bucket of one vector from its projections `x R` of one round.
pub fn bucket(projections: &[f64], halves: &[usize]) -> u32 {
    let (mut bucket, mut stride, mut start) = (0, 1, 0);
    for &half in halves {
        let group = &projections[start..start + half];
        let signed = group.iter().copied().chain(group.iter().map(|x| -x));
        let mut best = (0, f64::NEG_INFINITY);
        for (index, value) in signed.enumerate() {
            if value > best.1 {
                best = (index as u32, value);
            }
        }
        bucket += stride * best.0;
        stride *= 2 * half as u32;
        start += half;
    }
    bucket
}

fn twin(params: &[u8], widths: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let halves: Vec<usize> = [p.half_0, p.half_1, p.half_2, p.half_3]
        .into_iter()
        .take_while(|half| *half > 0)
        .map(|half| half as usize)
        .collect();
    let (stride, n, columns) = (widths.d_stride(), p.n as usize, p.columns as usize);
    let rounds = buffers[2].len() / n;
    let mut buckets = vec![0; rounds * n];
    for round in 0..rounds {
        for i in 0..n {
            let x = &buffers[0].f()[i * stride..][..stride];
            let projections: Vec<f64> =
                (0..columns).map(|c| dot(x, &buffers[1].f()[(round * columns + c) * stride..][..stride])).collect();
            buckets[round * n + i] = bucket(&projections, &halves);
        }
    }
    buffers[2].u_mut().copy_from_slice(&buckets);
}
