//! How a plan is put together.

use super::{ALIGNMENT, Binding, BufferId, BufferSpec, Kind, Limit, Limits, Loop, Pass, Plan, Refusal, Role, Step};
use crate::problem::Fill;
use crate::steps::{Kernel, Widths};
use std::sync::Arc;

/// Builds a plan; the first thing that does not fit is remembered and told by [`Builder::finish`].
pub struct Builder {
    plan: Plan,
    limits: Limits,
    widths: Widths,
    refusal: Option<Refusal>,
}

/// A new buffer, for [`Builder::buffer`].
pub struct New<'a> {
    pub name: &'static str,
    pub kind: Kind,
    pub role: Role,
    pub ranges: u32,
    pub range_words: u64,
    pub shape: &'a [u32],
}

impl Builder {
    pub fn new(limits: Limits, widths: Widths) -> Self {
        Self { plan: Plan::default(), limits, widths, refusal: None }
    }

    pub fn widths(&self) -> Widths {
        self.widths
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Whether the plan has a buffer of this name.
    pub fn holds(&self, name: &str) -> bool {
        self.plan.find(name).is_some()
    }

    /// Adds a buffer, or finds the one of the same name.
    pub fn buffer(&mut self, new: New<'_>) -> BufferId {
        if let Some(at) = self.plan.buffers.iter().position(|buffer| buffer.name == new.name) {
            return BufferId(at);
        }
        let spec = BufferSpec {
            name: new.name,
            kind: new.kind,
            role: new.role,
            shape: new.shape.iter().map(|size| u64::from(*size)).collect(),
            ranges: new.ranges,
            range_words: new.range_words,
            fill: None,
            zeroed: false,
        };
        self.refuse(spec.name, spec.bytes(), self.limits.buffer, Limit::Buffer);
        self.plan.buffers.push(spec);
        BufferId(self.plan.buffers.len() - 1)
    }

    fn refuse(&mut self, buffer: &'static str, needed: u64, allowed: u64, limit: Limit) {
        if needed > allowed && self.refusal.is_none() {
            self.refusal = Some(Refusal { buffer, needed, allowed, limit });
        }
    }

    /// The buffer is filled from the problem before the first pass.
    pub fn fill(&mut self, id: BufferId, fill: Fill) {
        self.plan.buffers[id.0].fill = Some(fill);
    }

    /// The buffer is set to 0 before the first pass.
    pub fn zeroed(&mut self, id: BufferId) {
        self.plan.buffers[id.0].zeroed = true;
    }

    /// One whole range; `range` is taken modulo the number of ranges, so that a buffer with a
    /// single range serves all heads.
    pub fn range(&mut self, id: BufferId, range: u32) -> Binding {
        let words = self.plan.buffers[id.0].range_words;
        self.part(id, range, 0, words)
    }

    /// `words` words of a range from word `start` on, which must lie on an aligned offset.
    pub fn part(&mut self, id: BufferId, range: u32, start: u64, words: u64) -> Binding {
        let spec = &self.plan.buffers[id.0];
        let offset = u64::from(range % spec.ranges) * spec.stride() + start * 4;
        debug_assert_eq!(offset % ALIGNMENT, 0);
        let binding = Binding { buffer: id, offset, bytes: words * 4 };
        self.refuse(self.plan.buffers[id.0].name, binding.bytes, self.limits.binding, Limit::Binding);
        binding
    }

    /// Adds a pass. `flops` counts a multiply-add as two, `bytes` what is read and written.
    pub fn pass<P: bytemuck::Pod>(
        &mut self,
        step: Step,
        kernel: &'static Kernel,
        params: &P,
        bindings: &Arc<[Binding]>,
        groups: u32,
        cost: (f64, f64),
    ) {
        debug_assert_eq!(kernel.bindings.len(), bindings.len(), "{}", kernel.stem);
        self.plan.passes.push(Pass {
            step,
            kernel,
            widths: self.widths,
            params: bytemuck::bytes_of(params).to_vec(),
            bindings: bindings.clone(),
            groups,
            flops: cost.0,
            bytes: cost.1,
        });
    }

    /// Runs the passes that `body` adds `times` times; the word of their parameters at this many bytes
    /// from the start counts up.
    pub fn repeat(&mut self, times: u32, word: usize, body: impl FnOnce(&mut Self)) {
        let first = self.plan.passes.len();
        body(self);
        self.plan.loops.push(Loop { first, len: self.plan.passes.len() - first, times, word });
    }

    /// # Errors
    /// The first buffer or binding that exceeds the limits.
    pub fn finish(self) -> Result<Plan, Refusal> {
        match self.refusal {
            Some(refusal) => Err(refusal),
            None => Ok(self.plan),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::key_norm::KEY_NORM;

    #[test]
    fn loops_run_their_passes_in_turn_and_count_up() {
        let mut b = Builder::new(Limits::WEBGPU, Widths::new(4, 4));
        let id = |count: u32| [0, count];
        let bindings: Arc<[Binding]> = Arc::new([Binding { buffer: BufferId(0), offset: 0, bytes: 4 }; 2]);
        let add = |b: &mut Builder, count| b.pass(Step::KeyNorm, &KEY_NORM, &id(count), &bindings, 1, (1.0, 0.0));
        add(&mut b, 7);
        for start in [10, 20] {
            b.repeat(3, 4, |b| {
                add(b, start);
                add(b, start + 100);
            });
        }
        add(&mut b, 8);
        let plan = b.finish().expect("nothing to refuse");
        let counts: Vec<u32> = plan.in_order().map(|pass| bytemuck::pod_read_unaligned(&pass.params[4..])).collect();
        assert_eq!(counts, [7, 10, 110, 11, 111, 12, 112, 20, 120, 21, 121, 22, 122, 8]);
        assert_eq!((plan.passes.len(), plan.work(), plan.steps()[0].flops), (6, 14.0, 14.0));
    }
}
