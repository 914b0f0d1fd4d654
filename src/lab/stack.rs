//! A stack of layers, run one layer at a time. Each layer works in buffers that are given back when it
//! is over, so that the ledger itself tells what stands in memory at each moment.
//!
//! The reversible stack keeps two streams and, for LSH attention, the bucket ids of every layer; the
//! ordinary one stores each layer's activations until its backward pass. The loss is half the sum of
//! squares of the outputs, whose gradient is the outputs themselves.

use super::{LabError, Run, measured};
use crate::gpu::run::Progress;
use crate::gpu::workspace::Workspace;
use crate::gpu::{Fault, Gpu};
use crate::methods::measure::Measured;
use crate::methods::stack::{Attention, BUCKETS, Branches, GRADIENT, GRADIENTS, Layer, STREAM, STREAMS, loss_gradient};
use crate::plan::Plan;
use crate::problem::{Dims, Named, Problem, Projections, Rotations};
use crate::random::{Stream, normal};
use crate::settings::{LayerAttention, Method, Settings};
use std::collections::BTreeSet;
use web_time::Instant;

/// Rows of the streams that the reconstruction error is taken from.
pub const COMPARED_ROWS: u32 = 4096;

/// Layers of one shape, their parameters in host memory, and what flows in.
#[derive(Clone, Debug)]
pub struct Stack {
    pub layer: Layer,
    /// By name, one a layer.
    pub parameters: Vec<Named>,
    /// `[n, width]` each.
    pub inputs: [Vec<f32>; 2],
    pub seed: u32,
}

/// How a stack is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Way {
    /// The ordinary residual stack, which stores its activations.
    pub stored: bool,
    /// The backward pass hashes the rebuilt streams instead of keeping bucket ids.
    pub rehash: bool,
    /// Parameters stay in host memory and are uploaded when their layer is on; gradients go there.
    pub swap: bool,
}

/// A stack to run on an input: its depth, the chunks of its feed-forward layers, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stacked {
    pub layers: u32,
    pub chunks: u32,
    pub way: Way,
}

impl Stacked {
    /// The reversible stack of the settings.
    pub fn of(settings: &Settings) -> Self {
        let way = Way { stored: false, rehash: settings.rehash, swap: settings.swap };
        Self { layers: settings.layers, chunks: settings.ff_chunks, way }
    }
}

impl Run {
    /// Runs a stack on the input, in buffers of its own.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn layers(&self, gpu: &Gpu, stacked: Stacked, progress: &Progress) -> Result<Passage, LabError> {
        let Stacked { layers, chunks, way } = stacked;
        let settings = Settings { layers, ff_chunks: chunks, ..self.outcome.settings.clone() };
        Stack::new(&settings, &self.input.problem).run(gpu, way, progress).await
    }
}

/// Whose bytes are held at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Share {
    /// The streams and the gradients by them.
    Streams,
    /// Working space of the layer that is on.
    Layer,
    /// Bucket ids that layers keep for their backward pass.
    Kept,
    /// Activations that ordinary layers store for theirs.
    Stored,
    Parameters,
    Gradients,
}

impl Share {
    pub const ALL: [Self; 6] =
        [Self::Streams, Self::Layer, Self::Kept, Self::Stored, Self::Parameters, Self::Gradients];
}

/// The part of a pass that a moment belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Forward,
    Backward,
}

/// What stood in memory when a layer had run and nothing was given back yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    pub phase: Phase,
    pub layer: usize,
    /// Bytes in the order of [`Share::ALL`].
    pub shares: [u64; 6],
    /// Name, share and bytes of every buffer of the layer that is on.
    pub buffers: Vec<(&'static str, Share, u64)>,
    /// Bytes of the ledger, and the most since the layer began, what was there before the stack left out.
    pub ledger: u64,
    pub peak: u64,
}

impl Moment {
    /// The most that was held beside parameters and their gradients.
    pub fn activation_bytes(&self) -> u64 {
        let apart: u64 = [Share::Parameters, Share::Gradients].iter().map(|share| self.of(*share)).sum();
        self.peak - apart
    }

    pub fn of(&self, share: Share) -> u64 {
        self.shares[share as usize]
    }
}

/// Cost of all layers of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// On the device, by its timestamps where there are any.
    pub ms: f64,
    /// Until everything was done, uploads of parameters included.
    pub wall_ms: f64,
    pub multiply_adds: f64,
}

/// What a run of a stack showed.
#[derive(Clone, Debug, PartialEq)]
pub struct Passage {
    pub way: Way,
    pub forward: Cost,
    pub backward: Cost,
    pub moments: Vec<Moment>,
    /// `norm(rebuilt - input) / norm(input)` of each layer, of both streams; empty with stored ones.
    pub errors: Vec<f64>,
    /// Bucket ids that differ when the rebuilt stream is hashed again, of each layer; empty where they
    /// are kept.
    pub flips: Vec<u64>,
}

impl Passage {
    /// Most bytes held at once beside parameters and their gradients.
    pub fn activation_bytes(&self) -> u64 {
        self.moments.iter().map(Moment::activation_bytes).max().unwrap_or(0)
    }

    /// Most bytes of parameters and their gradients held at once.
    pub fn parameter_bytes(&self) -> u64 {
        let held = |moment: &Moment| moment.of(Share::Parameters) + moment.of(Share::Gradients);
        self.moments.iter().map(held).max().unwrap_or(0)
    }

    /// Most bytes held at once, everything counted.
    pub fn peak_bytes(&self) -> u64 {
        self.moments.iter().map(|moment| moment.peak).max().unwrap_or(0)
    }

    /// Largest error of a layer; 0 where nothing is rebuilt.
    pub fn reconstruction_error(&self) -> f64 {
        self.errors.iter().copied().fold(0.0, f64::max)
    }
}

impl Stack {
    /// The stack that settings ask for: both streams begin as the queries of all heads side by side, at
    /// unit variance; matrices have seeded normal entries of variance 1 / inputs, gains are 1, biases 0.
    pub fn new(settings: &Settings, problem: &Problem) -> Self {
        let Dims { n_q: n, heads, d, .. } = problem.dims;
        let layer = layer(settings, &problem.dims);
        let mean_square =
            problem.q.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>() / problem.q.len().max(1) as f64;
        let scale = if mean_square > 0.0 { 1.0 / mean_square.sqrt() } else { 0.0 };
        let (n, heads, d) = (n as usize, heads as usize, d as usize);
        let at = |i: usize, c: usize| problem.q[(c / d * n + i) * d + c % d];
        let input: Vec<f32> = (0..n)
            .flat_map(|i| (0..heads * d).map(move |c| (i, c)))
            .map(|(i, c)| (f64::from(at(i, c)) * scale) as f32)
            .collect();
        let parameters = (0..settings.layers).map(|at| seeded(&layer, settings.seed, at)).collect();
        Self { layer, parameters, inputs: [input.clone(), input], seed: settings.seed }
    }

    pub fn depth(&self) -> usize {
        self.parameters.len()
    }

    /// What the plans of a layer start from.
    fn problem(&self, layer: usize, way: Way) -> Problem {
        let mut named = self.parameters[layer].clone();
        let [x1, x2] = self.inputs.clone();
        if way.stored {
            named.insert(STREAM, x1);
        } else {
            named.extend([(STREAMS[0], x1), (STREAMS[1], x2)]);
        }
        let dims = match &self.layer.branches {
            Branches::Reformer { dims, .. } => *dims,
            Branches::Linear => {
                let (n, d) = (self.layer.n, self.layer.width);
                Dims { n_q: n, n_kv: n, heads: 1, k_heads: 1, v_heads: 1, d, d_v: d }
            }
        };
        Problem {
            dims,
            q: Vec::new(),
            k: Vec::new(),
            v: Vec::new(),
            rotations: Rotations::Seeded(self.seed.wrapping_add(layer as u32)),
            projections: Projections::Mean,
            named,
        }
    }

    /// Forward and backward pass.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn run(&self, gpu: &Gpu, way: Way, progress: &Progress) -> Result<Passage, LabError> {
        let mut walk = Walk::new(gpu, self, way).await?;
        walk.forward(progress).await?;
        walk.loss(1.0).await?;
        walk.backward(progress).await?;
        Ok(walk.passage)
    }
}

/// The layer that settings ask for, on queries of these sizes.
pub fn layer(settings: &Settings, of: &Dims) -> Layer {
    let Dims { n_q: n, heads, d, .. } = *of;
    let dims = Dims { n_q: n, n_kv: n, heads, k_heads: heads, v_heads: heads, d, d_v: d };
    let attention = match measured(&Settings { method: Method::Lsh, ..settings.clone() }, &dims) {
        Measured::Lsh(lsh) if settings.attention == LayerAttention::Lsh => Attention::Lsh(lsh),
        _ => Attention::Full(settings.effective_semantics()),
    };
    let branches = Branches::Reformer { dims, attention, d_ff: settings.hidden_width(), chunks: settings.ff_chunks };
    Layer { n, width: heads * d, branches }
}

/// Parameters of a layer.
fn seeded(layer: &Layer, seed: u32, at: u32) -> Named {
    let values = (0u64..).zip(layer.parameters()).map(|(index, parameter)| {
        let tag = (u64::from(at) << 48) | (index << 40);
        let deviation = 1.0 / (parameter.inputs.max(1) as f32).sqrt();
        let entry = |i: usize| match parameter.inputs {
            0 if parameter.name.ends_with("gain") => 1.0,
            0 => 0.0,
            _ => normal(seed, Stream::Weights, tag | i as u64) * deviation,
        };
        (parameter.name, (0..parameter.len()).map(entry).collect())
    });
    values.collect()
}

/// A stack on its way through its layers.
pub struct Walk<'a> {
    gpu: &'a Gpu,
    stack: &'a Stack,
    way: Way,
    /// The streams, and the layer that is on.
    work: Workspace,
    parameters: Vec<Workspace>,
    /// On the device, one a layer once it has been gone back through.
    gradients: Vec<Workspace>,
    /// What outlives a layer for its backward pass.
    kept: Vec<Workspace>,
    /// Bytes of the ledger that are not the stack's.
    before: u64,
    /// Inputs of the layers, and their bucket ids where they are hashed again.
    inputs: Vec<Vec<f32>>,
    buckets: Vec<Vec<u32>>,
    pub passage: Passage,
}

impl<'a> Walk<'a> {
    /// # Errors
    /// When the device cannot hold the parameters.
    pub async fn new(gpu: &'a Gpu, stack: &'a Stack, way: Way) -> Result<Self, LabError> {
        let before = gpu.ledger.bytes();
        let mut parameters: Vec<Workspace> = (0..stack.depth()).map(|_| Workspace::default()).collect();
        if !way.swap {
            for (layer, held) in parameters.iter_mut().enumerate() {
                let plan = stack.layer.forward(gpu.limits)?;
                let names: BTreeSet<_> = stack.layer.parameters().iter().map(|parameter| parameter.name).collect();
                let buffers = plan.buffers.into_iter().filter(|spec| names.contains(spec.name)).collect();
                let plan = Plan { buffers, ..Plan::default() };
                held.prepare(gpu, &plan, &stack.problem(layer, way)).await?;
            }
        }
        let each = || (0..stack.depth()).map(|_| Workspace::default()).collect();
        let passage = Passage {
            way,
            forward: Cost::default(),
            backward: Cost::default(),
            moments: Vec::new(),
            errors: Vec::new(),
            flips: Vec::new(),
        };
        Ok(Self {
            gpu,
            stack,
            way,
            work: Workspace::default(),
            parameters,
            gradients: each(),
            kept: each(),
            before,
            inputs: Vec::new(),
            buckets: Vec::new(),
            passage,
        })
    }

    fn streams(&self) -> &'static [&'static str] {
        if self.way.stored { &[STREAM] } else { &STREAMS }
    }

    fn is_parameter(&self, name: &str) -> bool {
        self.stack.layer.parameters().iter().any(|parameter| parameter.name == name)
    }

    fn is_gradient(&self, name: &str) -> bool {
        self.stack.layer.parameters().iter().any(|parameter| parameter.gradient == name)
    }

    fn is_stream(name: &str) -> bool {
        STREAMS.contains(&name) || GRADIENTS.contains(&name) || [STREAM, GRADIENT].contains(&name)
    }

    /// Whether LSH attention runs, whose ids can be kept.
    fn hashes(&self) -> bool {
        matches!(&self.stack.layer.branches, Branches::Reformer { attention: Attention::Lsh(_), .. })
    }

    /// A stream or the gradient by it, padding left out.
    ///
    /// # Errors
    /// When the device fails.
    pub async fn stream(&self, name: &str) -> Result<Vec<f32>, Fault> {
        Ok(super::unpadded(&self.work.read_f32(self.gpu, name, 0).await?, self.stack.layer.width))
    }

    /// The gradient by a parameter of a layer that has been gone back through, padding left out.
    ///
    /// # Errors
    /// When the device fails.
    pub async fn gradient(&self, layer: usize, name: &str) -> Result<Vec<f32>, Fault> {
        let mut all = Vec::new();
        for parameter in self.stack.layer.parameters().iter().filter(|parameter| parameter.name == name) {
            for range in 0..parameter.ranges {
                let rows = self.gradients[layer].read_f32(self.gpu, parameter.gradient, range).await?;
                all.extend(super::unpadded(&rows, parameter.width));
            }
        }
        Ok(all)
    }

    /// The first rows of all streams.
    async fn compared(&self) -> Result<Vec<f32>, Fault> {
        let width = self.stack.layer.width as usize;
        let count = COMPARED_ROWS.min(self.stack.layer.n) as usize * width;
        let mut all = Vec::new();
        for name in self.streams() {
            let mut values = self.stream(name).await?;
            values.truncate(count);
            all.extend(values);
        }
        Ok(all)
    }

    /// Through all layers.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn forward(&mut self, progress: &Progress) -> Result<(), LabError> {
        let layer = &self.stack.layer;
        let limits = self.gpu.limits;
        let plan = if self.way.stored { layer.residual_forward(limits)? } else { layer.forward(limits)? };
        let stored = if self.way.stored { names(&layer.residual_backward(limits)?) } else { BTreeSet::new() };
        for at in 0..self.stack.depth() {
            if !self.way.stored && at > 0 {
                self.inputs.push(self.compared().await?);
            } else if !self.way.stored {
                self.inputs.push(self.first_input());
            }
            let cost = self.run_layer(&plan, at, Phase::Forward).await?;
            add(&mut self.passage.forward, cost);
            if self.way.stored {
                let kept: BTreeSet<_> =
                    stored.iter().copied().filter(|name| !Self::is_stream(name) && !self.is_parameter(name)).collect();
                self.work.hand_over(&mut self.kept[at], |name| kept.contains(name));
            } else if self.hashes() && self.way.rehash {
                let ids = self.ids().await?;
                self.buckets.push(ids);
            } else if self.hashes() {
                self.work.hand_over(&mut self.kept[at], |name| name == BUCKETS);
            }
            self.leave(at);
            self.tell(progress, at + 1);
        }
        Ok(())
    }

    /// What [`Walk::compared`] gives before the first layer.
    fn first_input(&self) -> Vec<f32> {
        let count = (COMPARED_ROWS.min(self.stack.layer.n) * self.stack.layer.width) as usize;
        self.stack.inputs.iter().flat_map(|values| values[..count].to_vec()).collect()
    }

    /// Bucket ids of all heads of the layer that is on.
    async fn ids(&self) -> Result<Vec<u32>, Fault> {
        let Branches::Reformer { dims, .. } = &self.stack.layer.branches else { return Ok(Vec::new()) };
        let mut all = Vec::new();
        for head in 0..dims.heads {
            all.extend(self.work.read_u32(self.gpu, BUCKETS, head).await?);
        }
        Ok(all)
    }

    fn tell(&self, progress: &Progress, done: usize) {
        progress.total.set(2.0 * self.stack.depth() as f64);
        progress.done.set(done as f64);
    }

    /// The gradient of `factor / 2` times the sum of squares of the outputs.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn loss(&mut self, factor: f32) -> Result<(), LabError> {
        let reversible: Vec<_> = STREAMS.into_iter().zip(GRADIENTS).collect();
        let pairs = if self.way.stored { vec![(STREAM, GRADIENT)] } else { reversible };
        let plan = loss_gradient(&self.stack.layer, factor, &pairs, self.gpu.limits)?;
        self.work.prepare(self.gpu, &plan, &self.stack.problem(0, self.way)).await?;
        self.gpu.run(&plan, &self.work, &Progress::default()).await?;
        Ok(())
    }

    /// Back through all layers, the last one first.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn backward(&mut self, progress: &Progress) -> Result<(), LabError> {
        let layer = &self.stack.layer;
        let limits = self.gpu.limits;
        let plan =
            if self.way.stored { layer.residual_backward(limits)? } else { layer.backward(self.way.rehash, limits)? };
        for at in (0..self.stack.depth()).rev() {
            self.kept[at].hand_over(&mut self.work, |_| true);
            let cost = self.run_layer(&plan, at, Phase::Backward).await?;
            add(&mut self.passage.backward, cost);
            if !self.way.stored {
                let rebuilt = self.compared().await?;
                self.passage.errors.insert(0, distance(&rebuilt, &self.inputs[at]));
            }
            if let Some(ids) = self.buckets.get(at) {
                let flips = self.ids().await?.iter().zip(ids).filter(|(new, old)| new != old).count();
                self.passage.flips.insert(0, flips as u64);
            }
            self.leave(at);
            self.tell(progress, 2 * self.stack.depth() - at);
        }
        Ok(())
    }

    /// Runs a layer's plan, its parameters being brought to it, and notes what is held.
    async fn run_layer(&mut self, plan: &Plan, at: usize, phase: Phase) -> Result<Cost, LabError> {
        self.gpu.ledger.reset_peak();
        self.gpu.compile(plan).await?;
        let begun = Instant::now();
        self.parameters[at].hand_over(&mut self.work, |_| true);
        self.work.prepare(self.gpu, plan, &self.stack.problem(at, self.way)).await?;
        let timing = self.gpu.run(plan, &self.work, &Progress::default()).await?;
        let peak = self.gpu.ledger.peak() - self.before;
        self.note(phase, at, peak);
        if self.way.swap && phase == Phase::Backward {
            // To host memory, where they would be added to those of other steps.
            for parameter in self.stack.layer.parameters() {
                for range in 0..parameter.ranges {
                    self.work.read_f32(self.gpu, parameter.gradient, range).await?;
                }
            }
        }
        let multiply_adds = plan.steps().iter().map(|step| step.flops).sum::<f64>() / 2.0;
        Ok(Cost { ms: timing.ms, wall_ms: begun.elapsed().as_secs_f64() * 1e3, multiply_adds })
    }

    fn note(&mut self, phase: Phase, layer: usize, peak: u64) {
        let mut shares = [0; 6];
        let mut buffers = Vec::new();
        for spec in self.work.specs() {
            let share = match spec.name {
                name if Self::is_stream(name) => Share::Streams,
                name if self.is_parameter(name) => Share::Parameters,
                name if self.is_gradient(name) => Share::Gradients,
                _ => Share::Layer,
            };
            let bytes = self.work.bytes(spec.name);
            shares[share as usize] += bytes;
            buffers.push((spec.name, share, bytes));
        }
        buffers.sort_by_key(|(name, share, bytes)| (*share, u64::MAX - bytes, *name));
        let kept = if self.way.stored { Share::Stored } else { Share::Kept };
        for (held, share) in
            [(&self.kept, kept), (&self.parameters, Share::Parameters), (&self.gradients, Share::Gradients)]
        {
            shares[share as usize] += held.iter().map(Workspace::held).sum::<u64>();
        }
        let ledger = self.gpu.ledger.bytes() - self.before;
        self.passage.moments.push(Moment { phase, layer, shares, buffers, ledger, peak });
    }

    /// Gives everything back that is the layer's own.
    fn leave(&mut self, at: usize) {
        let parameters: BTreeSet<_> = self.stack.layer.parameters().iter().map(|parameter| parameter.name).collect();
        let gradients: BTreeSet<_> = self.stack.layer.parameters().iter().map(|parameter| parameter.gradient).collect();
        if !self.way.swap {
            self.work.hand_over(&mut self.parameters[at], |name| parameters.contains(name));
            self.work.hand_over(&mut self.gradients[at], |name| gradients.contains(name));
        }
        self.work.hand_over(&mut Workspace::default(), |name| !Self::is_stream(name));
    }
}

fn names(plan: &Plan) -> BTreeSet<&'static str> {
    plan.buffers.iter().map(|spec| spec.name).collect()
}

fn add(sum: &mut Cost, cost: Cost) {
    sum.ms += cost.ms;
    sum.wall_ms += cost.wall_ms;
    sum.multiply_adds += cost.multiply_adds;
}

/// `norm(a - b) / norm(b)`.
fn distance(a: &[f32], b: &[f32]) -> f64 {
    let apart: f64 = a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum();
    let whole: f64 = b.iter().map(|b| f64::from(*b).powi(2)).sum();
    if apart > 0.0 { (apart / whole).sqrt() } else { 0.0 }
}
