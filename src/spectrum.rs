//! The spectrum of an attention matrix P = softmax(QK^T / sqrt d): how low its rank is, as Linformer's
//! section 3 and Figure 1 ask.

use crate::algebra::{Matrix, Svd};

/// How the singular values were found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Way {
    /// From P itself, all of them.
    Exact,
    /// The leading ones from products of P with thin blocks (Halko, Martinsson and Tropp 2011).
    Randomised {
        /// A bound on the spectral norm of what the basis leaves out, which fails once in 10^8: 8 probes and
        /// a factor of 10 (their equation 4.3).
        left_out: f64,
    },
}

/// Singular values of P, n x n, and the vectors that belong to them.
#[derive(Clone, Debug, PartialEq)]
pub struct Spectrum {
    pub n: u32,
    pub way: Way,
    pub svd: Svd,
    /// The squared Frobenius norm of P, from its entries: the sum of the squares of all n values.
    pub energy: f64,
}

/// A number that is known between two ends, which are equal when it is known exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Between {
    pub low: f64,
    pub high: f64,
}

impl Spectrum {
    /// From P itself, row by row.
    pub fn exact(p: &Matrix, svd: Svd) -> Self {
        Self { n: p.rows as u32, way: Way::Exact, svd, energy: squares(&p.entries) }
    }

    /// Values that were computed: n, or the leading ones.
    pub fn known(&self) -> u32 {
        self.svd.values.len() as u32
    }

    fn is_whole(&self) -> bool {
        self.known() >= self.n
    }

    /// What the known part of P leaves out of its squared Frobenius norm, R^2; 0 when all is known.
    fn left_out(&self) -> f64 {
        self.energy_after(self.known())
    }

    /// Linformer's Figure 1: the sum of the first 1, 2, ... values over the sum of all.
    ///
    /// A value that was found is never too large. The true sum of r leading ones exceeds theirs by at most sqrt(r) R,
    /// and the sum of all that of the known ones by at most sqrt(n) R, since m values whose squares add up to R^2 add up
    /// to at most sqrt(m) R.
    pub fn cumulative(&self) -> Vec<Between> {
        let running = running(self.svd.values.iter().map(|value| f64::from(*value)));
        let (known, rest) = (running.last().copied().unwrap_or_default(), self.left_out().sqrt());
        let most = known + f64::from(self.n).sqrt() * rest;
        let share = |part: f64, of: f64| if of > 0.0 { (part / of).min(1.0) } else { 1.0 };
        let ends = running.into_iter().zip(1u32..);
        ends.map(|(sum, r)| Between { low: share(sum, most), high: share(sum + f64::from(r).sqrt() * rest, known) })
            .collect()
    }

    /// The normalised cumulative sum of the first r values, where it is known exactly.
    pub fn share_at(&self, r: u32) -> Option<f64> {
        let share = *self.cumulative().get(r.checked_sub(1)? as usize)?;
        (share.low == share.high).then_some(share.low)
    }

    /// The same with the squares of the values: the share of the squared Frobenius norm of P. The true sum of r leading
    /// ones exceeds theirs by at most R^2.
    pub fn cumulative_energy(&self) -> Vec<Between> {
        let sums = running(self.svd.values.iter().map(|value| f64::from(*value).powi(2)));
        let rest = self.left_out();
        let total = if self.is_whole() { sums.last().copied().unwrap_or_default() } else { self.energy };
        let share = |part: f64| if total > 0.0 { (part / total).min(1.0) } else { 1.0 };
        sums.into_iter().map(|sum| Between { low: share(sum), high: share(sum + rest) }).collect()
    }

    /// The sum of the squares of the known values after r.
    fn later(&self, r: u32) -> f64 {
        self.svd.values.iter().skip(r as usize).map(|value| f64::from(*value).powi(2)).sum()
    }

    /// The squared Frobenius distance of P from P_r, the sum of its first r parts. When all values are known that is
    /// its best approximation of rank r (Eckart and Young 1936).
    pub fn energy_after(&self, r: u32) -> f64 {
        if self.is_whole() {
            return self.later(r);
        }
        let known = squares(&self.svd.values);
        (self.energy - known).max(0.0) + self.later(r)
    }

    fn relative(&self, energy: f64) -> f64 {
        if self.energy > 0.0 { (energy / self.energy).sqrt() } else { 0.0 }
    }

    /// `norm(P - P_r) / norm(P)` in the Frobenius norm.
    pub fn error(&self, r: u32) -> f64 {
        self.relative(self.energy_after(r))
    }

    /// The least of such errors that a matrix of rank r can have. That of P_r is one of them; and the squares of r
    /// leading values exceed those that were found by at most R^2 in sum, so what was found after them is left out by all.
    pub fn least_error(&self, r: u32) -> Between {
        Between { low: self.relative(self.later(r)), high: self.error(r) }
    }

    /// Means of P_r, the sum of the first r parts, over `pixels x pixels` equal pixels, row by row.
    pub fn reconstruction(&self, r: u32, pixels: u32) -> Vec<f32> {
        let size = pixels as usize;
        let mut means = vec![0.0; size * size];
        for part in 0..r.min(self.known()) as usize {
            let left = pooled(self.svd.left.row(part), pixels);
            let right = pooled(self.svd.right.row(part), pixels);
            for (row, u) in means.chunks_exact_mut(size).zip(left) {
                row.iter_mut().zip(&right).for_each(|(mean, v)| *mean += u * v);
            }
        }
        means
    }
}

/// Where a share is reached first, counted from 1; `None` when it is not.
pub fn rank_of(shares: impl IntoIterator<Item = f64>, share: f64) -> Option<u32> {
    // A share that is reached but for rounding is reached.
    shares.into_iter().position(|here| here >= share - 1e-12).map(|at| at as u32 + 1)
}

/// Means over `pixels` equal pieces of a list; a piece's edges are rounded to whole entries.
pub fn pooled(list: &[f32], pixels: u32) -> Vec<f32> {
    let (n, pixels) = (list.len(), pixels as usize);
    let piece = |at: usize| &list[at * n / pixels..(at + 1) * n / pixels];
    (0..pixels).map(|at| piece(at).iter().sum::<f32>() / piece(at).len().max(1) as f32).collect()
}

/// Sum of squares.
pub fn squares(list: &[f32]) -> f64 {
    list.iter().map(|x| f64::from(*x).powi(2)).sum()
}

fn running(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sum = 0.0;
    values
        .map(|value| {
            sum += value;
            sum
        })
        .collect()
}
