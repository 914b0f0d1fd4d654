//! Every kernel against its twin on a software adapter, and wrong twins of each that are caught.

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

/// The parameters with something changed.
fn with<P: bytemuck::Pod>(params: &[u8], change: impl FnOnce(&mut P)) -> Vec<u8> {
    let mut changed: P = bytemuck::pod_read_unaligned(&params[..size_of::<P>()]);
    change(&mut changed);
    bytemuck::bytes_of(&changed).to_vec()
}

const CAUSAL_LSH: &str = "lsh, causal, 65 tokens";
const BATCHES: &str = "lsh, measured in batches of rows";
const SLICES: &str = "linformer, in slices of columns";
const TWO_PASSES: &str = "sort, 5000 tokens into 8192 buckets";
const BLIND_ROW: &str = "full in memory, sees nothing";

const BROKEN: &[Broken] = &[
    Broken {
        what: "the epsilon is not multiplied with d",
        kernel: &key_norm::KEY_NORM,
        case: "lsh, None, 1 before, 0 after, rules 3",
        twin: |p, w, b| (key_norm::KEY_NORM.twin)(&with::<key_norm::Params>(p, |p| p.d = 1), w, b),
    },
    Broken {
        what: "keys keep their length",
        kernel: &key_norm::KEY_NORM,
        case: CAUSAL_LSH,
        twin: |p, w, b| (key_norm::KEY_NORM.twin)(&with::<key_norm::Params>(p, |p| p.flags = 0), w, b),
    },
    Broken {
        what: "factors in the wrong order",
        kernel: &random_rotation_hash::HASH,
        case: "lsh, two factors, a row that sees nothing",
        twin: |p, w, b| {
            let swapped = with::<random_rotation_hash::Params>(p, |p| (p.half_0, p.half_1) = (p.half_1, p.half_0));
            (random_rotation_hash::HASH.twin)(&swapped, w, b);
        },
    },
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
    Broken {
        what: "the second pass counts the first digit",
        kernel: &bucket_sort::COUNT,
        case: TWO_PASSES,
        twin: |p, w, b| (bucket_sort::COUNT.twin)(&with::<bucket_sort::Params>(p, |p| p.shift = 0), w, b),
    },
    Broken {
        what: "the second pass counts from the unsorted list",
        kernel: &bucket_sort::COUNT,
        case: TWO_PASSES,
        twin: |p, w, b| (bucket_sort::COUNT.twin)(&with::<bucket_sort::Params>(p, |p| p.from_identity = 1), w, b),
    },
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
    Broken {
        what: "chunks one entry longer",
        kernel: &bucket_sort::SCATTER,
        case: CAUSAL_LSH,
        twin: |p, w, b| (bucket_sort::SCATTER.twin)(&with::<bucket_sort::Params>(p, |p| p.chunk_len += 1), w, b),
    },
    Broken {
        what: "later keys are seen",
        kernel: &chunked_attention::ATTEND,
        case: CAUSAL_LSH,
        twin: |p, w, b| chunked(p, w, b, |p| p.lsh.flags &= !flags::CAUSAL),
    },
    Broken {
        what: "no ln N",
        kernel: &chunked_attention::ATTEND,
        case: CAUSAL_LSH,
        twin: |p, w, b| chunked(p, w, b, |p| p.lsh.flags &= !flags::PAIR_COUNT),
    },
    Broken {
        what: "keys of other buckets are seen",
        kernel: &chunked_attention::ATTEND,
        case: CAUSAL_LSH,
        twin: |p, w, b| chunked(p, w, b, |p| p.lsh.flags &= !flags::SAME_BUCKET),
    },
    Broken {
        what: "self is an ordinary key",
        kernel: &chunked_attention::ATTEND,
        case: CAUSAL_LSH,
        twin: |p, w, b| chunked(p, w, b, |p| p.lsh.flags &= !flags::SELF_VALUE),
    },
    Broken {
        what: "scores are not scaled",
        kernel: &chunked_attention::ATTEND,
        case: CAUSAL_LSH,
        twin: |p, w, b| chunked(p, w, b, |p| p.scale = 1.0),
    },
    Broken {
        what: "always the first round",
        kernel: &chunked_attention::ATTEND,
        case: CAUSAL_LSH,
        twin: |p, w, b| chunked(p, w, b, |p| p.round = 0),
    },
    Broken {
        what: "the chunk before is not seen",
        kernel: &chunked_attention::ATTEND,
        case: CAUSAL_LSH,
        twin: |p, w, b| chunked(p, w, b, |p| p.lsh.before = 0),
    },
    Broken {
        what: "the first chunk does not wrap",
        kernel: &chunked_attention::ATTEND,
        case: "lsh, three factors, wide rows, wrapped",
        twin: |p, w, b| chunked(p, w, b, |p| p.lsh.flags &= !flags::WRAP_IN_ROUND),
    },
    Broken {
        what: "the first chunk wraps within its round",
        kernel: &chunked_attention::ATTEND,
        case: "lsh, four factors, wrapped across",
        twin: |p, w, b| chunked(p, w, b, |p| p.lsh.flags ^= flags::WRAP_ACROSS_ROUNDS | flags::WRAP_IN_ROUND),
    },
    Broken {
        what: "only the last part of the window counts",
        kernel: &chunked_attention::ATTEND,
        case: "lsh, long windows of all buckets",
        twin: |p, w, b| {
            b[7].f_mut().fill(f64::from(EMPTY));
            (chunked_attention::ATTEND.twin)(p, w, b);
        },
    },
    Broken {
        what: "the last round alone",
        kernel: &combine_rounds::COMBINE,
        case: CAUSAL_LSH,
        twin: |p, w, b| {
            (combine_rounds::COMBINE.twin)(&with::<combine_rounds::Params>(p, |p| p.first_round = 1), w, b);
        },
    },
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
    Broken {
        what: "the last column is lost",
        kernel: &linear_projection::PROJECT,
        case: "linformer, k does not divide n",
        twin: |p, w, b| {
            (linear_projection::PROJECT.twin)(&with::<linear_projection::Params>(p, |p| p.columns -= 1), w, b);
        },
    },
    Broken {
        what: "only the last slice counts",
        kernel: &linear_projection::PROJECT,
        case: SLICES,
        twin: |p, w, b| {
            (linear_projection::PROJECT.twin)(&with::<linear_projection::Params>(p, |p| p.first_slice = 1), w, b);
        },
    },
    Broken {
        what: "no bias",
        kernel: &linear_projection::PROJECT,
        case: "linformer, biased",
        twin: |p, w, b| {
            (linear_projection::PROJECT.twin)(&with::<linear_projection::Params>(p, |p| p.biased = 0), w, b);
        },
    },
    Broken {
        what: "windows of equal length",
        kernel: &max_pooling::POOL,
        case: "linformer, max pooling, k does not divide n",
        twin: |p, w, b| {
            let cut = with::<max_pooling::Params>(p, |p| p.n -= p.n % p.k);
            (max_pooling::POOL.twin)(&cut, w, b);
        },
    },
    Broken {
        what: "a slice forgets those before it",
        kernel: &max_pooling::POOL,
        case: "linformer, 1 of 70001 keys by max pooling",
        twin: |p, w, b| {
            b[1].f_mut().fill(f64::NEG_INFINITY);
            (max_pooling::POOL.twin)(p, w, b);
        },
    },
    Broken {
        what: "later keys are seen",
        kernel: &full_attention::ATTEND,
        case: "full online, sees nothing",
        twin: |p, w, b| {
            (full_attention::ATTEND.twin)(&with::<full_attention::Params>(p, |p| p.flags &= !flags::CAUSAL), w, b);
        },
    },
    Broken {
        what: "self is seen",
        kernel: &full_attention::ATTEND,
        case: "full online, sees nothing",
        twin: |p, w, b| {
            let seen = with::<full_attention::Params>(p, |p| p.flags &= !flags::SELF_EXCLUDE);
            (full_attention::ATTEND.twin)(&seen, w, b);
        },
    },
    Broken {
        what: "the last key is lost",
        kernel: &full_attention::ATTEND,
        case: "full online, wide",
        twin: |p, w, b| (full_attention::ATTEND.twin)(&with::<full_attention::Params>(p, |p| p.key_end -= 1), w, b),
    },
    Broken {
        what: "only the last slice of keys counts",
        kernel: &full_attention::ATTEND,
        case: "full online, 65536 keys",
        twin: |p, w, b| {
            b[5].f_mut().fill(f64::from(EMPTY));
            (full_attention::ATTEND.twin)(p, w, b);
        },
    },
    Broken {
        what: "rows of the sample in order",
        kernel: &materialized_attention::SCORES,
        case: "full, measured",
        twin: |p, w, b| {
            let in_order = with::<materialized_attention::Params>(p, |p| p.query_stride = 1);
            (materialized_attention::SCORES.twin)(&in_order, w, b);
        },
    },
    Broken {
        what: "later blocks begin at query 0",
        kernel: &materialized_attention::SCORES,
        case: "full in memory, in blocks of rows",
        twin: |p, w, b| {
            let from_0 = with::<materialized_attention::Params>(p, |p| p.row_start = 0);
            (materialized_attention::SCORES.twin)(&from_0, w, b);
        },
    },
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
    Broken {
        what: "later pairs are counted",
        kernel: &attention_map::PAIRS,
        case: CAUSAL_LSH,
        twin: |p, w, b| pairs(p, w, b, |p| p.lsh.flags &= !flags::CAUSAL),
    },
    Broken {
        what: "every pass walks the whole window",
        kernel: &attention_map::PAIRS,
        case: "lsh, long windows of all buckets",
        twin: |p, w, b| pairs(p, w, b, |p| (p.lsh.slot_start, p.lsh.slot_count) = (0, 306)),
    },
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
    Broken {
        what: "the window begins a column late",
        kernel: &attention_map::PAIRS,
        case: CAUSAL_LSH,
        twin: |p, w, b| pairs(p, w, b, |p| p.col_start += 1),
    },
    Broken {
        what: "pixels begin a column late",
        kernel: &map_pixels::PIXELS,
        case: BATCHES,
        twin: |p, w, b| (map_pixels::PIXELS.twin)(&with::<map_pixels::Params>(p, |p| p.col_start += 1), w, b),
    },
    Broken {
        what: "every batch is written to the first rows",
        kernel: &map_pixels::PIXELS,
        case: BATCHES,
        twin: |p, w, b| (map_pixels::PIXELS.twin)(&with::<map_pixels::Params>(p, |p| p.row_start = 0), w, b),
    },
    Broken {
        what: "no ln N",
        kernel: &approximate_weights::WEIGHTS,
        case: CAUSAL_LSH,
        twin: |p, w, b| {
            let uncounted = with::<approximate_weights::Params>(p, |p| p.lsh.flags &= !flags::PAIR_COUNT);
            (approximate_weights::WEIGHTS.twin)(&uncounted, w, b);
        },
    },
    Broken {
        what: "one round alone",
        kernel: &approximate_weights::WEIGHTS,
        case: "lsh, None, 1 before, 0 after, rules 3",
        twin: |p, w, b| {
            let once = with::<approximate_weights::Params>(p, |p| p.lsh.rounds = 1);
            (approximate_weights::WEIGHTS.twin)(&once, w, b);
        },
    },
    Broken {
        what: "signs are kept",
        kernel: &effective_weights::WEIGHTS,
        case: SLICES,
        twin: |p, w, b| {
            (effective_weights::WEIGHTS.twin)(p, w, b);
            b[2].f_mut()[0] *= -1.0;
        },
    },
    Broken {
        what: "signs are lost",
        kernel: &effective_weights::WEIGHTS,
        case: "linformer, uneven, a matrix a head",
        twin: |p, w, b| {
            let positive = with::<effective_weights::Params>(p, |p| p.is_signed = 0);
            (effective_weights::WEIGHTS.twin)(&positive, w, b);
        },
    },
    Broken {
        what: "every slice is written to the first columns",
        kernel: &effective_weights::WEIGHTS,
        case: SLICES,
        twin: |p, w, b| {
            let first = with::<effective_weights::Params>(p, |p| p.column_start = 0);
            (effective_weights::WEIGHTS.twin)(&first, w, b);
        },
    },
    Broken {
        what: "a key too few",
        kernel: &top_keys::SELECT,
        case: "full, measured",
        twin: |p, w, b| (top_keys::SELECT.twin)(&with::<top_keys::Params>(p, |p| p.count -= 1), w, b),
    },
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
    Broken {
        what: "the strongest key alone",
        kernel: &top_attention::ATTEND,
        case: "full, strongest keys in batches of rows",
        twin: |p, w, b| (top_attention::ATTEND.twin)(&with::<top_attention::Params>(p, |p| p.count = 1), w, b),
    },
    Broken {
        what: "weights are not normalised",
        kernel: &top_attention::ATTEND,
        case: "full, strongest keys in batches of rows",
        twin: |p, w, b| {
            (top_attention::ATTEND.twin)(p, w, b);
            b[3].f_mut().iter_mut().for_each(|out| *out *= 1.001);
        },
    },
    Broken {
        what: "keys of other buckets are covered",
        kernel: &coverage::COVERAGE,
        case: BATCHES,
        twin: |p, w, b| {
            let all = with::<coverage::Params>(p, |p| p.lsh.flags &= !flags::SAME_BUCKET);
            (coverage::COVERAGE.twin)(&all, w, b);
        },
    },
    Broken {
        what: "only the very strongest keys are hits",
        kernel: &coverage::COVERAGE,
        case: BATCHES,
        twin: |p, w, b| (coverage::COVERAGE.twin)(&with::<coverage::Params>(p, |p| p.count /= 2), w, b),
    },
];

fn chunked(params: &[u8], widths: Widths, buffers: &mut [Data], change: fn(&mut chunked_attention::Params)) {
    (chunked_attention::ATTEND.twin)(&with(params, change), widths, buffers);
}

fn pairs(params: &[u8], widths: Widths, buffers: &mut [Data], change: fn(&mut attention_map::Params)) {
    (attention_map::PAIRS.twin)(&with(params, change), widths, buffers);
}
