//! How far a kernel's float32 results may lie from its twin's, derived from what WGSL promises.
//!
//! With `U = 2^-24`, the relative error of one rounding, WGSL section 15.7.4 gives: `+ - *` one
//! rounding; `x / y` 2.5 ULP and `inverseSqrt` 2 ULP, where an ULP is at most `2 U` of the value;
//! `exp(x)` `3 + 2 |x|` ULP; `log(x)` 3 ULP, or `2^-21` absolute for x in [0.5, 2]. Values below
//! `2^-126` may be flushed to 0. A chain of m roundings, in any order of summation, changes a sum of
//! products by at most `gamma(m) sum |a b|`, `gamma(m) = m U / (1 - m U)`.
//!
//! Every bound is that of one kernel on the inputs that it really had: what earlier steps got wrong
//! is not counted again.

mod backward;
mod dense;
mod fit;
mod instruments;

use crate::plan::Pass;
use crate::semantics::flags;
use crate::steps::visibility::Lists;
use crate::steps::*;

const U: f64 = 1.0 / (1u64 << 24) as f64;
/// Largest absolute error of `log` near 1.
const LOG_NEAR_ONE: f64 = 1.0 / (1u64 << 21) as f64;
/// What flushing may lose: up to 2^26 terms and factors of values below 2^-126.
const FLUSHED: f64 = 1.0 / (1u128 << 100) as f64;
/// `exp` of anything below minus this is flushed.
const EXP_ENDS: f64 = 110.0;
/// Roundings of a division, and of a division by a square root `1 / inverseSqrt(x)`.
const DIVISION: f64 = 5.0;
const SQUARE_ROOT: f64 = 4.0 + DIVISION;
/// Covers the squares of errors that the sums below leave out; none of them is above 10^-4.
const SECOND_ORDER: f64 = 1.001;

fn gamma(roundings: f64) -> f64 {
    roundings * U / (1.0 - roundings * U)
}

/// The bound of every word of each binding; an empty list asks for equality.
pub(super) fn of(pass: &Pass, inputs: &[Data], want: &[Data]) -> Vec<Vec<f64>> {
    let mut bounds = vec![Vec::new(); inputs.len()];
    let (params, widths) = (&pass.params[..], pass.widths);
    match (pass.kernel.stem, pass.kernel.entry) {
        ("key_norm", _) => {
            // A sum of squares has no cancellation; the root halves its relative error.
            let roundings = (widths.d_stride() as f64 + 3.0) / 2.0 + SQUARE_ROOT + DIVISION;
            let p: key_norm::Params = read_params(params);
            let normed = p.flags & (flags::KEY_NORM_MAX | flags::KEY_NORM_RMS) != 0;
            let relative = if normed { gamma(roundings) } else { 0.0 };
            bounds[1] = want[1].f().iter().map(|scale| relative * scale).collect();
        }
        ("chunked_attention", _) => {
            let p = read_params(params);
            [bounds[6], bounds[7]] = chunked(&p, widths, inputs);
        }
        ("full_attention", _) => {
            let p = read_params(params);
            [bounds[4], bounds[5]] = full(&p, widths, inputs);
        }
        ("combine_rounds", _) => {
            let p = read_params(params);
            [bounds[2], bounds[3]] = combined(&p, widths, inputs);
        }
        ("linear_projection", _) => bounds[3] = projected(&read_params(params), inputs),
        ("materialized_attention", "scores") => bounds[3] = scores(&read_params(params), widths, inputs),
        ("materialized_attention", "softmax") => {
            let p = read_params(params);
            [bounds[0], bounds[1]] = softmaxed(&p, inputs);
        }
        ("materialized_attention", _) => bounds[2] = weighted(&read_params(params), widths, inputs),
        ("row_terms", _) => bounds[4] = backward::row_terms(&read_params(params), widths, inputs),
        ("key_norm_backward", _) => bounds[3] = backward::key_norm(&read_params(params), widths, inputs),
        ("chunked_attention_backward", entry) => {
            bounds[7] = backward::chunked(entry, &read_params(params), widths, inputs);
        }
        ("full_attention_backward", entry) => bounds[5] = backward::full(entry, &read_params(params), widths, inputs),
        ("approximate_weights", _) => {
            bounds[5] = instruments::approximate(&read_params(params), widths, inputs, want[5].f())
        }
        ("effective_weights", _) => bounds[2] = instruments::effective(&read_params(params), inputs),
        ("map_pixels", _) => bounds[1] = instruments::pixels(&read_params(params), inputs, want[1].len()),
        ("residual", "residual") => [bounds[0], bounds[2]] = fit::residual(&read_params(params), inputs, want),
        ("residual", _) => bounds[1] = fit::total(&read_params(params), inputs),
        ("softmax_backward", _) => bounds[1] = fit::softmax_backward(&read_params(params), inputs),
        ("adam", _) => [bounds[1], bounds[2], bounds[3]] = fit::adam(&read_params(params), inputs, want),
        ("column_sums", _) => bounds[1] = dense::column_sums(&read_params(params), inputs),
        ("layer_norm", "normalize") => bounds[3] = dense::norm(&read_params(params), inputs),
        ("layer_norm", _) => [bounds[2], bounds[3]] = dense::norm_backward(&read_params(params), inputs),
        ("gelu", entry) => {
            bounds[0] = dense::gelu(inputs[0].f());
            if entry == "backward" {
                bounds[1] = dense::gelu_backward(inputs[0].f(), inputs[1].f());
            }
        }
        ("cross_entropy", _) => [bounds[0], bounds[2]] = dense::cross_entropy(&read_params(params), inputs),
        ("scaled_copy", _) => bounds[1] = want[1].f().iter().map(|x| U * x.abs() + FLUSHED).collect(),
        ("matrix_product", _) => bounds[3] = dense::product(&read_params(params), inputs),
        ("top_attention", _) => bounds[3] = instruments::strongest(&read_params(params), widths, inputs),
        ("coverage", _) => {
            // A lane adds every 128th weight, the lanes are added in a tree, and then to what earlier
            // slices left; hits are exact.
            let p: coverage::Params = read_params(params);
            let roundings = f64::from(p.key_count.div_ceil(ROW_WORKGROUP) + ROW_WORKGROUP.ilog2() + 1);
            let mass = want[4].f().iter().step_by(2);
            bounds[4] = mass.flat_map(|mass| [gamma(roundings) * mass + FLUSHED, 0.0]).collect();
        }
        _ => {}
    }
    bounds
}

/// How far a score may lie off: the query is scaled, multiplied and added up, then multiplied with
/// the key's scale.
fn score_off(q: &[f64], k: &[f64], key_scale: f64, scale: f32, is_self_value: bool) -> f64 {
    if is_self_value {
        return 0.0;
    }
    let sum: f64 = q.iter().zip(k).map(|(x, y)| (x * y).abs()).sum();
    gamma(q.len() as f64 + 3.0) * sum * (key_scale * f64::from(scale)).abs() + FLUSHED
}

/// The same with the pair count: the logarithm's argument is rounded, the logarithm is off, and the
/// difference is rounded. Near the self value of -1e5 that last rounding is 2^-8.
fn counted_off(lists: &Lists<'_>, i: u32, j: u32, off: f64, score: f64) -> f64 {
    if lists.geometry.flags & flags::PAIR_COUNT == 0 {
        return off;
    }
    off + U + LOG_NEAR_ONE.max(6.0 * U * lists.correction(i, j).abs()) + U * score.abs()
}

/// Weights of a softmax with the bound of each, and the bound of the log-sum-exp.
struct Softmax {
    weights: Vec<(f64, f64)>,
    lse: f64,
}

impl Softmax {
    /// `scores` with how far each may lie off. `roundings` counts what else happens to a weight before
    /// the division: additions, and factors of an online softmax besides their exponentials.
    ///
    /// The top that is subtracted cancels. Each exponential, of an argument that sums to `x` below
    /// the top over all shrinkings, errs by its rounded argument, `|x|` U, and by `6 + 4 |x|` U.
    /// A weight is then multiplied by `e^a`, the total by `e^b` with `b = ln sum p e^a`.
    fn new(scores: &[(f64, f64)], roundings: f64) -> Self {
        if scores.is_empty() {
            return Self { weights: Vec::new(), lse: 0.0 };
        }
        let top = scores.iter().map(|score| score.0).fold(f64::NEG_INFINITY, f64::max);
        let most_off = scores.iter().map(|score| score.1).fold(0.0, f64::max);
        let total: f64 = scores.iter().map(|score| (score.0 - top).exp()).sum();
        let each: Vec<(f64, f64)> = scores
            .iter()
            .map(|(score, off)| {
                let below = (top - score + 2.0 * most_off).min(EXP_ENDS);
                let log_off = off + SECOND_ORDER * U * (6.0 + 5.0 * below + roundings);
                ((score - top).exp() / total, log_off)
            })
            .collect();
        let total_off = each.iter().map(|(weight, off)| weight * off.exp()).sum::<f64>().ln();
        // Division by the total, then a multiplication.
        let last = SECOND_ORDER * U * (DIVISION + 2.0);
        Self {
            weights: each.iter().map(|(p, off)| (*p, p * (off + total_off + last).exp_m1() + FLUSHED)).collect(),
            lse: total_off + LOG_NEAR_ONE.max(6.0 * U * total.ln()) + U * (top.abs() + total.ln()),
        }
    }

    /// The bound of the weighted sum of rows of values.
    fn output<'a>(&self, rows: impl Iterator<Item = &'a [f64]>, width: usize) -> Vec<f64> {
        let mut bound = vec![0.0; width];
        for ((_, off), row) in self.weights.iter().zip(rows) {
            for (sum, value) in bound.iter_mut().zip(row) {
                *sum += off * value.abs();
            }
        }
        bound
    }
}

/// A weight is added once per key, and shrunk at most once per key: a multiplication and the six
/// roundings of `exp(0)`.
fn chunked(p: &chunked_attention::Params, widths: Widths, inputs: &[Data]) -> [Vec<f64>; 2] {
    let (ds, width) = (widths.d_stride(), widths.dv_stride());
    let (q, v, key_scale) = (inputs[0].f(), inputs[1].f(), inputs[2].f());
    let lists = Lists { geometry: p.lsh, chunk_of: inputs[4].u(), buckets: inputs[5].u() };
    let before = inputs[6].f();
    let (mut out, mut lse) = (Vec::new(), Vec::new());
    chunked_attention::walk(p, widths, inputs, |i, earlier, met| {
        let with_off = |(j, score): &(u32, f64)| {
            let (a, b) = (i as usize * ds, *j as usize * ds);
            let fixed = i == *j && p.lsh.flags & flags::SELF_VALUE != 0;
            let off = score_off(&q[a..a + ds], &q[b..b + ds], key_scale[*j as usize], p.scale, fixed);
            (*score, counted_off(&lists, i, *j, off, *score))
        };
        let terms: Vec<_> = earlier.map(|lse| (lse, 0.0)).into_iter().chain(met.iter().map(with_off)).collect();
        let softmax = Softmax::new(&terms, 8.0 * terms.len() as f64);
        let first = earlier.map(|_| &before[i as usize * width..][..width]);
        let values = first.into_iter().chain(met.iter().map(|(j, _)| &v[*j as usize * width..][..width]));
        out.extend(softmax.output(values, width));
        lse.push(softmax.lse);
    });
    [out, lse]
}

/// As above, but shrunk at most once per tile of keys.
fn full(p: &full_attention::Params, widths: Widths, inputs: &[Data]) -> [Vec<f64>; 2] {
    let (ds, width) = (widths.d_stride(), widths.dv_stride());
    let (q, k, v, key_scale) = (inputs[0].f(), inputs[1].f(), inputs[2].f(), inputs[3].f());
    let before = inputs[4].f();
    let shrinks = f64::from((p.key_end - p.key_start).div_ceil(full_attention::KEY_TILE));
    let (mut out, mut lse) = (Vec::new(), Vec::new());
    full_attention::walk(p, widths, inputs, |i, earlier, seen| {
        let with_off = |(j, score): &(u32, f64)| {
            let (a, b) = (i as usize * ds, *j as usize * ds);
            let fixed = i == *j && p.flags & flags::SELF_VALUE != 0;
            (*score, score_off(&q[a..a + ds], &k[b..b + ds], key_scale[*j as usize], p.scale, fixed))
        };
        let roundings = 1.0 + seen.len() as f64 + 7.0 * shrinks;
        let terms: Vec<_> = earlier.map(|lse| (lse, 0.0)).into_iter().chain(seen.iter().map(with_off)).collect();
        let softmax = Softmax::new(&terms, roundings);
        let first = earlier.map(|_| &before[i as usize * width..][..width]);
        let values = first.into_iter().chain(seen.iter().map(|(j, _)| &v[*j as usize * width..][..width]));
        out.extend(softmax.output(values, width));
        lse.push(softmax.lse);
    });
    [out, lse]
}

/// A softmax of at most two terms whose scores are given.
fn combined(p: &combine_rounds::Params, widths: Widths, inputs: &[Data]) -> [Vec<f64>; 2] {
    let width = widths.dv_stride();
    let (mut out, mut lse) = (Vec::new(), Vec::new());
    for i in 0..p.n as usize {
        let mut terms = vec![(inputs[1].f()[i], &inputs[0].f()[i * width..][..width])];
        if p.first_round == 0 {
            terms.push((inputs[3].f()[i], &inputs[2].f()[i * width..][..width]));
        }
        terms.retain(|(lse, _)| *lse != f64::from(EMPTY));
        let softmax = Softmax::new(&terms.iter().map(|(lse, _)| (*lse, 0.0)).collect::<Vec<_>>(), 2.0);
        out.extend(softmax.output(terms.iter().map(|(_, row)| *row), width));
        lse.push(softmax.lse);
    }
    [out, lse]
}

/// A product and a sum per column, and what the first slice adds or a later one goes on from.
fn projected(p: &linear_projection::Params, inputs: &[Data]) -> Vec<f64> {
    let (width, stride) = (p.width4 as usize * 4, p.k4 as usize * 4);
    let (e, x) = (inputs[0].f(), inputs[1].f());
    let cell = |i: usize, c: usize| {
        let sum: f64 = (0..p.columns as usize).map(|j| (e[j * stride + i] * x[j * width + c]).abs()).sum();
        let start = match (p.first_slice, p.biased) {
            (0, _) => inputs[3].f()[i * width + c],
            (_, 0) => 0.0,
            _ => inputs[2].f()[i],
        };
        gamma(f64::from(p.columns) + 2.0) * (sum + start.abs()) + FLUSHED
    };
    (0..p.k as usize).flat_map(|i| (0..width).map(move |c| (i, c))).map(|(i, c)| cell(i, c)).collect()
}

fn scores(p: &materialized_attention::Params, widths: Widths, inputs: &[Data]) -> Vec<f64> {
    let ds = widths.d_stride();
    let (q, k, key_scale) = (inputs[0].f(), inputs[1].f(), inputs[2].f());
    let cell = |row: u32, j: u32| {
        let i = p.query(row);
        let fixed = i == j && p.flags & flags::SELF_VALUE != 0;
        let (a, b) = (i as usize * ds, j as usize * ds);
        let off = score_off(&q[a..a + ds], &k[b..b + ds], key_scale[j as usize], p.scale, fixed);
        if full_attention::allowed(i, j, p.flags) { off } else { 0.0 }
    };
    (0..p.rows).flat_map(|row| (0..p.n_kv).map(move |j| (row, j))).map(|(row, j)| cell(row, j)).collect()
}

/// A lane adds every 128th weight, then the lanes are added in a tree.
fn softmaxed(p: &materialized_attention::Params, inputs: &[Data]) -> [Vec<f64>; 2] {
    let n = p.n_kv as usize;
    let roundings = f64::from(p.n_kv.div_ceil(ROW_WORKGROUP) + ROW_WORKGROUP.ilog2());
    let (mut weights, mut lse) = (Vec::new(), vec![0.0; inputs[1].len()]);
    for row in 0..p.rows as usize {
        let scores = &inputs[0].f()[row * n..][..n];
        let masked = |score: f64| score == f64::from(EMPTY);
        let kept: Vec<_> = scores.iter().filter(|score| !masked(**score)).map(|score| (*score, 0.0)).collect();
        let softmax = Softmax::new(&kept, roundings);
        let mut bounds = softmax.weights.iter();
        weights.extend(
            scores.iter().map(
                |score| {
                    if masked(*score) { 0.0 } else { bounds.next().map_or(0.0, |(_, bound)| *bound) }
                },
            ),
        );
        lse[p.row_start as usize + row] = softmax.lse;
    }
    [weights, lse]
}

fn weighted(p: &materialized_attention::Params, widths: Widths, inputs: &[Data]) -> Vec<f64> {
    let (n, width) = (p.n_kv as usize, widths.dv_stride());
    let (weights, v) = (inputs[0].f(), inputs[1].f());
    let keys = p.key_start as usize..(p.key_start + p.key_count) as usize;
    let mut bound = vec![0.0; inputs[2].len()];
    for row in 0..p.rows as usize {
        for c in 0..width {
            let at = (p.row_start as usize + row) * width + c;
            let sum: f64 = keys.clone().map(|j| weights[row * n + j] * v[j * width + c].abs()).sum();
            // What earlier slices of keys left is added once more.
            let before = if p.key_start > 0 { inputs[2].f()[at].abs() } else { 0.0 };
            bound[at] = gamma(f64::from(p.key_count) + 2.0) * (sum + before) + FLUSHED;
        }
    }
    bound
}

/// How a hash compares: float32 decides ties in its own way, see [`super::TIE`].
pub(super) struct Ties {
    /// Positions, over all rounds, where a second choice lies within the tolerance of the first.
    pub near: u64,
    /// The first bucket that is none of the choices, as (word, bucket).
    pub wrong: Option<(usize, u32)>,
}

/// Compares buckets by the margin that float64 sees, in units of |x| times the rms column norm of R.
pub(super) fn ties(pass: &Pass, inputs: &[Data], want: &[u32], got: &[u32]) -> Ties {
    let p: random_rotation_hash::Params = read_params(&pass.params);
    let (ds, n, columns) = (pass.widths.d_stride(), p.n as usize, p.columns as usize);
    let halves = [p.half_0, p.half_1, p.half_2, p.half_3].into_iter().filter(|half| *half > 0);
    let mut found = Ties { near: 0, wrong: None };
    for (round, rotations) in inputs[1].f().chunks(columns * ds).enumerate() {
        let rms = (dot(rotations, rotations) / columns as f64).sqrt();
        for i in 0..n {
            let at = round * n + i;
            let x = &inputs[0].f()[i * ds..][..ds];
            let tolerance = super::TIE * dot(x, x).sqrt() * rms;
            let (mut column, mut stride, mut near, mut right) = (0, 1, false, [true; 2]);
            for half in halves.clone() {
                let signed: Vec<f64> = (column..column + half as usize)
                    .map(|c| dot(x, &rotations[c * ds..][..ds]))
                    .flat_map(|projection| [projection, -projection])
                    .collect();
                let best = signed.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                near |= signed.iter().filter(|value| **value > best - tolerance).count() > 1;
                for (right, bucket) in right.iter_mut().zip([got[at], want[at]]) {
                    // Choice a is projection a, choice half + a its negative.
                    let choice = bucket / stride % (2 * half);
                    *right &= signed[((choice % half) * 2 + choice / half) as usize] > best - tolerance;
                }
                stride *= 2 * half;
                column += half as usize;
            }
            found.near += u64::from(near);
            let tied = right == [true; 2] && got[at] < stride;
            if got[at] != want[at] && !tied && found.wrong.is_none() {
                found.wrong = Some((at, got[at]));
            }
        }
    }
    found
}
