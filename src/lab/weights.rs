//! The weights that a method gave, as numbers.

use super::{LabError, Run};
use crate::gpu::Gpu;
use crate::gpu::run::Progress;
use crate::methods::measure::{self, Measured, Sample, Weights};
use crate::outcome::WeightMatrix;

/// Up to this length the weights of a run are given whole; one block of the instruments holds a head.
pub const WHOLE_WEIGHTS_UP_TO: u32 = 1024;

impl Run {
    /// The weights of every query: `softmax(Q K^T)` under the method's own rule, of LSH attention over all
    /// rounds, or Linformer's P-bar. `None` above [`WHOLE_WEIGHTS_UP_TO`].
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn weight_matrix(&mut self, gpu: &Gpu, progress: &Progress) -> Result<Option<WeightMatrix>, LabError> {
        let dims = *self.dims();
        if dims.n_q.max(dims.n_kv) > WHOLE_WEIGHTS_UP_TO {
            return Ok(None);
        }
        let columns = self.columns(Weights::Method);
        let mut values = Vec::new();
        for head in 0..dims.heads {
            values.extend(self.rows(gpu, Weights::Method, head, Sample::all(0, dims.n_q), progress).await?);
        }
        self.workspace.drop_instruments();
        Ok(Some(WeightMatrix { columns, values }))
    }

    /// Rows of weights of one head, so few that one block holds them.
    pub(super) async fn rows(
        &mut self,
        gpu: &Gpu,
        which: Weights,
        head: u32,
        sample: Sample,
        progress: &Progress,
    ) -> Result<Vec<f32>, LabError> {
        let plan = measure::weights(self.dims(), &self.measured, which, head, sample, None, gpu.limits)?;
        self.ask(gpu, &plan, progress).await?;
        let projected = which == Weights::Method && matches!(self.measured, Measured::Linformer(_));
        let name = if projected { "projected weights" } else { "weights" };
        let mut rows = self.workspace.read_f32(gpu, name, 0).await?;
        if which != Weights::Exact && matches!(self.measured, Measured::Lsh(_)) {
            rows.chunks_mut(self.dims().n_kv as usize).for_each(divide_by_sum);
        }
        Ok(rows)
    }
}

/// The weights of LSH attention come from scores and the run's log-sum-exp, which is rounded to 2^-7 where a
/// token sees but itself, at a score of -1e5. The method divides by what it adds up, and so must they.
fn divide_by_sum(row: &mut [f32]) {
    let sum: f64 = row.iter().map(|weight| f64::from(*weight)).sum();
    // A row without a key has no weight.
    if sum > 0.0 {
        row.iter_mut().for_each(|weight| *weight = (f64::from(*weight) / sum) as f32);
    }
}
