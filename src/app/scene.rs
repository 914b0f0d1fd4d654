//! What the views look at and what they may ask for. A view never changes the world itself.

use crate::inputs::Input;
use crate::lab::rank::LowRank;
use crate::lab::rank::trained::Layer;
use crate::lab::stack::{Passage, Stacked};
use crate::lab::theory::{Experiment, Series};
use crate::lab::turns::Timed;
use crate::lab::{ByRounds, Errors, Fitted, Matrix, Moved, SeparateKeys, Start, TheoremErrors, Untrained};
use crate::methods::measure::{Weights, Window};
use crate::outcome::{MapImage, Outcome, RowWeights, Sparsity};
use crate::plan::Limits;
use crate::presets::Preset;
use crate::problem::Source;
use crate::semantics::Choice;
use crate::settings::{Method, Settings};
#[cfg(target_arch = "wasm32")]
use crate::settings::{SettingsError, listed};
use crate::tables::{LINFORMER_K, Saved, Sizes};
use std::rc::Rc;

/// The views that the strip of steps opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum View {
    Buckets,
    Attention,
    Result,
    Memory,
    Codes,
    Projection,
    Theory,
    Rank,
    Tables,
    Layers,
    Compare,
}

impl Choice for View {
    const ALL: &'static [(Self, &'static str)] = &[
        (Self::Buckets, "buckets"),
        (Self::Attention, "attention"),
        (Self::Result, "result"),
        (Self::Memory, "memory"),
        (Self::Codes, "codes"),
        (Self::Projection, "projection"),
        (Self::Theory, "theory"),
        (Self::Rank, "rank"),
        (Self::Tables, "tables"),
        (Self::Layers, "layers"),
        (Self::Compare, "compare"),
    ];
}

impl View {
    /// That an address names no view.
    #[cfg(target_arch = "wasm32")]
    pub fn unknown(name: &str) -> SettingsError {
        let names: Vec<&str> = Self::ALL.iter().map(|(_, name)| *name).collect();
        SettingsError { key: "view".to_owned(), value: name.to_owned(), allowed: listed(&names) }
    }
}

/// What a view needs computed on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Question {
    /// Computed pairs, from all pairs.
    PairMap {
        head: u32,
        window: Window,
    },
    /// Weights from sampled rows.
    WeightMap {
        which: Weights,
        head: u32,
        window: Window,
    },
    /// One query's weights on every key.
    Row {
        head: u32,
        query: u32,
    },
    Sparsity {
        head: u32,
    },
    /// The output when only the strongest keys are kept.
    Strongest {
        head: u32,
        count: u32,
    },
    /// Accuracy of LSH attention on the duplication task with another number of rounds.
    Accuracy {
        rounds: u32,
    },
    /// LSH attention under the rules of a preset.
    Under {
        preset: &'static Preset,
    },
    /// What a change of the last token does to earlier outputs.
    LastToken,
    /// The buckets of keys that are not the queries.
    SeparateKeys,
    /// In how many rounds pairs are visible.
    ByRounds,
    /// The singular values of P, or of that of random Q and K.
    LowRank {
        head: u32,
        random: bool,
    },
    /// The low rank of every head of the trained model.
    Trained,
    /// The errors that Linformer's theorems speak about, with k rows.
    Theorem {
        k: u32,
    },
    /// What Linformer saves at the length of these sizes.
    Savings {
        sizes: Sizes,
    },
    /// The milliseconds of the three methods at these sizes.
    Speed {
        sizes: Sizes,
    },
    /// E or F of a head.
    Matrix {
        source: Source,
        head: u32,
    },
    /// Errors of the untrained projections with k rows.
    Untrained {
        head: u32,
        k: u32,
    },
    /// Goes on with a fit of E and F until it has made so many steps.
    Fit {
        start: Start,
        until: u32,
    },
    /// The errors after a fit of so many steps.
    FittedErrors {
        start: Start,
        steps: u32,
    },
    /// A stack of layers, forward and back.
    Layers(Stacked),
    /// An experiment that theory speaks about, on points of its own.
    Experiment {
        experiment: Experiment,
        seed: u32,
    },
}

impl Question {
    /// Whether the answer to another question is of no use once this one is answered.
    pub fn supersedes(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Fit { .. }, Self::Fit { .. }))
    }

    /// Whether it is answered once that has begun, even when no view asks any more: a fit that is dropped
    /// half-way is lost.
    pub fn is_seen_through(&self) -> bool {
        matches!(self, Self::Fit { .. })
    }

    /// Whether the answer holds whatever the settings are.
    pub fn stands_alone(&self) -> bool {
        matches!(self, Self::Experiment { .. } | Self::Savings { .. } | Self::Speed { .. } | Self::Trained)
    }
}

#[derive(Clone)]
pub enum Answer {
    Map(Rc<MapImage>),
    Row(Rc<RowWeights>),
    Sparsity(Rc<Sparsity>),
    /// Output `[n, d_v]` of one head.
    Strongest(Rc<Vec<f32>>),
    /// From 0 to 1; `None` for any other input.
    Accuracy(Option<f64>),
    Under(Rc<Outcome>),
    LastToken(Rc<Moved>),
    /// `None` where nothing was hashed.
    SeparateKeys(Option<Rc<SeparateKeys>>),
    ByRounds(Option<Rc<ByRounds>>),
    Theorem(TheoremErrors),
    /// For each of [`LINFORMER_K`] that the paper prints at the length.
    Savings([Option<Saved>; LINFORMER_K.len()]),
    Speed(Rc<[(Method, Timed)]>),
    /// `None` where there is none.
    Matrix(Option<Rc<Matrix>>),
    Untrained(Rc<Untrained>),
    Fit(Rc<Fitted>),
    FittedErrors(Errors),
    Layers(Rc<Passage>),
    Series(Rc<Series>),
    LowRank(Rc<LowRank>),
    Trained(Rc<Vec<Layer>>),
    /// A sentence: why there is none.
    Failed(String),
}

/// What a view wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// The pointer is on this token, in any view.
    Hover(u32),
    /// A click on a token: locks it, or unlocks it when it is the locked one.
    Click(u32),
    ShowHead(u32),
    ShowRound(u32),
    Open(View),
    /// Wanted for the frame being drawn; asking again for what is known costs nothing. Questions
    /// that no view asks for any more are forgotten.
    Ask(Question),
    /// New settings; the result reruns by itself.
    Set(Box<Settings>),
    /// Runs a method that was put off because it takes long.
    RunNow(Method),
    /// Checks every step on this device.
    Check,
    Cancel,
    /// Runs what was cancelled, and asks anew what was not answered.
    Resume,
}

/// Why a method has no outcome (yet).
#[derive(Clone, Debug, PartialEq)]
pub enum Missing {
    /// Queued or running.
    Soon,
    /// Put off: it would take about this many seconds, and runs when asked.
    PutOff { seconds: f64 },
    /// In words: refused by the device or failed.
    Failed(String),
}

/// Everything that a view may look at, for one frame.
pub struct Scene<'a> {
    pub settings: &'a Settings,
    pub input: &'a Input,
    /// The method whose pipeline is on the screen: `Full`, `Lsh` or `Linformer`.
    pub method: Method,
    /// Outcomes of the three methods on this input and these settings.
    pub full: Result<&'a Rc<Outcome>, &'a Missing>,
    pub lsh: Result<&'a Rc<Outcome>, &'a Missing>,
    pub linformer: Result<&'a Rc<Outcome>, &'a Missing>,
    /// The answer to a question about the method on the screen, once it is known.
    pub answer: &'a dyn Fn(Question) -> Option<Answer>,
    pub limits: Limits,
    /// The token lit up in all views: the locked one, else the hovered one.
    pub token: Option<u32>,
    pub locked: bool,
    pub head: u32,
    pub round: u32,
    /// Name of the adapter, and whether it computes on the CPU.
    pub adapter: &'a str,
    pub software: bool,
}

impl Scene<'_> {
    /// The outcome of the method on the screen.
    pub fn current(&self) -> Result<&Rc<Outcome>, &Missing> {
        match self.method {
            Method::Lsh => self.lsh,
            Method::Linformer => self.linformer,
            Method::Full | Method::FullRowwise | Method::FullMaterialized => self.full,
        }
    }
}
