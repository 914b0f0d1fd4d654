//! Bytes of attention against the sequence length, two ways that are never mixed: read off the plans
//! that would run, and by the formulae of the papers (Reformer table 1, Linformer section 4).

use crate::crossover::Crossover;
use crate::lab;
use crate::methods::full::{self, Way};
use crate::methods::measure::Measured;
use crate::plan::{Builder, Limits, Refusal};
use crate::problem::Dims;
use crate::settings::{MAX_N, Method, Projection, Settings};

/// The methods whose memory is compared.
pub const METHODS: [Method; 5] =
    [Method::FullMaterialized, Method::FullRowwise, Method::Full, Method::Lsh, Method::Linformer];

/// Shortest sequence of the curves.
pub const MIN_N: u32 = 64;

/// No device: what a method would hold if anything could be held.
pub(crate) const UNLIMITED: Limits = Limits { binding: u64::MAX, buffer: u64::MAX };

const FLOAT: u64 = 4;

/// Bytes of one float32 matrix of `n x n` scores: 16 GiB at 65,536, as the Reformer paper says.
pub fn score_matrix_bytes(n: u32) -> u64 {
    FLOAT * u64::from(n) * u64::from(n)
}

/// The same settings at another sequence length, as the slider changes it: the chunk length stays,
/// buckets follow, and k stays while it fits.
fn at_length(settings: &Settings, dims: &Dims, method: Method, n: u32) -> (Settings, Dims) {
    let settings = Settings {
        method,
        n,
        chunk: Some(settings.chunk_len()),
        buckets: None,
        k: Some(settings.projected_len().min(n)),
        ..settings.clone()
    };
    (settings, Dims { n_q: n, n_kv: n, ..*dims })
}

/// Bytes that a method's plan holds at length `n`, instruments left out.
pub fn planned_bytes(settings: &Settings, dims: &Dims, method: Method, n: u32) -> u64 {
    // Without limits nothing is refused.
    plan_within(settings, dims, method, n, UNLIMITED).unwrap_or(u64::MAX)
}

/// Bytes that the plan of a method holds, instruments left out.
pub fn bytes(dims: &Dims, measured: &Measured) -> u64 {
    bytes_within(dims, measured, UNLIMITED).unwrap_or(u64::MAX)
}

/// # Errors
/// The first buffer that the limits do not allow.
fn plan_within(settings: &Settings, dims: &Dims, method: Method, n: u32, limits: Limits) -> Result<u64, Refusal> {
    let (settings, dims) = at_length(settings, dims, method, n);
    bytes_within(&dims, &lab::measured(&settings, &dims), limits)
}

/// # Errors
/// The first buffer that the limits do not allow.
fn bytes_within(dims: &Dims, measured: &Measured, limits: Limits) -> Result<u64, Refusal> {
    let plan = match measured {
        // One query at a time has three passes a query, so its buffers are asked for alone.
        Measured::Full(way) if way.way == Way::Rowwise => {
            let mut b = Builder::new(limits, dims.widths());
            full::buffers(&mut b, dims, way);
            b.finish()?
        }
        other => lab::plan(dims, other, limits)?,
    };
    Ok(plan.method_bytes())
}

/// Bytes over the sequence length, and where the device says no.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    pub method: Method,
    /// (sequence length, bytes).
    pub points: Vec<(u32, u64)>,
    /// The first of the lengths at which this device refuses a buffer.
    pub refused: Option<Refused>,
}

/// A length whose plan a device refuses.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    pub n: u32,
    pub why: Refusal,
}

/// The lengths of the curves: two an octave, from [`MIN_N`] to [`MAX_N`].
pub fn lengths() -> impl Iterator<Item = u32> {
    (0..).map(|octave| MIN_N << octave).flat_map(|n| [n, n / 2 * 3]).take_while(|n| *n <= MAX_N)
}

/// The curve of each of [`METHODS`].
pub fn curves(settings: &Settings, dims: &Dims, limits: Limits) -> Vec<Curve> {
    METHODS
        .map(|method| {
            let points = lengths().map(|n| (n, planned_bytes(settings, dims, method, n))).collect();
            let refused = lengths()
                .find_map(|n| plan_within(settings, dims, method, n, limits).err().map(|why| Refused { n, why }));
            Curve { method, points, refused }
        })
        .into()
}

/// From which length on `method` holds less than `other`, to the token, by their curves: both grow with the
/// length.
pub fn crossover(settings: &Settings, dims: &Dims, method: &Curve, other: &Curve) -> Option<Crossover> {
    let at_points = method.points.iter().zip(&other.points);
    let found = Crossover::of(at_points.map(|((n, held), (_, others))| (*n, *held as f64 / *others as f64)))?;
    let Crossover::Between { mut behind, mut ahead, .. } = found else { return Some(found) };
    let ratio = |n| {
        let [held, others] = [method, other].map(|curve| planned_bytes(settings, dims, curve.method, n) as f64);
        (n, held / others)
    };
    while ahead - behind > 1 {
        let middle = behind + (ahead - behind) / 2;
        *if ratio(middle).1 < 1.0 { &mut ahead } else { &mut behind } = middle;
    }
    Crossover::of([behind, ahead].map(ratio))
}

/// What a term of a formula counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// q, k (where it is not q), v and the output.
    Tensors,
    /// The n x n scores of every head.
    Matrix,
    /// The scores of one query.
    Row,
    /// Bucket and place in the sorted order of every token, round and head.
    Lists,
    /// The scores of every query with its own chunk and its neighbours, all rounds.
    ChunkScores,
    /// Output and log-sum-exp of every round, equations (12) to (16).
    RoundOutputs,
    /// R of every round.
    Rotations,
    /// E and F.
    Projections,
    /// E K and F V.
    Projected,
    /// P-bar, n x k.
    ProjectedScores,
}

/// One term: what it counts and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    pub part: Part,
    pub bytes: u64,
}

/// The float32 bytes of a method when every array that its paper writes down is held whole, padding
/// left out. This program streams scores and rounds, so what it holds can be less. `None` for the
/// online softmax, which neither paper has.
pub fn formula(settings: &Settings, dims: &Dims, method: Method) -> Option<Vec<Term>> {
    let [n, heads, d, d_v] = [dims.n_q, dims.heads, dims.d, dims.d_v].map(u64::from);
    let shared_qk = method == Method::Lsh || method != Method::Linformer && settings.shared_qk;
    let key_heads = if shared_qk { 0 } else { u64::from(dims.k_heads) };
    let tensors = n * (heads * d + key_heads * d + u64::from(dims.v_heads) * d_v + heads * d_v);
    let beyond: Vec<(Part, u64)> = match method {
        Method::Full => return None,
        // Full attention with an online softmax runs instead.
        Method::Lsh if settings.is_short() => return None,
        Method::FullMaterialized => vec![(Part::Matrix, heads * n * n)],
        Method::FullRowwise => vec![(Part::Row, n)],
        Method::Lsh => {
            let rounds = u64::from(settings.rounds);
            let rotation_heads = if settings.rotations_per_head { heads } else { 1 };
            let columns: u64 = settings.bucket_factors().iter().map(|factor| u64::from(factor / 2)).sum();
            let seen = chunks_seen(settings) * u64::from(settings.chunk_len());
            vec![
                (Part::ChunkScores, heads * rounds * n * seen.min(n)),
                (Part::RoundOutputs, heads * rounds * n * (d_v + 1)),
                (Part::Lists, heads * rounds * n * 2),
                (Part::Rotations, rotation_heads * rounds * d * columns),
            ]
        }
        Method::Linformer => {
            let k = u64::from(settings.projected_len());
            let (shared_ef, projection_heads) = settings.projection_sharing();
            let matrices = match settings.projection {
                Projection::Max => 0,
                _ => u64::from(projection_heads) * if shared_ef { 1 } else { 2 },
            };
            vec![
                (Part::ProjectedScores, heads * n * k),
                (Part::Projections, matrices * k * n),
                (Part::Projected, heads * k * (d + d_v)),
            ]
        }
    };
    let terms = std::iter::once((Part::Tensors, tensors)).chain(beyond);
    Some(terms.map(|(part, numbers)| Term { part, bytes: numbers * FLOAT }).collect())
}

/// Chunks that a query sees: its own, those before and those after.
pub fn chunks_seen(settings: &Settings) -> u64 {
    1 + u64::from(settings.semantics.chunks_before) + u64::from(settings.semantics.chunks_after)
}
