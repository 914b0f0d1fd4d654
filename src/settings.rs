//! Everything that a result depends on, in one value.
//!
//! The page's address, the command line and a preset all write [`Settings`] through one table of
//! [`KEYS`]; nothing else parses a setting.

mod buckets;

use crate::presets::Preset;
use crate::semantics::{Choice, ScoreScale, SelfRule, Semantics};
pub use buckets::{BucketRule, factorise};
use std::fmt;

/// Largest sequence length that any kernel is planned for.
pub const MAX_N: u32 = 262_144;
/// Largest number of buckets of one round.
pub const MAX_BUCKETS: u32 = 8_192;
/// Above this many buckets the default hash is factorised in two: the plain one would cost
/// `n * d * b / 2`, quadratic in `n` when `b` is tied to `n`.
pub const PLAIN_HASH_BUCKETS: u32 = 128;
/// Default projected length `k`.
pub const DEFAULT_K: u32 = 256;
/// Default chunk length `m`.
pub const DEFAULT_CHUNK: u32 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    Picture,
    Clusters,
    Duplication,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample {
    Astronaut,
    Cat,
    /// The user's own file; its bytes travel beside the settings, never in an address.
    Own,
}

/// How the points of [`InputKind::Clusters`] lie on the sphere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrangement {
    Clusters,
    Identical,
    Repeated,
    Isotropic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Full,
    FullRowwise,
    FullMaterialized,
    Lsh,
    Linformer,
}

/// What LSH attention does with a sequence that is no longer than one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Short {
    /// It hashes, sorts and attends as ever.
    Lsh,
    /// Full attention with the same rules runs instead (Hugging Face transformers).
    Full,
}

/// How `b` buckets are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    /// Factorised in two above [`BucketRule::plain_up_to`], plain otherwise.
    Auto,
    Plain,
    Factorised,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Projection {
    /// Mean pooling; E = F.
    Mean,
    /// Seeded normal entries of variance 1/k, untrained.
    Gaussian,
}

impl Choice for InputKind {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Picture, "picture"), (Self::Clusters, "clusters"), (Self::Duplication, "duplication")];
}
impl Choice for Sample {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Astronaut, "astronaut"), (Self::Cat, "cat"), (Self::Own, "own")];
}
impl Choice for Arrangement {
    const ALL: &'static [(Self, &'static str)] = &[
        (Self::Clusters, "clusters"),
        (Self::Identical, "identical"),
        (Self::Repeated, "repeated"),
        (Self::Isotropic, "isotropic"),
    ];
}
impl Choice for Method {
    const ALL: &'static [(Self, &'static str)] = &[
        (Self::Full, "full"),
        (Self::FullRowwise, "full-rowwise"),
        (Self::FullMaterialized, "full-materialized"),
        (Self::Lsh, "lsh"),
        (Self::Linformer, "linformer"),
    ];
}
impl Choice for Short {
    const ALL: &'static [(Self, &'static str)] = &[(Self::Lsh, "lsh"), (Self::Full, "full")];
}
impl Choice for Hash {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Auto, "auto"), (Self::Plain, "plain"), (Self::Factorised, "factorised")];
}
impl Choice for Projection {
    const ALL: &'static [(Self, &'static str)] = &[(Self::Mean, "mean"), (Self::Gaussian, "gaussian")];
}

/// Everything that a result depends on. See [`KEYS`] for the meaning and range of each field.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub input: InputKind,
    pub sample: Sample,
    pub n: u32,
    pub heads: u32,
    pub d: u32,
    pub seed: u32,
    pub method: Method,
    /// Full attention takes its keys from the queries, as LSH attention must.
    pub shared_qk: bool,
    pub rounds: u32,
    /// `None`: follows from the chunk length by `bucket_rule`.
    pub buckets: Option<u32>,
    /// `None`: follows from the bucket count by `bucket_rule`.
    pub chunk: Option<u32>,
    pub bucket_rule: BucketRule,
    pub short: Short,
    pub hash: Hash,
    pub rotations_per_head: bool,
    /// `None`: [`DEFAULT_K`], or n when that is less.
    pub k: Option<u32>,
    pub projection: Projection,
    pub semantics: Semantics,
    pub patch: u32,
    pub position: f32,
    pub sharpness: f32,
    pub arrangement: Arrangement,
    pub clusters: u32,
    pub tightness: f32,
    pub noise: f32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            input: InputKind::Picture,
            sample: Sample::Astronaut,
            n: 4096,
            heads: 1,
            d: 64,
            seed: 1,
            method: Method::Lsh,
            shared_qk: true,
            rounds: 4,
            buckets: None,
            chunk: None,
            bucket_rule: BucketRule::Paper,
            short: Short::Lsh,
            hash: Hash::Auto,
            rotations_per_head: true,
            k: None,
            projection: Projection::Mean,
            semantics: Semantics::default(),
            patch: 4,
            position: 0.6,
            sharpness: 400.0,
            arrangement: Arrangement::Clusters,
            clusters: 12,
            tightness: 0.85,
            noise: 0.25,
        }
    }
}

impl Settings {
    /// Chunk length m: the one set, or what the rule makes of the bucket count.
    pub fn chunk_len(&self) -> u32 {
        match (self.chunk, self.buckets) {
            (Some(chunk), _) => chunk,
            (None, Some(buckets)) => self.bucket_rule.chunk_len(self.n, buckets),
            (None, None) => DEFAULT_CHUNK,
        }
    }

    /// Number of buckets of a round, even: the one set, or what the rule makes of the chunk length.
    pub fn bucket_count(&self) -> u32 {
        self.buckets.unwrap_or_else(|| self.bucket_rule.bucket_count(self.n, self.chunk_len()))
    }

    /// Chunk length and bucket count are both set, each for itself.
    pub fn chunk_is_free(&self) -> bool {
        self.chunk.is_some() && self.buckets.is_some()
    }

    /// LSH attention makes way for full attention, since one chunk holds every token.
    pub fn is_short(&self) -> bool {
        self.short == Short::Full && self.n <= self.chunk_len()
    }

    /// Projected length `k` of Linformer.
    pub fn projected_len(&self) -> u32 {
        self.k.unwrap_or_else(|| DEFAULT_K.min(self.n))
    }

    /// The rules of pairs that the input is computed with. The duplication task never counts a
    /// position itself: its own v is the answer.
    pub fn effective_semantics(&self) -> Semantics {
        match self.input {
            InputKind::Duplication => Semantics { self_rule: SelfRule::Exclude, ..self.semantics },
            InputKind::Picture | InputKind::Clusters => self.semantics,
        }
    }

    /// The even factors of the hash, one when it is plain: bucket = a0 + b0 a1.
    pub fn bucket_factors(&self) -> Vec<u32> {
        let buckets = self.bucket_count();
        let wanted = match self.hash {
            Hash::Plain => false,
            Hash::Factorised => true,
            Hash::Auto => buckets > self.bucket_rule.plain_up_to(self.n, self.chunk_len()),
        };
        match factorise(buckets) {
            Some((b0, b1)) if wanted => vec![b0, b1],
            _ => vec![buckets],
        }
    }

    /// Writes one setting from text.
    ///
    /// # Errors
    /// Names the key, the value and what is allowed.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SettingsError> {
        let key = KEYS.iter().find(|key| key.name == name).ok_or_else(|| SettingsError {
            key: name.to_owned(),
            value: value.to_owned(),
            allowed: "no such setting; see --help for the list".to_owned(),
        })?;
        if (key.set)(self, value) {
            Ok(())
        } else {
            Err(SettingsError { key: name.to_owned(), value: value.to_owned(), allowed: key.allowed.to_owned() })
        }
    }

    /// The settings that differ from the default, as they stand in an address.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        let default = Self::default();
        KEYS.iter()
            .filter_map(|key| {
                let value = (key.get)(self);
                (value != (key.get)(&default)).then_some((key.name, value))
            })
            .collect()
    }

    /// Reads the query of an address, `n=1024&rounds=2`, over the default settings.
    ///
    /// # Errors
    /// The first pair that cannot be read, or a combination that cannot run.
    pub fn from_query(query: &str) -> Result<Self, SettingsError> {
        let pairs: Vec<_> = form_urlencoded::parse(query.trim_start_matches('?').as_bytes()).collect();
        let mut settings = Self::default();
        settings.write(pairs.iter().map(|(name, value)| (&**name, &**value)))?;
        Ok(settings)
    }

    /// Writes pairs of name and value. A `preset` goes first, wherever it stands, and the others
    /// override what it writes; it is no setting itself.
    ///
    /// # Errors
    /// The first pair that cannot be read, or a combination that cannot run.
    pub fn write<'a>(&mut self, pairs: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Result<(), SettingsError> {
        for (_, name) in pairs.clone().filter(|(name, _)| *name == Preset::NAME) {
            Preset::find(name)?.apply(self);
        }
        for (name, value) in pairs.filter(|(name, _)| *name != Preset::NAME) {
            self.set(name, value)?;
        }
        self.validate()
    }

    /// The query that [`Settings::from_query`] reads back to the same value.
    pub fn to_query(&self) -> String {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(self.pairs()).finish()
    }

    /// Checks what one field alone cannot know.
    ///
    /// # Errors
    /// The first combination that cannot run.
    pub fn validate(&self) -> Result<(), SettingsError> {
        let wrong =
            |key: &str, value: String, allowed: String| Err(SettingsError { key: key.to_owned(), value, allowed });
        if self.projected_len() > self.n {
            return wrong("k", self.projected_len().to_string(), format!("1 to n, here {}", self.n));
        }
        if self.hash == Hash::Factorised && factorise(self.bucket_count()).is_none() {
            let buckets = self.bucket_count();
            return wrong("buckets", buckets.to_string(), "a multiple of 4 when the hash is factorised".to_owned());
        }
        if self.input == InputKind::Duplication && self.n < 4 {
            return wrong("n", self.n.to_string(), "4 or more for the duplication task 0w0w".to_owned());
        }
        Ok(())
    }
}

/// A setting that cannot be read or cannot run, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    pub key: String,
    pub value: String,
    pub allowed: String,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--{} {}: allowed is {}", self.key, self.value, self.allowed)
    }
}

impl std::error::Error for SettingsError {}

/// One setting: its name in an address and on the command line, and how it is read and written.
pub struct Key {
    pub name: &'static str,
    pub help: &'static str,
    pub allowed: &'static str,
    pub get: fn(&Settings) -> String,
    /// False when the text is not allowed; the settings are then unchanged.
    pub set: fn(&mut Settings, &str) -> bool,
}

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

macro_rules! key {
    ($name:literal, $help:literal, $allowed:literal, $($field:ident).+, choice) => {
        Key { name: $name, help: $help, allowed: $allowed,
            get: |s| s.$($field).+.spelling().to_owned(),
            set: |s, text| store(&mut s.$($field).+, Choice::parse(text)) }
    };
    ($name:literal, $help:literal, $allowed:literal, $($field:ident).+, switch) => {
        Key { name: $name, help: $help, allowed: $allowed,
            get: |s| s.$($field).+.to_string(),
            set: |s, text| store(&mut s.$($field).+, text.parse().ok()) }
    };
    ($name:literal, $help:literal, $allowed:literal, $($field:ident).+, $read:ident $low:literal $high:expr) => {
        Key { name: $name, help: $help, allowed: $allowed,
            get: |s| s.$($field).+.to_string(),
            set: |s, text| store(&mut s.$($field).+, $read(text, $low, $high)) }
    };
}

/// Every setting, in the order of the help text.
pub const KEYS: &[Key] = &[
    key!("input", "Where q, k and v come from", "picture, clusters or duplication", input, choice),
    key!("sample", "The photograph of the picture input", "astronaut, cat or own", sample, choice),
    key!(
        "method",
        "How attention is computed",
        "full, full-rowwise, full-materialized, lsh or linformer",
        method,
        choice
    ),
    key!("n", "Sequence length", "a whole number from 1 to 262144", n, whole 1 MAX_N),
    key!("heads", "Attention heads", "a whole number from 1 to 16", heads, whole 1 16),
    key!("d", "Width of a query and a key", "a whole number from 1 to 128", d, whole 1 128),
    key!("seed", "Seed of everything random", "a whole number from 0 to 4294967295", seed, whole 0 u32::MAX),
    key!("rounds", "LSH: rounds of hashing", "a whole number from 1 to 16", rounds, whole 1 16),
    Key {
        name: "buckets",
        help: "LSH: buckets of a round, even; the chunk length follows by the bucket rule unless it is set",
        allowed: "auto or an even number from 2 to 8192",
        get: |s| written(s.buckets),
        set: |s, text| store(&mut s.buckets, optional(text, 2, MAX_BUCKETS).filter(|b| b.is_none_or(|b| b % 2 == 0))),
    },
    Key {
        name: "chunk",
        help: "LSH: chunk length m; alone it sets the bucket count by the bucket rule",
        allowed: "auto or a whole number from 1 to 262144",
        get: |s| written(s.chunk),
        set: |s, text| store(&mut s.chunk, optional(text, 1, MAX_N)),
    },
    key!(
        "bucket-rule",
        "LSH: buckets that follow from a chunk length m: 2 n / m, n / m, or 2 floor(n / m) down to a power of two",
        "paper, chunks or power-of-two",
        bucket_rule,
        choice
    ),
    key!("short", "LSH: what runs when n is at most the chunk length", "lsh or full", short, choice),
    key!(
        "hash",
        "LSH: the hash; auto is factorised above 128 buckets, with power-of-two above 2 max(sqrt(n / m), m)",
        "auto, plain or factorised",
        hash,
        choice
    ),
    key!("rotations-per-head", "LSH: each head has rotations of its own", "true or false", rotations_per_head, switch),
    Key {
        name: "k",
        help: "Linformer: projected length",
        allowed: "auto or a whole number from 1 to n",
        get: |s| written(s.k),
        set: |s, text| store(&mut s.k, optional(text, 1, MAX_N)),
    },
    key!("projection", "Linformer: E and F", "mean or gaussian", projection, choice),
    key!(
        "shared-qk",
        "Full: keys are the queries at unit length, as in LSH attention",
        "true or false",
        shared_qk,
        switch
    ),
    key!("causal", "No query sees a later position", "true or false", semantics.causal, switch),
    Key {
        name: "scale",
        help: "Factor on a score: 1 / sqrt(d), none, or this number",
        allowed: "inverse-sqrt-d, one or a number from 0 to 1000",
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
    key!("key-norm", "How a key's length is taken out", "l2-max, l2-rms or none", semantics.key_norm, choice),
    key!("key-norm-eps", "Epsilon of the key norm", "a number from 0 to 1", semantics.key_norm_eps, real 0.0 1.0),
    Key {
        name: "self",
        help: "A token's pair with itself: an ordinary pair, no pair, or a score of this value",
        allowed: "include, exclude or a number from -1e6 to 1e6",
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
    key!("same-bucket", "LSH: only keys of the query's bucket", "true or false", semantics.same_bucket, switch),
    key!("before", "LSH: chunks seen before the own one", "a whole number from 0 to 8", semantics.chunks_before, whole 0 8),
    key!("after", "LSH: chunks seen after the own one", "a whole number from 0 to 8", semantics.chunks_after, whole 0 8),
    key!("wrap", "LSH: what the first chunk sees before it", "none, in-round or across-rounds", semantics.wrap, choice),
    key!(
        "pair-count",
        "LSH: subtract ln of the rounds in which a pair is visible",
        "true or false",
        semantics.pair_count,
        switch
    ),
    key!("pair-count-eps", "LSH: epsilon of the pair count", "a number from 0 to 1", semantics.pair_count_eps, real 0.0 1.0),
    key!("patch", "Picture: side of a patch in pixels", "a whole number from 1 to 6", patch, whole 1 6),
    key!("position", "Picture: strength of the position in q and k", "a number from 0 to 8", position, real 0.0 8.0),
    key!("sharpness", "Length of q, which sharpens the softmax", "a number from 0 to 10000", sharpness, real 0.0 10_000.0),
    key!(
        "arrangement",
        "Clusters: how the points lie",
        "clusters, identical, repeated or isotropic",
        arrangement,
        choice
    ),
    key!("clusters", "Clusters: how many, or how many points are repeated", "a whole number from 1 to 1024", clusters, whole 1 1024),
    key!("tightness", "Clusters: 0 is isotropic, 1 a point each", "a number from 0 to 1", tightness, real 0.0 1.0),
    key!("noise", "Duplication: noise of the constructed keys", "a number from 0 to 4", noise, real 0.0 4.0),
];
