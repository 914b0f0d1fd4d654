//! Every kernel against its twin on a software adapter, and wrong twins of each that are caught.

/// A twin that reads its parameters otherwise.
macro_rules! misread {
    ($what:expr, $module:ident::$kernel:ident, $case:expr, $params:ident => $change:expr) => {
        Broken {
            what: $what,
            kernel: &$module::$kernel,
            case: $case,
            twin: |bytes, widths, buffers| {
                let mut changed: $module::Params = bytemuck::pod_read_unaligned(&bytes[..size_of::<$module::Params>()]);
                let $params = &mut changed;
                $change;
                ($module::$kernel.twin)(bytemuck::bytes_of(&changed), widths, buffers);
            },
        }
    };
}

#[path = "steps/backward.rs"]
mod backward;
#[path = "steps/dense.rs"]
mod dense;
#[path = "steps/fit.rs"]
mod fit;

use attention_lab::check::{self, CaseResult};
use attention_lab::gpu::run::Progress;
use attention_lab::gpu::{Gpu, block_on};
use attention_lab::semantics::flags;
use attention_lab::steps::*;
use std::collections::BTreeSet;

fn open() -> Gpu {
    pollster::block_on(Gpu::open(true)).expect("a software Vulkan driver")
}

#[test]
fn every_case_passes() {
    let gpu = open();
    let before = gpu.ledger.bytes();
    let mut wrong = Vec::new();
    let mut near = (0, 0);
    let summary = block_on(
        &gpu,
        check::run_all(&gpu, &Progress::default(), |result: &CaseResult| {
            println!("{result}");
            near = (near.0 + result.near_ties, near.1 + result.hashed);
            if !result.passed() {
                wrong.push(result.to_string());
            }
        }),
    );
    println!("{summary}; {} of {} positions nearly tie in the hash", near.0, near.1);
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(near.1 > 20_000 && (near.0 as f64) < check::TIE_SHARE * near.1 as f64, "{near:?}");
    assert_eq!(gpu.ledger.bytes(), before, "everything is given back");
}

#[test]
fn the_cases_run_every_kernel() {
    let name = |kernel: &Kernel| (kernel.stem, kernel.entry);
    let cases = check::cases();
    let passes = cases.iter().flat_map(|case| case.plans.as_ref().expect("a plan")).flat_map(|plan| &plan.passes);
    let run: BTreeSet<_> = passes.map(|pass| name(pass.kernel)).collect();
    assert_eq!(run, KERNELS.iter().map(|kernel| name(kernel)).collect());
    let broken: BTreeSet<_> = broken().map(|broken| name(broken.kernel)).collect();
    assert_eq!(run, broken, "each has a wrong twin");
}

#[test]
fn wrong_twins_are_caught() {
    let gpu = open();
    let cases = check::cases();
    for broken in broken() {
        let case = cases.iter().find(|case| case.name == broken.case).expect(broken.case);
        let result = block_on(&gpu, check::run_case(&gpu, case, Some((broken.kernel, broken.twin))));
        let failure = result.failure.unwrap_or_else(|| panic!("{}: not caught in \"{}\"", broken.what, broken.case));
        let place = format!("{} of {}", broken.kernel.entry, broken.kernel.stem);
        assert!(failure.starts_with(&place), "{}: {failure}", broken.what);
    }
}

fn broken() -> impl Iterator<Item = &'static Broken> {
    BROKEN.iter().chain(dense::BROKEN).chain(backward::BROKEN).chain(fit::BROKEN)
}

/// A twin with one mistake, and a case in which it must show.
struct Broken {
    what: &'static str,
    kernel: &'static Kernel,
    case: &'static str,
    twin: fn(&[u8], Widths, &mut [Data]),
}

const CAUSAL_LSH: &str = "lsh, causal, 65 tokens";
const BATCHES: &str = "lsh, measured in batches of rows";
const SLICES: &str = "linformer, in slices of columns";
const TWO_PASSES: &str = "sort, 5000 tokens into 8192 buckets";
const BLIND_ROW: &str = "full in memory, sees nothing";

const BROKEN: &[Broken] = &[
    misread!("the epsilon is not multiplied with d", key_norm::KEY_NORM, "lsh, None, 1 before, 0 after, rules 3",
        p => p.d = 1),
    misread!("keys keep their length", key_norm::KEY_NORM, CAUSAL_LSH, p => p.flags = 0),
    misread!("factors in the wrong order", random_rotation_hash::HASH, "lsh, two factors, a row that sees nothing",
        p => (p.half_0, p.half_1) = (p.half_1, p.half_0)),
    Broken {
        what: "negative projections before positive ones",
        kernel: &random_rotation_hash::HASH,
        case: CAUSAL_LSH,
        twin: |p, w, b| {
            (random_rotation_hash::HASH.twin)(p, w, b);
            b[2].u_mut().iter_mut().for_each(|bucket| *bucket = (*bucket + 4) % 8);
        },
    },
    Broken {
        what: "the last of equal projections wins",
        kernel: &random_rotation_hash::HASH,
        case: "lsh, zero",
        twin: |p, w, b| {
            (random_rotation_hash::HASH.twin)(p, w, b);
            b[2].u_mut().fill(7);
        },
    },
    misread!("the second pass counts the first digit", bucket_sort::COUNT, TWO_PASSES, p => p.shift = 0),
    misread!("the second pass counts from the unsorted list", bucket_sort::COUNT, TWO_PASSES, p => p.from_identity = 1),
    Broken {
        what: "an inclusive sum",
        kernel: &bucket_sort::SCAN,
        case: "sort, 2 tokens into 4 buckets",
        twin: |p, w, b| {
            let counts = b[0].u().to_vec();
            (bucket_sort::SCAN.twin)(p, w, b);
            b[0].u_mut().iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        },
    },
    Broken {
        what: "an unstable sort",
        kernel: &bucket_sort::SCATTER,
        case: "lsh, identical",
        twin: |p, w, b| {
            (bucket_sort::SCATTER.twin)(p, w, b);
            let p: bucket_sort::Params = bytemuck::pod_read_unaligned(&p[..size_of::<bucket_sort::Params>()]);
            let n = p.n as usize;
            let buckets = b[0].u().to_vec();
            for (round, order) in b[3].u_mut().chunks_mut(n).enumerate() {
                let bucket = |position: &u32| buckets[round * n + *position as usize];
                order.chunk_by_mut(|x, y| bucket(x) == bucket(y)).for_each(<[u32]>::reverse);
            }
        },
    },
    misread!("chunks one entry longer", bucket_sort::SCATTER, CAUSAL_LSH, p => p.chunk_len += 1),
    misread!("later keys are seen", chunked_attention::ATTEND, CAUSAL_LSH, p => p.lsh.flags &= !flags::CAUSAL),
    misread!("no ln N", chunked_attention::ATTEND, CAUSAL_LSH, p => p.lsh.flags &= !flags::PAIR_COUNT),
    misread!("keys of other buckets are seen", chunked_attention::ATTEND, CAUSAL_LSH,
        p => p.lsh.flags &= !flags::SAME_BUCKET),
    misread!("self is an ordinary key", chunked_attention::ATTEND, CAUSAL_LSH, p => p.lsh.flags &= !flags::SELF_VALUE),
    misread!("scores are not scaled", chunked_attention::ATTEND, CAUSAL_LSH, p => p.scale = 1.0),
    misread!("always the first round", chunked_attention::ATTEND, CAUSAL_LSH, p => p.round = 0),
    misread!("the chunk before is not seen", chunked_attention::ATTEND, CAUSAL_LSH, p => p.lsh.before = 0),
    misread!("the first chunk does not wrap", chunked_attention::ATTEND, "lsh, three factors, wide rows, wrapped",
        p => p.lsh.flags &= !flags::WRAP_IN_ROUND),
    misread!("the first chunk wraps within its round", chunked_attention::ATTEND, "lsh, four factors, wrapped across",
        p => p.lsh.flags ^= flags::WRAP_ACROSS_ROUNDS | flags::WRAP_IN_ROUND),
    Broken {
        what: "only the last part of the window counts",
        kernel: &chunked_attention::ATTEND,
        case: "lsh, long windows of all buckets",
        twin: |p, w, b| {
            b[7].f_mut().fill(f64::from(EMPTY));
            (chunked_attention::ATTEND.twin)(p, w, b);
        },
    },
    misread!("the last round alone", combine_rounds::COMBINE, CAUSAL_LSH, p => p.first_round = 1),
    Broken {
        what: "rounds have equal weights",
        kernel: &combine_rounds::COMBINE,
        case: CAUSAL_LSH,
        twin: |p, w, b| {
            let last = b[1].clone();
            (combine_rounds::COMBINE.twin)(p, w, b);
            let level = b[3].clone();
            b[1].f_mut().copy_from_slice(level.f());
            (combine_rounds::COMBINE.twin)(p, w, b);
            b[1] = last;
            b[3] = level;
        },
    },
    misread!("the last column is lost", linear_projection::PROJECT, "linformer, k does not divide n",
        p => p.columns -= 1),
    misread!("only the last slice counts", linear_projection::PROJECT, SLICES, p => p.first_slice = 1),
    misread!("no bias", linear_projection::PROJECT, "linformer, biased", p => p.biased = 0),
    misread!("windows of equal length", max_pooling::POOL, "linformer, max pooling, k does not divide n",
        p => p.n -= p.n % p.k),
    Broken {
        what: "a slice forgets those before it",
        kernel: &max_pooling::POOL,
        case: "linformer, 1 of 70001 keys by max pooling",
        twin: |p, w, b| {
            b[1].f_mut().fill(f64::NEG_INFINITY);
            (max_pooling::POOL.twin)(p, w, b);
        },
    },
    misread!("later keys are seen", full_attention::ATTEND, "full online, sees nothing",
        p => p.flags &= !flags::CAUSAL),
    misread!("self is seen", full_attention::ATTEND, "full online, sees nothing", p => p.flags &= !flags::SELF_EXCLUDE),
    misread!("the last key is lost", full_attention::ATTEND, "full online, wide", p => p.key_end -= 1),
    Broken {
        what: "only the last slice of keys counts",
        kernel: &full_attention::ATTEND,
        case: "full online, 65536 keys",
        twin: |p, w, b| {
            b[5].f_mut().fill(f64::from(EMPTY));
            (full_attention::ATTEND.twin)(p, w, b);
        },
    },
    misread!("rows of the sample in order", materialized_attention::SCORES, "full, measured", p => p.query_stride = 1),
    misread!("later blocks begin at query 0", materialized_attention::SCORES, "full in memory, in blocks of rows",
        p => p.row_start = 0),
    Broken {
        what: "masked keys are summed",
        kernel: &materialized_attention::SOFTMAX,
        case: BLIND_ROW,
        twin: |p, w, b| {
            b[0].f_mut().iter_mut().for_each(|score| *score = score.max(-10.0));
            (materialized_attention::SOFTMAX.twin)(p, w, b);
        },
    },
    Broken {
        what: "the log-sum-exp lacks the top",
        kernel: &materialized_attention::SOFTMAX,
        case: BLIND_ROW,
        twin: |p, w, b| {
            let n = b[0].len() / b[1].len();
            let tops: Vec<f64> = b[0].f().chunks(n).map(|row| row.iter().copied().fold(f64::MIN, f64::max)).collect();
            (materialized_attention::SOFTMAX.twin)(p, w, b);
            b[1].f_mut().iter_mut().zip(tops).for_each(|(lse, top)| *lse -= top);
        },
    },
    Broken {
        what: "the last key has no weight",
        kernel: &materialized_attention::WEIGHTED_SUM,
        case: "full in memory, uneven",
        twin: |p, w, b| {
            let n = b[1].len() / w.dv_stride();
            b[0].f_mut().iter_mut().skip(n - 1).step_by(n).for_each(|weight| *weight = 0.0);
            (materialized_attention::WEIGHTED_SUM.twin)(p, w, b);
        },
    },
    misread!("later pairs are counted", attention_map::PAIRS, CAUSAL_LSH, p => p.lsh.flags &= !flags::CAUSAL),
    misread!("every pass walks the whole window", attention_map::PAIRS, "lsh, long windows of all buckets",
        p => ( p.lsh.slot_start, p.lsh.slot_count ) = (0, 306)),
    Broken {
        what: "pairs met again count again",
        kernel: &attention_map::PAIRS,
        case: CAUSAL_LSH,
        twin: |p, w, b| {
            (attention_map::PAIRS.twin)(p, w, b);
            let visits = b[4].u().to_vec();
            b[3].u_mut().copy_from_slice(&visits);
        },
    },
    misread!("the window begins a column late", attention_map::PAIRS, CAUSAL_LSH, p => p.col_start += 1),
    misread!("pixels begin a column late", map_pixels::PIXELS, BATCHES, p => p.col_start += 1),
    misread!("every batch is written to the first rows", map_pixels::PIXELS, BATCHES, p => p.row_start = 0),
    misread!("no ln N", approximate_weights::WEIGHTS, CAUSAL_LSH, p => p.lsh.flags &= !flags::PAIR_COUNT),
    misread!("one round alone", approximate_weights::WEIGHTS, "lsh, None, 1 before, 0 after, rules 3",
        p => p.lsh.rounds = 1),
    Broken {
        what: "signs are kept",
        kernel: &effective_weights::WEIGHTS,
        case: SLICES,
        twin: |p, w, b| {
            (effective_weights::WEIGHTS.twin)(p, w, b);
            b[2].f_mut()[0] *= -1.0;
        },
    },
    misread!("signs are lost", effective_weights::WEIGHTS, "linformer, uneven, a matrix a head", p => p.is_signed = 0),
    misread!("every slice is written to the first columns", effective_weights::WEIGHTS, SLICES,
        p => p.column_start = 0),
    misread!("a key too few", top_keys::SELECT, "full, measured", p => p.count -= 1),
    Broken {
        what: "of equal keys the last comes first",
        kernel: &top_keys::SELECT,
        case: "full, measured",
        twin: |p, w, b| {
            (top_keys::SELECT.twin)(p, w, b);
            let scores = b[2].f().to_vec();
            let mut start = 0;
            for tied in scores.chunk_by(|x, y| x == y) {
                b[1].u_mut()[start..start + tied.len()].reverse();
                start += tied.len();
            }
        },
    },
    misread!("the strongest key alone", top_attention::ATTEND, "full, strongest keys in batches of rows",
        p => p.count = 1),
    Broken {
        what: "weights are not normalised",
        kernel: &top_attention::ATTEND,
        case: "full, strongest keys in batches of rows",
        twin: |p, w, b| {
            (top_attention::ATTEND.twin)(p, w, b);
            b[3].f_mut().iter_mut().for_each(|out| *out *= 1.001);
        },
    },
    misread!("keys of other buckets are covered", coverage::COVERAGE, BATCHES, p => p.lsh.flags &= !flags::SAME_BUCKET),
    misread!("only the very strongest keys are hits", coverage::COVERAGE, BATCHES, p => p.count /= 2),
];
