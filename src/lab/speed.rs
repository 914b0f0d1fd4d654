//! Milliseconds and bytes of the methods at sizes that are not those of the screen: the speed over the sequence
//! length, and what Linformer saves.

use super::{LabError, plan};
use crate::gpu::Gpu;
use crate::gpu::run::{Clock, Progress};
use crate::gpu::workspace::Workspace;
use crate::inputs::rows::{normals, pause};
use crate::methods::full::{Full, Way};
use crate::methods::linformer::Linformer;
use crate::methods::measure::Measured;
use crate::plan::{BufferSpec, Role};
use crate::problem::{Dims, Named, Problem, Projections, Rotations};
use crate::random::Stream;
use crate::semantics::{ScoreScale, Semantics, Wrap};
use crate::tables::{LINFORMER_3, LINFORMER_K, Saved, Sizes};
use web_time::Instant;

/// Warm runs of which the quickest counts.
const RUNS: u32 = 3;

/// One method at one length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timed {
    /// Of the quickest of some warm runs.
    pub ms: f64,
    pub clock: Clock,
    /// Bytes of tensors and the method's own buffers, as they were allocated.
    pub bytes: u64,
}

/// The three methods at one length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    pub full: Timed,
    pub lsh: Timed,
    pub linformer: Timed,
}

/// Attention with the n x n matrix in memory, and Linformer at the k of its table 3.
#[derive(Clone, Debug, PartialEq)]
pub struct Savings {
    pub full: Timed,
    /// For each of [`LINFORMER_K`] that the paper prints at this length.
    pub linformer: [Option<Timed>; LINFORMER_K.len()],
}

impl Savings {
    /// How many times faster and smaller than full attention Linformer is, for one k.
    pub fn saved(&self, at: usize) -> Option<Saved> {
        let linformer = self.linformer[at]?;
        Some(Saved { time: self.full.ms / linformer.ms, memory: self.full.bytes as f64 / linformer.bytes as f64 })
    }
}

/// From which length on a method is quicker than another, by what was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Crossover {
    /// At every length that was measured.
    Always,
    /// Not at the longest that was measured.
    NotYet,
    /// Not quicker at the first length, quicker from the second on, and equal at about the third.
    Between(u32, u32, f64),
}

impl Crossover {
    /// From (length, milliseconds of the method, milliseconds of the other), in the order of the lengths.
    pub fn of(points: &[(u32, f64, f64)]) -> Self {
        let Some(last) = points.iter().rposition(|(_, method, other)| method >= other) else { return Self::Always };
        let Some(next) = points.get(last + 1) else { return Self::NotYet };
        let lead = |(_, method, other): &(u32, f64, f64)| (other / method).ln();
        let [before, after] = [lead(&points[last]), lead(next)];
        let part = if after > before { -before / (after - before) } else { 1.0 };
        let [low, high] = [points[last].0, next.0].map(f64::from);
        Self::Between(points[last].0, next.0, low * (high / low).powf(part))
    }
}

/// Exact attention with an online softmax, LSH attention under the paper's rules and Linformer with mean
/// pooling, at these sizes, on isotropic random numbers.
///
/// # Errors
/// When the device cannot hold it, or fails.
pub async fn speed(gpu: &Gpu, sizes: Sizes, progress: &Progress) -> Result<Speed, LabError> {
    let problem = isotropic(sizes.dims()).await;
    Ok(Speed {
        full: timed(gpu, &full(Way::Online), &problem, progress).await?,
        lsh: timed(gpu, &Measured::Lsh(sizes.lsh(Wrap::None)), &problem, progress).await?,
        linformer: timed(gpu, &linformer(sizes.k.min(sizes.length)), &problem, progress).await?,
    })
}

/// Attention with its matrix and Linformer at the length of these sizes.
///
/// # Errors
/// When the device cannot hold it, or fails.
pub async fn savings(gpu: &Gpu, sizes: Sizes, progress: &Progress) -> Result<Savings, LabError> {
    let problem = isotropic(sizes.dims()).await;
    let full = timed(gpu, &full(Way::Materialized), &problem, progress).await?;
    let mut saved = [None; LINFORMER_K.len()];
    let printed = LINFORMER_3.into_iter().find(|(n, _)| *n == sizes.length);
    for (at, cell) in printed.into_iter().flat_map(|(_, row)| row).enumerate() {
        if cell.is_some() {
            saved[at] = Some(timed(gpu, &linformer(LINFORMER_K[at]), &problem, progress).await?);
        }
    }
    Ok(Savings { full, linformer: saved })
}

fn full(way: Way) -> Measured {
    Measured::Full(Full { way, shared_qk: false, semantics: Semantics::PLAIN })
}

fn linformer(k: u32) -> Measured {
    Measured::Linformer(Linformer {
        k,
        max_pooling: false,
        shared_ef: true,
        projection_heads: 1,
        biased: false,
        triangle: false,
        score_scale: ScoreScale::InverseSqrtD,
    })
}

async fn isotropic(dims: Dims) -> Problem {
    let q = values(Stream::Points, dims.heads * dims.n_kv, dims.d).await;
    Problem {
        dims,
        k: q.clone(),
        q,
        v: values(Stream::Codes, dims.v_heads * dims.n_kv, dims.d_v).await,
        rotations: Rotations::Seeded(1),
        projections: Projections::Mean,
        named: Named::new(),
    }
}

async fn values(stream: Stream, rows: u32, width: u32) -> Vec<f32> {
    let mut values = Vec::with_capacity(rows as usize * width as usize);
    for row in 0..rows {
        values.extend(normals(1, stream, values.len() as u64, width as usize));
        pause(row).await;
    }
    values
}

/// Runs a method warm and some times more, in buffers of its own.
async fn timed(gpu: &Gpu, measured: &Measured, problem: &Problem, progress: &Progress) -> Result<Timed, LabError> {
    let plan = plan(&problem.dims, measured, gpu.limits)?;
    let mut workspace = Workspace::default();
    workspace.prepare(gpu, &plan, problem).await?;
    let own = plan.buffers.iter().filter(|buffer| buffer.role != Role::Instrument);
    let bytes = own.map(|buffer: &BufferSpec| workspace.bytes(buffer.name)).sum();
    // The first run is not warm.
    gpu.run(&plan, &workspace, progress).await?;
    let mut best = (f64::INFINITY, Clock::Wall);
    for _ in 0..RUNS {
        let begun = Instant::now();
        let timing = gpu.run(&plan, &workspace, progress).await?;
        // Between frames that it draws, a software adapter stamps the handing over of work, not the work.
        let wall = (begun.elapsed().as_secs_f64() * 1e3, Clock::Wall);
        let here = if gpu.is_software() { wall } else { (timing.ms, timing.clock) };
        if here.0 < best.0 {
            best = here;
        }
    }
    Ok(Timed { ms: best.0, clock: best.1, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crossover_lies_where_the_lines_meet() {
        // The method takes n, the other n^2 / 1000, in logarithmic lines.
        let points: Vec<(u32, f64, f64)> =
            [128u32, 256, 512, 1024, 2048].map(|n| (n, f64::from(n), f64::from(n).powi(2) / 1000.0)).into();
        let Crossover::Between(512, 1024, at) = Crossover::of(&points) else { panic!("{:?}", Crossover::of(&points)) };
        assert!((at - 1000.0).abs() < 1e-6, "{at}");
        assert_eq!(Crossover::of(&points[..3]), Crossover::NotYet);
        assert_eq!(Crossover::of(&points[3..]), Crossover::Always);
    }
}
