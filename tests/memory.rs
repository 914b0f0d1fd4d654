//! Bytes over the sequence length: formulae against values worked by hand, curves against the plans
//! that run.

use attention_lab::crossover::Crossover;
use attention_lab::lab;
use attention_lab::memory::*;
use attention_lab::plan::Limits;
use attention_lab::problem::Dims;
use attention_lab::settings::{Method, Projection, Settings};

const UNLIMITED: Limits = Limits { binding: u64::MAX, buffer: u64::MAX };

/// The sizes of the picture input: patches of 4 x 4 pixels of three values.
fn picture(settings: &Settings) -> Dims {
    let n = settings.n;
    Dims { n_q: n, n_kv: n, heads: settings.heads, k_heads: settings.heads, v_heads: 1, d: settings.d, d_v: 48 }
}

fn terms(settings: &Settings, method: Method) -> Vec<(Part, u64)> {
    let terms = formula(settings, &picture(settings), method).expect("this method has a formula");
    terms.into_iter().map(|term| (term.part, term.bytes)).collect()
}

#[test]
fn no_shader_is_shown_more_than_it_can_number() {
    let huge = 1 << 40;
    let limits = Limits::new(huge, huge);
    assert_eq!(limits.buffer, huge);
    assert_eq!(Limits::new(128 << 20, 256 << 20), Limits::WEBGPU);
    // The matrix of 131,072 tokens has 2^34 words; each block of rows must have fewer than 2^32.
    let settings = Settings { n: 131_072, method: Method::FullMaterialized, ..Settings::default() };
    let dims = picture(&settings);
    let plan = lab::plan(&dims, &lab::measured(&settings, &dims), limits).expect("a plan");
    let largest = plan.passes.iter().flat_map(|pass| pass.bindings.iter()).map(|binding| binding.bytes).max();
    assert!(largest.is_some_and(|bytes| bytes <= u64::from(u32::MAX)), "{largest:?}");
}

#[test]
fn one_head_of_65536_scores_is_16_gib() {
    assert_eq!(score_matrix_bytes(65_536), 17_179_869_184);
    assert_eq!(score_matrix_bytes(65_536), 16 << 30);
    let settings = Settings { n: 65_536, ..Settings::default() };
    assert!(terms(&settings, Method::FullMaterialized).contains(&(Part::Matrix, 17_179_869_184)));
}

/// n = 1,024, d = 64, d_v = 48, 4 rounds, m = 64 and so 32 buckets, k = 256.
#[test]
fn formulae_are_as_worked_by_hand() {
    let settings = Settings { n: 1024, ..Settings::default() };
    let shared = (Part::Tensors, 1024 * (64 + 48 + 48) * 4);
    assert_eq!(terms(&settings, Method::FullMaterialized), [shared, (Part::Matrix, 4_194_304)]);
    assert_eq!(terms(&settings, Method::FullRowwise), [shared, (Part::Row, 4096)]);
    assert_eq!(
        terms(&settings, Method::Lsh),
        [
            shared,
            (Part::ChunkScores, 2_097_152),
            (Part::RoundOutputs, 802_816),
            (Part::Lists, 32_768),
            (Part::Rotations, 16_384)
        ]
    );
    assert_eq!(
        terms(&settings, Method::Linformer),
        [
            (Part::Tensors, 917_504),
            (Part::ProjectedScores, 1_048_576),
            (Part::Projections, 1_048_576),
            (Part::Projected, 114_688)
        ]
    );
    assert_eq!(formula(&settings, &picture(&settings), Method::Full), None);
}

/// A chunk that is longer than the sequence shows a query every key once, never more.
#[test]
fn chunk_scores_never_exceed_the_matrix() {
    let settings = Settings { n: 100, rounds: 1, chunk: Some(4096), ..Settings::default() };
    assert!(terms(&settings, Method::Lsh).contains(&(Part::ChunkScores, score_matrix_bytes(100))));
}

/// With the matrix in memory nothing is streamed: the plan holds the formula, one log-sum-exp a
/// query and one scale a key. (Multiples of 64 leave no padding.)
#[test]
fn the_plan_of_the_matrix_holds_what_its_formula_says() {
    for (n, heads) in [(64, 1), (1024, 1), (4096, 4)] {
        let settings = Settings { n, heads, ..Settings::default() };
        let formula: u64 = terms(&settings, Method::FullMaterialized).iter().map(|(_, bytes)| bytes).sum();
        let planned = planned_bytes(&settings, &picture(&settings), Method::FullMaterialized, n);
        assert_eq!(planned, formula + 2 * 4 * u64::from(n * heads));
    }
}

#[test]
fn curves_hold_the_bytes_of_the_plans_that_run() {
    for base in [
        Settings::default(),
        Settings { heads: 3, d: 30, rounds: 2, chunk: Some(20), k: Some(77), ..Settings::default() },
        Settings {
            shared_qk: false,
            rotations_per_head: false,
            projection: Projection::Gaussian,
            ..Settings::default()
        },
    ] {
        for n in [64, 100, 1000] {
            for method in METHODS {
                let chunk = Some(base.chunk_len());
                let settings = Settings { method, n, chunk, k: Some(base.projected_len().min(n)), ..base.clone() };
                let dims = picture(&settings);
                let plan = lab::plan(&dims, &lab::measured(&settings, &dims), UNLIMITED).expect("no limits");
                let held: u64 = plan.buffers.iter().map(|buffer| buffer.bytes()).sum();
                assert_eq!(planned_bytes(&base, &dims, method, n), held, "{method:?} at {n}");
            }
        }
    }
}

#[test]
fn curves_reach_from_64_to_beyond_the_paper_and_know_the_device() {
    let lengths: Vec<u32> = lengths().collect();
    assert!(lengths.starts_with(&[64, 96, 128, 192]));
    assert!(lengths.contains(&65_536) && lengths.ends_with(&[262_144]));
    assert!(lengths.is_sorted());
    let settings = Settings::default();
    let curves = curves(&settings, &picture(&settings), Limits::WEBGPU);
    let matrix = &curves[0];
    assert_eq!(matrix.method, Method::FullMaterialized);
    // 4 n^2 bytes are 256 MiB, the largest buffer, at n = 8,192.
    let refused = matrix.refused.as_ref().expect("a matrix of 12,288 does not fit");
    assert_eq!((refused.n, refused.why.needed), (12_288, score_matrix_bytes(12_288)));
    assert!(curves.iter().all(|curve| curve.points.len() == lengths.len()));
}

#[test]
fn a_crossover_is_the_first_length_with_fewer_bytes() {
    let settings = Settings { rounds: 8, ..Settings::default() };
    let dims = picture(&settings);
    let curves = curves(&settings, &dims, UNLIMITED);
    let curve = |method| curves.iter().find(|curve| curve.method == method).expect("every method has a curve");
    for method in [Method::Lsh, Method::Linformer] {
        let found = crossover(&settings, &dims, curve(method), curve(Method::FullMaterialized));
        let Some(Crossover::Between { behind, ahead: n, at }) = found else { panic!("{method:?} must cross") };
        assert!(behind + 1 == n && (f64::from(behind)..=f64::from(n)).contains(&at), "{method:?}: {found:?}");
        let less = |n| {
            planned_bytes(&settings, &dims, method, n) < planned_bytes(&settings, &dims, Method::FullMaterialized, n)
        };
        assert!(less(n) && !less(n - 1), "{method:?} at {n}");
    }
    // An online softmax holds the tensors alone, which LSH attention holds too.
    assert_eq!(crossover(&settings, &dims, curve(Method::Lsh), curve(Method::Full)), Some(Crossover::Never));
    assert_eq!(crossover(&settings, &dims, curve(Method::Full), curve(Method::Lsh)), Some(Crossover::Always));
}
