//! From settings and an input to an outcome, and the questions that views ask afterwards. The one
//! way to run anything, for the page, the desktop app and the command line.

mod by_rounds;
mod figures;
mod fit;
mod last_token;
mod method;
mod otherwise;
mod projection;
pub mod rank;
mod readings;
mod report;
mod separate_keys;
pub mod speed;
pub mod stack;
mod theorem;
pub mod theory;
pub mod turns;
mod weights;

use crate::gpu::run::Progress;
use crate::gpu::workspace::Workspace;
use crate::gpu::{Fault, Gpu};
use crate::inputs::Input;
use crate::methods::measure::Measured;
use crate::outcome::Outcome;
use crate::plan::{Pass, Plan, Refusal};
use crate::problem::Dims;
use crate::settings::Settings;
pub use by_rounds::ByRounds;
pub use fit::{Fit, Fitted, Start};
pub use last_token::Moved;
pub use method::{measured, plan};
pub use projection::{Errors, Matrix, Untrained};
pub(crate) use readings::unpadded;
use readings::{read_lists, read_out};
pub use separate_keys::SeparateKeys;
use std::collections::HashSet;
use std::fmt;
use std::rc::Rc;
pub use theorem::TheoremErrors;
pub use weights::WHOLE_WEIGHTS_UP_TO;

/// Why a run gave no outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabError {
    /// The device cannot hold it; nothing was allocated.
    Refused(Refusal),
    Fault(Fault),
    /// A computation beside the device; a sentence.
    Failed(String),
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Fault(fault) => fault.fmt(f),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for LabError {}

impl From<Refusal> for LabError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Fault> for LabError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// A finished run with its buffers still on the device, so that views can ask.
pub struct Run {
    pub outcome: Rc<Outcome>,
    pub measured: Measured,
    input: Rc<Input>,
    workspace: Workspace,
}

impl Run {
    /// Runs the method of `settings` once warm, then measures it.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn new(gpu: &Gpu, settings: &Settings, input: &Rc<Input>, progress: &Progress) -> Result<Self, LabError> {
        let dims = input.problem.dims;
        let measured = measured(settings, &dims);
        let plan = plan(&dims, &measured, gpu.limits)?;
        let mut workspace = Workspace::default();
        let before = gpu.ledger.bytes();
        gpu.ledger.reset_peak();
        workspace.prepare(gpu, &plan, &input.problem).await?;
        if gpu.compile(&plan).await? {
            gpu.run(&warm_up(&plan), &workspace, &Progress::default()).await?;
        }
        let held = report::buffers(&plan, &workspace);
        let timing = gpu.run(&plan, &workspace, progress).await?;
        let peak_bytes = gpu.ledger.peak() - before;
        let mut run = Self {
            outcome: Rc::new(report::report(gpu, settings, &dims, &plan, timing, held, peak_bytes)),
            measured,
            input: input.clone(),
            workspace,
        };
        let mut outcome = (*run.outcome).clone();
        run.read_results(gpu, &mut outcome).await?;
        run.measure(gpu, &mut outcome, progress).await?;
        run.workspace.drop_instruments();
        run.outcome = Rc::new(outcome);
        Ok(run)
    }

    fn dims(&self) -> &Dims {
        &self.input.problem.dims
    }

    async fn ask(&mut self, gpu: &Gpu, plan: &Plan, progress: &Progress) -> Result<(), Fault> {
        self.workspace.prepare(gpu, plan, &self.input.problem).await?;
        gpu.run(plan, &self.workspace, progress).await?;
        Ok(())
    }

    async fn read_results(&self, gpu: &Gpu, outcome: &mut Outcome) -> Result<(), Fault> {
        let dims = self.dims();
        outcome.out = read_out(gpu, &self.workspace, dims).await?;
        for head in 0..dims.heads {
            outcome.lse.extend(self.workspace.read_f32(gpu, "lse", head).await?);
        }
        outcome.lists = read_lists(gpu, &self.workspace, dims, &self.measured).await?;
        outcome.figures.lost_pairs = outcome.lists.as_ref().map(|lists| lists.lost_pairs.iter().sum());
        Ok(())
    }
}

/// One workgroup of every kernel of the plan.
fn warm_up(plan: &Plan) -> Plan {
    let mut seen = HashSet::new();
    let passes = plan.passes.iter().filter(|pass| seen.insert((pass.kernel.stem, pass.kernel.entry)));
    let passes = passes.map(|pass| Pass { groups: 1, ..pass.clone() }).collect();
    Plan { buffers: plan.buffers.clone(), passes, ..Plan::default() }
}
