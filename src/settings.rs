//! Everything that a result depends on, in one value.
//!
//! The page's address, the command line and a preset all write [`Settings`] through one table of
//! [`KEYS`]; nothing else parses a setting.

mod buckets;
mod keys;
mod projection;

use crate::presets::Preset;
use crate::semantics::{Choice, SelfRule, Semantics};
use crate::text::{Text, fill};
pub use buckets::{BucketRule, factorise};
pub(crate) use keys::listed;
pub use keys::{KEYS, Key};
pub use projection::{Projection, Sharing};
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

/// Attention of the layers of a reversible stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LayerAttention {
    Lsh,
    Full,
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
impl Choice for LayerAttention {
    const ALL: &'static [(Self, &'static str)] = &[(Self::Lsh, "lsh"), (Self::Full, "full")];
}
impl Choice for Short {
    const ALL: &'static [(Self, &'static str)] = &[(Self::Lsh, "lsh"), (Self::Full, "full")];
}
impl Choice for Hash {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Auto, "auto"), (Self::Plain, "plain"), (Self::Factorised, "factorised")];
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
    /// A whole stack of layers is meant, of which the method is the attention: `method=reversible`.
    pub reversible: bool,
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
    pub sharing: Sharing,
    pub semantics: Semantics,
    /// Layers of the reversible stack, and their attention.
    pub layers: u32,
    pub attention: LayerAttention,
    /// Hidden width of the feed-forward layers; `None`: four times the width of the streams.
    pub d_ff: Option<u32>,
    /// Parts of the sequence that a feed-forward layer walks one after the other.
    pub ff_chunks: u32,
    /// Words that the loss of the stack tells apart, and parts of the sequence whose log-probabilities it
    /// holds one after the other.
    pub vocabulary: u32,
    pub loss_chunks: u32,
    /// The backward pass hashes again instead of keeping bucket ids.
    pub rehash: bool,
    /// Layers' parameters stay in host memory until they are needed.
    pub swap: bool,
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
            reversible: false,
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
            sharing: Sharing::Headwise,
            semantics: Semantics::default(),
            layers: 6,
            attention: LayerAttention::Lsh,
            d_ff: None,
            ff_chunks: 4,
            vocabulary: 1024,
            loss_chunks: 4,
            rehash: false,
            swap: false,
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

    /// How Linformer's one layer shares its projections: E and F are one, and how many E there are. Pooling
    /// is the same for all.
    pub fn projection_sharing(&self) -> (bool, u32) {
        if self.projection.has_parameters() {
            (self.sharing.shares_key_value(), self.sharing.heads(self.heads))
        } else {
            (true, 1)
        }
    }

    /// Hidden width of the feed-forward layers.
    pub fn hidden_width(&self) -> u32 {
        self.d_ff.unwrap_or(4 * self.heads * self.d)
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
            key: Text::Setting.get().to_owned(),
            value: name.to_owned(),
            allowed: Text::AllowedName.get().to_owned(),
        })?;
        if (key.set)(self, value) {
            Ok(())
        } else {
            Err(SettingsError { key: name.to_owned(), value: value.to_owned(), allowed: (key.allowed)() })
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
            return wrong("k", self.projected_len().to_string(), fill(Text::AllowedK, &[&self.n.to_string()]));
        }
        if self.hash == Hash::Factorised && factorise(self.bucket_count()).is_none() {
            let buckets = self.bucket_count();
            return wrong("buckets", buckets.to_string(), Text::AllowedFactorised.get().to_owned());
        }
        if self.input == InputKind::Duplication && self.n < 4 {
            return wrong("n", self.n.to_string(), Text::AllowedDuplication.get().to_owned());
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
        f.write_str(&fill(Text::FlagNotAllowed, &[&self.key, &self.value, &self.allowed]))
    }
}

impl std::error::Error for SettingsError {}
