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
use crate::problem::{Dims, Fill, Named, Problem, Projections, Source};
use crate::semantics::{Choice, ScoreScale};
use crate::settings::Projection;

/// Most pixels of a picture of E, across and down.
const PIXELS: [u32; 2] = [512, 256];
/// Columns of E that are made before anything else may run.
const COLUMNS_A_TURN: u32 = 64;

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
    pub(crate) fn sampled(k: u32, n: u32, mut entry: impl FnMut(u32, u32) -> f32) -> Self {
        let [width, height] = [n.min(PIXELS[0]), k.min(PIXELS[1])];
        let at = |pixel: u32, all: u32, pixels: u32| (u64::from(pixel) * u64::from(all) / u64::from(pixels)) as u32;
        let mut values = vec![0.0; (width * height) as usize];
        for x in 0..width {
            for y in 0..height {
                values[(y * width + x) as usize] = entry(at(y, k, height), at(x, n, width));
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

/// The problem of one head alone, with its own E and F of k rows.
pub(super) async fn of_head(problem: &Problem, head: u32, linformer: &Linformer) -> Problem {
    let dims = problem.dims;
    let part = |values: &[f32], heads: u32, rows: u32, width: u32| {
        let size = (rows * width) as usize;
        values[(head % heads) as usize * size..][..size].to_vec()
    };
    let drawn = head % linformer.projection_heads;
    let projections = if drawn == 0 {
        problem.projections.clone()
    } else {
        Projections::Given {
            e: given(problem, drawn, linformer.k, Source::E).await,
            f: given(problem, drawn, linformer.k, Source::F).await,
            e_bias: Vec::new(),
            f_bias: Vec::new(),
        }
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

/// E or F of one head, `[k, n]`.
async fn given(problem: &Problem, head: u32, k: u32, source: Source) -> Vec<f32> {
    let n = problem.dims.n_kv;
    let mut values = vec![0.0; (k * n) as usize];
    for start in (0..n).step_by(COLUMNS_A_TURN as usize) {
        let columns = start..(start + COLUMNS_A_TURN).min(n);
        for (j, column) in columns.clone().zip(column_of(problem, head, k, source, columns)) {
            for (i, value) in column.into_iter().enumerate() {
                values[i * n as usize + j as usize] = value;
            }
        }
        yield_now().await;
    }
    values
}

/// Columns of E or F of one head.
fn column_of(problem: &Problem, head: u32, k: u32, source: Source, columns: std::ops::Range<u32>) -> Vec<Vec<f32>> {
    let mut rows = Vec::new();
    problem.rows(Fill { k, ..Fill::whole(source, problem.dims.n_kv) }, head, columns, &mut rows);
    rows.chunks(k.next_multiple_of(4) as usize).map(|row| row[..k as usize].to_vec()).collect()
}

impl Run {
    /// E or F as this run uses it for one head; `None` for another method, and for max pooling.
    pub fn matrix(&self, source: Source, head: u32) -> Option<Matrix> {
        let Measured::Linformer(linformer) = &self.measured else { return None };
        let drawn = head % linformer.projection_heads;
        let (problem, k, n) = (&self.input.problem, linformer.k, self.dims().n_kv);
        let source = if linformer.shared_ef { Source::E } else { source };
        let mut last = (u32::MAX, Vec::new());
        (!linformer.max_pooling).then(|| {
            Matrix::sampled(k, n, |i, j| {
                if last.0 != j {
                    last = (j, column_of(problem, drawn, k, source, j..j + 1).pop().unwrap_or_default());
                }
                last.1.get(i as usize).copied().unwrap_or(0.0)
            })
        })
    }

    /// The errors of every untrained projection with k rows on one head, in buffers of their own.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn untrained(&self, gpu: &Gpu, head: u32, k: u32, progress: &Progress) -> Result<Untrained, LabError> {
        let settings = &self.outcome.settings;
        let (shared_ef, projection_heads) =
            (settings.sharing.shares_key_value(), settings.sharing.heads(settings.heads));
        let mut errors = Vec::new();
        let mut reference = None;
        let mut sampled = None;
        for (projection, _) in Projection::ALL {
            let drawn = projection.has_parameters();
            let linformer = Linformer {
                k,
                max_pooling: *projection == Projection::Max,
                shared_ef: shared_ef || !drawn,
                projection_heads: if drawn { projection_heads } else { 1 },
                ..PLAIN
            };
            let projections = projection.projections(settings.seed);
            let whole = Problem { projections, ..self.input.problem.clone() };
            let problem = of_head(&whole, head, &linformer).await;
            let linformer = Linformer { projection_heads: 1, ..linformer };
            let reference = match &mut reference {
                Some(reference) => reference,
                none => none.insert(Reference::new(gpu, &problem, progress).await?),
            };
            sampled = reference.sampled(&problem.dims);
            let mut workspace = Workspace::default();
            errors.push((*projection, reference.errors(gpu, &problem, &linformer, &mut workspace, progress).await?));
        }
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
