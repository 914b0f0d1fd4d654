//! E and F fitted to the current input on the device, some steps at a time: between two questions the fit
//! stays on the device, with whoever asks.

use super::projection::{Errors, Matrix, PLAIN, Reference, of_head};
use super::weights::image;
use super::{LabError, Run};
use crate::gpu::run::Progress;
use crate::gpu::workspace::Workspace;
use crate::gpu::{Fault, Gpu};
use crate::inputs::Input;
use crate::methods::fit::{self, Descent, Loss};
use crate::methods::linformer::Linformer;
use crate::methods::measure::{self, Measured, Sample, Weights, Window};
use crate::outcome::MapImage;
use crate::problem::Problem;
use crate::settings::Settings;
use std::rc::Rc;
use web_time::Instant;

/// Steps of one plan.
const STEPS_A_PLAN: u32 = 20;

/// What begins a fit; another value begins another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Start {
    pub head: u32,
    pub k: u32,
    pub loss: Loss,
    /// Learning rate in units of 0.0001.
    pub rate: u32,
}

/// A fit on the device, as far as it is.
pub struct Fit {
    settings: Settings,
    input: Rc<Input>,
    start: Start,
    problem: Problem,
    descent: Descent,
    /// Sum of the squares of the target.
    length: f64,
    reference: Reference,
    workspace: Workspace,
    /// Before the first step.
    untrained: Errors,
    losses: Vec<f32>,
    ms: f64,
}

/// How far a fit is.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    pub start: Start,
    /// The loss before each step: relative, squared, over all queries.
    pub losses: Vec<f32>,
    pub untrained: Errors,
    pub errors: Errors,
    /// Queries that the errors come from when not from all.
    pub sampled: Option<u32>,
    pub e: Matrix,
    /// None where F is E.
    pub f: Option<Matrix>,
    /// P-bar F.
    pub map: MapImage,
    /// Milliseconds that a step took.
    pub step_ms: f64,
    /// Bytes that the fit holds on the device.
    pub bytes: u64,
}

impl Fit {
    async fn new(gpu: &Gpu, run: &Run, start: Start, progress: &Progress) -> Result<Self, LabError> {
        let settings = &run.outcome.settings;
        let drawn = settings.projection.has_parameters();
        // What pooling starts from has no sharing to keep.
        let shared_ef = drawn && settings.sharing.shares_key_value();
        let linformer = Linformer { k: start.k, shared_ef, ..PLAIN };
        let projection_head = start.head % settings.sharing.heads(settings.heads);
        let projections = run.input.problem.projections.clone().of_head(projection_head);
        let problem = of_head(&run.input.problem, start.head, projections);
        let descent = Descent { linformer, loss: start.loss, rate: start.rate as f32 * 1e-4 };
        let reference = Reference::new(gpu, &problem, progress).await?;
        let mut workspace = Workspace::default();
        let plan = fit::target(&problem.dims, start.loss, gpu.limits)?;
        workspace.prepare(gpu, &plan, &problem).await?;
        gpu.run(&plan, &workspace, progress).await?;
        let target = workspace.read_f32(gpu, "fit target", 0).await?;
        let length = target.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().max(f64::from(f32::MIN_POSITIVE));
        let untrained = reference.errors(gpu, &problem, &linformer, &mut workspace, progress).await?;
        Ok(Self {
            settings: settings.clone(),
            input: run.input.clone(),
            start,
            problem,
            descent,
            length,
            reference,
            workspace,
            untrained,
            losses: Vec::new(),
            ms: 0.0,
        })
    }

    /// Whether the run would begin the same fit.
    fn is_of(&self, run: &Run, start: Start) -> bool {
        self.start == start && self.settings == run.outcome.settings && Rc::ptr_eq(&self.input, &run.input)
    }

    async fn advance(&mut self, gpu: &Gpu, until: u32, progress: &Progress) -> Result<(), LabError> {
        let begun = Instant::now();
        let mut done = self.losses.len() as u32;
        while done < until {
            let count = STEPS_A_PLAN.min(until - done);
            let plan = fit::steps(&self.problem.dims, &self.descent, self.length, done, count, gpu.limits)?;
            self.workspace.prepare(gpu, &plan, &self.problem).await?;
            gpu.run(&plan, &self.workspace, progress).await?;
            self.losses.extend(self.workspace.read_f32(gpu, "fit loss", 0).await?);
            done += count;
        }
        self.ms += begun.elapsed().as_secs_f64() * 1e3;
        Ok(())
    }

    async fn look(&mut self, gpu: &Gpu, progress: &Progress) -> Result<Fitted, LabError> {
        let (dims, linformer) = (self.problem.dims, self.descent.linformer);
        let errors = self.reference.errors(gpu, &self.problem, &linformer, &mut self.workspace, progress).await?;
        let window = Window::whole(dims.n_q, dims.n_kv);
        let (sample, width) = (Sample::even(0, dims.n_q), window.pixels().0);
        let measured = Measured::Linformer(linformer);
        let columns = Some((0, dims.n_kv, width));
        let plan = measure::weights(&dims, &measured, Weights::SignedF, 0, sample, columns, gpu.limits)?;
        self.workspace.prepare(gpu, &plan, &self.problem).await?;
        gpu.run(&plan, &self.workspace, progress).await?;
        let pixels = self.workspace.read_f32(gpu, "weight pixels", 0).await?;
        self.workspace.drop_instruments();
        let sampled = (sample.count < dims.n_q).then_some(sample.count);
        let stride = linformer.k.next_multiple_of(4) as usize;
        let matrix = async |name: &str| {
            let values = self.workspace.read_f32(gpu, name, 0).await?;
            let entry = |i: u32, j: u32| values.get(j as usize * stride + i as usize).copied().unwrap_or(0.0);
            Ok::<_, Fault>(Matrix::sampled(linformer.k, dims.n_kv, entry).await)
        };
        let e = matrix("E").await?;
        let f = if linformer.shared_ef { None } else { Some(matrix("F").await?) };
        Ok(Fitted {
            start: self.start,
            losses: self.losses.clone(),
            untrained: self.untrained,
            errors,
            sampled: self.reference.sampled(&dims),
            e,
            f,
            map: image(pixels, width, sample.count, window, sampled),
            step_ms: self.ms / self.losses.len().max(1) as f64,
            bytes: self.workspace.specs().map(crate::plan::BufferSpec::bytes).sum(),
        })
    }
}

impl Run {
    /// Goes on with the fit that is kept until it has made so many steps. Another start, settings or input, or
    /// fewer steps than were made, begin anew; so does what was dropped half-way, and is kept no longer.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn fit(
        &self,
        gpu: &Gpu,
        kept: &mut Option<Fit>,
        start: Start,
        until: u32,
        progress: &Progress,
    ) -> Result<Fitted, LabError> {
        let goes_on = |fit: &Fit| fit.is_of(self, start) && fit.losses.len() <= until as usize;
        let mut fit = match kept.take().filter(goes_on) {
            Some(fit) => fit,
            None => Fit::new(gpu, self, start, progress).await?,
        };
        fit.advance(gpu, until, progress).await?;
        let fitted = fit.look(gpu, progress).await?;
        *kept = Some(fit);
        Ok(fitted)
    }

    /// The errors after a fit of so many steps, in buffers of its own.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn fitted_errors(
        &self,
        gpu: &Gpu,
        start: Start,
        steps: u32,
        progress: &Progress,
    ) -> Result<Errors, LabError> {
        let mut fit = Fit::new(gpu, self, start, progress).await?;
        fit.advance(gpu, steps, progress).await?;
        let linformer = fit.descent.linformer;
        fit.reference.errors(gpu, &fit.problem, &linformer, &mut fit.workspace, progress).await
    }
}
