//! The leading singular values of a P that is too large to be formed, from products of P and of its
//! transpose with thin blocks: Halko, Martinsson and Tropp, "Finding structure with randomness" (SIAM
//! Review 53, 2011), algorithm 4.4 with section 5.1.

use super::{Head, LowRank};
use crate::algebra::{Matrix, Svd, apart};
use crate::gpu::run::Progress;
use crate::gpu::workspace::Workspace;
use crate::gpu::{Gpu, yield_now};
use crate::lab::LabError;
use crate::methods::full::{self, Full, Way as Kernels};
use crate::methods::thin_block;
use crate::plan::Plan;
use crate::problem::Problem;
use crate::random::{Stream, normal};
use crate::semantics::{ScoreScale, Semantics};
use crate::spectrum::{Spectrum, Way};
use std::ops::Range;

/// Columns of a block: the widest values that the kernels of attention take.
pub const BLOCK: usize = 128;
/// Columns of the first block that take no part in the basis and measure what it leaves out.
const PROBES: usize = 8;
/// Leading values that are found.
pub const RANK: usize = BLOCK - PROBES;
/// Times that P P^T is applied to sharpen the basis.
const POWERS: usize = 2;
/// Products of P or of its transpose with a block, the picture and the norm included.
pub const PRODUCTS: u32 = 2 * POWERS as u32 + 4;
/// Rows that are worked on between two breaths.
const ROWS_A_TURN: usize = 128;

/// P of one head, known by its products alone.
struct Products<'a> {
    gpu: &'a Gpu,
    problem: Problem,
    workspace: Workspace,
    forward: Plan,
    transposed: Plan,
    done: Done<'a>,
}

/// How many of the products are done; each counts alike.
struct Done<'a>(&'a Progress);

impl Done<'_> {
    fn one_more(&self) {
        self.0.total.set(PRODUCTS.into());
        self.0.done.set(self.0.done.get() + 1.0);
    }
}

impl Products<'_> {
    /// P X; both `[n, BLOCK]`.
    async fn forward(&mut self, x: &[f32]) -> Result<Vec<f32>, LabError> {
        self.run(x, true).await
    }

    /// P^T X, after any product with P, whose log-sum-exp it needs.
    async fn transposed(&mut self, x: &[f32]) -> Result<Vec<f32>, LabError> {
        self.run(x, false).await
    }

    async fn run(&mut self, x: &[f32], forward: bool) -> Result<Vec<f32>, LabError> {
        let (plan, out) = if forward { (&self.forward, "out") } else { (&self.transposed, thin_block::TRANSPOSED_OUT) };
        self.workspace.prepare(self.gpu, plan, &self.problem).await?;
        self.workspace.write_f32(self.gpu, "v", 0, x).await?;
        self.gpu.run(plan, &self.workspace, &Progress::default()).await?;
        self.done.one_more();
        Ok(self.workspace.read_f32(self.gpu, out, 0).await?)
    }
}

/// The [`RANK`] leading singular values of P of one head of at least [`BLOCK`] tokens.
///
/// # Errors
/// When the device cannot hold the blocks, or fails, or the small decompositions do not settle.
pub async fn leading(
    gpu: &Gpu,
    head: &Head,
    rule: Semantics,
    seed: u32,
    progress: &Progress,
) -> Result<LowRank, LabError> {
    let n = head.n as usize;
    let problem = head.problem(vec![0.0; n * BLOCK], BLOCK as u32);
    let full = Full { way: Kernels::Online, shared_qk: false, semantics: rule };
    let mut products = Products {
        gpu,
        forward: full::plan(&problem.dims, &full, gpu.limits)?,
        transposed: thin_block::transposed_plan(&problem.dims, &full, gpu.limits)?,
        problem,
        workspace: Workspace::default(),
        done: Done(progress),
    };
    let first = products.forward(&gaussian(n, seed).await).await?;
    let energy = energy(gpu, head, rule, &products.workspace.read_f32(gpu, "lse", 0).await?).await?;
    products.done.one_more();
    let picture = picture(&mut products, n).await?;

    let mut basis = orthonormal(&first).await?;
    for _ in 0..POWERS {
        let back = products.transposed(&basis).await?;
        let domain = orthonormal(&back).await?;
        let again = products.forward(&domain).await?;
        basis = orthonormal(&again).await?;
    }
    // P^T Q = U S W^T, so Q Q^T P = (Q W) S U^T; the probes take the way back along with Q.
    let last = products.transposed(&with_rests(&basis, &first).await).await?;
    drop(products);
    let small = apart::svd(columns(&last, 0..RANK)).await.map_err(LabError::Failed)?;
    let svd = turned(&basis, small).await;
    let way = Way::Randomised { left_out: left_out(&last) };
    Ok(LowRank::new(Spectrum { n: head.n, way, svd, energy }, picture))
}

/// Normal entries, `[n, BLOCK]`.
async fn gaussian(n: usize, seed: u32) -> Vec<f32> {
    let mut entries = Vec::with_capacity(n * BLOCK);
    for start in (0..n).step_by(ROWS_A_TURN) {
        let rows = start * BLOCK..(start + ROWS_A_TURN).min(n) * BLOCK;
        entries.extend(rows.map(|at| normal(seed, Stream::RangeFinder, at as u64)));
        yield_now().await;
    }
    entries
}

/// The squared Frobenius norm of P from all its entries: `P_ij^2 = exp(2 s_ij - 2 z_i)`, and the sum over j is
/// the softmax's own with doubled scores.
async fn energy(gpu: &Gpu, head: &Head, rule: Semantics, lse: &[f32]) -> Result<f64, LabError> {
    let problem = head.problem(vec![0.0; head.n as usize], 1);
    let doubled = Semantics { score_scale: ScoreScale::Value(2.0 * rule.score_scale.factor(head.d)), ..rule };
    let full = Full { way: Kernels::Online, shared_qk: false, semantics: doubled };
    let plan = full::plan(&problem.dims, &full, gpu.limits)?;
    let mut workspace = Workspace::default();
    workspace.prepare(gpu, &plan, &problem).await?;
    gpu.run(&plan, &workspace, &Progress::default()).await?;
    let squared = workspace.read_f32(gpu, "lse", 0).await?;
    Ok(squared.iter().zip(lse).map(|(two, one)| (f64::from(*two) - 2.0 * f64::from(*one)).exp()).sum())
}

/// Means of P over `BLOCK x BLOCK` pixels, from all its entries: over the keys of a pixel by a product, over
/// its queries here.
async fn picture(products: &mut Products<'_>, n: usize) -> Result<Vec<f32>, LabError> {
    let edge = |pixel: usize| pixel * n / BLOCK;
    let mut means = vec![0.0; n * BLOCK];
    for pixel in 0..BLOCK {
        let keys = edge(pixel)..edge(pixel + 1);
        let share = 1.0 / keys.len() as f32;
        keys.for_each(|key| means[key * BLOCK + pixel] = share);
    }
    let rows = products.forward(&means).await?;
    let mut picture = Vec::with_capacity(BLOCK * BLOCK);
    for pixel in 0..BLOCK {
        let queries = edge(pixel)..edge(pixel + 1);
        let count = queries.len() as f32;
        picture.extend((0..BLOCK).map(|x| queries.clone().map(|i| rows[i * BLOCK + x]).sum::<f32>() / count));
    }
    Ok(picture)
}

/// Columns of a block `[n, BLOCK]`.
fn columns(block: &[f32], wanted: Range<usize>) -> Matrix {
    let rows = block.chunks_exact(BLOCK);
    Matrix {
        rows: rows.len(),
        cols: wanted.len(),
        entries: rows.flat_map(|row| &row[wanted.clone()]).copied().collect(),
    }
}

/// An orthonormal basis of the first [`RANK`] columns of a block, as a block; the other columns are 0.
async fn orthonormal(block: &[f32]) -> Result<Vec<f32>, LabError> {
    let basis = apart::orthonormal(columns(block, 0..RANK)).await.map_err(LabError::Failed)?;
    Ok(basis.entries.chunks_exact(RANK).flat_map(|row| row.iter().copied().chain([0.0; PROBES])).collect())
}

/// Q, and beside it `(I - Q Q^T) P w` for the probes w, which hold normal entries and took no part in Q.
async fn with_rests(basis: &[f32], first: &[f32]) -> Vec<f32> {
    let mut parts = [[0.0; PROBES]; RANK];
    for (turn, (basis, first)) in basis.chunks_exact(BLOCK).zip(first.chunks_exact(BLOCK)).enumerate() {
        for (parts, q) in parts.iter_mut().zip(basis) {
            let image = &first[RANK..];
            parts.iter_mut().zip(image).for_each(|(part, x)| *part += f64::from(*q) * f64::from(*x));
        }
        if turn % ROWS_A_TURN == 0 {
            yield_now().await;
        }
    }
    let mut block = Vec::with_capacity(basis.len());
    for (turn, (basis, first)) in basis.chunks_exact(BLOCK).zip(first.chunks_exact(BLOCK)).enumerate() {
        block.extend_from_slice(&basis[..RANK]);
        block.extend((0..PROBES).map(|probe| {
            let held: f64 = basis.iter().zip(&parts).map(|(q, part)| f64::from(*q) * part[probe]).sum();
            (f64::from(first[RANK + probe]) - held) as f32
        }));
        if turn % ROWS_A_TURN == 0 {
            yield_now().await;
        }
    }
    block
}

/// A bound on the spectral norm of `E = (I - Q Q^T) P` from `E^T E w = P^T (I - Q Q^T) P w`: the square of the norm is at
/// most `10 sqrt(2 / pi)` times the longest of these, but for a probability of 10^-8 (equation 4.3 for E^T E).
fn left_out(last: &[f32]) -> f64 {
    let mut lengths = [0.0; PROBES];
    for row in last.chunks_exact(BLOCK) {
        lengths.iter_mut().zip(&row[RANK..]).for_each(|(sum, x)| *sum += f64::from(*x).powi(2));
    }
    let longest = lengths.into_iter().fold(0.0, f64::max).sqrt();
    (10.0 * (2.0 / std::f64::consts::PI).sqrt() * longest).sqrt()
}

/// The decomposition of Q Q^T P from that of P^T Q.
async fn turned(basis: &[f32], small: Svd) -> Svd {
    let n = small.left.cols;
    let unit = |(row, value): (&[f32], &f32)| {
        let length = value.max(f32::MIN_POSITIVE);
        row.iter().map(|x| x / length).collect::<Vec<f32>>()
    };
    let right = small.left.entries.chunks_exact(n).zip(&small.values).flat_map(unit).collect();
    let mut left = vec![0.0; RANK * n];
    for (i, q) in basis.chunks_exact(BLOCK).enumerate() {
        for (at, value) in small.values.iter().enumerate() {
            let sum: f32 = small.right.row(at).iter().zip(q).map(|(w, q)| w * q).sum();
            left[at * n + i] = value * sum;
        }
        if i % ROWS_A_TURN == 0 {
            yield_now().await;
        }
    }
    let svd = Svd {
        values: small.values,
        left: Matrix { rows: RANK, cols: n, entries: left },
        right: Matrix { rows: RANK, cols: n, entries: right },
    };
    svd.oriented()
}
