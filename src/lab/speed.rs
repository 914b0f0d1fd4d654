//! Milliseconds and bytes at sizes that are not those of the screen: the speed over the sequence length, and
//! what Linformer saves.

use super::turns::{Timed, take_turns};
use super::{LabError, plan};
use crate::gpu::Gpu;
use crate::gpu::run::Progress;
use crate::inputs::rows::{normals, pause};
use crate::methods::full::{Full, Way};
use crate::methods::linformer::Linformer;
use crate::methods::measure::Measured;
use crate::plan::{Plan, Refusal};
use crate::problem::{Dims, Named, Problem, Projections, Rotations};
use crate::random::Stream;
use crate::semantics::{ScoreScale, Semantics, Wrap};
use crate::settings::Method;
use crate::tables::{LINFORMER_3, LINFORMER_K, Saved, Sizes};

const TURNS: u32 = 3;

/// Exact attention with an online softmax, LSH attention under the paper's rules and Linformer with mean
/// pooling, at these sizes, on isotropic random numbers.
///
/// # Errors
/// When the device cannot hold it, or fails.
pub async fn speed(gpu: &Gpu, sizes: Sizes, progress: &Progress) -> Result<Vec<(Method, Timed)>, LabError> {
    let methods = [
        (Method::Full, full(Way::Online)),
        (Method::Lsh, Measured::Lsh(sizes.lsh(Wrap::None))),
        (Method::Linformer, linformer(sizes.k.min(sizes.length))),
    ];
    let timed = compare(gpu, sizes, methods.iter().map(|(_, measured)| measured), progress).await?;
    Ok(methods.iter().map(|(method, _)| *method).zip(timed).collect())
}

/// What Linformer saves against attention with its matrix in memory at the length of these sizes, for each of
/// [`LINFORMER_K`] that the paper prints there.
///
/// # Errors
/// When the device cannot hold it, or fails.
pub async fn savings(
    gpu: &Gpu,
    sizes: Sizes,
    progress: &Progress,
) -> Result<[Option<Saved>; LINFORMER_K.len()], LabError> {
    let printed = LINFORMER_3.into_iter().find(|(n, _)| *n == sizes.length);
    let cells = printed.into_iter().flat_map(|(_, row)| row).enumerate();
    let columns: Vec<usize> = cells.filter_map(|(at, cell)| cell.map(|_| at)).collect();
    let projected = columns.iter().map(|at| linformer(LINFORMER_K[*at]));
    let methods: Vec<Measured> = std::iter::once(full(Way::Materialized)).chain(projected).collect();
    let mut timed = compare(gpu, sizes, &methods, progress).await?.into_iter();
    let whole = timed.next().map_or(0, |full| full.bytes);
    let mut saved = [None; LINFORMER_K.len()];
    for (at, here) in columns.into_iter().zip(timed) {
        saved[at] = Some(Saved { time: 1.0 / here.ratio, memory: whole as f64 / here.bytes as f64 });
    }
    Ok(saved)
}

async fn compare(
    gpu: &Gpu,
    sizes: Sizes,
    methods: impl IntoIterator<Item = &Measured>,
    progress: &Progress,
) -> Result<Vec<Timed>, LabError> {
    let dims = sizes.dims();
    let plans = methods.into_iter().map(|measured| plan(&dims, measured, gpu.limits));
    let plans = plans.collect::<Result<Vec<Plan>, Refusal>>()?;
    let problem = isotropic(dims).await;
    Ok(take_turns(gpu, &problem, &plans, TURNS, progress).await?)
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
