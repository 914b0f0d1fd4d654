//! A stack of layers, run one layer at a time. Each layer works in buffers that are given back when it
//! is over, so that the ledger itself tells what stands in memory at each moment.
//!
//! The reversible stack keeps two streams and, for LSH attention, the bucket ids of every layer; the
//! ordinary one stores each layer's activations until its backward pass. At its end stands the loss of a
//! vocabulary, section by section. Targets are drawn and nothing is trained: bytes, time and gradients are
//! what a stack shows.

mod passage;
mod planned;
mod walk;

use super::{LabError, Run, measured};
use crate::gpu::run::Progress;
use crate::gpu::{Gpu, yield_now};
use crate::inputs::rows::pause;
use crate::methods::measure::Measured;
use crate::methods::stack::{Attention, Branches, GRADIENT, GRADIENTS, Layer, Loss, Parameter, STREAM, STREAMS};
use crate::plan::{Limits, Refusal};
use crate::problem::{Dims, Named, Problem, Projections, Rotations};
use crate::random::{Stream, below, normal};
use crate::settings::{LayerAttention, Method, Settings};
pub use passage::{Cost, Moment, Passage, Phase, Share};
pub use planned::planned_bytes;
pub use walk::Walk;

/// Rows, and numbers, of a stream that the reconstruction error is taken from at most.
const COMPARED_ROWS: u32 = 4096;
const COMPARED_NUMBERS: u32 = 1 << 20;
/// Numbers that are drawn between two breaths.
const NUMBERS_A_TURN: usize = 1 << 16;

/// Layers of one shape, their parameters, and what flows in.
#[derive(Clone, Debug)]
pub struct Stack {
    pub layer: Layer,
    pub parameters: Parameters,
    /// `[n, width]` each.
    pub inputs: [Vec<f32>; 2],
    pub loss: Loss,
    pub seed: u32,
}

/// Where the numbers of the layers come from.
#[derive(Clone, Debug)]
pub enum Parameters {
    /// By name, one a layer.
    Given(Vec<Named>),
    /// Drawn when they are needed: matrices have normal entries of variance 1 / inputs, gains are 1, biases 0.
    Seeded { layers: u32 },
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

impl Way {
    /// What flows through a layer.
    pub fn streams(self) -> &'static [&'static str] {
        if self.stored { &[STREAM] } else { &STREAMS }
    }
}

/// A stack to run on an input: all that settings say of it, and how. Other settings than these are the input's
/// and those of LSH attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stacked {
    pub layers: u32,
    pub attention: LayerAttention,
    pub d_ff: Option<u32>,
    pub chunks: u32,
    pub vocabulary: u32,
    pub loss_chunks: u32,
    pub way: Way,
}

impl Stacked {
    /// The reversible stack of the settings.
    pub fn of(settings: &Settings) -> Self {
        let way = Way { stored: false, rehash: settings.rehash, swap: settings.swap };
        let Settings { layers, attention, d_ff, ff_chunks: chunks, vocabulary, loss_chunks, .. } = *settings;
        Self { layers, attention, d_ff, chunks, vocabulary, loss_chunks, way }
    }
}

impl Run {
    /// Runs a stack on the input, in buffers of its own.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn layers(&self, gpu: &Gpu, stacked: Stacked, progress: &Progress) -> Result<Passage, LabError> {
        let Stacked { layers, attention, d_ff, chunks: ff_chunks, vocabulary, loss_chunks, way } = stacked;
        let own = self.outcome.settings.clone();
        let settings = Settings { layers, attention, d_ff, ff_chunks, vocabulary, loss_chunks, ..own };
        Stack::new(&settings, &self.input.problem).await.run(gpu, way, progress).await
    }
}

impl Stack {
    /// The stack that settings ask for: both streams begin as the queries of all heads side by side, at
    /// unit variance.
    pub async fn new(settings: &Settings, problem: &Problem) -> Self {
        let Dims { n_q: n, heads, d, .. } = problem.dims;
        let layer = layer(settings, &problem.dims);
        let mean_square =
            problem.q.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>() / problem.q.len().max(1) as f64;
        let scale = if mean_square > 0.0 { 1.0 / mean_square.sqrt() } else { 0.0 };
        let (n, heads, d) = (n as usize, heads as usize, d as usize);
        let at = |i: usize, c: usize| problem.q[(c / d * n + i) * d + c % d];
        let mut input = Vec::with_capacity(problem.q.len());
        for i in 0..n {
            input.extend((0..heads * d).map(|c| (f64::from(at(i, c)) * scale) as f32));
            pause(i as u32).await;
        }
        let parameters = Parameters::Seeded { layers: settings.layers };
        Self { layer, parameters, inputs: [input.clone(), input], loss: loss(settings), seed: settings.seed }
    }

    pub fn depth(&self) -> usize {
        match &self.parameters {
            Parameters::Given(layers) => layers.len(),
            Parameters::Seeded { layers } => *layers as usize,
        }
    }

    /// Rows of each stream that the reconstruction error is taken from.
    pub fn compared_rows(&self) -> u32 {
        self.layer.n.min(COMPARED_ROWS).min(COMPARED_NUMBERS / self.layer.width)
    }

    /// The parameters of a layer, or after the last those of the loss.
    fn parameters_at(&self, at: usize, way: Way) -> Vec<Parameter> {
        if at < self.depth() {
            self.layer.parameters()
        } else {
            self.loss.parameters(self.layer.width, way.streams().len())
        }
    }

    /// Their numbers.
    async fn numbers(&self, at: usize, way: Way) -> Named {
        match &self.parameters {
            Parameters::Given(layers) => layers.get(at).cloned().unwrap_or_default(),
            Parameters::Seeded { .. } => seeded(&self.parameters_at(at, way), self.seed, at as u32).await,
        }
    }

    /// Bytes of all parameters, padding left out.
    fn parameter_bytes(&self, way: Way) -> u64 {
        let all = (0..=self.depth()).flat_map(|at| self.parameters_at(at, way));
        all.map(|parameter| parameter.len() as u64 * 4).sum()
    }

    /// What flows in, by name.
    fn streams(&self, way: Way) -> Named {
        way.streams().iter().copied().zip(self.inputs.iter().cloned()).collect()
    }

    /// What the plans of a layer, or of the loss, start from, with these numbers.
    fn problem(&self, at: usize, named: Named) -> Problem {
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
            rotations: Rotations::Seeded(self.seed.wrapping_add(at as u32)),
            projections: Projections::Mean,
            named,
        }
    }

    /// The word that each token should give: drawn, since nothing is learnt here.
    pub fn targets(&self) -> Vec<u32> {
        let Loss::Vocabulary { vocabulary, .. } = self.loss else { return Vec::new() };
        (0..u64::from(self.layer.n)).map(|i| below(self.seed, Stream::Targets, i, vocabulary)).collect()
    }

    /// Forward pass, loss and backward pass.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn run(&self, gpu: &Gpu, way: Way, progress: &Progress) -> Result<Passage, LabError> {
        let mut walk = Walk::new(gpu, self, way).await?;
        walk.forward(progress).await?;
        walk.loss(progress).await?;
        walk.backward(progress).await?;
        Ok(walk.passage)
    }
}

/// The loss that settings ask for.
fn loss(settings: &Settings) -> Loss {
    Loss::Vocabulary { vocabulary: settings.vocabulary, sections: settings.loss_chunks }
}

/// Whether a device can hold a layer of the reversible stack that settings ask for, and its loss.
///
/// # Errors
/// The first buffer that it cannot hold.
pub fn fits(settings: &Settings, of: &Dims, limits: Limits) -> Result<(), Refusal> {
    let layer = layer(settings, of);
    layer.backward(settings.rehash, limits)?;
    layer.loss(loss(settings), &pairs(Way::default()), limits)?;
    Ok(())
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

/// Each stream with the buffer of its gradient.
fn pairs(way: Way) -> Vec<(&'static str, &'static str)> {
    if way.stored { vec![(STREAM, GRADIENT)] } else { STREAMS.into_iter().zip(GRADIENTS).collect() }
}

/// Drawn parameters of the layer at a place.
async fn seeded(parameters: &[Parameter], seed: u32, at: u32) -> Named {
    let mut named = Named::new();
    for (index, parameter) in (0u64..).zip(parameters) {
        let tag = (u64::from(at) << 48) | (index << 40);
        let deviation = 1.0 / (parameter.inputs.max(1) as f32).sqrt();
        let entry = |i: usize| match parameter.inputs {
            0 if parameter.name.ends_with("gain") => 1.0,
            0 => 0.0,
            _ => normal(seed, Stream::Weights, tag | i as u64) * deviation,
        };
        let mut numbers = Vec::with_capacity(parameter.len());
        while numbers.len() < parameter.len() {
            let end = (numbers.len() + NUMBERS_A_TURN).min(parameter.len());
            numbers.extend((numbers.len()..end).map(entry));
            yield_now().await;
        }
        named.insert(parameter.name, numbers);
    }
    named
}
