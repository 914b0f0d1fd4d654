//! The matrices that the map can show.

use crate::app::scene::Question;
use crate::methods::measure::{Weights, Window};
use crate::outcome::Outcome;
use crate::settings::{Method, Projection, Settings};
use crate::text::Text;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layer {
    /// Which pairs are computed.
    #[default]
    Pattern,
    /// The weights that LSH attention used.
    Method,
    /// P-bar of Linformer, n x k.
    Projected,
    /// `abs(P-bar E)`, the n x n matrix that Linformer stands for.
    Effective,
    /// Exact attention under the method's own rule.
    Exact,
}

impl Layer {
    /// What there is to see of the method of settings. Max pooling stands for no n x n matrix.
    pub fn of(settings: &Settings) -> &'static [Self] {
        match settings.method {
            Method::Linformer if settings.projection == Projection::Max => &[Self::Projected, Self::Exact],
            Method::Lsh => &[Self::Pattern, Self::Method, Self::Exact],
            Method::Linformer => &[Self::Projected, Self::Effective, Self::Exact],
            Method::Full | Method::FullRowwise | Method::FullMaterialized => &[Self::Pattern, Self::Exact],
        }
    }

    /// This one, or what comes closest to it for the method.
    pub fn on(self, settings: &Settings) -> Self {
        let there = Self::of(settings);
        match self {
            layer if there.contains(&layer) => layer,
            Self::Pattern => there[0],
            Self::Method | Self::Projected | Self::Effective | Self::Exact => there[1],
        }
    }

    pub fn words(self) -> (Text, Text) {
        match self {
            Self::Pattern => (Text::LayerPattern, Text::LayerPatternHelp),
            Self::Method => (Text::LayerMethod, Text::LayerMethodHelp),
            Self::Projected => (Text::LayerProjected, Text::LayerProjectedHelp),
            Self::Effective => (Text::LayerEffective, Text::LayerEffectiveHelp),
            Self::Exact => (Text::LayerExact, Text::LayerExactHelp),
        }
    }

    pub fn is_weights(self) -> bool {
        self != Self::Pattern
    }

    /// Columns of the matrix.
    pub fn columns(self, outcome: &Outcome) -> u32 {
        if self == Self::Projected { outcome.settings.projected_len() } else { outcome.dims.n_kv }
    }

    pub fn question(self, head: u32, window: Window) -> Question {
        let weights = |which| Question::WeightMap { which, head, window };
        match self {
            Self::Pattern => Question::PairMap { head, window },
            Self::Method | Self::Projected => weights(Weights::Method),
            Self::Effective => weights(Weights::Effective),
            Self::Exact => weights(Weights::Exact),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_carries_over_to_another_method() {
        let of = |method, projection| Settings { method, projection, ..Settings::default() };
        for method in [Method::Full, Method::Lsh, Method::Linformer] {
            for layer in [Layer::Pattern, Layer::Method, Layer::Projected, Layer::Effective, Layer::Exact] {
                for projection in [Projection::Mean, Projection::Max] {
                    let settings = of(method, projection);
                    assert!(Layer::of(&settings).contains(&layer.on(&settings)));
                }
            }
            assert_eq!(Layer::Exact.on(&of(method, Projection::Max)), Layer::Exact);
        }
        assert_eq!(Layer::Effective.on(&of(Method::Lsh, Projection::Mean)), Layer::Method);
        assert_eq!(Layer::Method.on(&of(Method::Full, Projection::Mean)), Layer::Exact);
    }
}
