//! Bounds of the gradients of attention.

use super::{Data, EXP_ENDS, FLUSHED, SECOND_ORDER, U, counted_off, gamma, score_off};
use crate::steps::pair_gradient::{Addend, Of, Pair, Rows};
use crate::steps::{Widths, chunked_attention_backward, full_attention_backward, key_norm_backward, row_terms};

/// A copy, a sum of products, a copy.
pub(super) fn row_terms(p: &row_terms::Params, widths: Widths, inputs: &[Data]) -> Vec<f64> {
    let width = widths.dv_stride();
    let rows = p.n_q.max(p.n_kv) as usize;
    let mut bound = vec![0.0; 3 * rows];
    let of_rows = |at: usize| inputs[at].f().chunks(width);
    for ((bound, out), dout) in bound[rows..].iter_mut().zip(of_rows(0)).zip(of_rows(1)).take(p.n_q as usize) {
        let sum: f64 = out.iter().zip(dout).map(|(x, y)| (x * y).abs()).sum();
        *bound = gamma(width as f64) * sum + FLUSHED;
    }
    bound
}

/// `scale (du - u (u . du))`: in the dot product u is rounded once, then it is scaled twice more.
pub(super) fn key_norm(p: &key_norm_backward::Params, widths: Widths, inputs: &[Data]) -> Vec<f64> {
    let ds = widths.d_stride();
    let (keys, key_scale, du, before) = (inputs[0].f(), inputs[1].f(), inputs[2].f(), inputs[3].f());
    let cell = |at: usize| {
        let row = at / ds * ds..(at / ds + 1) * ds;
        let (x, scale) = (&keys[row.clone()], key_scale[at / ds]);
        let along: f64 = x.iter().zip(&du[row]).map(|(x, du)| (x * scale * du).abs()).sum();
        let along = if key_norm_backward::moves(p, x) { along * (keys[at] * scale).abs() } else { 0.0 };
        let before = if p.add != 0 { before[at].abs() } else { 0.0 };
        gamma(ds as f64 + 7.0) * (scale * (du[at].abs() + along) + before) + FLUSHED * scale.max(1.0)
    };
    (0..p.n as usize * ds).map(cell).collect()
}

pub(super) fn full(entry: &str, p: &full_attention_backward::Params, widths: Widths, inputs: &[Data]) -> Vec<f64> {
    let of = side(entry);
    let rows = full_attention_backward::rows(of, p, widths, inputs);
    let mut sums = GradientBound::new(&rows, of, inputs[5].f(), p.add);
    full_attention_backward::walk(of, p, &rows, |pair| sums.add(&pair, sums.score_off(&pair, p.scale)));
    sums.finish()
}

pub(super) fn chunked(
    entry: &str,
    p: &chunked_attention_backward::Params,
    widths: Widths,
    inputs: &[Data],
) -> Vec<f64> {
    let of = side(entry);
    let rows = chunked_attention_backward::rows(of, p, widths, inputs);
    let mut sums = GradientBound::new(&rows, of, inputs[7].f(), p.add);
    chunked_attention_backward::walk(of, p, &rows, inputs, |lists, pair| {
        let off = sums.score_off(&pair, p.scale);
        // The count is taken off the distance to the log-sum-exp, not off the score.
        let uncounted = pair.score + lists.correction(pair.query, pair.key) - rows.lse[pair.query as usize];
        sums.add(&pair, counted_off(lists, pair.query, pair.key, off, uncounted));
    });
    sums.finish()
}

fn side(entry: &str) -> Of {
    match entry {
        "queries" => Of::Queries,
        "keys" => Of::Keys,
        _ => Of::Values,
    }
}

/// The bound of a gradient that is gathered pair by pair: what the factors are off, and the roundings
/// of the sums.
struct GradientBound<'a> {
    rows: &'a Rows<'a>,
    of: Of,
    /// `sum off |x|` and `sum |factor x|` of every number, and the pairs of every row.
    off: Vec<f64>,
    sums: Vec<f64>,
    pairs: Vec<f64>,
}

impl<'a> GradientBound<'a> {
    fn new(rows: &'a Rows<'a>, of: Of, before: &[f64], add: u32) -> Self {
        let width = if of == Of::Values { rows.widths.dv_stride() } else { rows.widths.d_stride() };
        let sums = before.iter().map(|x| if add != 0 { x.abs() } else { 0.0 }).collect();
        Self { rows, of, off: vec![0.0; before.len()], sums, pairs: vec![0.0; before.len() / width] }
    }

    fn score_off(&self, pair: &Pair, scale: f32) -> f64 {
        let (q, k) = (self.rows.query(pair.query), self.rows.key(pair.key));
        score_off(q, k, self.rows.key_scale[pair.key as usize], scale, pair.fixed)
    }

    /// Adds a pair whose score is `score_off` off.
    fn add(&mut self, pair: &Pair, score_off: f64) {
        let Some(Addend { target, factor, row }) = self.rows.addend(self.of, pair) else { return };
        // The score, its distance to the given log-sum-exp, and the exponential.
        let weight = self.rows.weight(pair);
        let below = ((pair.score - self.rows.lse[pair.query as usize]).abs() + score_off).min(EXP_ENDS);
        let weight_off = weight * (score_off + SECOND_ORDER * U * (7.0 + 5.0 * below)).exp_m1() + FLUSHED;
        let off = if self.of == Of::Values {
            weight_off
        } else {
            let (down, value) = (self.rows.down(pair.query), self.rows.value(pair.key));
            let products: f64 = down.iter().zip(value).map(|(x, y)| (x * y).abs()).sum();
            let delta = self.rows.delta[pair.query as usize].abs();
            let slope_off = gamma(value.len() as f64 + 1.0) * (products + delta) + FLUSHED;
            let key_scale = if self.of == Of::Queries { self.rows.key_scale[pair.key as usize] } else { 1.0 };
            let slope = self.rows.slope(pair).abs();
            let off = weight_off * (slope + slope_off) + weight * slope_off;
            off * self.rows.scale.abs() * key_scale + gamma(4.0) * factor.abs()
        };
        self.pairs[target] += 1.0;
        let cells = target * row.len()..(target + 1) * row.len();
        for ((bound, sum), x) in self.off[cells.clone()].iter_mut().zip(&mut self.sums[cells]).zip(row) {
            *bound += off * x.abs();
            *sum += (factor.abs() + off) * x.abs();
        }
    }

    /// A product and a sum a pair, the scale, and what earlier passes left.
    fn finish(self) -> Vec<f64> {
        let width = self.off.len() / self.pairs.len();
        let each = self.off.iter().zip(&self.sums).enumerate();
        each.map(|(at, (off, sum))| off + gamma(self.pairs[at / width] + 3.0) * sum + FLUSHED).collect()
    }
}
