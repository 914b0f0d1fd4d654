//! The figures of a result: pairs, error, recall, mass, accuracy.

use super::unpadded;
use super::{LabError, Run};
use crate::gpu::run::Progress;
use crate::gpu::{Fault, Gpu};
use crate::inputs::Shown;
use crate::methods::linformer::Linformer;
use crate::methods::measure::{self, Measured, RECALL_KEYS, Sample, Window};
use crate::outcome::{Distance, Figures, Outcome};
use crate::steps::NO_KEY;
use crate::steps::top_keys::TOP;
use std::collections::HashSet;

impl Run {
    /// Fills in the figures that need the instruments.
    pub(super) async fn measure(
        &mut self,
        gpu: &Gpu,
        outcome: &mut Outcome,
        progress: &Progress,
    ) -> Result<(), LabError> {
        let dims = *self.dims();
        let sample = Sample::for_figures(dims.n_q);
        let figures = &mut outcome.figures;
        figures.sampled = (sample.count < dims.n_q).then_some(sample.count);
        self.count_pairs(gpu, figures, progress).await?;
        let plan = measure::figures(&dims, &self.measured, sample, gpu.limits)?;
        self.ask(gpu, &plan, progress).await?;
        let (mut exact, mut plain) = (Distance::default(), Distance::default());
        let (mut recall, mut mass) = (0.0, 0.0);
        for head in 0..dims.heads {
            let to_exact = unpadded(&self.workspace.read_f32(gpu, "exact out", head).await?, dims.d_v);
            let to_plain = unpadded(&self.workspace.read_f32(gpu, "plain out", head).await?, dims.d_v);
            let d_v = dims.d_v as usize;
            for row in 0..sample.count {
                let at = (head * dims.n_q + sample.query(row)) as usize * d_v;
                let out = &outcome.out[at..at + d_v];
                let here = row as usize * d_v..(row as usize + 1) * d_v;
                exact.add(out, &to_exact[here.clone()]);
                plain.add(out, &to_plain[here]);
            }
            let top = self.workspace.read_u32(gpu, "top index", head).await?;
            let seen = self.seen_keys(gpu, head, &top).await?;
            recall += seen.0;
            mass += seen.1;
        }
        let rows = f64::from(sample.count * dims.heads);
        figures.error = exact.relative();
        figures.error_plain = plain.relative();
        // Max pooling is no matrix, so no key of the input has a weight of its own.
        let pools = matches!(self.measured, Measured::Linformer(Linformer { max_pooling: true, .. }));
        figures.recall = (!pools).then_some(recall / rows);
        let projects = matches!(self.measured, Measured::Linformer(_));
        figures.mass = (!projects).then_some(mass / rows);
        // Linformer cannot leave a position itself out, and its value is the answer.
        if let Shown::Duplication(task) = &self.input.shown
            && !projects
        {
            outcome.figures.accuracy = Some(task.accuracy(&outcome.mean_of_heads(), None));
        }
        Ok(())
    }

    /// Sums over the sampled rows of one head of (recall, mass).
    async fn seen_keys(&self, gpu: &Gpu, head: u32, top: &[u32]) -> Result<(f64, f64), Fault> {
        let wanted: Vec<Vec<u32>> = top
            .chunks(TOP as usize)
            .map(|row| row.iter().copied().take(RECALL_KEYS as usize).filter(|key| *key != NO_KEY).collect())
            .collect();
        let share = |hits: f64, row: &[u32]| if row.is_empty() { 1.0 } else { hits / row.len() as f64 };
        Ok(match &self.measured {
            Measured::Full(_) => (wanted.len() as f64, wanted.len() as f64),
            Measured::Lsh(_) => {
                let covered = self.workspace.read_f32(gpu, "covered", head).await?;
                let rows = covered.chunks(2).zip(&wanted);
                rows.fold((0.0, 0.0), |(recall, mass), (pair, row)| {
                    // A row without a single allowed key has nothing to miss.
                    let here = if row.is_empty() { 1.0 } else { f64::from(pair[0]) };
                    (recall + share(f64::from(pair[1]), row), mass + here)
                })
            }
            Measured::Linformer(_) => {
                let effective = self.workspace.read_u32(gpu, "effective index", head).await?;
                let rows = effective.chunks(TOP as usize).zip(&wanted);
                let recall = rows.map(|(found, row)| {
                    let found: HashSet<u32> = found.iter().copied().take(row.len()).collect();
                    share(row.iter().filter(|key| found.contains(key)).count() as f64, row)
                });
                (recall.sum(), 0.0)
            }
        })
    }

    async fn count_pairs(&mut self, gpu: &Gpu, figures: &mut Figures, progress: &Progress) -> Result<(), LabError> {
        let dims = *self.dims();
        let (heads, n) = (u64::from(dims.heads), u64::from(dims.n_q));
        match self.measured.clone() {
            Measured::Full(full) => {
                let allowed: u64 = (0..dims.n_q).map(|i| u64::from(full.semantics.allowed(i, dims.n_kv))).sum();
                (figures.pairs, figures.visits) = (heads * allowed, heads * allowed);
            }
            Measured::Linformer(linformer) => {
                let products = heads * n * u64::from(linformer.k);
                (figures.pairs, figures.visits) = (products, products);
            }
            Measured::Lsh(lsh) => {
                let window = Window::whole(dims.n_q, dims.n_q);
                let plan = measure::pairs(&dims, &lsh, 0..dims.heads, window, gpu.limits)?;
                self.ask(gpu, &plan, progress).await?;
                for head in 0..dims.heads {
                    let sum = |rows: Vec<u32>| rows.into_iter().map(u64::from).sum::<u64>();
                    figures.pairs += sum(self.workspace.read_u32(gpu, "row pairs", head).await?);
                    figures.visits += sum(self.workspace.read_u32(gpu, "row visits", head).await?);
                }
            }
        }
        figures.share = figures.pairs as f64 / (heads as f64 * n as f64 * f64::from(dims.n_kv));
        Ok(())
    }
}
