//! Runs a plan in slices: one slice in flight, the next when the last is done. There is no other
//! way to run; dropping the future cancels it between two slices.

use super::ledger::Allocation;
use super::pipelines::SLOT;
use super::workspace::Workspace;
use super::{Fault, Gpu};
use crate::plan::{Pass, Plan, Step};
use futures_channel::oneshot;
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::Poll;
use web_time::Instant;
use wgpu::BufferUsages as Usage;

/// Dispatches of a slice at most, which is the number of uniform slots.
const SLOTS: usize = 256;
/// Timed groups of dispatches in a slice at most.
const TIMED: usize = 64;
/// Workgroups of one dispatch, the least that every device allows.
pub(super) const DISPATCH_GROUPS: u32 = 65_535;
/// A slice should take about this long on a GPU and on a software adapter.
const SLICE_MS: f64 = 12.0;
const SOFTWARE_SLICE_MS: f64 = 60.0;
/// Up to this, what passes is mostly the way to the device and back.
const SHORT_MS: f64 = 20.0;

/// How far a run is, readable while it goes on.
#[derive(Default)]
pub struct Progress {
    pub done: Cell<f64>,
    pub total: Cell<f64>,
    pub step: Cell<Option<Step>>,
}

impl Progress {
    /// 0 to 1.
    pub fn fraction(&self) -> f32 {
        if self.total.get() > 0.0 { (self.done.get() / self.total.get()).min(1.0) as f32 } else { 0.0 }
    }
}

/// What measured the milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The device's timestamps, step by step.
    Timestamps,
    /// The time from handing slices over until they were done; not known by step.
    Wall,
}

/// Milliseconds of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    pub ms: f64,
    /// By step, in no order; empty with [`Clock::Wall`].
    pub steps: Vec<(Step, f64)>,
    pub clock: Clock,
}

struct Dispatch<'a> {
    pass: Cow<'a, Pass>,
    first: u32,
    groups: u32,
}

/// What a slice needs and what comes back from it.
struct Frame {
    uniforms: Allocation,
    queries: Option<(wgpu::QuerySet, Allocation, Allocation)>,
}

impl Gpu {
    /// Runs the plan on a prepared workspace.
    ///
    /// # Errors
    /// When a shader is rejected or the device is lost.
    pub async fn run(&self, plan: &Plan, workspace: &Workspace, progress: &Progress) -> Result<Timing, Fault> {
        self.compile(plan).await?;
        progress.total.set(plan.work());
        progress.done.set(0.0);
        let frame = self.frame();
        let mut steps = BTreeMap::new();
        let mut wall = 0.0;
        let (mut pass, mut first) = (0, 0);
        loop {
            let (slice, amount) = self.cut(plan, &mut pass, &mut first);
            if slice.is_empty() {
                break;
            }
            progress.step.set(slice.first().map(|dispatch| dispatch.pass.step));
            let begun = Instant::now();
            let timed = self.submit(plan, workspace, &frame, &slice)?;
            let ticks = self.finish(&frame, timed.len()).await?;
            let elapsed = begun.elapsed().as_secs_f64() * 1e3;
            let mut on_device = 0.0;
            for (step, pair) in timed.iter().zip(ticks.chunks_exact(2)) {
                // A timestamp may be rounded or run backwards: such a pair counts as no time.
                let ms =
                    pair[1].saturating_sub(pair[0]) as f64 * f64::from(self.timestamp_period.unwrap_or(0.0)) * 1e-6;
                *steps.entry(*step).or_insert(0.0) += ms;
                on_device += ms;
            }
            wall += elapsed;
            self.adapt(amount, if credible(self.is_software(), on_device, elapsed) { on_device } else { elapsed });
            progress.done.set(progress.done.get() + amount);
        }
        let on_device: f64 = steps.values().sum();
        Ok(if credible(self.is_software(), on_device, wall) {
            Timing { ms: on_device, steps: steps.into_iter().collect(), clock: Clock::Timestamps }
        } else {
            Timing { ms: wall, steps: Vec::new(), clock: Clock::Wall }
        })
    }

    /// A plan's estimated milliseconds at the pace of the last slices.
    pub fn estimate_ms(&self, plan: &Plan) -> f64 {
        plan.work() / self.pace.get()
    }

    fn frame(&self) -> Frame {
        let create = |name, bytes, usage| self.ledger.create(&self.device, name, bytes, usage);
        let bytes = TIMED as u64 * 16;
        let queries = self.timestamp_period.map(|_| {
            let set = self.device.create_query_set(&wgpu::QuerySetDescriptor {
                label: Some("timestamps"),
                ty: wgpu::QueryType::Timestamp,
                count: TIMED as u32 * 2,
            });
            (
                set,
                create("timestamps", bytes, Usage::QUERY_RESOLVE | Usage::COPY_SRC),
                create("timestamps read back", bytes, Usage::MAP_READ | Usage::COPY_DST),
            )
        });
        Frame { uniforms: create("parameters", SLOTS as u64 * SLOT, Usage::UNIFORM | Usage::COPY_DST), queries }
    }

    /// The next dispatches, as many as should fit the slice's time.
    fn cut<'a>(&self, plan: &'a Plan, pass: &mut usize, first: &mut u32) -> (Vec<Dispatch<'a>>, f64) {
        let budget = self.pace.get() * self.slice_ms();
        let mut slice: Vec<Dispatch<'a>> = Vec::new();
        let (mut amount, mut steps) = (0.0, 0);
        while let Some(current) = plan.pass(*pass) {
            let new_step = slice.last().is_none_or(|last| last.pass.step != current.step);
            if slice.len() == SLOTS || steps + usize::from(new_step) > TIMED || (amount >= budget && !slice.is_empty())
            {
                break;
            }
            let per_group = (current.work() / f64::from(current.groups.max(1))).max(1.0);
            let fit = ((budget - amount) / per_group).max(1.0).min(f64::from(self.dispatch.get())) as u32;
            let groups = fit.min(current.groups - *first);
            let begin = *first;
            *first += groups;
            if *first >= current.groups {
                (*pass, *first) = (*pass + 1, 0);
            }
            if groups > 0 {
                steps += usize::from(new_step);
                amount += per_group * f64::from(groups);
                slice.push(Dispatch { pass: current, first: begin, groups });
            }
        }
        (slice, amount)
    }

    /// Encodes and submits a slice; returns the step of each timed group.
    fn submit(
        &self,
        plan: &Plan,
        workspace: &Workspace,
        frame: &Frame,
        slice: &[Dispatch<'_>],
    ) -> Result<Vec<Step>, Fault> {
        let missing = || Fault::Rejected("a plan ran without its buffers or pipelines".to_owned());
        let mut uniforms = vec![0u8; slice.len() * SLOT as usize];
        for (slot, dispatch) in uniforms.chunks_exact_mut(SLOT as usize).zip(slice) {
            slot[..dispatch.pass.params.len()].copy_from_slice(&dispatch.pass.params);
            slot[..4].copy_from_slice(&dispatch.first.to_le_bytes());
        }
        self.queue.write_buffer(&frame.uniforms, 0, &uniforms);
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut timed = Vec::new();
        let mut slot = 0;
        for group in slice.chunk_by(|a, b| a.pass.step == b.pass.step) {
            let at = timed.len() as u32 * 2;
            timed.push(group[0].pass.step);
            let timestamp_writes = frame.queries.as_ref().map(|(set, ..)| wgpu::ComputePassTimestampWrites {
                query_set: set,
                beginning_of_pass_write_index: Some(at),
                end_of_pass_write_index: Some(at + 1),
            });
            let mut compute = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
                label: Some(group[0].pass.step.name()),
                timestamp_writes,
            });
            for dispatch in group {
                let compiled = self.pipeline(&dispatch.pass).ok_or_else(missing)?;
                let mut entries = vec![wgpu::BindGroupEntry { binding: 0, resource: slot_binding(&frame.uniforms) }];
                for (binding, number) in dispatch.pass.bindings.iter().zip(1..) {
                    let buffer = workspace.buffer(&plan.buffers[binding.buffer.0]).ok_or_else(missing)?;
                    let resource = wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                        buffer,
                        offset: binding.offset,
                        size: wgpu::BufferSize::new(binding.bytes),
                    });
                    entries.push(wgpu::BindGroupEntry { binding: number, resource });
                }
                let descriptor = wgpu::BindGroupDescriptor { label: None, layout: &compiled.layout, entries: &entries };
                compute.set_pipeline(&compiled.pipeline);
                compute.set_bind_group(0, &self.device.create_bind_group(&descriptor), &[slot * SLOT as u32]);
                compute.dispatch_workgroups(dispatch.groups, 1, 1);
                slot += 1;
            }
        }
        if let Some((set, resolved, readable)) = &frame.queries {
            let count = timed.len() as u32 * 2;
            encoder.resolve_query_set(set, 0..count, resolved, 0);
            encoder.copy_buffer_to_buffer(resolved, 0, readable, 0, u64::from(count) * 8);
        }
        self.queue.submit([encoder.finish()]);
        Ok(timed)
    }

    /// Waits for the slice; the ticks of its groups, begin and end in turn.
    async fn finish(&self, frame: &Frame, timed: usize) -> Result<Vec<u64>, Fault> {
        if let Some((_, _, readable)) = &frame.queries {
            let bytes = self.mapped(readable, timed as u64 * 16).await?;
            return Ok(bytemuck::pod_collect_to_vec(&bytes));
        }
        let (sender, receiver) = oneshot::channel();
        self.queue.on_submitted_work_done(move || {
            let _ = sender.send(());
        });
        self.watch(receiver).await?;
        Ok(Vec::new())
    }

    /// Waits for a callback, unless the device is lost meanwhile.
    async fn watch<T>(&self, mut receiver: oneshot::Receiver<T>) -> Result<T, Fault> {
        std::future::poll_fn(|context| {
            if let Some(fault) = self.fault() {
                return Poll::Ready(Err(fault));
            }
            let no_answer = |_| Fault::Lost("no answer".to_owned());
            Pin::new(&mut receiver).poll(context).map(|answer| answer.map_err(no_answer))
        })
        .await
    }

    /// Maps a readable buffer, copies its bytes and unmaps it.
    async fn mapped(&self, buffer: &wgpu::Buffer, bytes: u64) -> Result<Vec<u8>, Fault> {
        let (sender, receiver) = oneshot::channel();
        buffer.map_async(wgpu::MapMode::Read, ..bytes, move |result| {
            let _ = sender.send(result);
        });
        let lost = |error: String| Fault::Lost(error);
        self.watch(receiver).await?.map_err(|error| lost(error.to_string()))?;
        let copied = buffer.get_mapped_range(..bytes).map_err(|error| lost(error.to_string()))?.to_vec();
        buffer.unmap();
        Ok(copied)
    }

    /// Reads part of a buffer back, at most a few MiB at once.
    pub(super) async fn read(&self, buffer: &wgpu::Buffer, offset: u64, bytes: u64) -> Result<Vec<u8>, Fault> {
        let readable = self.ledger.create(&self.device, "read back", bytes, Usage::MAP_READ | Usage::COPY_DST);
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(buffer, offset, &readable, 0, bytes);
        self.queue.submit([encoder.finish()]);
        self.mapped(&readable, bytes).await
    }

    /// Moves the pace towards what a slice reached, in small steps up. A slice that was over before
    /// its time is mostly overhead: it says nothing against the pace.
    fn adapt(&self, amount: f64, ms: f64) {
        let reached = amount / ms.max(0.01);
        if reached > self.pace.get() || ms > self.slice_ms() {
            self.pace.set(reached.clamp(self.pace.get() / 4.0, self.pace.get() * 2.0).max(1e3));
        }
    }

    /// What a slice should take.
    fn slice_ms(&self) -> f64 {
        if self.is_software() { SOFTWARE_SLICE_MS } else { SLICE_MS }
    }
}

/// Whether timestamps tell the time. Mesa's llvmpipe has been seen to write them in a window long before
/// the work is done: where software claims less than an eighth of what really passed, the clock on the
/// wall stands. Short times say nothing, since most of them is overhead.
fn credible(software: bool, on_device: f64, wall: f64) -> bool {
    on_device > 0.0 && !(software && wall > SHORT_MS && on_device * 8.0 < wall)
}

fn slot_binding(uniforms: &wgpu::Buffer) -> wgpu::BindingResource<'_> {
    wgpu::BindingResource::Buffer(wgpu::BufferBinding {
        buffer: uniforms,
        offset: 0,
        size: wgpu::BufferSize::new(SLOT),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_of_software_must_be_possible() {
        assert!(!credible(true, 0.13, 420.0), "written before the work was done");
        assert!(credible(true, 106.0, 120.0) && credible(true, 0.1, 5.0), "mostly work, mostly overhead");
        assert!(credible(false, 0.13, 420.0), "a device waits for what else goes on");
        assert!(!credible(false, 0.0, 1.0), "no timestamps");
    }
}
