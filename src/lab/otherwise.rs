//! The same input computed otherwise than on the screen.

use super::readings::read_out;
use super::{LabError, Run, measured, plan};
use crate::gpu::Gpu;
use crate::gpu::run::Progress;
use crate::gpu::workspace::Workspace;
use crate::inputs::Shown;
use crate::outcome::{Outcome, mean_of_heads};
use crate::presets::Preset;
use crate::settings::{Method, Settings};
use std::rc::Rc;

impl Run {
    /// Accuracy of LSH attention on the duplication task with another number of rounds, in buffers of
    /// its own; `None` for any other input.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn accuracy(&self, gpu: &Gpu, rounds: u32, progress: &Progress) -> Result<Option<f64>, LabError> {
        let Shown::Duplication(task) = &self.input.shown else { return Ok(None) };
        let dims = *self.dims();
        let settings = Settings { method: Method::Lsh, rounds, ..self.outcome.settings.clone() };
        let plan = plan(&dims, &measured(&settings, &dims), gpu.limits)?;
        let mut workspace = Workspace::default();
        workspace.prepare(gpu, &plan, &self.input.problem).await?;
        gpu.run(&plan, &workspace, progress).await?;
        let out = read_out(gpu, &workspace, &dims).await?;
        Ok(Some(task.accuracy(&mean_of_heads(&out, &dims), None)))
    }

    /// LSH attention on the same input under the rules of a preset, at the same chunk length, in buffers
    /// of its own.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn under(&self, gpu: &Gpu, preset: &Preset, progress: &Progress) -> Result<Rc<Outcome>, LabError> {
        let mut settings = Settings { method: Method::Lsh, ..self.outcome.settings.clone() };
        preset.apply(&mut settings);
        if measured(&settings, self.dims()) == self.measured {
            return Ok(self.outcome.clone());
        }
        Ok(Self::new(gpu, &settings, &self.input, progress).await?.outcome)
    }
}
