//! The table of settings: names, words, ranges, and how each is read and written.

use super::{MAX_BUCKETS, MAX_N, Method, Settings};
use crate::semantics::{Choice, ScoreScale, SelfRule};
use crate::text::{Text, fill};

/// One setting: its name in an address and on the command line, and how it is read and written.
pub struct Key {
    pub name: &'static str,
    pub help: Text,
    /// What is allowed, in words.
    pub allowed: fn() -> String,
    pub get: fn(&Settings) -> String,
    /// False when the text is not allowed; the settings are then unchanged.
    pub set: fn(&mut Settings, &str) -> bool,
}

/// The method of a stack of layers, whose attention is LSH attention.
const REVERSIBLE: &str = "reversible";

fn store<T>(target: &mut T, value: Option<T>) -> bool {
    value.map(|value| *target = value).is_some()
}

fn whole(text: &str, low: u32, high: u32) -> Option<u32> {
    text.parse().ok().filter(|value| (low..=high).contains(value))
}

fn real(text: &str, low: f32, high: f32) -> Option<f32> {
    text.parse().ok().filter(|value: &f32| (low..=high).contains(value))
}

fn optional(text: &str, low: u32, high: u32) -> Option<Option<u32>> {
    if text == "auto" { Some(None) } else { whole(text, low, high).map(Some) }
}

fn written(value: Option<u32>) -> String {
    value.map_or_else(|| "auto".to_owned(), |value| value.to_string())
}

/// `names or words`, where the names are spelled as they are read.
fn or(names: Text, words: &str) -> String {
    fill(Text::AllowedOr, &[names.get(), words])
}

fn whole_range(words: Text, low: u32, high: u32) -> String {
    fill(words, &[&low.to_string(), &high.to_string()])
}

/// The spellings of a choice, as a sentence lists them.
pub(crate) fn listed(names: &[&str]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => fill(Text::AllowedOr, &[&first.join(", "), last]),
        _ => names.concat(),
    }
}

fn spellings<C: Choice>(_: fn(&Settings) -> C) -> String {
    listed(&C::ALL.iter().map(|(_, name)| *name).collect::<Vec<_>>())
}

/// How a kind of setting says its range.
macro_rules! allowed {
    (whole $low:literal $high:expr) => {
        || whole_range(Text::AllowedWhole, $low, $high)
    };
    (real $low:literal $high:expr) => {
        || fill(Text::AllowedReal, &[&f32::to_string(&$low), &f32::to_string(&$high)])
    };
}

macro_rules! key {
    ($name:literal, $help:expr, $($field:ident).+, choice) => {
        Key { name: $name, help: $help,
            allowed: || spellings(|s| s.$($field).+),
            get: |s| s.$($field).+.spelling().to_owned(),
            set: |s, text| store(&mut s.$($field).+, Choice::parse(text)) }
    };
    ($name:literal, $help:expr, $($field:ident).+, switch) => {
        Key { name: $name, help: $help,
            allowed: || listed(&["true", "false"]),
            get: |s| s.$($field).+.to_string(),
            set: |s, text| store(&mut s.$($field).+, text.parse().ok()) }
    };
    ($name:literal, $help:expr, $($field:ident).+, $read:ident $low:literal $high:expr) => {
        Key { name: $name, help: $help,
            allowed: allowed!($read $low $high),
            get: |s| s.$($field).+.to_string(),
            set: |s, text| store(&mut s.$($field).+, $read(text, $low, $high)) }
    };
}

/// Every setting, in the order of the help text.
pub const KEYS: &[Key] = &[
    key!("input", Text::SetInput, input, choice),
    key!("sample", Text::SetSample, sample, choice),
    Key {
        name: "method",
        help: Text::SetMethod,
        allowed: || {
            let names = Method::ALL.iter().map(|(_, name)| *name);
            listed(&names.chain([REVERSIBLE]).collect::<Vec<_>>())
        },
        get: |s| if s.reversible { REVERSIBLE } else { s.method.spelling() }.to_owned(),
        set: |s, text| {
            let reversible = text == REVERSIBLE;
            let known = store(&mut s.method, if reversible { Some(Method::Lsh) } else { Choice::parse(text) });
            s.reversible = if known { reversible } else { s.reversible };
            known
        },
    },
    key!("n", Text::SetN, n, whole 1 MAX_N),
    key!("heads", Text::SetHeads, heads, whole 1 16),
    key!("d", Text::SetD, d, whole 1 128),
    key!("seed", Text::SetSeed, seed, whole 0 u32::MAX),
    key!("rounds", Text::SetRounds, rounds, whole 1 16),
    Key {
        name: "buckets",
        help: Text::SetBuckets,
        allowed: || or(Text::AllowedAuto, &whole_range(Text::AllowedEven, 2, MAX_BUCKETS)),
        get: |s| written(s.buckets),
        set: |s, text| store(&mut s.buckets, optional(text, 2, MAX_BUCKETS).filter(|b| b.is_none_or(|b| b % 2 == 0))),
    },
    Key {
        name: "chunk",
        help: Text::SetChunk,
        allowed: || or(Text::AllowedAuto, &whole_range(Text::AllowedWhole, 1, MAX_N)),
        get: |s| written(s.chunk),
        set: |s, text| store(&mut s.chunk, optional(text, 1, MAX_N)),
    },
    key!("bucket-rule", Text::SetBucketRule, bucket_rule, choice),
    key!("short", Text::SetShort, short, choice),
    key!("hash", Text::SetHash, hash, choice),
    key!("rotations-per-head", Text::SetRotationsPerHead, rotations_per_head, switch),
    Key {
        name: "k",
        help: Text::SetK,
        allowed: || or(Text::AllowedAuto, &fill(Text::AllowedWhole, &["1", "n"])),
        get: |s| written(s.k),
        set: |s, text| store(&mut s.k, optional(text, 1, MAX_N)),
    },
    key!("projection", Text::SetProjection, projection, choice),
    key!("sharing", Text::SetSharing, sharing, choice),
    key!("shared-qk", Text::SetSharedQk, shared_qk, switch),
    key!("causal", Text::SetCausal, semantics.causal, switch),
    Key {
        name: "scale",
        help: Text::SetScale,
        allowed: || or(Text::AllowedScale, &fill(Text::AllowedReal, &["0", "1000"])),
        get: |s| s.semantics.score_scale.to_string(),
        set: |s, text| {
            let scale = match text {
                "inverse-sqrt-d" => Some(ScoreScale::InverseSqrtD),
                "one" => Some(ScoreScale::One),
                _ => real(text, 0.0, 1000.0).map(ScoreScale::Value),
            };
            store(&mut s.semantics.score_scale, scale)
        },
    },
    key!("key-norm", Text::SetKeyNorm, semantics.key_norm, choice),
    key!("key-norm-eps", Text::SetKeyNormEps, semantics.key_norm_eps, real 0.0 1.0),
    Key {
        name: "self",
        help: Text::SetSelf,
        allowed: || or(Text::AllowedSelf, &fill(Text::AllowedReal, &["-1e6", "1e6"])),
        get: |s| s.semantics.self_rule.to_string(),
        set: |s, text| {
            let rule = match text {
                "include" => Some(SelfRule::Include),
                "exclude" => Some(SelfRule::Exclude),
                _ => real(text, -1e6, 1e6).map(SelfRule::Value),
            };
            store(&mut s.semantics.self_rule, rule)
        },
    },
    key!("same-bucket", Text::SetSameBucket, semantics.same_bucket, switch),
    key!("before", Text::SetBefore, semantics.chunks_before, whole 0 8),
    key!("after", Text::SetAfter, semantics.chunks_after, whole 0 8),
    key!("wrap", Text::SetWrap, semantics.wrap, choice),
    key!("pair-count", Text::SetPairCount, semantics.pair_count, switch),
    key!("pair-count-eps", Text::SetPairCountEps, semantics.pair_count_eps, real 0.0 1.0),
    key!("layers", Text::SetLayers, layers, whole 1 24),
    key!("attention", Text::SetAttention, attention, choice),
    Key {
        name: "d-ff",
        help: Text::SetDff,
        allowed: || or(Text::AllowedAuto, &whole_range(Text::AllowedWhole, 1, 8192)),
        get: |s| written(s.d_ff),
        set: |s, text| store(&mut s.d_ff, optional(text, 1, 8192)),
    },
    key!("ff-chunks", Text::SetFfChunks, ff_chunks, whole 1 64),
    key!("vocabulary", Text::SetVocabulary, vocabulary, whole 1 65_536),
    key!("loss-chunks", Text::SetLossChunks, loss_chunks, whole 1 64),
    key!("rehash", Text::SetRehash, rehash, switch),
    key!("swap", Text::SetSwap, swap, switch),
    key!("patch", Text::SetPatch, patch, whole 1 6),
    key!("position", Text::SetPosition, position, real 0.0 8.0),
    key!("sharpness", Text::SetSharpness, sharpness, real 0.0 10_000.0),
    key!("arrangement", Text::SetArrangement, arrangement, choice),
    key!("clusters", Text::SetClusters, clusters, whole 1 1024),
    key!("tightness", Text::SetTightness, tightness, real 0.0 1.0),
    key!("noise", Text::SetNoise, noise, real 0.0 4.0),
];
