//! What a pair of a query and a key adds to the gradients of attention, in float64.
//!
//! No kernel of its own: the twins of the backward passes share it. With `w = exp(s_ij - lse_i)` and
//! `ds = w (dout_i . v_j - dout_i . out_i)`, where a pair that several rounds see counts once a round:
//! `dq_i = sum_j ds scale u(k_j)`, `du_j = sum_i ds scale q_i`, `dv_j = sum_i w dout_i`.

use super::{Data, Widths, dot};

/// Whose gradient a pass gathers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    Queries,
    /// Of `u(k)`, the keys with their lengths taken out.
    Keys,
    Values,
}

/// Vectors of rows of these widths that a thread goes through for a pair: three times a row, see
/// [`super::LONGEST_LOOP`].
pub fn vectors(widths: Widths) -> u32 {
    2 * widths.d4.max(widths.dv4) + widths.d4
}

/// A pair that a pass walks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub query: u32,
    pub key: u32,
    /// What the softmax sees.
    pub score: f64,
    /// The score is a constant.
    pub fixed: bool,
}

/// The rows that a backward pass reads; those of values read neither `v` nor `delta`.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub widths: Widths,
    pub scale: f64,
    pub q: &'a [f64],
    pub k: &'a [f64],
    pub v: &'a [f64],
    pub dout: &'a [f64],
    pub key_scale: &'a [f64],
    pub lse: &'a [f64],
    pub delta: &'a [f64],
}

/// A row, and the factor by which it is added to row `target` of a gradient.
pub(crate) struct Addend<'a> {
    pub target: usize,
    pub factor: f64,
    pub row: &'a [f64],
}

impl<'a> Rows<'a> {
    /// Row terms as [`super::row_terms`] writes them: `(lse, delta, key_scale)`.
    pub fn terms(words: &'a [f64]) -> (&'a [f64], &'a [f64], &'a [f64]) {
        let rows = words.len() / 3;
        (&words[..rows], &words[rows..2 * rows], &words[2 * rows..])
    }

    pub fn query(&self, i: u32) -> &'a [f64] {
        row(self.q, i, self.widths.d_stride())
    }

    pub fn key(&self, j: u32) -> &'a [f64] {
        row(self.k, j, self.widths.d_stride())
    }

    pub fn value(&self, j: u32) -> &'a [f64] {
        row(self.v, j, self.widths.dv_stride())
    }

    pub fn down(&self, i: u32) -> &'a [f64] {
        row(self.dout, i, self.widths.dv_stride())
    }

    pub fn weight(&self, pair: &Pair) -> f64 {
        (pair.score - self.lse[pair.query as usize]).exp()
    }

    /// How the loss grows with the pair's weight: `dout_i . v_j - dout_i . out_i`.
    pub fn slope(&self, pair: &Pair) -> f64 {
        dot(self.down(pair.query), self.value(pair.key)) - self.delta[pair.query as usize]
    }

    /// What the pair adds; nothing where its score is a constant and the gradient is by the score.
    pub fn addend(&self, of: Of, pair: &Pair) -> Option<Addend<'a>> {
        let (i, j) = (pair.query as usize, pair.key as usize);
        let ds = || self.weight(pair) * self.slope(pair) * self.scale;
        match of {
            Of::Values => Some(Addend { target: j, factor: self.weight(pair), row: self.down(pair.query) }),
            _ if pair.fixed => None,
            Of::Queries => Some(Addend { target: i, factor: ds() * self.key_scale[j], row: self.key(pair.key) }),
            Of::Keys => Some(Addend { target: j, factor: ds(), row: self.query(pair.query) }),
        }
    }
}

fn row(rows: &[f64], at: u32, stride: usize) -> &[f64] {
    &rows[at as usize * stride..][..stride]
}

/// The gradient that a pass leaves: what its pairs add, and with `add` what was there.
pub(crate) struct Gradient(Vec<f64>);

impl Gradient {
    pub fn new(before: &Data, add: u32) -> Self {
        Self(if add != 0 { before.f().to_vec() } else { vec![0.0; before.len()] })
    }

    pub fn add(&mut self, addend: Option<Addend<'_>>) {
        let Some(Addend { target, factor, row }) = addend else { return };
        for (sum, x) in self.0[target * row.len()..].iter_mut().zip(row) {
            *sum += factor * x;
        }
    }

    pub fn store(self, into: &mut Data) {
        into.f_mut().copy_from_slice(&self.0);
    }
}
