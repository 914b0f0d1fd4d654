//! Who attends to whom: the pairs that a method computes and the weights that it gives, as maps, rows and
//! whole, and what is left when only the strongest stay.

use super::unpadded;
use super::{LabError, Run};
use crate::gpu::Gpu;
use crate::gpu::run::Progress;
use crate::methods::linformer::Linformer;
use crate::methods::measure::{self, Measured, Sample, Weights, Window};
use crate::outcome::{MapImage, RowWeights, Sparsity, WeightMatrix};

/// Up to this length the weights of a run are given whole; one block of the instruments holds a head.
pub const WHOLE_WEIGHTS_UP_TO: u32 = 1024;

impl Run {
    /// Columns of the method's own matrix: n, or k for P-bar.
    pub fn columns(&self, which: Weights) -> u32 {
        match &self.measured {
            Measured::Linformer(linformer) if which == Weights::Method => linformer.k,
            _ => self.dims().n_kv,
        }
    }

    /// The map of computed pairs of one head over a window, from all pairs.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn pair_map(
        &mut self,
        gpu: &Gpu,
        head: u32,
        window: Window,
        progress: &Progress,
    ) -> Result<MapImage, LabError> {
        let (width, height) = window.pixels();
        let values = match self.measured.clone() {
            Measured::Lsh(lsh) => {
                let plan = measure::pairs(self.dims(), &lsh, head..head + 1, window, gpu.limits)?;
                self.ask(gpu, &plan, progress).await?;
                self.workspace.read_u32(gpu, "pair map", 0).await?.into_iter().map(|count| count as f32).collect()
            }
            Measured::Full(full) => window.counts(|i, j| full.semantics.sees(i, j)),
            Measured::Linformer(_) => window.counts(|_, _| true),
        };
        Ok(image(values, width, height, window, None))
    }

    /// A map of weights of one head over a window, from at most 512 sampled rows.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn weight_map(
        &mut self,
        gpu: &Gpu,
        which: Weights,
        head: u32,
        window: Window,
        progress: &Progress,
    ) -> Result<MapImage, LabError> {
        let sample = Sample::even(window.row_start, window.row_count);
        let width = window.pixels().0;
        let columns = Some((window.col_start, window.col_count, width));
        let plan = measure::weights(self.dims(), &self.measured, which, head, sample, columns, gpu.limits)?;
        self.ask(gpu, &plan, progress).await?;
        let values = self.workspace.read_f32(gpu, "weight pixels", 0).await?;
        let sampled = (sample.count < window.row_count).then_some(sample.count);
        Ok(image(values, width, sample.count, window, sampled))
    }

    /// The weights of one query on every key.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn row(&mut self, gpu: &Gpu, head: u32, query: u32, progress: &Progress) -> Result<RowWeights, LabError> {
        let sample = Sample::all(query, 1);
        let mut rows = Vec::new();
        let pools = matches!(self.measured, Measured::Linformer(Linformer { max_pooling: true, .. }));
        let shown: &[Weights] = if pools { &[Weights::Exact] } else { &[Weights::Exact, Weights::Effective] };
        for &which in shown {
            rows.push(self.rows(gpu, which, head, sample, progress).await?);
        }
        let mut rows = rows.into_iter();
        let exact = rows.next().unwrap_or_default();
        Ok(RowWeights { head, query, exact, method: rows.next().unwrap_or_default() })
    }

    /// How much of the exact mass the strongest 1, 2, 4, ... keys hold, over at most 64 queries.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn sparsity(&mut self, gpu: &Gpu, head: u32, progress: &Progress) -> Result<Sparsity, LabError> {
        let n = self.dims().n_kv;
        let sample = Sample::golden(self.dims().n_q, 64);
        let keys: Vec<u32> = (0..u32::BITS).map(|bit| 1 << bit).take_while(|key| *key < n).chain([n]).collect();
        let mut mass = vec![0.0; keys.len()];
        for row in 0..sample.count {
            let one = Sample::all(sample.query(row), 1);
            let mut weights = self.rows(gpu, Weights::Exact, head, one, progress).await?;
            weights.sort_unstable_by(|a, b| b.total_cmp(a));
            let mut held = 0.0;
            let mut taken = 0;
            for (at, key) in keys.iter().enumerate() {
                held += weights[taken as usize..*key as usize].iter().map(|w| f64::from(*w)).sum::<f64>();
                taken = *key;
                mass[at] += held / f64::from(sample.count);
            }
        }
        Ok(Sparsity { keys, mass, queries: sample.count })
    }

    /// The output `[n, d_v]` of one head when every query keeps only its `count` strongest keys.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn strongest(
        &mut self,
        gpu: &Gpu,
        head: u32,
        count: u32,
        progress: &Progress,
    ) -> Result<Vec<f32>, LabError> {
        let plan = measure::strongest(self.dims(), &self.measured, head, count, gpu.limits)?;
        self.ask(gpu, &plan, progress).await?;
        let out = self.workspace.read_f32(gpu, "top out", 0).await?;
        self.workspace.drop_instruments();
        Ok(unpadded(&out, self.dims().d_v))
    }

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

pub(super) fn image(values: Vec<f32>, width: u32, height: u32, window: Window, sampled: Option<u32>) -> MapImage {
    let Window { row_start, row_count, col_start, col_count } = window;
    MapImage { values, width, height, row_start, row_count, col_start, col_count, sampled }
}
