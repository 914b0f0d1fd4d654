//! What untrained projections do to the current input, over k, to be held against the bounds of
//! Linformer's theorems.

use super::readings::read_out;
use super::{LabError, Run, measured, plan};
use crate::gpu::Gpu;
use crate::gpu::run::Progress;
use crate::gpu::workspace::Workspace;
use crate::methods::full::{Full, Way};
use crate::methods::measure::{Measured, Sample};
use crate::methods::random_projection;
use crate::outcome::Distance;
use crate::plan::Plan;
use crate::problem::{Dims, Named, Problem, Projections};
use crate::semantics::Semantics;
use crate::settings::{Method, Projection, Settings};

/// Most numbers of a projection that are drawn for a measurement.
const LARGEST: u64 = 1 << 24;
/// The k that are measured, where they are less than n: with k = n mean pooling is the identity.
const LENGTHS: [u32; 7] = [16, 32, 64, 128, 256, 512, 1024];

/// Errors `norm(o - P V) / norm(P V)` against plain attention, over all heads and the queries looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TheoremErrors {
    /// `P R^T R V`, the matrix of the proof of theorem 1, R Gaussian.
    pub proof: f64,
    /// Linformer with Gaussian E and F of variance 1/k.
    pub gaussian: f64,
    /// Linformer with mean pooling.
    pub mean: f64,
    /// Queries of a head, and whether they are all.
    pub queries: u32,
    pub all: bool,
}

impl TheoremErrors {
    /// The k that are measured for a sequence length.
    pub fn lengths(n: u32) -> impl Iterator<Item = u32> {
        LENGTHS.into_iter().filter(move |k| *k < n && u64::from(*k) * u64::from(n) <= LARGEST)
    }
}

impl Run {
    /// Measures the three projections with k rows on the input of the screen.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn theorem_errors(&self, gpu: &Gpu, k: u32, progress: &Progress) -> Result<TheoremErrors, LabError> {
        let settings = &self.outcome.settings;
        let n = self.dims().n_q;
        let sample = Sample::for_figures(n);
        let mut problem = sampled(&self.input.problem, sample, Projections::Gaussian(settings.seed));
        let dims = problem.dims;
        let exact = Measured::Full(Full { way: Way::Online, shared_qk: false, semantics: Semantics::PLAIN });
        let linformer = |projection| {
            let settings = Settings { method: Method::Linformer, k: Some(k), projection, ..settings.clone() };
            plan(&dims, &measured(&settings, &dims), gpu.limits)
        };
        let exact = output(gpu, &plan(&dims, &exact, gpu.limits)?, &problem, progress).await?;
        let proof = output(gpu, &random_projection::plan(&dims, k, gpu.limits)?, &problem, progress).await?;
        let gaussian = output(gpu, &linformer(Projection::Gaussian)?, &problem, progress).await?;
        problem.projections = Projections::Mean;
        let mean = output(gpu, &linformer(Projection::Mean)?, &problem, progress).await?;
        let error = |out: &[f32]| Distance::between(out, &exact).relative();
        Ok(TheoremErrors {
            proof: error(&proof),
            gaussian: error(&gaussian),
            mean: error(&mean),
            queries: sample.count,
            all: sample.count == n,
        })
    }
}

/// The same problem for some of its queries, with these projections.
fn sampled(problem: &Problem, sample: Sample, projections: Projections) -> Problem {
    let (n, d) = (problem.dims.n_q as usize, problem.dims.d as usize);
    let mut q = Vec::with_capacity(problem.dims.heads as usize * sample.count as usize * d);
    for head in problem.q.chunks_exact(n * d) {
        (0..sample.count).for_each(|row| q.extend_from_slice(&head[sample.query(row) as usize * d..][..d]));
    }
    Problem {
        dims: Dims { n_q: sample.count, ..problem.dims },
        q,
        k: problem.k.clone(),
        v: problem.v.clone(),
        rotations: problem.rotations.clone(),
        projections,
        named: Named::new(),
    }
}

/// Output `[heads, queries, d_v]` of a plan, in buffers of its own.
async fn output(gpu: &Gpu, plan: &Plan, problem: &Problem, progress: &Progress) -> Result<Vec<f32>, LabError> {
    let mut workspace = Workspace::default();
    workspace.prepare(gpu, plan, problem).await?;
    gpu.run(plan, &workspace, progress).await?;
    Ok(read_out(gpu, &workspace, &problem.dims).await?)
}
