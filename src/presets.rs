//! The semantics of the paper and of the two published codes, as settings: where they differ, each
//! difference is a setting, and a preset writes them all.

use crate::settings::{BucketRule, Settings, SettingsError, listed};

/// A named set of settings.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Preset {
    /// As an address and the command line write it.
    pub name: &'static str,
    /// As people do.
    pub title: &'static str,
    /// The pairs that [`Settings::set`] takes. The causal mask and all sizes stay as they are.
    pub pairs: &'static [(&'static str, &'static str)],
}

/// All presets; the first is the default.
pub static PRESETS: [Preset; 3] = [
    Preset {
        name: "paper",
        title: "Paper",
        pairs: &[
            ("scale", "inverse-sqrt-d"),
            ("key-norm", "l2-max"),
            ("key-norm-eps", "1e-12"),
            ("self", "-100000"),
            ("same-bucket", "true"),
            ("before", "1"),
            ("after", "0"),
            ("wrap", "none"),
            ("pair-count", "true"),
            ("pair-count-eps", "0"),
            ("rotations-per-head", "true"),
            ("hash", "auto"),
            ("bucket-rule", "paper"),
            ("short", "lsh"),
        ],
    },
    // reformer-pytorch 1.4.4, LSHAttention with its defaults; epsilon of the pair count as its option has it.
    Preset {
        name: "reformer-pytorch",
        title: "reformer-pytorch",
        pairs: &[
            ("scale", "inverse-sqrt-d"),
            ("key-norm", "l2-max"),
            ("key-norm-eps", "1e-12"),
            ("self", "-50000"),
            ("same-bucket", "false"),
            ("before", "1"),
            ("after", "0"),
            ("wrap", "across-rounds"),
            ("pair-count", "false"),
            ("pair-count-eps", "1e-9"),
            ("rotations-per-head", "false"),
            ("hash", "plain"),
            ("bucket-rule", "chunks"),
            ("short", "lsh"),
        ],
    },
    // transformers 4.44.2, LSHSelfAttention.
    Preset {
        name: "hugging-face",
        title: "Hugging Face",
        pairs: &[
            ("scale", "one"),
            ("key-norm", "l2-rms"),
            ("key-norm-eps", "1e-6"),
            ("self", "-100000"),
            ("same-bucket", "false"),
            ("before", "1"),
            ("after", "0"),
            ("wrap", "across-rounds"),
            ("pair-count", "false"),
            ("pair-count-eps", "0"),
            ("rotations-per-head", "true"),
            ("hash", "auto"),
            ("bucket-rule", "power-of-two"),
            ("short", "full"),
        ],
    },
];

impl Preset {
    /// What an address and the command line call it.
    pub const NAME: &'static str = "preset";

    /// The names, as a message says them.
    pub fn allowed() -> String {
        listed(&PRESETS.each_ref().map(|preset| preset.name))
    }

    /// # Errors
    /// When there is no preset of that name.
    pub fn find(name: &str) -> Result<&'static Self, SettingsError> {
        PRESETS.iter().find(|preset| preset.name == name).ok_or_else(|| SettingsError {
            key: Self::NAME.to_owned(),
            value: name.to_owned(),
            allowed: Self::allowed(),
        })
    }

    /// The preset whose semantics the settings have.
    pub fn of(settings: &Settings) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.is_of(settings))
    }

    /// Writes the preset. The chunk length stays, and the bucket count follows by the preset's rule.
    pub fn apply(&self, settings: &mut Settings) {
        if settings.buckets.is_some() {
            (settings.chunk, settings.buckets) = (Some(settings.chunk_len()), None);
        }
        for (name, value) in self.pairs {
            let written = settings.set(name, value);
            debug_assert!(written.is_ok(), "{written:?}");
        }
    }

    /// Whether the settings have these semantics, whatever their sizes.
    fn is_of(&self, settings: &Settings) -> bool {
        let mut with = settings.clone();
        for (name, value) in self.pairs {
            let _ = with.set(name, value);
        }
        // Only Hugging Face lets the bucket count and the chunk length be set apart.
        with == *settings && (settings.bucket_rule == BucketRule::PowerOfTwo || !settings.chunk_is_free())
    }
}
