//! What a run of a stack showed: bytes at each moment, cost, and how well inputs were rebuilt.

use super::Way;

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
    Loss,
    Backward,
}

/// What stood in memory when a layer, or the loss, had run and nothing was given back yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    pub phase: Phase,
    /// From 0; the depth of the stack for its loss.
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

/// Cost of all layers of a phase, or of the loss.
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
    /// Rows of each stream that the errors are taken from.
    pub compared_rows: u32,
    pub forward: Cost,
    pub loss: Cost,
    pub backward: Cost,
    /// `-log softmax(logits)[target]` in nats, the mean over the tokens, where there is a vocabulary.
    pub mean_loss: Option<f64>,
    pub moments: Vec<Moment>,
    /// `norm(rebuilt - input) / norm(input)` of each layer, of both streams; empty with stored ones.
    pub errors: Vec<f64>,
    /// Bucket ids that differ when the rebuilt stream is hashed again, of each layer; empty where they
    /// are kept.
    pub flips: Vec<u64>,
}

impl Passage {
    pub(super) fn new(way: Way, compared_rows: u32) -> Self {
        Self {
            way,
            compared_rows,
            forward: Cost::default(),
            loss: Cost::default(),
            backward: Cost::default(),
            mean_loss: None,
            moments: Vec::new(),
            errors: Vec::new(),
            flips: Vec::new(),
        }
    }

    /// Most bytes held at once beside parameters and their gradients.
    pub fn activation_bytes(&self) -> u64 {
        self.moments.iter().map(Moment::activation_bytes).max().unwrap_or(0)
    }

    /// The same while the loss is computed.
    pub fn loss_bytes(&self) -> u64 {
        let losses = self.moments.iter().filter(|moment| moment.phase == Phase::Loss);
        losses.map(Moment::activation_bytes).max().unwrap_or(0)
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
