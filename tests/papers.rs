//! What users of the published code stumbled on, and the numbers that a panel can be checked
//! against, on the device.

use attention_lab::gpu::run::Progress;
use attention_lab::gpu::workspace::Workspace;
use attention_lab::gpu::{Gpu, block_on};
use attention_lab::lab::theory::{Experiment, Point, Series};
use attention_lab::methods::full::{self, Full, Way};
use attention_lab::methods::linformer::{self, Linformer};
use attention_lab::methods::lsh::{self, Lsh};
use attention_lab::methods::measure::{self, Measured, Sample, Weights};
use attention_lab::plan::Plan;
use attention_lab::problem::{Dims, Named, Problem, Projections, Rotations};
use attention_lab::random::{Stream, normal};
use attention_lab::semantics::{ScoreScale, SelfRule, Semantics, Wrap};
use attention_lab::settings::Settings;
use attention_lab::steps::EMPTY;

fn gpu() -> Gpu {
    pollster::block_on(Gpu::open(true)).expect("these tests need a graphics adapter")
}

fn dims(n: u32, d: u32, d_v: u32) -> Dims {
    Dims { n_q: n, n_kv: n, heads: 1, k_heads: 1, v_heads: 1, d, d_v }
}

fn problem(dims: Dims, q: Vec<f32>, seed: u32) -> Problem {
    let v = (0..dims.n_kv * dims.d_v).map(|i| normal(seed, Stream::Codes, u64::from(i))).collect();
    Problem {
        dims,
        k: q.clone(),
        q,
        v,
        rotations: Rotations::Seeded(seed),
        projections: Projections::Mean,
        named: Named::new(),
    }
}

fn gaussian(n: u32, d: u32, seed: u32) -> Vec<f32> {
    (0..n * d).map(|i| normal(seed, Stream::Points, u64::from(i))).collect()
}

fn paper(rounds: u32, buckets: u32, chunk_len: u32) -> Lsh {
    Lsh {
        rounds,
        factors: vec![buckets],
        chunk_len,
        rotation_heads: 1,
        semantics: Semantics::PAPER,
        keep_rounds: false,
    }
}

fn run(gpu: &Gpu, plan: &Plan, problem: &Problem) -> Workspace {
    let mut workspace = Workspace::default();
    extend(gpu, plan, problem, &mut workspace);
    workspace
}

fn extend(gpu: &Gpu, plan: &Plan, problem: &Problem, workspace: &mut Workspace) {
    block_on(gpu, async {
        workspace.prepare(gpu, plan, problem).await.expect("prepared");
        gpu.run(plan, workspace, &Progress::default()).await.expect("ran");
    });
}

fn run_lsh(gpu: &Gpu, lsh: &Lsh, problem: &Problem) -> Workspace {
    run(gpu, &lsh::plan(&problem.dims, lsh, gpu.limits).expect("fits"), problem)
}

fn floats(gpu: &Gpu, workspace: &Workspace, name: &str) -> Vec<f32> {
    block_on(gpu, workspace.read_f32(gpu, name, 0)).expect("read")
}

fn integers(gpu: &Gpu, workspace: &Workspace, name: &str) -> Vec<u32> {
    block_on(gpu, workspace.read_u32(gpu, name, 0)).expect("read")
}

/// Every row of the method's weights, `[n, n]`.
fn weights(gpu: &Gpu, lsh: &Lsh, problem: &Problem, workspace: &mut Workspace) -> Vec<f32> {
    let sample = Sample::all(0, problem.dims.n_q);
    let measured = Measured::Lsh(lsh.clone());
    let plan = measure::weights(&problem.dims, &measured, Weights::Method, 0, sample, None, gpu.limits).expect("fits");
    extend(gpu, &plan, problem, workspace);
    floats(gpu, workspace, "weights")
}

fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// Lengths that are no multiple of the chunk: the rows of the weights sum to 1 over the n real keys,
/// so nothing leaks to padding, positions 0 and 1 included.
#[test]
fn ragged_lengths_give_padding_no_weight() {
    let gpu = gpu();
    for (n, chunk) in [(63, 64), (72, 8), (100, 8), (8, 8), (1, 64), (2, 64)] {
        let problem = problem(dims(n, 16, 4), gaussian(n, 16, n), n);
        let mut lsh = paper(2, 4, chunk);
        lsh.semantics.self_rule = SelfRule::Include;
        let mut workspace = run_lsh(&gpu, &lsh, &problem);
        let rows = weights(&gpu, &lsh, &problem, &mut workspace);
        let out = floats(&gpu, &workspace, "out");
        for (i, row) in rows.chunks(n as usize).enumerate() {
            let sum: f64 = row.iter().map(|w| f64::from(*w)).sum();
            assert!((sum - 1.0).abs() < 1e-5, "n {n}, chunk {chunk}: row {i} sums to {sum}");
            // The output is these weights times v: no other key had any.
            for c in 0..4 {
                let value: f64 =
                    row.iter().enumerate().map(|(j, w)| f64::from(*w) * f64::from(problem.v[j * 4 + c])).sum();
                assert!((value - f64::from(out[i * 4 + c])).abs() < 1e-4, "n {n}, chunk {chunk}: row {i}");
            }
        }
    }
}

/// A longer sequence whose further tokens no query may see gives the same first rows.
#[test]
fn later_tokens_change_nothing_when_masked() {
    let gpu = gpu();
    let (n, d) = (63u32, 16);
    let long = gaussian(100, d, 9);
    let v: Vec<f32> = (0..100 * 4).map(|i| normal(2, Stream::Codes, i)).collect();
    let full = Full { way: Way::Online, shared_qk: true, semantics: Semantics { causal: true, ..Semantics::PAPER } };
    let rows = |n: u32| {
        let dims = dims(n, d, 4);
        let mut problem = problem(dims, long[..(n * d) as usize].to_vec(), 1);
        problem.v = v[..(n * 4) as usize].to_vec();
        let workspace = run(&gpu, &full::plan(&dims, &full, gpu.limits).expect("fits"), &problem);
        floats(&gpu, &workspace, "out")
    };
    assert_eq!(rows(n), rows(100)[..(n * 4) as usize]);
}

#[test]
fn an_odd_bucket_count_is_told_in_words() {
    let mut settings = Settings::default();
    let error = settings.set("buckets", "7").expect_err("odd");
    assert_eq!(error.to_string(), "--buckets 7: allowed is auto or an even number from 2 to 8192");
    assert_eq!(settings, Settings::default());
}

/// At or below the chunk length, across buckets, LSH attention is full attention.
#[test]
fn a_single_chunk_is_full_attention() {
    let gpu = gpu();
    let problem = problem(dims(40, 16, 8), gaussian(40, 16, 5), 5);
    for causal in [false, true] {
        let mut lsh = paper(2, 4, 64);
        lsh.semantics = Semantics { same_bucket: false, causal, ..Semantics::PAPER };
        let out = floats(&gpu, &run_lsh(&gpu, &lsh, &problem), "out");
        let full = Full { way: Way::Materialized, shared_qk: true, semantics: lsh.semantics };
        let plan = full::plan(&problem.dims, &full, gpu.limits).expect("fits");
        let exact = floats(&gpu, &run(&gpu, &plan, &problem), "out");
        assert!(largest_difference(&out, &exact) < 1e-5);
    }
}

/// Identical tokens fall into one bucket; a query still sees its own chunk and the one before only.
#[test]
fn identical_tokens_see_at_most_two_chunks() {
    let gpu = gpu();
    let (n, chunk) = (96, 8);
    let problem = problem(dims(n, 16, 4), gaussian(1, 16, 3).repeat(n as usize), 3);
    let lsh = paper(3, 8, chunk);
    let mut workspace = run_lsh(&gpu, &lsh, &problem);
    for (i, row) in weights(&gpu, &lsh, &problem, &mut workspace).chunks(n as usize).enumerate() {
        let seen = row.iter().filter(|w| **w > 0.0).count();
        assert!(seen <= 2 * chunk as usize, "row {i} sees {seen} keys");
    }
}

/// Equal buckets keep the order of positions, at every size of the sort.
#[test]
fn equal_buckets_keep_the_order_of_positions() {
    let gpu = gpu();
    for n in [1, 127, 1024, 5000] {
        let problem = problem(dims(n, 8, 4), vec![1.0; n as usize * 8], 1);
        let workspace = run_lsh(&gpu, &paper(1, 256, 64), &problem);
        assert_eq!(integers(&gpu, &workspace, "order"), (0..n).collect::<Vec<u32>>());
    }
}

/// The same seed gives the same buckets, bit for bit, in a forward pass and its recomputation.
#[test]
fn recomputation_finds_the_same_buckets() {
    let gpu = gpu();
    let problem = problem(dims(700, 32, 4), gaussian(700, 32, 8), 8);
    let buckets = || integers(&gpu, &run_lsh(&gpu, &paper(4, 32, 44), &problem), "buckets");
    assert_eq!(buckets(), buckets());
}

/// A row with every key masked is 0 and says so; no NaN anywhere.
#[test]
fn a_row_with_every_key_masked_is_zero() {
    let gpu = gpu();
    let problem = problem(dims(70, 8, 4), gaussian(70, 8, 8), 8);
    let semantics = Semantics { self_rule: SelfRule::Exclude, causal: true, ..Semantics::PAPER };
    let lsh = Lsh { semantics, ..paper(2, 8, 16) };
    let lsh_run = run_lsh(&gpu, &lsh, &problem);
    let mut runs = vec![lsh_run];
    for way in [Way::Online, Way::Rowwise, Way::Materialized] {
        let full = Full { way, shared_qk: true, semantics };
        runs.push(run(&gpu, &full::plan(&problem.dims, &full, gpu.limits).expect("fits"), &problem));
    }
    for workspace in &runs {
        let out = floats(&gpu, workspace, "out");
        assert!(out.iter().all(|x| x.is_finite()));
        assert_eq!(out[..4], [0.0; 4]);
        assert_eq!(floats(&gpu, workspace, "lse")[0], EMPTY);
    }
}

/// With causal masking the weight of every later key is exactly 0.
#[test]
fn no_later_key_has_weight() {
    let gpu = gpu();
    let n = 128;
    let problem = problem(dims(n, 16, 4), gaussian(n, 16, 8), 8);
    for wrap in [Wrap::None, Wrap::InRound, Wrap::AcrossRounds] {
        for same_bucket in [false, true] {
            let mut lsh = paper(3, 8, 16);
            lsh.semantics = Semantics { causal: true, wrap, same_bucket, pair_count_eps: 1e-9, ..Semantics::PAPER };
            let mut workspace = run_lsh(&gpu, &lsh, &problem);
            for (i, row) in weights(&gpu, &lsh, &problem, &mut workspace).chunks(n as usize).enumerate() {
                assert!(row[i + 1..].iter().all(|w| *w == 0.0), "row {i}, {wrap:?}");
            }
        }
    }
}

/// k above n is told in words; k that does not divide n pools segments that differ by one.
#[test]
fn k_above_n_is_refused_and_uneven_k_pools_everything() {
    let mut settings = Settings { n: 100, k: Some(101), ..Settings::default() };
    assert_eq!(settings.validate().expect_err("k > n").to_string(), "--k 101: allowed is 1 to n, here 100");
    settings.k = Some(33);
    assert!(settings.validate().is_ok());

    let gpu = gpu();
    let problem = problem(dims(100, 8, 4), gaussian(100, 8, 8), 8);
    let linformer = Linformer {
        k: 33,
        shared_ef: true,
        projection_heads: 1,
        max_pooling: false,
        biased: false,
        triangle: false,
        score_scale: ScoreScale::InverseSqrtD,
    };
    let workspace = run(&gpu, &linformer::plan(&problem.dims, &linformer, gpu.limits).expect("fits"), &problem);
    let e = floats(&gpu, &workspace, "E");
    for j in 0..100 {
        assert_eq!(e[j * 36..j * 36 + 33].iter().filter(|x| **x > 0.0).count(), 1, "column {j}");
    }
    for i in 0..33 {
        let row: f32 = (0..100).map(|j| e[j * 36 + i]).sum();
        assert!((row - 1.0).abs() < 1e-6, "row {i} sums to {row}");
    }
}

/// Large, zero and tiny vectors: finite, and the large ones sharpen to their best key.
#[test]
fn extreme_lengths_stay_finite() {
    let gpu = gpu();
    let n = 200;
    for length in [1e4, 1e-30, 0.0] {
        let q: Vec<f32> = gaussian(n, 16, 4).iter().map(|x| x * length).collect();
        let problem = problem(dims(n, 16, 4), q, 4);
        for scale in [ScoreScale::InverseSqrtD, ScoreScale::One] {
            let lsh = Lsh { semantics: Semantics { score_scale: scale, ..Semantics::PAPER }, ..paper(2, 8, 32) };
            let out = floats(&gpu, &run_lsh(&gpu, &lsh, &problem), "out");
            assert!(out.iter().all(|x| x.is_finite()), "length {length}");
        }
        let plain = Full { way: Way::Online, shared_qk: false, semantics: Semantics::PLAIN };
        let out =
            floats(&gpu, &run(&gpu, &full::plan(&problem.dims, &plain, gpu.limits).expect("fits"), &problem), "out");
        assert!(out.iter().all(|x| x.is_finite()), "length {length}");
    }
}

fn series(gpu: &Gpu, experiment: Experiment) -> Series {
    block_on(gpu, experiment.run(gpu, 1, &Progress::default())).expect("ran")
}

/// Within five standard errors of a stored value, which has errors of its own.
fn near_table(point: &Point, want: f64, slack: f64) {
    let bound = 5.0 * (want * (1.0 - want) / point.draws as f64).sqrt() + slack;
    assert!((point.share() - want).abs() < bound, "{point:?}: {}, table {want}", point.share());
}

/// Within five standard errors of a theoretical curve; certainty has no error.
fn near_curve(point: &Point, curve: &[[f64; 2]]) {
    let want = curve.iter().find(|at| at[0] == point.x).expect("the curve has this point")[1];
    let bound = 5.0 * (want * (1.0 - want) / point.draws as f64).sqrt() + 1e-4;
    assert!((point.share() - want).abs() < bound, "{point:?}: {}, theory {want}", point.share());
}

/// Share of pairs in the same bucket by angle, d = 64: stored values, and the probability that the
/// hash has by its definition.
#[test]
fn collisions_by_angle() {
    let gpu = gpu();
    let angles = [0.0, 10.0, 20.0, 30.0, 45.0, 60.0, 90.0, 180.0];
    let table = [
        (2, [1.0, 0.944, 0.888, 0.831, 0.753, 0.664, 0.501, 0.0]),
        (16, [1.0, 0.834, 0.682, 0.542, 0.371, 0.234, 0.063, 0.0]),
        (64, [1.0, 0.786, 0.604, 0.442, 0.256, 0.132, 0.016, 0.0]),
    ];
    for (buckets, row) in table {
        let series = series(&gpu, Experiment::Collisions { buckets });
        for (angle, want) in angles.iter().zip(row) {
            let point = series.measured.iter().find(|point| point.x == *angle).expect("this angle");
            near_table(point, want, 0.002);
        }
        series.measured.iter().for_each(|point| near_curve(point, &series.theory[0]));
    }
}

/// Share of pairs at a cosine of which one sees the other, l = 1024, b = 16, m = 128, by rounds.
#[test]
fn recall_by_cosine_and_rounds() {
    let gpu = gpu();
    let table = [
        (95, [0.716, 0.918, 0.992, 1.0]),
        (90, [0.604, 0.847, 0.977, 0.999]),
        (80, [0.470, 0.691, 0.912, 0.994]),
        (60, [0.305, 0.479, 0.755, 0.940]),
    ];
    for (cosine, row) in table {
        let series = series(&gpu, Experiment::Recall { cosine });
        for (rounds, want) in [1, 2, 4, 8].into_iter().zip(row) {
            near_table(&series.measured[rounds - 1], want, 0.005);
        }
        series.measured.iter().for_each(|point| near_curve(point, &series.theory[0]));
    }
}

/// Isotropic data, share of buckets larger than m = 2 l / b, l = 1024. Buckets would hardly ever be
/// overfull if all were equally likely; that columns of R differ in length explains most of what is seen.
#[test]
fn overfull_buckets_of_isotropic_data() {
    let gpu = gpu();
    let series = series(&gpu, Experiment::Overfull);
    for (buckets, want) in [(16.0, 0.0), (32.0, 0.009), (64.0, 0.039)] {
        let at = series.measured.iter().position(|point| point.x == buckets).expect("this bucket count");
        let share = series.measured[at].share();
        assert!((share - want).abs() < 0.006, "{buckets} buckets: {share}, table {want}");
        let [even, by_length] = [0, 1].map(|curve| series.theory[curve][at][1]);
        assert!((share - by_length).abs() < 0.3 * share + 0.001, "{buckets} buckets: {share}, theory {by_length}");
        assert!(even <= 0.01 * share + 1e-6, "{buckets} buckets: {share}, {even} if even");
    }
}
