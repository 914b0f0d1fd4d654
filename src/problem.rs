//! The numbers that a computation starts from: q, k, v, rotations and projections.

use crate::random::{Stream, normal, uniform};
use crate::steps::Widths;
use crate::steps::max_pooling::window;
use std::collections::BTreeMap;
use std::ops::Range;

/// What may fill a buffer from outside the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    Q,
    K,
    V,
    Rotations,
    /// E and F, transposed: row j is column j.
    E,
    F,
    /// One row of k numbers, added to the rows of `E K` and `F V`.
    EBias,
    FBias,
    /// What has this name; its rows have `k` numbers.
    Named(&'static str),
}

/// Sizes of a problem. Head h uses k head `h % k_heads` and v head `h % v_heads`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dims {
    pub n_q: u32,
    pub n_kv: u32,
    pub heads: u32,
    pub k_heads: u32,
    pub v_heads: u32,
    pub d: u32,
    pub d_v: u32,
}

impl Dims {
    pub fn widths(&self) -> Widths {
        Widths::new(self.d, self.d_v)
    }

    /// Bytes of q, k and v without padding.
    pub fn bytes(&self) -> u64 {
        let bytes = |heads: u32, n: u32, width: u32| u64::from(heads) * u64::from(n) * u64::from(width) * 4;
        bytes(self.heads, self.n_q, self.d)
            + bytes(self.k_heads, self.n_kv, self.d)
            + bytes(self.v_heads, self.n_kv, self.d_v)
    }

    /// Bytes of an output `[heads, n_q, d_v]`.
    pub fn out_bytes(&self) -> u64 {
        u64::from(self.heads) * u64::from(self.n_q) * u64::from(self.d_v) * 4
    }
}

/// Numbers by the name of the buffer that they fill, as rows without padding, all ranges in order.
pub type Named = BTreeMap<&'static str, Vec<f32>>;

/// q, k and v as rows without padding: `[heads, n_q, d]`, `[k_heads, n_kv, d]`, `[v_heads, n_kv, d_v]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    pub dims: Dims,
    pub q: Vec<f32>,
    pub k: Vec<f32>,
    pub v: Vec<f32>,
    pub rotations: Rotations,
    pub projections: Projections,
    /// Whatever else a plan starts from; what is not here is 0.
    pub named: Named,
}

/// Where R comes from; columns are numbered through the groups of a factorised hash.
#[derive(Clone, Debug, PartialEq)]
pub enum Rotations {
    /// Standard normal entries that depend on (seed, head, round, column, row) alone.
    Seeded(u32),
    /// `[heads or 1, rounds, d, columns]`.
    Given(Vec<f32>),
}

/// Where E and F come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Projections {
    /// `E[i, j] = 1 / |window i|` on [`window`] i; E = F.
    Mean,
    /// A convolution with stride = kernel: `E[i, j] = w[j - start of window i]` on [`window`] i, where w
    /// has `ceil(n / k)` weights, the same for every component. A window that is one shorter leaves the
    /// last weight out. The weights are uniform in `+-1 / sqrt(ceil(n / k))`, as PyTorch begins a kernel of
    /// one channel, and depend on (seed, matrix, place) alone.
    Convolution(u32),
    /// Normal entries of variance 1/k that depend on (seed, matrix, i, j) alone.
    Gaussian(u32),
    /// `[heads or 1, k, n]` each, and the biases `[heads or 1, k]`, empty when there are none.
    Given { e: Vec<f32>, f: Vec<f32>, e_bias: Vec<f32>, f_bias: Vec<f32> },
    /// Those of others from this head on.
    OfHead(u32, Box<Projections>),
}

/// How a buffer is filled, row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    pub source: Source,
    /// Rows of one head; they lie in one range, or in several of `range_rows` each.
    pub rows: u32,
    pub range_rows: u32,
    /// Rounds and columns of the rotations, or k of the projections and the width of named rows; 0 where it
    /// has no meaning.
    pub rounds: u32,
    pub columns: u32,
    pub k: u32,
}

impl Fill {
    /// Rows of one head in one range.
    pub fn whole(source: Source, rows: u32) -> Self {
        Self { source, rows, range_rows: rows, rounds: 0, columns: 0, k: 0 }
    }

    /// The head and the rows that a range of the buffer holds.
    pub fn range(&self, range: u32) -> (u32, Range<u32>) {
        let slices = self.rows.div_ceil(self.range_rows);
        let start = (range % slices) * self.range_rows;
        (range / slices, start..(start + self.range_rows).min(self.rows))
    }
}

impl Problem {
    /// Appends rows of a matrix, each padded with zeros to a multiple of four floats.
    ///
    /// Subnormal numbers of q, k and v count as 0: a device may flush them, and would then hash otherwise
    /// than one that does not.
    ///
    /// Rows of Q, K, V are positions of one head; of the rotations columns of R, all rounds of a
    /// head in order; of E and F positions.
    pub fn rows(&self, fill: Fill, head: u32, rows: Range<u32>, out: &mut Vec<f32>) {
        let dims = self.dims;
        let (d, d_v) = (dims.d as usize, dims.d_v as usize);
        let mut plain = |values: &[f32], per_head: u32, width: usize| {
            for row in rows.clone() {
                let start = (head as usize * per_head as usize + row as usize) * width;
                out.extend(values[start..start + width].iter().map(|x| if x.is_subnormal() { 0.0 } else { *x }));
                pad(out, width);
            }
        };
        match fill.source {
            Source::Q => plain(&self.q, dims.n_q, d),
            Source::K => plain(&self.k, dims.n_kv, d),
            Source::V => plain(&self.v, dims.n_kv, d_v),
            Source::Rotations => rows.for_each(|row| {
                let (round, column) = (row / fill.columns, row % fill.columns);
                out.extend((0..dims.d).map(|c| self.rotation(fill, head, round, column, c)));
                pad(out, d);
            }),
            Source::E | Source::F => rows.for_each(|j| {
                let shape = [fill.k, dims.n_kv];
                out.extend((0..fill.k).map(|i| self.projections.entry(fill.source, head, shape, [i, j])));
                pad(out, fill.k as usize);
            }),
            Source::Named(name) => match self.named.get(name) {
                Some(values) => plain(values, fill.rows, fill.k as usize),
                None => rows.for_each(|_| out.extend(vec![0.0; fill.k.next_multiple_of(4) as usize])),
            },
            Source::EBias | Source::FBias => {
                out.extend((0..fill.k).map(|i| self.projections.bias(fill.source, head, fill.k, i)));
            }
        }
    }

    /// `R[row, column]` of a head and round.
    fn rotation(&self, fill: Fill, head: u32, round: u32, column: u32, row: u32) -> f32 {
        match &self.rotations {
            Rotations::Seeded(seed) => {
                let index =
                    ((u64::from(head) * 16 + u64::from(round)) * 4096 + u64::from(column)) * 128 + u64::from(row);
                normal(*seed, Stream::Rotations, index)
            }
            Rotations::Given(values) => {
                let block = head as usize * fill.rounds as usize + round as usize;
                values[(block * self.dims.d as usize + row as usize) * fill.columns as usize + column as usize]
            }
        }
    }
}

impl Projections {
    /// Those of one head, for a problem of that head alone.
    #[must_use]
    pub fn of_head(self, head: u32) -> Self {
        Self::OfHead(head, Box::new(self))
    }

    /// `E[i, j]` or `F[i, j]` of a head, of `[k, n]` entries.
    pub fn entry(&self, source: Source, head: u32, [k, n]: [u32; 2], [i, j]: [u32; 2]) -> f32 {
        let stream = if source == Source::E { Stream::ProjectionE } else { Stream::ProjectionF };
        match self {
            Self::Mean => {
                let window = window(i, n, k);
                if window.contains(&j) { 1.0 / window.len() as f32 } else { 0.0 }
            }
            Self::Convolution(seed) => {
                let window = window(i, n, k);
                if !window.contains(&j) {
                    return 0.0;
                }
                let index = (u64::from(head) << 40) + u64::from(j - window.start);
                let weight = 2.0 * uniform(*seed, stream, index) - 1.0;
                (weight / f64::from(n.div_ceil(k)).sqrt()) as f32
            }
            Self::Gaussian(seed) => {
                let index = (u64::from(head) << 40) + u64::from(j) * u64::from(k) + u64::from(i);
                normal(*seed, stream, index) / (k as f32).sqrt()
            }
            Self::Given { e, f, .. } => {
                let values = if source == Source::E { e } else { f };
                values[(head as usize * k as usize + i as usize) * n as usize + j as usize]
            }
            Self::OfHead(first, all) => all.entry(source, first + head, [k, n], [i, j]),
        }
    }

    /// Number i of the k biases of a head. Only given projections have biases.
    fn bias(&self, source: Source, head: u32, k: u32, i: u32) -> f32 {
        match self {
            Self::Given { e_bias, f_bias, .. } => {
                let values = if source == Source::EBias { e_bias } else { f_bias };
                values.get(head as usize * k as usize + i as usize).copied().unwrap_or(0.0)
            }
            Self::OfHead(first, all) => all.bias(source, first + head, k, i),
            Self::Mean | Self::Convolution(_) | Self::Gaussian(_) => 0.0,
        }
    }
}

fn pad(out: &mut Vec<f32>, width: usize) {
    out.extend(std::iter::repeat_n(0.0, width.next_multiple_of(4) - width));
}
