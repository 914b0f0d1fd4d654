//! A plan: buffers, passes and bytes of one computation, as data.
//!
//! A pure function of sizes, rules and the device's [`Limits`]; it knows no GPU. What runs it are
//! `gpu::run` and, in float64, [`crate::interpreter`]. The memory on the screen is read off plans.

mod builder;
mod refusal;

use crate::problem::Fill;
use crate::steps::{Kernel, Widths};
use crate::text::Text;
use std::borrow::Cow;
use std::sync::Arc;

pub use builder::{Builder, New};
pub use refusal::{Limit, Refusal};

/// Offsets of bindings are multiples of this, the most that WebGPU asks for.
pub const ALIGNMENT: u64 = 256;

/// What the device allows, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest range of a buffer that one binding may show to a shader.
    pub binding: u64,
    pub buffer: u64,
}

impl Limits {
    /// The least that every WebGPU device allows.
    pub const WEBGPU: Self = Self { binding: 128 << 20, buffer: 256 << 20 };
    /// The most that is used of a binding: shaders number its words, and Metal its bytes, in 32 bits.
    pub const NUMBERED: u64 = (1 << 32) - ALIGNMENT;

    /// What a device says that it allows, as far as shaders can number it.
    pub fn new(binding: u64, buffer: u64) -> Self {
        Self { binding: binding.min(Self::NUMBERED), buffer }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    F32,
    U32,
}

/// Whose bytes a buffer's are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// q, k, v and the output: every method has them.
    Tensor,
    /// What the method needs beyond them.
    Method,
    /// What measures and draws; not counted as the method's memory.
    Instrument,
}

/// A buffer of equal ranges (heads, or slices of a matrix), each bound on its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferSpec {
    /// Buffers of the same name are the same buffer in all plans of a request.
    pub name: &'static str,
    pub kind: Kind,
    pub role: Role,
    /// For people: the sizes that the contents have, padding left out.
    pub shape: Vec<u64>,
    pub ranges: u32,
    /// Words of four bytes in a range that are used.
    pub range_words: u64,
    /// What fills the buffer before the first pass.
    pub fill: Option<Fill>,
    /// Set to 0 before the first pass.
    pub zeroed: bool,
}

impl BufferSpec {
    /// Bytes from one range to the next.
    pub fn stride(&self) -> u64 {
        (self.range_words * 4).next_multiple_of(ALIGNMENT)
    }

    /// Whether words of the other buffer lie where this one has them.
    pub fn lies_like(&self, other: &Self) -> bool {
        (self.ranges, self.range_words) == (other.ranges, other.range_words)
    }

    /// Bytes allocated.
    pub fn bytes(&self) -> u64 {
        u64::from(self.ranges) * self.stride()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferId(pub usize);

/// The part of a buffer that a pass sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    pub buffer: BufferId,
    pub offset: u64,
    pub bytes: u64,
}

/// The steps of the pipelines, as the screen and the command line name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    KeyNorm,
    Hash,
    Sort,
    Attend,
    Combine,
    ProjectKeys,
    ProjectValues,
    ProjectedAttention,
    FullAttention,
    Scores,
    Softmax,
    WeightedSum,
    AttentionBackward,
    LayerNorm,
    Project,
    FeedForward,
    LayerBackward,
    Store,
    Loss,
    Measure,
}

impl Step {
    /// Its name on the screen and in reports.
    pub fn name(self) -> &'static str {
        let text = match self {
            Self::KeyNorm => Text::StepKeyNorm,
            Self::Hash => Text::StepHash,
            Self::Sort => Text::StepSort,
            Self::Attend => Text::StepAttend,
            Self::Combine => Text::StepCombine,
            Self::ProjectKeys => Text::StepProjectKeys,
            Self::ProjectValues => Text::StepProjectValues,
            Self::ProjectedAttention => Text::StepProjected,
            Self::FullAttention => Text::StepFull,
            Self::Scores => Text::StepScores,
            Self::Softmax => Text::StepSoftmax,
            Self::WeightedSum => Text::StepWeightedSum,
            Self::AttentionBackward => Text::StepAttentionBackward,
            Self::LayerNorm => Text::StepLayerNorm,
            Self::Project => Text::StepProject,
            Self::FeedForward => Text::StepFeedForward,
            Self::LayerBackward => Text::StepLayerBackward,
            Self::Store => Text::StepStore,
            Self::Loss => Text::StepLoss,
            Self::Measure => Text::StepMeasure,
        };
        text.get()
    }
}

/// One kernel over its whole grid. It may be cut anywhere between two workgroups.
#[derive(Clone)]
pub struct Pass {
    pub step: Step,
    pub kernel: &'static Kernel,
    pub widths: Widths,
    /// The kernel's parameter struct; its first word is the first workgroup of a slice.
    pub params: Vec<u8>,
    pub bindings: Arc<[Binding]>,
    /// Workgroups.
    pub groups: u32,
    /// Floating-point operations, a multiply-add being two.
    pub flops: f64,
    /// Bytes read and written when nothing is cached.
    pub bytes: f64,
}

impl Pass {
    /// What it costs, for cutting slices and for the progress bar: operations and bytes alike.
    pub fn work(&self) -> f64 {
        self.flops + self.bytes
    }
}

/// Bytes and operations of all passes of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepTotal {
    pub step: Step,
    pub flops: f64,
    pub bytes: f64,
}

/// Passes that run again and again, a word of their parameters counting up: one query after the other
/// would otherwise take three passes a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop {
    /// Of [`Plan::passes`]: the first, and how many.
    pub first: usize,
    pub len: usize,
    pub times: u32,
    /// Bytes from the start of the parameters to the word.
    pub word: usize,
}

#[derive(Clone, Default)]
pub struct Plan {
    pub buffers: Vec<BufferSpec>,
    /// Each is written once; [`Plan::in_order`] has them as they run.
    pub passes: Vec<Pass>,
    /// In the order of their passes; they do not overlap.
    pub loops: Vec<Loop>,
}

impl Plan {
    /// Bytes of all buffers that are the method's own memory, instruments left out.
    pub fn method_bytes(&self) -> u64 {
        self.buffers.iter().filter(|b| b.role != Role::Instrument).map(BufferSpec::bytes).sum()
    }

    /// How often the pass at `at` of [`Plan::passes`] runs.
    fn times(&self, at: usize) -> f64 {
        let holds = |each: &&Loop| (each.first..each.first + each.len).contains(&at);
        self.loops.iter().find(holds).map_or(1.0, |each| f64::from(each.times))
    }

    /// What all passes cost, as [`Pass::work`] counts it.
    pub fn work(&self) -> f64 {
        self.passes.iter().enumerate().map(|(at, pass)| pass.work() * self.times(at)).sum()
    }

    /// The pass that runs after `at` others, loops unrolled.
    pub fn pass(&self, mut at: usize) -> Option<Cow<'_, Pass>> {
        let mut next = 0;
        for each in &self.loops {
            let before = each.first - next;
            if at < before {
                break;
            }
            at -= before;
            next = each.first;
            if at < each.len * each.times as usize {
                let mut pass = self.passes.get(each.first + at % each.len)?.clone();
                let word = pass.params.get_mut(each.word..each.word + 4)?;
                let count: u32 = bytemuck::pod_read_unaligned(word);
                word.copy_from_slice(&(count + (at / each.len) as u32).to_le_bytes());
                return Some(Cow::Owned(pass));
            }
            at -= each.len * each.times as usize;
            next += each.len;
        }
        self.passes.get(next + at).map(Cow::Borrowed)
    }

    /// All passes as they run.
    pub fn in_order(&self) -> impl Iterator<Item = Cow<'_, Pass>> {
        (0..).map_while(|at| self.pass(at))
    }

    /// Totals by step, in the order in which the steps first run.
    pub fn steps(&self) -> Vec<StepTotal> {
        let mut totals: Vec<StepTotal> = Vec::new();
        for (at, pass) in self.passes.iter().enumerate() {
            let times = self.times(at);
            let at = totals.iter().position(|total| total.step == pass.step).unwrap_or_else(|| {
                totals.push(StepTotal { step: pass.step, flops: 0.0, bytes: 0.0 });
                totals.len() - 1
            });
            totals[at].flops += pass.flops * times;
            totals[at].bytes += pass.bytes * times;
        }
        totals
    }

    pub fn find(&self, name: &str) -> Option<&BufferSpec> {
        self.buffers.iter().find(|buffer| buffer.name == name)
    }
}
