//! From settings to the plan of a method.

use crate::methods::full::{self, Full, Way};
use crate::methods::linformer::{self, Linformer};
use crate::methods::lsh::{self, Lsh};
use crate::methods::measure::Measured;
use crate::plan::{Limits, Plan, Refusal};
use crate::problem::Dims;
use crate::semantics::{ScoreScale, SelfRule, Semantics};
use crate::settings::{InputKind, Method, Projection, Settings};

/// The method that settings ask for, as the plans know it.
pub fn measured(settings: &Settings, dims: &Dims) -> Measured {
    let full = |way| Measured::Full(Full { way, shared_qk: settings.shared_qk, semantics: full_semantics(settings) });
    match settings.method {
        Method::Lsh if settings.is_short() => {
            Measured::Full(Full { way: Way::Online, shared_qk: true, semantics: settings.effective_semantics() })
        }
        Method::Full => full(Way::Online),
        Method::FullRowwise => full(Way::Rowwise),
        Method::FullMaterialized => full(Way::Materialized),
        Method::Lsh => Measured::Lsh(Lsh {
            rounds: settings.rounds,
            factors: settings.bucket_factors(),
            chunk_len: settings.chunk_len(),
            rotation_heads: if settings.rotations_per_head { dims.heads } else { 1 },
            semantics: settings.effective_semantics(),
            keep_rounds: false,
        }),
        Method::Linformer => {
            let (shared_ef, projection_heads) = settings.projection_sharing();
            Measured::Linformer(Linformer {
                k: settings.projected_len(),
                max_pooling: settings.projection == Projection::Max,
                shared_ef,
                projection_heads,
                biased: false,
                triangle: false,
                score_scale: ScoreScale::InverseSqrtD,
            })
        }
    }
}

/// Separate keys know neither key norm nor self rule, but the duplication task never counts self.
fn full_semantics(settings: &Settings) -> Semantics {
    let rule = settings.effective_semantics();
    if settings.shared_qk {
        return rule;
    }
    let self_rule = match settings.input {
        InputKind::Duplication => SelfRule::Exclude,
        InputKind::Picture | InputKind::Clusters => SelfRule::Include,
    };
    Semantics { causal: rule.causal, self_rule, score_scale: rule.score_scale, ..Semantics::PLAIN }
}

/// The plan of a method.
///
/// # Errors
/// The first buffer that the limits do not allow.
pub fn plan(dims: &Dims, measured: &Measured, limits: Limits) -> Result<Plan, Refusal> {
    match measured {
        Measured::Full(full) => full::plan(dims, full, limits),
        Measured::Lsh(lsh) => lsh::plan(dims, lsh, limits),
        Measured::Linformer(linformer) => linformer::plan(dims, linformer, limits),
    }
}
