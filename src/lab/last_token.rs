//! Who moved my chunk: a causal mask gives every later key the weight 0, and yet a change of the last
//! token moves earlier outputs, since it moves the sort and so the borders of the chunks.

use super::readings::{read_lists, read_out};
use super::{LabError, Run, measured, plan};
use crate::gpu::Gpu;
use crate::gpu::run::Progress;
use crate::gpu::workspace::Workspace;
use crate::inputs::row_errors;
use crate::methods::measure::Measured;
use crate::outcome::Lists;
use crate::problem::Problem;
use crate::semantics::Semantics;
use crate::settings::Settings;

/// LSH attention with the causal mask, before and after the last token was turned around.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// Distance of every output from what it was, `[heads, n]`.
    pub distance: Vec<f32>,
    /// Root mean square length of the outputs before.
    pub length: f32,
    /// Before and after; `None` where full attention ran instead, which sorts nothing.
    pub lists: Option<[Lists; 2]>,
}

impl Moved {
    /// Distances below this share of the mean length are float32 rounding.
    pub const ROUNDING: f32 = 1e-4;

    /// Distances `[n]` of one head.
    pub fn of(&self, n: u32, head: u32) -> &[f32] {
        &self.distance[(head * n) as usize..((head + 1) * n) as usize]
    }

    /// Earlier positions whose output moved, the farthest first.
    pub fn earlier(&self, n: u32, head: u32) -> Vec<u32> {
        let distance = self.of(n, head);
        let mut moved: Vec<u32> = (0..n - 1).filter(|i| distance[*i as usize] > Self::ROUNDING * self.length).collect();
        moved.sort_by(|a, b| distance[*b as usize].total_cmp(&distance[*a as usize]));
        moved
    }
}

impl Run {
    /// Runs the method on the screen with the causal mask twice, the second time with -q as the last
    /// token's q, which the hash puts into the opposite bucket of every round.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn moved(&self, gpu: &Gpu, progress: &Progress) -> Result<Moved, LabError> {
        let dims = *self.dims();
        let settings = &self.outcome.settings;
        let causal = Semantics { causal: true, ..settings.semantics };
        let measured = measured(&Settings { semantics: causal, ..settings.clone() }, &dims);
        let mut problem = self.input.problem.clone();
        let (before, lists) = attend(gpu, &measured, &problem, progress).await?;
        let d = dims.d as usize;
        for head in problem.q.chunks_exact_mut(dims.n_q as usize * d) {
            let last = head.len() - d;
            head[last..].iter_mut().for_each(|x| *x = -*x);
        }
        let (after, sorted) = attend(gpu, &measured, &problem, progress).await?;
        let rows = f64::from(dims.heads) * f64::from(dims.n_q);
        let squares: f64 = before.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
        Ok(Moved {
            distance: row_errors(&after, &before, dims.d_v as usize),
            length: (squares / rows).sqrt() as f32,
            lists: lists.zip(sorted).map(<[Lists; 2]>::from),
        })
    }
}

/// Output and lists of a method, in buffers of its own.
async fn attend(
    gpu: &Gpu,
    measured: &Measured,
    problem: &Problem,
    progress: &Progress,
) -> Result<(Vec<f32>, Option<Lists>), LabError> {
    let plan = plan(&problem.dims, measured, gpu.limits)?;
    let mut workspace = Workspace::default();
    workspace.prepare(gpu, &plan, problem).await?;
    gpu.run(&plan, &workspace, progress).await?;
    let out = read_out(gpu, &workspace, &problem.dims).await?;
    Ok((out, read_lists(gpu, &workspace, &problem.dims, measured).await?))
}
