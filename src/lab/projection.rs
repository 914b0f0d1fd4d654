//! Linformer's projections themselves: E and F as pictures, and how far the output and the n x n map of
//! one head lie from exact attention for every projection and every k.

use super::readings::read_out;
use super::{LabError, Run};
use crate::gpu::run::Progress;
use crate::gpu::workspace::Workspace;
use crate::gpu::{Gpu, yield_now};
use crate::methods::linformer::{self, Linformer};
use crate::methods::measure::{self, Measured, Sample, Weights};
use crate::outcome::Distance;
use crate::problem::{Dims, Named, Problem, Projections, Source};
use crate::semantics::{Choice, ScoreScale};
use crate::settings::Projection;

/// Most pixels of a picture of E, across and down.
const PIXELS: [u32; 2] = [512, 256];
/// Columns of such a picture that are made between two breaths.
const COLUMNS_A_TURN: u32 = 32;

/// E or F of one head, sampled where it is larger than a picture: row y is row `y k / height`.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    pub k: u32,
    pub n: u32,
    pub width: u32,
    pub height: u32,
    /// Row-major.
    pub values: Vec<f32>,
}

impl Matrix {
    /// From entries `(i, j)`.
    pub(crate) async fn sampled(k: u32, n: u32, entry: impl Fn(u32, u32) -> f32) -> Self {
        let [width, height] = [n.min(PIXELS[0]), k.min(PIXELS[1])];
        let at = |pixel: u32, all: u32, pixels: u32| (u64::from(pixel) * u64::from(all) / u64::from(pixels)) as u32;
        let mut values = vec![0.0; (width * height) as usize];
        for x in 0..width {
            for y in 0..height {
                values[(y * width + x) as usize] = entry(at(y, k, height), at(x, n, width));
            }
            if x % COLUMNS_A_TURN == COLUMNS_A_TURN - 1 {
                yield_now().await;
            }
        }
        Self { k, n, width, height, values }
    }
}

/// How far Linformer lies from exact attention on one head.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// `|o - o_exact| / |o_exact|`.
    pub output: f64,
    /// `|P-bar F - P| / |P|`, all entries of the rows counted alike; none for max pooling.
    pub map: Option<f64>,
}

/// Errors of the untrained projections at one k.
#[derive(Clone, Debug, PartialEq)]
pub struct Untrained {
    pub k: u32,
    pub errors: Vec<(Projection, Errors)>,
    /// Queries that they come from when not from all.
    pub sampled: Option<u32>,
}

/// Rows of exact attention of one head.
pub(super) struct Reference {
    pub sample: Sample,
    weights: Vec<f32>,
    out: Vec<f32>,
}

impl Reference {
    pub async fn new(gpu: &Gpu, problem: &Problem, progress: &Progress) -> Result<Self, LabError> {
        let dims = problem.dims;
        let sample = Sample::for_maps(dims.n_q);
        let plan = measure::exact_rows(&dims, sample, gpu.limits)?;
        let mut workspace = Workspace::default();
        workspace.prepare(gpu, &plan, problem).await?;
        gpu.run(&plan, &workspace, progress).await?;
        let weights = workspace.read_f32(gpu, "weights", 0).await?;
        let out = super::unpadded(&workspace.read_f32(gpu, "exact out", 0).await?, dims.d_v);
        Ok(Self { sample, weights, out })
    }

    pub fn sampled(&self, dims: &Dims) -> Option<u32> {
        (self.sample.count < dims.n_q).then_some(self.sample.count)
    }

    /// Runs Linformer in a workspace, whose E and F are taken as they are where it has them.
    pub async fn errors(
        &self,
        gpu: &Gpu,
        problem: &Problem,
        linformer: &Linformer,
        workspace: &mut Workspace,
        progress: &Progress,
    ) -> Result<Errors, LabError> {
        let dims = problem.dims;
        let plan = linformer::plan(&dims, linformer, gpu.limits)?;
        workspace.prepare(gpu, &plan, problem).await?;
        gpu.run(&plan, workspace, progress).await?;
        let out = read_out(gpu, workspace, &dims).await?;
        let d_v = dims.d_v as usize;
        let mut apart = Distance::default();
        for (row, exact) in (0..self.sample.count).zip(self.out.chunks_exact(d_v)) {
            let at = self.sample.query(row) as usize * d_v;
            apart.add(&out[at..at + d_v], exact);
        }
        if linformer.max_pooling {
            return Ok(Errors { output: apart.relative(), map: None });
        }
        let measured = Measured::Linformer(*linformer);
        let plan = measure::weights(&dims, &measured, Weights::SignedF, 0, self.sample, None, gpu.limits)?;
        workspace.prepare(gpu, &plan, problem).await?;
        gpu.run(&plan, workspace, progress).await?;
        let map = workspace.read_f32(gpu, "weights", 0).await?;
        workspace.drop_instruments();
        Ok(Errors { output: apart.relative(), map: Some(Distance::between(&map, &self.weights).relative()) })
    }
}

/// The problem of one head alone, with these projections.
pub(super) fn of_head(problem: &Problem, head: u32, projections: Projections) -> Problem {
    let dims = problem.dims;
    let part = |values: &[f32], heads: u32, rows: u32, width: u32| {
        let size = (rows * width) as usize;
        values[(head % heads) as usize * size..][..size].to_vec()
    };
    Problem {
        dims: Dims { heads: 1, k_heads: 1, v_heads: 1, ..dims },
        q: part(&problem.q, dims.heads, dims.n_q, dims.d),
        k: part(&problem.k, dims.k_heads, dims.n_kv, dims.d),
        v: part(&problem.v, dims.v_heads, dims.n_kv, dims.d_v),
        rotations: problem.rotations.clone(),
        projections,
        named: Named::new(),
    }
}

impl Run {
    /// E or F as this run uses it for one head; `None` for another method, and for max pooling.
    pub async fn matrix(&self, source: Source, head: u32) -> Option<Matrix> {
        let Measured::Linformer(linformer) = &self.measured else { return None };
        if linformer.max_pooling {
            return None;
        }
        let (k, n) = (linformer.k, self.dims().n_kv);
        let drawn = head % linformer.projection_heads;
        let source = if linformer.shared_ef { Source::E } else { source };
        let projections = &self.input.problem.projections;
        Some(Matrix::sampled(k, n, |i, j| projections.entry(source, drawn, [k, n], [i, j])).await)
    }

    /// The errors of every untrained projection with k rows on one head, in buffers of their own.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn untrained(&self, gpu: &Gpu, head: u32, k: u32, progress: &Progress) -> Result<Untrained, LabError> {
        let settings = &self.outcome.settings;
        let (shared_ef, projection_heads) =
            (settings.sharing.shares_key_value(), settings.sharing.heads(settings.heads));
        let mut problem = of_head(&self.input.problem, head, Projections::Mean);
        let reference = Reference::new(gpu, &problem, progress).await?;
        let mut errors = Vec::new();
        for (projection, _) in Projection::ALL {
            let max_pooling = *projection == Projection::Max;
            let linformer = Linformer { k, max_pooling, shared_ef: shared_ef || !projection.has_parameters(), ..PLAIN };
            problem.projections = projection.projections(settings.seed).of_head(head % projection_heads);
            let mut workspace = Workspace::default();
            errors.push((*projection, reference.errors(gpu, &problem, &linformer, &mut workspace, progress).await?));
        }
        let sampled = reference.sampled(&problem.dims);
        Ok(Untrained { k, errors, sampled })
    }
}

/// What every Linformer here has besides its projections.
pub(super) const PLAIN: Linformer = Linformer {
    k: 1,
    max_pooling: false,
    shared_ef: false,
    projection_heads: 1,
    biased: false,
    triangle: false,
    score_scale: ScoreScale::InverseSqrtD,
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    #[test]
    fn of_a_large_matrix_no_more_is_made_than_is_seen_and_little_between_two_breaths() {
        let (k, n) = (65_536, 131_072);
        let made = Cell::new(0);
        let mut sampled = pin!(Matrix::sampled(k, n, |i, j| {
            made.set(made.get() + 1);
            i as f32 - j as f32
        }));
        let matrix = loop {
            let before = made.get();
            let polled = sampled.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(made.get() - before <= 10_000, "{} entries at once", made.get() - before);
            if let Poll::Ready(matrix) = polled {
                break matrix;
            }
        };
        assert_eq!((matrix.width, matrix.height, made.get()), (512, 256, 512 * 256));
        assert_eq!(matrix.values[3 * 512 + 5], 3.0 * 256.0 - 5.0 * 256.0);
        assert_eq!(matrix.values[512 * 256 - 1], 255.0 * 256.0 - 511.0 * 256.0);
    }
}
