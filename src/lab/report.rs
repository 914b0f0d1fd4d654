//! What a plan and its timing say about a run.

use crate::gpu::Gpu;
use crate::gpu::run::Timing;
use crate::gpu::workspace::Workspace;
use crate::outcome::{BufferReport, Figures, Outcome, StepReport};
use crate::plan::{BufferSpec, Plan, Role};
use crate::problem::Dims;
use crate::settings::Settings;

/// The buffers of a plan, with the bytes that the device really gave.
pub(super) fn buffers(plan: &Plan, workspace: &Workspace) -> Vec<BufferReport> {
    let report = |spec: &BufferSpec| {
        let (shape, bytes) = (spec.shape.clone(), workspace.bytes(spec.name));
        BufferReport { name: spec.name, shape, role: spec.role, bytes }
    };
    plan.buffers.iter().map(report).collect()
}

/// What a plan, its buffers and its timing say, before anything is read back.
pub(super) fn report(
    gpu: &Gpu,
    settings: &Settings,
    dims: &Dims,
    plan: &Plan,
    timing: Timing,
    mut buffers: Vec<BufferReport>,
    peak_bytes: u64,
) -> Outcome {
    let steps = plan.steps().into_iter().map(|total| StepReport {
        step: total.step,
        ms: timing.steps.iter().find(|(step, _)| *step == total.step).map(|(_, ms)| *ms),
        bytes: total.bytes,
        flops: total.flops,
    });
    let rest = peak_bytes.saturating_sub(buffers.iter().map(|buffer| buffer.bytes).sum());
    buffers.push(BufferReport {
        name: "parameters and timestamps",
        shape: vec![rest],
        role: Role::Instrument,
        bytes: rest,
    });
    Outcome {
        settings: settings.clone(),
        dims: *dims,
        adapter: gpu.info.name.clone(),
        figures: Figures {
            pairs: 0,
            visits: 0,
            share: 0.0,
            error: 0.0,
            error_plain: 0.0,
            recall: None,
            mass: None,
            accuracy: None,
            lost_pairs: None,
            sampled: None,
        },
        ms: timing.ms,
        clock: timing.clock,
        steps: steps.collect(),
        buffers,
        peak_bytes,
        out: Vec::new(),
        lse: Vec::new(),
        lists: None,
    }
}
