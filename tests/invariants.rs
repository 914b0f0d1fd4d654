//! What must hold between the methods, whatever the numbers are.

use attention_lab::gpu::{Gpu, block_on, run::Progress, workspace::Workspace};
use attention_lab::interpreter;
use attention_lab::methods::full::{self, Full, Way};
use attention_lab::methods::linformer::{self, Linformer};
use attention_lab::methods::lsh::{self, Lsh};
use attention_lab::methods::measure::{self, Sample, Window};
use attention_lab::outcome::lost_pairs;
use attention_lab::plan::{Limits, Plan};
use attention_lab::problem::{Dims, Fill, Named, Problem, Projections, Rotations, Source};
use attention_lab::random::{Stream, below, normal};
use attention_lab::semantics::{KeyNorm, ScoreScale, SelfRule, Semantics, Wrap};
use std::collections::HashSet;

const LIMITS: Limits = Limits::WEBGPU;

fn open() -> Gpu {
    pollster::block_on(Gpu::open(true)).expect("a software Vulkan driver")
}

fn dims(n: u32, heads: u32, d: u32, d_v: u32) -> Dims {
    Dims { n_q: n, n_kv: n, heads, k_heads: heads, v_heads: heads, d, d_v }
}

fn problem(dims: Dims) -> Problem {
    let make = |tag: u64, len: u32| {
        (0..len).map(|i| normal(11, Stream::Noise, (tag << 32) | u64::from(i))).collect::<Vec<f32>>()
    };
    Problem {
        dims,
        q: make(1, dims.heads * dims.n_q * dims.d),
        k: make(2, dims.k_heads * dims.n_kv * dims.d),
        v: make(3, dims.v_heads * dims.n_kv * dims.d_v),
        rotations: Rotations::Seeded(9),
        projections: Projections::Mean,
        named: Named::new(),
    }
}

fn paper(rounds: u32, factors: &[u32], chunk_len: u32, semantics: Semantics) -> Lsh {
    Lsh { rounds, factors: factors.to_vec(), chunk_len, rotation_heads: 1, semantics, keep_rounds: false }
}

/// A buffer of floats of one head in float64.
fn exact(plan: &Plan, problem: &Problem, name: &str, head: u32) -> Vec<f64> {
    let mut workspace = interpreter::Workspace::default();
    workspace.run(plan, problem);
    workspace.read(name, head).expect(name).f().to_vec()
}

fn on_gpu(gpu: &Gpu, plans: &[&Plan], problem: &Problem) -> Workspace {
    let mut workspace = Workspace::default();
    for plan in plans {
        block_on(gpu, async {
            workspace.prepare(gpu, plan, problem).await.expect("prepared");
            gpu.run(plan, &workspace, &Progress::default()).await.expect("run");
        });
    }
    workspace
}

fn apart(a: &[f64], b: &[f64]) -> f64 {
    assert!(!a.is_empty() && a.len() == b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

fn floats(values: Vec<f32>) -> Vec<f64> {
    values.into_iter().map(f64::from).collect()
}

/// How far two float32 outputs of the same attention over n keys may lie apart, each as far from
/// the exact one: a score of at most `sum |q k| = score` errs by `(d + 3) U score`, a weight by `e` to
/// twice that and to the roundings of `exp` (6 + 5 |x|, x at most twice the score), of n sums and of n
/// shrinkings (7 each), the output by that share of the largest value.
fn float32_apart(d: u32, n: u32, score: f64, value: f64) -> f64 {
    let u = (0.5f64).powi(24);
    let share = 2.0 * u * ((f64::from(d) + 3.0) * score + 6.0 + 10.0 * score + 8.0 * f64::from(n));
    2.0 * share.exp_m1() * value
}

fn largest(values: &[f32]) -> f64 {
    values.iter().map(|v| f64::from(v.abs())).fold(0.0, f64::max)
}

/// `max_i |row i|`.
fn longest(values: &[f32], d: u32) -> f64 {
    let square = |row: &[f32]| row.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
    values.chunks(d as usize).map(square).fold(0.0, f64::max).sqrt()
}

#[test]
fn lsh_with_one_chunk_across_buckets_is_full_attention() {
    let gpu = open();
    let dims = dims(70, 2, 5, 6);
    let problem = problem(dims);
    let rules = [
        Semantics { same_bucket: false, ..Semantics::PAPER },
        Semantics { same_bucket: false, causal: true, ..Semantics::PAPER },
        Semantics { same_bucket: false, causal: true, self_rule: SelfRule::Exclude, ..Semantics::PAPER },
        Semantics {
            same_bucket: false,
            self_rule: SelfRule::Include,
            key_norm: KeyNorm::None,
            score_scale: ScoreScale::One,
            ..Semantics::PAPER
        },
        Semantics { same_bucket: false, wrap: Wrap::InRound, chunks_before: 0, ..Semantics::PAPER },
    ];
    for semantics in rules {
        for (rounds, chunk_len) in [(1, 70), (3, 1000)] {
            let lsh = lsh::plan(&dims, &paper(rounds, &[8], chunk_len, semantics), LIMITS).expect("a plan");
            let full = Full { way: Way::Online, shared_qk: true, semantics };
            let full = full::plan(&dims, &full, LIMITS).expect("a plan");
            let (a, b) = (on_gpu(&gpu, &[&lsh], &problem), on_gpu(&gpu, &[&full], &problem));
            for head in 0..2 {
                for name in ["out", "lse"] {
                    let (a, b) = (exact(&lsh, &problem, name, head), exact(&full, &problem, name, head));
                    assert!(apart(&a, &b) < 1e-10, "{semantics:?} {rounds} {name}: {}", apart(&a, &b));
                }
                let length = longest(&problem.q, dims.d);
                let score = if semantics.key_norm == KeyNorm::None { length * length } else { length };
                let read = |w: &Workspace| floats(block_on(&gpu, w.read_f32(&gpu, "out", head)).expect("read"));
                // LSH attention weighs its rounds by a second softmax.
                let allowed = 2.0 * float32_apart(dims.d, dims.n_q, score, largest(&problem.v));
                assert!(apart(&read(&a), &read(&b)) < allowed, "{semantics:?} {rounds}");
            }
        }
    }
}

#[test]
fn linformer_with_identity_projections_is_full_attention() {
    let gpu = open();
    let dims = dims(66, 2, 7, 5);
    let identity: Vec<f32> = (0..66 * 66).map(|at| if at / 66 == at % 66 { 1.0 } else { 0.0 }).collect();
    let given = Projections::Given { e: identity.clone(), f: identity, e_bias: Vec::new(), f_bias: Vec::new() };
    let problem = Problem { projections: given, ..problem(dims) };
    let linformer = Linformer {
        k: 66,
        shared_ef: false,
        projection_heads: 1,
        max_pooling: false,
        biased: false,
        triangle: false,
        score_scale: ScoreScale::InverseSqrtD,
    };
    let linformer = linformer::plan(&dims, &linformer, LIMITS).expect("a plan");
    let full = Full { way: Way::Online, shared_qk: false, semantics: Semantics::PLAIN };
    let full = full::plan(&dims, &full, LIMITS).expect("a plan");
    let (a, b) = (on_gpu(&gpu, &[&linformer], &problem), on_gpu(&gpu, &[&full], &problem));
    for head in 0..2 {
        let (x, y) = (exact(&linformer, &problem, "out", head), exact(&full, &problem, "out", head));
        assert!(apart(&x, &y) < 1e-12, "{}", apart(&x, &y));
        let read = |w: &Workspace| floats(block_on(&gpu, w.read_f32(&gpu, "out", head)).expect("read"));
        // Sums with a single term that is not 0 are exact.
        assert_eq!(read(&a), read(&b));
    }
}

/// The pairs `(query, key)` of one head, found by walking the sorted lists, and all their meetings.
fn brute_force(lsh: &Lsh, n: u32, buckets: &[u32], order: &[u32]) -> (HashSet<(u32, u32)>, u64) {
    let (m, rules) = (lsh.chunk_len.min(n), &lsh.semantics);
    let chunks = n.div_ceil(m) as i64;
    let (mut pairs, mut visits) = (HashSet::new(), 0);
    for round in 0..i64::from(lsh.rounds) {
        for entry in 0..n {
            let query = order[(round * i64::from(n)) as usize + entry as usize];
            for step in -i64::from(rules.chunks_before)..=i64::from(rules.chunks_after) {
                let mut chunk = i64::from(entry / m) + step;
                let mut other = round;
                match rules.wrap {
                    Wrap::None if !(0..chunks).contains(&chunk) => continue,
                    Wrap::None => {}
                    Wrap::InRound => chunk = chunk.rem_euclid(chunks),
                    Wrap::AcrossRounds => {
                        let all = (round * chunks + chunk).rem_euclid(i64::from(lsh.rounds) * chunks);
                        (other, chunk) = (all / chunks, all % chunks);
                    }
                }
                for at in chunk as u32 * m..((chunk as u32 + 1) * m).min(n) {
                    let key = order[(other * i64::from(n)) as usize + at as usize];
                    let bucket = |position: u32| buckets[(round * i64::from(n)) as usize + position as usize];
                    let apart = rules.same_bucket && (other != round || bucket(query) != bucket(key));
                    if rules.sees(query, key) && !apart {
                        visits += 1;
                        pairs.insert((query, key));
                    }
                }
            }
        }
    }
    (pairs, visits)
}

#[test]
fn map_counts_are_the_pairs_computed() {
    let gpu = open();
    let paper_rule = Semantics::PAPER;
    let across = Semantics { same_bucket: false, self_rule: SelfRule::Include, pair_count_eps: 1e-9, ..paper_rule };
    let cases = [
        (90, paper(3, &[8], 16, paper_rule)),
        (90, paper(3, &[8], 16, Semantics { causal: true, self_rule: SelfRule::Exclude, ..paper_rule })),
        (90, paper(2, &[8], 16, Semantics { chunks_before: 2, chunks_after: 1, wrap: Wrap::InRound, ..across })),
        (90, paper(3, &[4], 16, Semantics { wrap: Wrap::AcrossRounds, ..across })),
        (600, paper(2, &[4], 100, Semantics { chunks_after: 1, ..across })),
    ];
    for (n, lsh) in cases {
        let dims = dims(n, 2, 6, 1);
        let problem = problem(dims);
        let method = lsh::plan(&dims, &lsh, LIMITS).expect("a plan");
        let whole = |heads| measure::pairs(&dims, &lsh, heads, Window::whole(n, n), LIMITS).expect("a plan");
        let workspace = on_gpu(&gpu, &[&method, &whole(0..2)], &problem);
        let second = on_gpu(&gpu, &[&method, &whole(1..2)], &problem);
        let read = |name, head| block_on(&gpu, workspace.read_u32(&gpu, name, head)).expect("read");
        let sum = |words: &[u32]| words.iter().map(|word| u64::from(*word)).sum::<u64>();
        for head in 0..2 {
            let (pairs, visits) = brute_force(&lsh, n, &read("buckets", head), &read("order", head));
            let rows = read("row pairs", head);
            for query in 0..n {
                let found = pairs.iter().filter(|(i, _)| *i == query).count() as u32;
                assert_eq!(rows[query as usize], found, "{lsh:?} query {query}");
            }
            assert_eq!(sum(&read("row visits", head)), visits, "{lsh:?}");
            let unmasked = !lsh.semantics.same_bucket && !lsh.semantics.causal;
            if unmasked {
                assert_eq!(visits, lsh.visits(n), "from the sizes alone");
            }
            if head == 1 {
                let (width, height) = Window::whole(n, n).pixels();
                let mut pixels = vec![0; (width * height) as usize];
                for (i, j) in &pairs {
                    pixels[(i * height / n * width + j * width / n) as usize] += 1;
                }
                let map = block_on(&gpu, second.read_u32(&gpu, "pair map", 0)).expect("read");
                assert_eq!(map, pixels, "{lsh:?}");
                assert!(read("pair map", 0).iter().zip(&map).all(|(both, one)| both >= one), "both heads");
                assert_eq!(sum(&pixels), sum(&rows));
            }
        }
    }
}

#[test]
fn pairs_of_full_attention_follow_the_masks() {
    for (causal, self_rule) in [
        (false, SelfRule::Include),
        (true, SelfRule::Value(-1e5)),
        (true, SelfRule::Exclude),
        (false, SelfRule::Exclude),
    ] {
        let rule = Semantics { causal, self_rule, ..Semantics::PAPER };
        for n in [1u32, 7, 600] {
            let counts = Window::whole(n, n).counts(|i, j| rule.sees(i, j));
            let (n, out) = (u64::from(n), u64::from(self_rule == SelfRule::Exclude));
            let expected = if causal { n * (n + 1) / 2 } else { n * n } - n * out;
            assert_eq!(counts.iter().map(|count| *count as u64).sum::<u64>(), expected);
            assert_eq!((0..n as u32).map(|i| u64::from(rule.allowed(i, n as u32))).sum::<u64>(), expected);
        }
        for (queries, keys) in [(3, 8), (8, 3)] {
            for i in 0..queries {
                let seen = (0..keys).filter(|j| rule.sees(i, *j)).count();
                assert_eq!(rule.allowed(i, keys) as usize, seen, "{rule:?}: query {i} of {queries}, {keys} keys");
            }
        }
    }
}

/// Rotations as exact bits: (seed, head, round, column, row) to a float32. They were computed apart
/// from this program, with integers of any size and logarithm, root and cosine to 400 bits.
const ROTATIONS: [([u32; 5], u32); 8] = [
    ([0, 0, 0, 0, 0], 0xbe9e_08ad),
    ([1, 0, 0, 0, 1], 0x3f64_5eb2),
    ([1, 0, 0, 1, 0], 0xbe84_0e0b),
    ([7, 3, 2, 5, 29], 0x3da4_86ea),
    ([7, 15, 15, 4095, 127], 0xbfd0_5a66),
    ([4_294_967_295, 1, 0, 31, 63], 0xbfba_2b9d),
    ([42, 0, 1, 17, 2], 0x3bd1_dee4),
    ([42, 2, 0, 64, 64], 0xbfb2_cff7),
];

#[test]
fn same_seed_same_rotations_bit_for_bit() {
    for ([seed, head, round, column, row], bits) in ROTATIONS {
        let problem = Problem { rotations: Rotations::Seeded(seed), ..problem(dims(1, 1, 128, 1)) };
        let fill = Fill { rounds: 16, columns: 4096, ..Fill::whole(Source::Rotations, 16 * 4096) };
        let mut values = Vec::new();
        let at = round * 4096 + column;
        problem.rows(fill, head, at..at + 1, &mut values);
        assert_eq!(values[row as usize].to_bits(), bits, "seed {seed}, head {head}, R[{row}, {column}] of {round}");
    }
}

#[test]
fn samples_are_distinct_queries() {
    for n in (1..400).chain([1023, 1024, 1025, 4096, 65_535, 65_536, 262_144]) {
        for count in [1, 2, 64, 256, 1024] {
            let sample = Sample::golden(n, count);
            assert_eq!(sample.count, count.min(n));
            let queries: HashSet<u32> = (0..sample.count).map(|row| sample.query(row)).collect();
            assert_eq!(queries.len() as u32, sample.count, "{n} {count}");
            assert!(queries.iter().all(|query| *query < n));
        }
        let even = Sample::even(3, n);
        let rows: Vec<u32> = (0..even.count).map(|row| even.query(row)).collect();
        assert!(even.count <= measure::MAP_ROWS && rows.is_sorted_by(|a, b| a < b));
        assert!(rows.iter().all(|row| (3..3 + n).contains(row)));
    }
}

#[test]
fn lost_pairs_are_those_that_no_chunk_covers() {
    let mut total = 0;
    for case in 0..400u64 {
        let draw = |what: u64, count: u32| below(21, Stream::Noise, case * 4096 + what, count);
        let n = 1 + draw(0, 60);
        let mut sorted: Vec<u32> = (0..n).map(|i| draw(100 + u64::from(i), 1 + draw(1, 6))).collect();
        sorted.sort_unstable();
        let rules = Semantics {
            causal: draw(2, 2) == 1,
            chunks_before: draw(3, 3),
            chunks_after: draw(4, 3),
            wrap: [Wrap::None, Wrap::InRound, Wrap::AcrossRounds][draw(5, 3) as usize],
            self_rule: [SelfRule::Value(-1e5), SelfRule::Exclude][draw(6, 2) as usize],
            ..Semantics::PAPER
        };
        let geometry = paper(1 + draw(7, 3), &[6], 1 + draw(8, 12), rules).geometry(n);
        let chunks = i64::from(geometry.chunks);
        let mut lost = 0;
        for query in 0..n {
            for key in 0..n {
                // Entries of a bucket stand by position.
                let allowed = rules.sees(query, key) && sorted[query as usize] == sorted[key as usize];
                let covered = (-i64::from(rules.chunks_before)..=i64::from(rules.chunks_after)).any(|step| {
                    let chunk = i64::from(query / geometry.chunk_len) + step;
                    let wraps =
                        rules.wrap == Wrap::InRound || (rules.wrap == Wrap::AcrossRounds && geometry.rounds == 1);
                    let chunk = if wraps { chunk.rem_euclid(chunks) } else { chunk };
                    chunk == i64::from(key / geometry.chunk_len)
                });
                lost += u64::from(allowed && !covered);
            }
        }
        assert_eq!(lost_pairs(&sorted, &geometry), lost, "case {case}: {rules:?} {geometry:?} {sorted:?}");
        total += lost;
    }
    assert!(total > 1000, "the cases lose pairs");
}

/// All rotations of the problem as numbers, `[1, rounds, d, columns]`.
fn rotations(problem: &Problem, rounds: u32, columns: u32) -> Vec<f32> {
    let fill = Fill { rounds, columns, ..Fill::whole(Source::Rotations, rounds * columns) };
    let mut rows = Vec::new();
    problem.rows(fill, 0, 0..rounds * columns, &mut rows);
    let (d, stride) = (problem.dims.d as usize, problem.dims.widths().d_stride());
    let columns = columns as usize;
    (0..rounds as usize)
        .flat_map(|round| (0..d).flat_map(move |row| (0..columns).map(move |c| (round * columns + c) * stride + row)))
        .map(|at| rows[at])
        .collect()
}

#[test]
fn the_order_of_rounds_does_not_matter() {
    let dims = dims(80, 1, 6, 5);
    let seeded = problem(dims);
    let all = rotations(&seeded, 4, 4);
    let blocks: Vec<&[f32]> = all.chunks(6 * 4).collect();
    let lsh = paper(4, &[8], 12, Semantics { causal: true, ..Semantics::PAPER });
    let plan = lsh::plan(&dims, &lsh, LIMITS).expect("a plan");
    let given = |order: [usize; 4]| Problem {
        rotations: Rotations::Given(order.iter().flat_map(|round| blocks[*round].to_vec()).collect()),
        ..seeded.clone()
    };
    let reference = exact(&plan, &seeded, "out", 0);
    assert_eq!(exact(&plan, &given([0, 1, 2, 3]), "out", 0), reference, "given as they were seeded");
    for order in [[3, 2, 1, 0], [1, 3, 0, 2]] {
        let permuted = given(order);
        for name in ["out", "lse"] {
            let (a, b) = (exact(&plan, &permuted, name, 0), exact(&plan, &seeded, name, 0));
            assert!(apart(&a, &b) < 1e-10, "{order:?} {name}");
        }
    }
}

/// Rows of `from` floats as rows of `to`, filled up with zeros.
fn widened(values: &[f32], from: u32, to: u32) -> Vec<f32> {
    let zeros = std::iter::repeat_n(0.0, (to - from) as usize);
    values.chunks(from as usize).flat_map(|row| row.iter().copied().chain(zeros.clone())).collect()
}

#[test]
fn columns_of_zeros_change_no_result() {
    let gpu = open();
    let semantics = Semantics { score_scale: ScoreScale::Value(0.2), ..Semantics::PAPER };
    let lsh = paper(2, &[8], 20, semantics);
    let full = Full { way: Way::Materialized, shared_qk: false, semantics };
    let narrow = problem(dims(75, 1, 30, 14));
    let all = rotations(&narrow, 2, 4);
    let run = |d: u32, d_v: u32| {
        let dims = dims(75, 1, d, d_v);
        // A row of R more is 4 columns of zeros in each round.
        let rotations = all.chunks(30 * 4).flat_map(|round| widened(round, 30 * 4, d * 4)).collect();
        let problem = Problem {
            dims,
            q: widened(&narrow.q, 30, d),
            k: widened(&narrow.k, 30, d),
            v: widened(&narrow.v, 14, d_v),
            rotations: Rotations::Given(rotations),
            projections: Projections::Mean,
            named: Named::new(),
        };
        let plans =
            [lsh::plan(&dims, &lsh, LIMITS), full::plan(&dims, &full, LIMITS)].map(|plan| plan.expect("a plan"));
        plans.map(|plan| {
            let workspace = on_gpu(&gpu, &[&plan], &problem);
            let out = block_on(&gpu, workspace.read_f32(&gpu, "out", 0)).expect("read");
            let stride = dims.widths().dv_stride();
            let rows: Vec<f32> = out.chunks(stride).flat_map(|row| row[..14].to_vec()).collect();
            assert!(out.chunks(stride).all(|row| row[14..].iter().all(|zero| *zero == 0.0)));
            (rows, block_on(&gpu, workspace.read_u32(&gpu, "buckets", 0)).expect("read"))
        })
    };
    let reference = run(30, 14);
    // The same shader, then others with longer rows; zeros are added exactly, in any order.
    assert_eq!(run(32, 16), reference);
    for ((a, buckets), (b, same)) in run(40, 24).into_iter().zip(reference) {
        assert_eq!(buckets, same);
        let allowed = 2.0 * float32_apart(40, 75, longest(&narrow.q, 30) * longest(&narrow.k, 30), largest(&narrow.v));
        assert!(apart(&floats(a), &floats(b)) < allowed);
    }
}
