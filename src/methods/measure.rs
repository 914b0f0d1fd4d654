//! Plans of the instruments: figures of quality from sampled queries, the map of computed pairs,
//! rows of weights, and attention over the strongest keys alone.
//!
//! They read the buffers that a method's plan left behind, by name, and add buffers with the role
//! of an instrument, which are not counted as the method's memory.

mod block;
mod figures;
mod pairs;
mod sample;
mod strongest;
mod weights;
mod window;

use super::full::{Full, Way};
use super::linformer::Linformer;
use super::lsh::Lsh;
use crate::plan::{Builder, Plan, Refusal, Role};
use crate::semantics::Semantics;
pub use figures::{exact_rows, figures};
pub use pairs::pairs;
pub use sample::{ALL_QUERIES_UP_TO, SAMPLED_QUERIES, Sample};
pub use strongest::{strongest, strongest_keys};
pub use weights::{Weights, weights};
pub use window::{MAP_ROWS, Window};

/// Strongest keys of exact attention that recall asks for.
pub const RECALL_KEYS: u32 = 32;

/// The method whose result is measured.
#[derive(Clone, Debug, PartialEq)]
pub enum Measured {
    Full(Full),
    Lsh(Lsh),
    Linformer(Linformer),
}

impl Measured {
    /// Exact attention with the same keys, scale, self rule and causal mask.
    pub fn exact(&self) -> Full {
        match self {
            Self::Full(full) => Full { way: Way::Materialized, ..*full },
            Self::Lsh(lsh) => Full { way: Way::Materialized, shared_qk: true, semantics: lsh.semantics },
            Self::Linformer(_) => PLAIN,
        }
    }
}

/// `softmax(Q K^T / sqrt d) V` with the input's own keys.
pub const PLAIN: Full = Full { way: Way::Materialized, shared_qk: false, semantics: Semantics::PLAIN };

/// The plan of instruments. What the method's plan made before is found by name and keeps its role;
/// whatever else they need, keys and key scales too, goes when they go.
fn instruments(b: Builder) -> Result<Plan, Refusal> {
    let mut plan = b.finish()?;
    plan.buffers.iter_mut().for_each(|buffer| buffer.role = Role::Instrument);
    Ok(plan)
}
