//! The low rank of self-attention: P = softmax(QK^T / sqrt d) of one head, its singular values, and those of
//! random Q and K beside it.

use super::LabError;
use crate::algebra::{Matrix, apart};
use crate::gpu::run::Progress;
use crate::gpu::workspace::Workspace;
use crate::gpu::{Gpu, yield_now};
use crate::methods::full::{self, Full, Way};
use crate::problem::{Dims, Named, Problem, Projections, Rotations};
use crate::random::{Stream, normal};
use crate::semantics::Semantics;
use crate::spectrum::Spectrum;

/// Up to this length P is formed and all its singular values are computed.
pub const EXACT_UP_TO: u32 = 1024;
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

/// All singular values of P of one head; `n^3` work.
///
/// # Errors
/// When the device cannot hold P, or fails, or the singular values cannot be computed.
pub async fn exact(gpu: &Gpu, head: &Head, rule: Semantics, progress: &Progress) -> Result<Spectrum, LabError> {
    let p = attention_matrix(gpu, head, rule, progress).await?;
    let svd = apart::svd(p.clone()).await.map_err(LabError::Failed)?;
    Ok(Spectrum::exact(&p, svd))
}
