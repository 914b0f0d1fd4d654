//! The rules in which published implementations of LSH attention differ, as parameters.
//!
//! The default is the Reformer paper (arXiv 2001.04451v2, section 2 and appendix A).

use std::fmt;

/// Factor on `q . u(k)` before the softmax.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScoreScale {
    /// `1 / sqrt(d)`, Reformer equation (1).
    InverseSqrtD,
    /// No further factor.
    One,
    /// This factor.
    Value(f32),
}

impl ScoreScale {
    pub fn factor(self, d: u32) -> f32 {
        match self {
            Self::InverseSqrtD => (1.0 / f64::from(d).sqrt()) as f32,
            Self::One => 1.0,
            Self::Value(factor) => factor,
        }
    }
}

/// How a key's length is taken out: `u(x)` in `q . u(k)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyNorm {
    /// `u(x) = x`.
    None,
    /// `u(x) = x / max(|x|, eps)`.
    L2Max,
    /// `u(x) = x / sqrt(|x|^2 + d * eps)`.
    L2Rms,
}

/// What happens to the pair of a token with itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SelfRule {
    /// An ordinary pair.
    Include,
    /// Its score is replaced by this value, so that it only counts when there is nothing else.
    Value(f32),
    /// Never a pair.
    Exclude,
}

/// What the first chunk of a round sees as "the chunk before".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrap {
    /// Nothing (the paper).
    None,
    /// The last chunk of the same round.
    InRound,
    /// The last chunk of the round before; the first round sees the last one.
    AcrossRounds,
}

/// Everything about a pair's score and visibility that is not a size.
///
/// A masked pair is skipped, never added with a large negative score: its weight is exactly 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Semantics {
    pub score_scale: ScoreScale,
    pub key_norm: KeyNorm,
    pub key_norm_eps: f32,
    pub self_rule: SelfRule,
    /// A query sees no later position.
    pub causal: bool,
    /// A query sees only keys of its own bucket, Reformer equation (4).
    pub same_bucket: bool,
    /// Chunks before and after the query's own that it sees; the paper has 1 and 0, equation (5).
    pub chunks_before: u32,
    pub chunks_after: u32,
    pub wrap: Wrap,
    /// Subtract `ln(N_ij + eps)`, `N_ij` the number of rounds in which the pair is visible, appendix A.
    pub pair_count: bool,
    pub pair_count_eps: f32,
}

impl Default for Semantics {
    fn default() -> Self {
        Self::PAPER
    }
}

impl Semantics {
    /// The Reformer paper.
    pub const PAPER: Self = Self {
        score_scale: ScoreScale::InverseSqrtD,
        key_norm: KeyNorm::L2Max,
        key_norm_eps: 1e-12,
        self_rule: SelfRule::Value(-1e5),
        causal: false,
        same_bucket: true,
        chunks_before: 1,
        chunks_after: 0,
        wrap: Wrap::None,
        pair_count: true,
        pair_count_eps: 0.0,
    };

    /// `softmax(Q K^T / sqrt d) V` with nothing else: what Linformer approximates, and the second
    /// column of every comparison.
    pub const PLAIN: Self = Self { key_norm: KeyNorm::None, self_rule: SelfRule::Include, ..Self::PAPER };

    /// False for a pair that the causal mask or the self rule takes out.
    pub fn sees(&self, query: u32, key: u32) -> bool {
        !(self.causal && key > query || self.self_rule == SelfRule::Exclude && key == query)
    }

    /// Of `n` keys those allowed for the query at `position` when every pair is computed.
    pub fn allowed(&self, position: u32, n: u32) -> u32 {
        let all = if self.causal { n.min(position + 1) } else { n };
        all - u32::from(self.self_rule == SelfRule::Exclude && position < n)
    }
}

/// Bits of the `flags` word that the shaders read; `common.wgsl` gets them from here.
pub mod flags {
    pub const CAUSAL: u32 = 1;
    pub const SAME_BUCKET: u32 = 2;
    pub const PAIR_COUNT: u32 = 4;
    pub const SELF_VALUE: u32 = 8;
    pub const SELF_EXCLUDE: u32 = 16;
    pub const WRAP_IN_ROUND: u32 = 32;
    pub const WRAP_ACROSS_ROUNDS: u32 = 64;
    pub const KEY_NORM_MAX: u32 = 128;
    pub const KEY_NORM_RMS: u32 = 256;
}

impl Semantics {
    /// The `flags` word of this rule.
    pub fn flags(&self) -> u32 {
        let mut word = 0;
        let mut set = |on: bool, bit: u32| word |= if on { bit } else { 0 };
        set(self.causal, flags::CAUSAL);
        set(self.same_bucket, flags::SAME_BUCKET);
        set(self.pair_count, flags::PAIR_COUNT);
        set(matches!(self.self_rule, SelfRule::Value(_)), flags::SELF_VALUE);
        set(self.self_rule == SelfRule::Exclude, flags::SELF_EXCLUDE);
        set(self.wrap == Wrap::InRound, flags::WRAP_IN_ROUND);
        set(self.wrap == Wrap::AcrossRounds, flags::WRAP_ACROSS_ROUNDS);
        set(self.key_norm == KeyNorm::L2Max, flags::KEY_NORM_MAX);
        set(self.key_norm == KeyNorm::L2Rms, flags::KEY_NORM_RMS);
        word
    }

    /// The score that replaces a token's own; 0 when the rule is not [`SelfRule::Value`].
    pub fn self_value(&self) -> f32 {
        if let SelfRule::Value(value) = self.self_rule { value } else { 0.0 }
    }
}

/// A choice that can be written in an address, on the command line and on the screen.
pub trait Choice: Copy + PartialEq + 'static {
    /// Every value with its spelling, in the order of the menus.
    const ALL: &'static [(Self, &'static str)];

    fn spelling(self) -> &'static str {
        Self::ALL.iter().find(|(value, _)| *value == self).map_or("", |(_, name)| name)
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, name)| *name == text).map(|(value, _)| *value)
    }
}

impl Choice for KeyNorm {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::L2Max, "l2-max"), (Self::L2Rms, "l2-rms"), (Self::None, "none")];
}

impl Choice for Wrap {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::None, "none"), (Self::InRound, "in-round"), (Self::AcrossRounds, "across-rounds")];
}

impl fmt::Display for ScoreScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InverseSqrtD => f.write_str("inverse-sqrt-d"),
            Self::One => f.write_str("one"),
            Self::Value(factor) => write!(f, "{factor}"),
        }
    }
}

impl fmt::Display for SelfRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Include => f.write_str("include"),
            Self::Exclude => f.write_str("exclude"),
            Self::Value(value) => write!(f, "{value}"),
        }
    }
}
