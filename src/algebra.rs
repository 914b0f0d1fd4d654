//! The linear algebra of the low rank: singular values and an orthonormal basis, in float64 by the crate
//! nalgebra. [`apart`] has it done off the thread that draws.

pub mod apart;

use crate::text::Text;
use nalgebra::{DMatrix, SymmetricEigen};

/// Sweeps that the eigenvalues of a matrix may take for each of its rows; two or three are usual.
const SWEEPS: usize = 60;

/// Rows one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    pub rows: usize,
    pub cols: usize,
    pub entries: Vec<f32>,
}

impl Matrix {
    /// `None` when there are not `rows * cols` entries, or one is not finite.
    fn dense(&self) -> Option<DMatrix<f64>> {
        let fits = self.entries.len() == self.rows * self.cols && self.entries.iter().all(|x| x.is_finite());
        fits.then(|| DMatrix::from_row_iterator(self.rows, self.cols, self.entries.iter().map(|x| f64::from(*x))))
    }

    pub fn row(&self, row: usize) -> &[f32] {
        &self.entries[row * self.cols..(row + 1) * self.cols]
    }

    pub fn transposed(&self) -> Self {
        let entries = (0..self.cols).flat_map(|col| (0..self.rows).map(move |row| self.entries[row * self.cols + col]));
        Self { rows: self.cols, cols: self.rows, entries: entries.collect() }
    }
}

/// The thin singular value decomposition `A = sum_i sigma_i u_i v_i^T` of a matrix with no more columns than rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Svd {
    /// Largest first.
    pub values: Vec<f32>,
    /// `[values, rows]`: sigma_i u_i. Where sigma_i is rounding, so is its direction.
    pub left: Matrix,
    /// `[values, cols]`: v_i, of length 1, with a sum that is not negative.
    pub right: Matrix,
}

impl Svd {
    /// The first `count` parts, or all.
    pub fn first(&self, count: usize) -> Self {
        let count = count.min(self.values.len());
        let top =
            |all: &Matrix| Matrix { rows: count, cols: all.cols, entries: all.entries[..count * all.cols].to_vec() };
        Self { values: self.values[..count].to_vec(), left: top(&self.left), right: top(&self.right) }
    }

    /// With both vectors of a part turned around where the right one has a negative sum.
    pub fn oriented(mut self) -> Self {
        let (rows, cols) = (self.left.cols, self.right.cols);
        let parts = self.left.entries.chunks_exact_mut(rows).zip(self.right.entries.chunks_exact_mut(cols));
        for (left, right) in parts.filter(|(_, right)| right.iter().sum::<f32>() < 0.0) {
            left.iter_mut().chain(right).for_each(|x| *x = -*x);
        }
        self
    }
}

/// Singular values and vectors of `a`, by the eigenvectors of A^T A: v_i are these, and sigma_i is the
/// length of A v_i, so that a value below about 1e-8 of the largest is rounding.
///
/// # Errors
/// A sentence when the matrix has more columns than rows, is not finite, or does not converge.
pub fn svd(a: &Matrix) -> Result<Svd, String> {
    let failed = || Text::NoSingularValues.get().to_owned();
    let dense = a.dense().filter(|_| a.rows >= a.cols).ok_or_else(failed)?;
    let gram = dense.transpose() * &dense;
    let vectors = SymmetricEigen::try_new(gram, f64::EPSILON, SWEEPS * a.cols.max(1)).ok_or_else(failed)?.eigenvectors;
    let images = &dense * &vectors;
    let lengths: Vec<f64> = images.column_iter().map(|column| column.norm()).collect();
    let mut order: Vec<usize> = (0..a.cols).collect();
    order.sort_by(|a, b| lengths[*b].total_cmp(&lengths[*a]));
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for at in &order {
        left.extend(images.column(*at).iter().map(|x| *x as f32));
        right.extend(vectors.column(*at).iter().map(|x| *x as f32));
    }
    let svd = Svd {
        values: order.iter().map(|at| lengths[*at] as f32).collect(),
        left: Matrix { rows: a.cols, cols: a.rows, entries: left },
        right: Matrix { rows: a.cols, cols: a.cols, entries: right },
    };
    Ok(svd.oriented())
}

/// An orthonormal basis of the columns of `a`, which has no more columns than rows: Q of A = QR.
///
/// # Errors
/// A sentence when the matrix has more columns than rows or is not finite.
pub fn orthonormal(a: &Matrix) -> Result<Matrix, String> {
    let dense = a.dense().filter(|_| a.rows >= a.cols);
    let q = dense.ok_or_else(|| Text::NoSingularValues.get().to_owned())?.qr().q();
    let entries = q.transpose().iter().map(|x| *x as f32).collect();
    Ok(Matrix { entries, ..*a })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(rows: usize, cols: usize, entry: impl Fn(usize, usize) -> f64) -> Matrix {
        let entries = (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))).map(|(i, j)| entry(i, j) as f32);
        Matrix { rows, cols, entries: entries.collect() }
    }

    fn values(a: &Matrix) -> Vec<f64> {
        svd(a).expect("singular values").values.iter().map(|x| f64::from(*x)).collect()
    }

    fn close(got: &[f64], want: &[f64]) {
        assert_eq!(got.len(), want.len());
        let apart = got.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(apart < 1e-6, "{got:?} is not {want:?}");
    }

    /// A matrix without pattern.
    fn any(rows: usize, cols: usize) -> Matrix {
        matrix(rows, cols, |i, j| ((i * 7 + j * 13 + i * j * 3) % 17) as f64 / 17.0 - 0.4)
    }

    #[test]
    fn matrices_worked_by_hand() {
        close(&values(&matrix(5, 5, |i, j| f64::from((i * 2 + 1) % 5 == j))), &[1.0; 5]);
        let diagonal = [3.0, -7.0, 0.0, 0.5];
        close(&values(&matrix(4, 4, |i, j| if i == j { diagonal[i] } else { 0.0 })), &[7.0, 3.0, 0.5, 0.0]);
        // The rows of a uniform softmax: sigma_1 = 1.
        close(&values(&matrix(6, 6, |_, _| 1.0 / 6.0)), &[1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        // u v^T has the one value |u| |v|.
        close(&values(&matrix(3, 2, |i, j| [1.0, 2.0, 2.0][i] * [3.0, 4.0][j])), &[15.0, 0.0]);
        let (sin, cos) = 0.7f64.sin_cos();
        close(&values(&matrix(2, 2, |i, j| [[cos, -sin], [sin, cos]][i][j])), &[1.0, 1.0]);
        // [[1, 1], [0, 1]] has the one eigenvalue 1, but the golden section and its inverse as singular values.
        let golden = 0.5 * (1.0 + 5f64.sqrt());
        close(&values(&matrix(2, 2, |i, j| [[1.0, 1.0], [0.0, 1.0]][i][j])), &[golden, 1.0 / golden]);
        close(&values(&matrix(1, 1, |_, _| -2.0)), &[2.0]);
    }

    #[test]
    fn the_parts_add_up_to_the_matrix() {
        for (rows, cols) in [(12, 12), (40, 9)] {
            let a = any(rows, cols);
            let svd = svd(&a).expect("singular values");
            for i in 0..rows {
                for j in 0..cols {
                    let sum: f32 = (0..cols).map(|r| svd.left.row(r)[i] * svd.right.row(r)[j]).sum();
                    assert!((sum - a.row(i)[j]).abs() < 1e-5);
                }
            }
            let energy: f64 = a.entries.iter().map(|x| f64::from(*x).powi(2)).sum();
            let of_values: f64 = svd.values.iter().map(|x| f64::from(*x).powi(2)).sum();
            assert!((energy - of_values).abs() < 1e-6 * energy);
            assert!(svd.values.is_sorted_by(|a, b| a >= b));
        }
    }

    #[test]
    fn a_basis_is_orthonormal_even_where_the_columns_are_not_independent() {
        let a = matrix(30, 6, |i, j| if j < 5 { any(30, 6).row(i)[j].into() } else { any(30, 6).row(i)[0].into() });
        let q = orthonormal(&a).expect("a basis");
        for s in 0..6 {
            for t in 0..6 {
                let dot: f32 = (0..30).map(|i| q.row(i)[s] * q.row(i)[t]).sum();
                assert!((dot - f32::from(u8::from(s == t))).abs() < 1e-5, "{s} {t} {dot}");
            }
        }
        // A lies in the span: A = Q Q^T A.
        for col in 0..6 {
            let parts: Vec<f32> = (0..6).map(|s| (0..30).map(|i| q.row(i)[s] * a.row(i)[col]).sum()).collect();
            for i in 0..30 {
                let back: f32 = (0..6).map(|s| q.row(i)[s] * parts[s]).sum();
                assert!((back - a.row(i)[col]).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn what_is_no_matrix_is_refused() {
        for bad in
            [matrix(2, 3, |_, _| 1.0), matrix(2, 2, |_, _| f64::NAN), Matrix { rows: 2, cols: 2, entries: vec![1.0] }]
        {
            assert!(svd(&bad).is_err() && orthonormal(&bad).is_err());
        }
    }
}
