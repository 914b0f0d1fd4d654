//! The way through a stack: forward, loss, and back, one plan at a time, with a note of what is held.

use super::passage::{Cost, Moment, Passage, Phase, Share};
use super::{Stack, Way, pairs};
use crate::gpu::run::Progress;
use crate::gpu::workspace::{Words, Workspace};
use crate::gpu::{Fault, Gpu};
use crate::lab::{LabError, unpadded};
use crate::methods::stack::{
    Attention, BUCKETS, Branches, GRADIENT, GRADIENTS, KEPT, LOSSES, Layer, Parameter, STREAM, STREAMS, TARGETS,
};
use crate::plan::{Limits, Plan, Refusal};
use crate::problem::Named;
use std::collections::BTreeSet;
use web_time::Instant;

/// A stack on its way through its layers.
pub struct Walk<'a> {
    gpu: &'a Gpu,
    stack: &'a Stack,
    way: Way,
    /// The streams, and the layer that is on.
    work: Workspace,
    /// One a layer, and the last for the loss: on the device, or in host memory where they are swapped.
    parameters: Vec<Workspace>,
    host: Vec<Named>,
    /// On the device, alike, once the layer has been gone back through.
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
        let each = |count: usize| (0..count).map(|_| Workspace::default()).collect::<Vec<_>>();
        let mut walk = Self {
            gpu,
            stack,
            way,
            work: Workspace::default(),
            parameters: each(stack.depth() + 1),
            host: Vec::new(),
            gradients: each(stack.depth() + 1),
            kept: each(stack.depth()),
            before,
            inputs: Vec::new(),
            buckets: Vec::new(),
            passage: Passage::new(way, stack.compared_rows()),
        };
        // Refused before anything is drawn.
        let plans = [walk.forward_plan()?, walk.loss_plan()?];
        backward(&stack.layer, way, gpu.limits)?;
        if way.swap {
            Refusal::beyond_host("all parameters", stack.parameter_bytes(way))?;
        }
        let parameters = plans.each_ref().map(|plan| part(plan, |name| walk.is_parameter(name)));
        for at in 0..=stack.depth() {
            let numbers = stack.numbers(at, way).await;
            if way.swap {
                walk.host.push(numbers);
            } else {
                let plan = &parameters[usize::from(at == stack.depth())];
                walk.parameters[at].prepare(gpu, plan, &stack.problem(at, numbers)).await?;
            }
        }
        let streams = part(&plans[0], is_stream);
        walk.work.prepare(gpu, &streams, &stack.problem(0, stack.streams(way))).await?;
        Ok(walk)
    }

    fn forward_plan(&self) -> Result<Plan, Refusal> {
        forward(&self.stack.layer, self.way, self.gpu.limits)
    }

    fn loss_plan(&self) -> Result<Plan, Refusal> {
        self.stack.layer.loss(self.stack.loss, &pairs(self.way), self.gpu.limits)
    }

    fn all_parameters(&self) -> impl Iterator<Item = Parameter> + use<> {
        let [layer, loss] = [0, self.stack.depth()].map(|at| self.stack.parameters_at(at, self.way));
        layer.into_iter().chain(loss)
    }

    fn is_parameter(&self, name: &str) -> bool {
        self.all_parameters().any(|parameter| parameter.name == name)
    }

    fn is_gradient(&self, name: &str) -> bool {
        self.all_parameters().any(|parameter| parameter.gradient == name)
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
        Ok(unpadded(&self.work.read_f32(self.gpu, name, 0).await?, self.stack.layer.width))
    }

    /// The gradient by a parameter of a layer that has been gone back through, or of the loss; padding left out.
    ///
    /// # Errors
    /// When the device fails.
    pub async fn gradient(&self, layer: usize, name: &str) -> Result<Vec<f32>, Fault> {
        let mut all = Vec::new();
        for parameter in self.all_parameters().filter(|parameter| parameter.name == name) {
            for range in 0..parameter.ranges {
                let rows = self.gradients[layer].read_f32(self.gpu, parameter.gradient, range).await?;
                all.extend(unpadded(&rows, parameter.width));
            }
        }
        Ok(all)
    }

    /// The first rows of all streams.
    async fn compared(&self) -> Result<Vec<f32>, Fault> {
        let width = self.stack.layer.width;
        let words = u64::from(self.stack.compared_rows()) * u64::from(width.next_multiple_of(4));
        let mut all = Vec::new();
        for name in self.way.streams() {
            if let Some(Words::F32(rows)) = self.work.read(self.gpu, name, 0, 0, words).await? {
                all.extend(unpadded(&rows, width));
            }
        }
        Ok(all)
    }

    /// Through all layers.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn forward(&mut self, progress: &Progress) -> Result<(), LabError> {
        let plan = self.forward_plan()?;
        let back = backward(&self.stack.layer, self.way, self.gpu.limits)?;
        let kept = kept(&self.stack.layer, self.way, &plan, &back);
        for at in 0..self.stack.depth() {
            if !self.way.stored && at > 0 {
                self.inputs.push(self.compared().await?);
            } else if !self.way.stored {
                self.inputs.push(self.first_input());
            }
            let cost = self.run_layer(&plan, at, Phase::Forward).await?;
            add(&mut self.passage.forward, cost);
            if self.hashes() && self.way.rehash {
                let ids = self.ids().await?;
                self.buckets.push(ids);
            }
            self.work.hand_over(&mut self.kept[at], |name| kept.contains(name));
            self.leave(at);
            self.tell(progress, at + 1);
        }
        Ok(())
    }

    /// What [`Walk::compared`] gives before the first layer.
    fn first_input(&self) -> Vec<f32> {
        let count = (self.stack.compared_rows() * self.stack.layer.width) as usize;
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

    /// A layer forward, the loss, a layer backward: one each.
    fn tell(&self, progress: &Progress, done: usize) {
        progress.total.set(2.0 * self.stack.depth() as f64 + 1.0);
        progress.done.set(done as f64);
    }

    /// The loss of the outputs, and its gradient by them.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn loss(&mut self, progress: &Progress) -> Result<(), LabError> {
        let (plan, depth) = (self.loss_plan()?, self.stack.depth());
        self.passage.loss = self.run_layer(&plan, depth, Phase::Loss).await?;
        if self.stack.loss.has_words() {
            let losses = self.work.read_f32(self.gpu, LOSSES, 0).await?;
            let sum: f64 = losses.iter().map(|loss| f64::from(*loss)).sum();
            self.passage.mean_loss = Some(sum / losses.len() as f64);
        }
        self.leave(depth);
        self.tell(progress, depth + 1);
        Ok(())
    }

    /// Back through all layers, the last one first.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn backward(&mut self, progress: &Progress) -> Result<(), LabError> {
        let plan = backward(&self.stack.layer, self.way, self.gpu.limits)?;
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
            self.tell(progress, 2 * self.stack.depth() + 1 - at);
        }
        Ok(())
    }

    /// Runs the plan of a layer or of the loss, its parameters being brought to it, and notes what is held.
    async fn run_layer(&mut self, plan: &Plan, at: usize, phase: Phase) -> Result<Cost, LabError> {
        self.gpu.ledger.reset_peak();
        self.gpu.compile(plan).await?;
        // What is swapped is filled from host memory, and nothing else is filled but rotations.
        let numbers = self.host.get_mut(at).map(std::mem::take).unwrap_or_default();
        let problem = self.stack.problem(at, numbers);
        let begun = Instant::now();
        self.parameters[at].hand_over(&mut self.work, |_| true);
        self.work.prepare(self.gpu, plan, &problem).await?;
        if phase == Phase::Loss {
            self.work.write_u32(self.gpu, TARGETS, 0, &self.stack.targets());
        }
        let timing = self.gpu.run(plan, &self.work, &Progress::default()).await?;
        let peak = self.gpu.ledger.peak() - self.before;
        self.note(phase, at, peak);
        if self.way.swap {
            // To host memory, where they would be added to those of other steps.
            for parameter in self.all_parameters().filter(|parameter| plan.find(parameter.gradient).is_some()) {
                for range in 0..parameter.ranges {
                    self.work.read_f32(self.gpu, parameter.gradient, range).await?;
                }
            }
        }
        let wall_ms = begun.elapsed().as_secs_f64() * 1e3;
        if let Some(host) = self.host.get_mut(at) {
            *host = problem.named;
        }
        let multiply_adds = plan.steps().iter().map(|step| step.flops).sum::<f64>() / 2.0;
        Ok(Cost { ms: timing.ms, wall_ms, multiply_adds })
    }

    fn note(&mut self, phase: Phase, layer: usize, peak: u64) {
        let mut shares = [0; 6];
        let mut buffers = Vec::new();
        for spec in self.work.specs() {
            let share = match spec.name {
                name if is_stream(name) => Share::Streams,
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
        let each = || self.all_parameters();
        let parameters: BTreeSet<_> = each().map(|parameter| parameter.name).collect();
        let gradients: BTreeSet<_> = each().map(|parameter| parameter.gradient).collect();
        if !self.way.swap {
            self.work.hand_over(&mut self.parameters[at], |name| parameters.contains(name));
            self.work.hand_over(&mut self.gradients[at], |name| gradients.contains(name));
        }
        self.work.hand_over(&mut Workspace::default(), |name| !is_stream(name));
    }
}

/// The plan's buffers of these names alone.
fn part(plan: &Plan, picked: impl Fn(&str) -> bool) -> Plan {
    Plan { buffers: plan.buffers.iter().filter(|spec| picked(spec.name)).cloned().collect(), ..Plan::default() }
}

pub(super) fn is_stream(name: &str) -> bool {
    STREAMS.contains(&name) || GRADIENTS.contains(&name) || [STREAM, GRADIENT].contains(&name)
}

pub(super) fn forward(layer: &Layer, way: Way, limits: Limits) -> Result<Plan, Refusal> {
    if way.stored { layer.residual_forward(limits) } else { layer.forward(way.rehash, limits) }
}

pub(super) fn backward(layer: &Layer, way: Way, limits: Limits) -> Result<Plan, Refusal> {
    if way.stored { layer.residual_backward(limits) } else { layer.backward(way.rehash, limits) }
}

/// What the forward pass of a layer leaves for its backward pass.
pub(super) fn kept(layer: &Layer, way: Way, there: &Plan, back: &Plan) -> BTreeSet<&'static str> {
    let own: BTreeSet<_> = layer.parameters().iter().map(|parameter| parameter.name).collect();
    let outlives = |name: &str| if way.stored { !is_stream(name) && !own.contains(name) } else { name == KEPT };
    let both = there.buffers.iter().map(|spec| spec.name).filter(|name| back.find(name).is_some());
    both.filter(|name| outlives(name)).collect()
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
