//! The low rank of self-attention: P = softmax(QK^T / sqrt d) of one head, its singular values, and those of
//! random Q and K beside it.

mod randomised;
pub mod trained;

use super::{LabError, Run};
use crate::algebra::{Matrix, Svd, apart};
use crate::gpu::run::Progress;
use crate::gpu::workspace::Workspace;
use crate::gpu::{Gpu, yield_now};
use crate::methods::full::{self, Full, Way};
use crate::problem::{Dims, Named, Problem, Projections, Rotations};
use crate::random::{Stream, normal};
use crate::semantics::Semantics;
use crate::spectrum::{Spectrum, pooled};
pub use randomised::{PRODUCTS, leading};

/// Up to this length P is formed and all its singular values are computed.
pub const EXACT_UP_TO: u32 = 1024;
/// Parts whose vectors are kept whole.
pub const LEADING: usize = 6;
/// Most pixels of a side of the picture of P.
const PIXELS: u32 = 160;
/// Rows that are drawn between two breaths.
const ROWS_A_TURN: usize = 1024;

/// Q and K of one head, `[n, d]` each.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    pub n: u32,
    pub d: u32,
    pub q: Vec<f32>,
    pub k: Vec<f32>,
}

impl Head {
    /// Of an input; heads may share keys.
    pub fn of(problem: &Problem, head: u32) -> Self {
        let Dims { n_q: n, d, k_heads, .. } = problem.dims;
        let size = (n * d) as usize;
        let rows = |all: &[f32], head: u32| all[head as usize * size..][..size].to_vec();
        Self { n, d, q: rows(&problem.q, head), k: rows(&problem.k, head % k_heads) }
    }

    /// Q and K with normal entries instead, each of the same mean length as these: what any softmax of the same
    /// sizes would show.
    pub async fn random(&self, seed: u32) -> Self {
        Self {
            q: random_rows(&self.q, self.d as usize, seed, Stream::BaselineQueries).await,
            k: random_rows(&self.k, self.d as usize, seed, Stream::BaselineKeys).await,
            ..*self
        }
    }

    /// With these values, as a problem of one head.
    pub(super) fn problem(&self, v: Vec<f32>, d_v: u32) -> Problem {
        let dims = Dims { n_q: self.n, n_kv: self.n, heads: 1, k_heads: 1, v_heads: 1, d: self.d, d_v };
        Problem {
            dims,
            q: self.q.clone(),
            k: self.k.clone(),
            v,
            rotations: Rotations::Seeded(0),
            projections: Projections::Mean,
            named: Named::new(),
        }
    }
}

fn mean_length(rows: &[f32], d: usize) -> f64 {
    let length = |row: &[f32]| row.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    rows.chunks_exact(d).map(length).sum::<f64>() / (rows.len() / d).max(1) as f64
}

async fn random_rows(like: &[f32], d: usize, seed: u32, stream: Stream) -> Vec<f32> {
    let mut rows = Vec::with_capacity(like.len());
    for turn in like.chunks(ROWS_A_TURN * d) {
        let start = rows.len();
        rows.extend((start..start + turn.len()).map(|at| normal(seed, stream, at as u64)));
        yield_now().await;
    }
    let factor = (mean_length(like, d) / mean_length(&rows, d)) as f32;
    rows.iter_mut().for_each(|x| *x *= factor);
    rows
}

/// P of one head under a rule, formed on the device by the kernels of full attention with its matrix.
///
/// # Errors
/// When the device cannot hold it, or fails.
pub async fn attention_matrix(
    gpu: &Gpu,
    head: &Head,
    rule: Semantics,
    progress: &Progress,
) -> Result<Matrix, LabError> {
    let n = head.n as usize;
    let problem = head.problem(vec![0.0; n], 1);
    let full = Full { way: Way::Materialized, shared_qk: false, semantics: rule };
    let plan = full::plan(&problem.dims, &full, gpu.limits)?;
    let mut workspace = Workspace::default();
    workspace.prepare(gpu, &plan, &problem).await?;
    gpu.run(&plan, &workspace, progress).await?;
    Ok(Matrix { rows: n, cols: n, entries: workspace.read_f32(gpu, "scores", 0).await? })
}

/// The singular values of P, and P itself as a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct LowRank {
    pub spectrum: Spectrum,
    /// Its first [`LEADING`] parts.
    pub leading: Svd,
    /// Means of P over equal pixels, as many a side as its length is the square of, row by row.
    pub picture: Vec<f32>,
}

impl LowRank {
    fn new(spectrum: Spectrum, picture: Vec<f32>) -> Self {
        Self { leading: spectrum.svd.first(LEADING), spectrum, picture }
    }

    /// With the vectors of the spectrum at the resolution of the picture: all that is drawn of most of them.
    fn condensed(mut self) -> Self {
        let pixels = self.picture.len().isqrt();
        for vectors in [&mut self.spectrum.svd.left, &mut self.spectrum.svd.right] {
            let entries = (0..vectors.rows).flat_map(|row| pooled(vectors.row(row), pixels as u32)).collect();
            *vectors = Matrix { rows: vectors.rows, cols: pixels, entries };
        }
        self
    }
}

/// All singular values of P of one head; `n^3` work.
///
/// # Errors
/// When the device cannot hold P, or fails, or the singular values cannot be computed.
pub async fn exact(gpu: &Gpu, head: &Head, rule: Semantics, progress: &Progress) -> Result<LowRank, LabError> {
    let p = attention_matrix(gpu, head, rule, progress).await?;
    let picture = picture(&p, PIXELS.min(head.n));
    // How far the decomposition is nobody knows.
    progress.total.set(0.0);
    let svd = apart::svd(p.clone()).await.map_err(LabError::Failed)?;
    Ok(LowRank::new(Spectrum::exact(&p, svd), picture))
}

/// Means of a square matrix over `pixels x pixels` equal pixels.
fn picture(p: &Matrix, pixels: u32) -> Vec<f32> {
    let narrow: Vec<f32> = (0..p.rows).flat_map(|row| pooled(p.row(row), pixels)).collect();
    let narrow = Matrix { rows: p.rows, cols: pixels as usize, entries: narrow }.transposed();
    let low = (0..narrow.rows).flat_map(|row| pooled(narrow.row(row), pixels)).collect();
    Matrix { rows: pixels as usize, cols: pixels as usize, entries: low }.transposed().entries
}

impl Run {
    /// The spectrum of `softmax(Q K^T / sqrt d)` of one head of the input, under the causal mask where the method on
    /// the screen has it; or that of random Q and K. Up to [`EXACT_UP_TO`] all values, above the leading ones.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails, or the decomposition does not settle.
    pub async fn low_rank(&self, gpu: &Gpu, head: u32, random: bool, progress: &Progress) -> Result<LowRank, LabError> {
        let settings = &self.outcome.settings;
        let own = Head::of(&self.input.problem, head);
        let head = if random { own.random(settings.seed).await } else { own };
        let rule = Semantics { causal: settings.semantics.causal, ..Semantics::PLAIN };
        let low_rank = if head.n <= EXACT_UP_TO {
            exact(gpu, &head, rule, progress).await
        } else {
            leading(gpu, &head, rule, settings.seed, progress).await
        };
        low_rank.map(LowRank::condensed)
    }
}
