//! Bounds of the kernels that measure: weights, pixels of maps, the strongest keys.

use super::{Data, EXP_ENDS, FLUSHED, SECOND_ORDER, Softmax, U, counted_off, gamma, score_off};
use crate::semantics::flags;
use crate::steps::visibility::Lists;
use crate::steps::*;

/// The score, its distance to the given log-sum-exp, the exponential, and the meetings as a factor.
pub(super) fn approximate(p: &approximate_weights::Params, widths: Widths, inputs: &[Data], want: &[f64]) -> Vec<f64> {
    let (ds, n) = (widths.d_stride(), p.lsh.n);
    let (q, key_scale, lse) = (inputs[0].f(), inputs[1].f(), inputs[4].f());
    let lists = Lists { geometry: p.lsh, chunk_of: inputs[2].u(), buckets: inputs[3].u() };
    let cell = |row: u32, j: u32| {
        let weight = want[(row * n + j) as usize];
        let i = p.query_base + ((p.row_start + row) * p.query_stride) % p.query_count;
        if !lists.visible(i, j) || lse[i as usize] == f64::from(EMPTY) {
            return 0.0;
        }
        let (a, b) = (&q[i as usize * ds..][..ds], &q[j as usize * ds..][..ds]);
        let fixed = i == j && p.lsh.flags & flags::SELF_VALUE != 0;
        let score = if fixed { p.self_value.into() } else { dot(a, b) * key_scale[j as usize] * f64::from(p.scale) };
        let off = counted_off(&lists, i, j, score_off(a, b, key_scale[j as usize], p.scale, fixed), score);
        let x = (score - lists.correction(i, j) - lse[i as usize]).abs() + off;
        let exponential = SECOND_ORDER * U * (7.0 + 5.0 * x.min(EXP_ENDS));
        weight * (off + exponential).exp_m1() + FLUSHED
    };
    (0..p.rows).flat_map(|row| (0..n).map(move |j| (row, j))).map(|(row, j)| cell(row, j)).collect()
}

pub(super) fn effective(p: &effective_weights::Params, inputs: &[Data]) -> Vec<f64> {
    let (n, k, stride) = (p.n as usize, p.k as usize, p.k4 as usize * 4);
    let (projected, e) = (inputs[0].f(), inputs[1].f());
    let mut bound = vec![0.0; inputs[2].len()];
    for row in 0..inputs[2].len() / n {
        for column in 0..p.columns as usize {
            let sum: f64 = (0..k).map(|i| (projected[row * k + i] * e[column * stride + i]).abs()).sum();
            bound[row * n + p.column_start as usize + column] = gamma(k as f64 + 1.0) * sum + FLUSHED;
        }
    }
    bound
}

/// A sum of the weights of a row over the columns of each pixel.
pub(super) fn pixels(p: &map_pixels::Params, inputs: &[Data], len: usize) -> Vec<f64> {
    let mut bound = vec![0.0; len];
    let roundings = gamma(f64::from(p.col_count.div_ceil(p.width)));
    for row in 0..p.rows {
        let weights = &inputs[0].f()[(row * p.n_kv + p.col_start) as usize..][..p.col_count as usize];
        let cells = &mut bound[((p.row_start + row) * p.width) as usize..][..p.width as usize];
        for (col, weight) in (0..).zip(weights) {
            cells[attention_map::pixel(col, p.col_count, p.width) as usize] += roundings * weight.abs();
        }
        cells.iter_mut().for_each(|cell| *cell += FLUSHED);
    }
    bound
}

pub(super) fn strongest(p: &top_attention::Params, widths: Widths, inputs: &[Data]) -> Vec<f64> {
    let (width, top) = (widths.dv_stride(), top_keys::TOP as usize);
    let mut bound = vec![0.0; inputs[3].len()];
    for row in p.row_start as usize..(p.row_start + p.rows) as usize {
        let kept = (row * top..).take(p.count as usize).filter(|t| inputs[0].u()[*t] != NO_KEY);
        let scores: Vec<_> = kept.clone().map(|t| (inputs[1].f()[t], 0.0)).collect();
        let softmax = Softmax::new(&scores, scores.len() as f64);
        let rows = kept.map(|t| &inputs[2].f()[inputs[0].u()[t] as usize * width..][..width]);
        bound[row * width..][..width].copy_from_slice(&softmax.output(rows, width));
    }
    bound
}
