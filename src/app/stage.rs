//! What is on the screen together: settings, the input that they make, and the outcomes of the three
//! methods on it.

use super::scene::Missing;
use crate::inputs::{Input, Picture};
use crate::outcome::Outcome;
use crate::semantics::Semantics;
use crate::settings::{InputKind, Method, Sample, Settings};
use std::rc::Rc;

/// The methods that are compared, in the order of the tabs.
pub const FAMILIES: [Method; 3] = [Method::Full, Method::Lsh, Method::Linformer];

/// The method whose pipeline a tab shows: the three ways of full attention are one.
pub fn family(method: Method) -> Method {
    match method {
        Method::Full | Method::FullRowwise | Method::FullMaterialized => Method::Full,
        Method::Lsh | Method::Linformer => method,
    }
}

/// The place of a method among the [`FAMILIES`].
pub fn slot(method: Method) -> usize {
    match family(method) {
        Method::Lsh => 1,
        Method::Linformer => 2,
        _ => 0,
    }
}

pub type Slot = Result<Rc<Outcome>, Missing>;

/// Settings, the input that they make and the outcomes of the three methods on it.
pub struct Stage {
    pub settings: Settings,
    /// The user's picture that the input is made of, which settings do not tell from another.
    pub own: Option<Rc<Picture>>,
    pub input: Option<Rc<Input>>,
    pub slots: [Slot; 3],
}

impl Stage {
    pub fn current(&self) -> &Slot {
        &self.slots[slot(self.settings.method)]
    }

    /// Whether settings and a picture of the user's make the input of this stage.
    pub fn has_input_of(&self, settings: &Settings, own: Option<&Rc<Picture>>) -> bool {
        let same = self.own.as_ref().map(Rc::as_ptr) == own.map(Rc::as_ptr);
        input_key(&self.settings) == input_key(settings) && (same || !shows_own(settings))
    }

    /// What answers are about: the settings that the outcome on the screen depends on, and its input.
    pub fn subject(&self) -> Option<Subject> {
        let outcome = self.current().as_ref().ok()?;
        Some(Subject { settings: outcome.settings.clone(), input: self.input.clone()? })
    }
}

/// One outcome on one input.
#[derive(Clone)]
pub struct Subject {
    pub settings: Settings,
    pub input: Rc<Input>,
}

impl PartialEq for Subject {
    fn eq(&self, other: &Self) -> bool {
        self.settings == other.settings && Rc::ptr_eq(&self.input, &other.input)
    }
}

/// Whether the input is the user's picture.
pub fn shows_own(settings: &Settings) -> bool {
    settings.input == InputKind::Picture && settings.sample == Sample::Own
}

/// Nothing has run.
pub fn soon() -> [Slot; 3] {
    FAMILIES.map(|_| Err(Missing::Soon))
}

/// The settings that the outcome of a method depends on; all others have their default. Exact attention
/// takes the way given.
pub fn key(settings: &Settings, method: Method, full_way: Method) -> Settings {
    let key = input_key(settings);
    match method {
        Method::Lsh => Settings {
            method,
            rounds: settings.rounds,
            buckets: settings.buckets,
            chunk: settings.chunk,
            bucket_rule: settings.bucket_rule,
            short: settings.short,
            hash: settings.hash,
            rotations_per_head: settings.rotations_per_head,
            semantics: settings.semantics,
            ..key
        },
        Method::Linformer => Settings { method, k: settings.k, sharing: settings.sharing, ..key },
        Method::Full | Method::FullRowwise | Method::FullMaterialized => {
            let rule = settings.semantics;
            let any = Semantics { causal: rule.causal, score_scale: rule.score_scale, ..Semantics::PAPER };
            let shared = Semantics {
                key_norm: rule.key_norm,
                key_norm_eps: rule.key_norm_eps,
                self_rule: rule.self_rule,
                ..any
            };
            let semantics = if settings.shared_qk { shared } else { any };
            Settings { method: full_way, shared_qk: settings.shared_qk, semantics, ..key }
        }
    }
}

/// The settings that the input depends on; all others have their default.
pub fn input_key(settings: &Settings) -> Settings {
    let key = Settings {
        input: settings.input,
        n: settings.n,
        heads: settings.heads,
        d: settings.d,
        seed: settings.seed,
        sharpness: settings.sharpness,
        projection: settings.projection,
        ..Settings::default()
    };
    match settings.input {
        InputKind::Picture => {
            Settings { sample: settings.sample, patch: settings.patch, position: settings.position, ..key }
        }
        InputKind::Clusters => Settings {
            arrangement: settings.arrangement,
            clusters: settings.clusters,
            tightness: settings.tightness,
            ..key
        },
        InputKind::Duplication => Settings { noise: settings.noise, ..key },
    }
}
