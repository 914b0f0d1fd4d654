//! More keys than some drivers let a loop count: Mesa's llvmpipe ends all loops of an invocation
//! after 65,535 iterations in all, without an error, so that sums over keys must come in slices.
#![cfg(not(target_arch = "wasm32"))]

use attention_lab::gpu::{Gpu, block_on, run::Progress, workspace::Workspace};
use attention_lab::methods::attention_backward::{full_plan, lsh_plan};
use attention_lab::methods::full::{self, Full, Way};
use attention_lab::methods::linformer::{self, Linformer};
use attention_lab::methods::lsh::{self, Lsh};
use attention_lab::plan::Plan;
use attention_lab::problem::{Dims, Named, Problem, Projections, Rotations};
use attention_lab::random::{Stream, normal};
use attention_lab::semantics::{ScoreScale, Semantics, Wrap};

const KEYS: u32 = 70_000;

fn problem(d: u32, d_v: u32) -> Problem {
    let dims = Dims { n_q: 16, n_kv: KEYS, heads: 1, k_heads: 1, v_heads: 1, d, d_v };
    let noise = |tag: u64, len: u32| (0..len).map(|i| normal(3, Stream::Noise, tag << 32 | u64::from(i))).collect();
    Problem {
        dims,
        q: noise(1, dims.n_q * d),
        k: noise(2, KEYS * d),
        // Values grow with the position, so that keys left out at the end are missed.
        v: (0..KEYS * d_v).map(|i| (i / d_v) as f32 / KEYS as f32).collect(),
        rotations: Rotations::Seeded(1),
        projections: Projections::Mean,
        named: Named::new(),
    }
}

/// `norm(got - expected) / norm(expected)`.
fn apart(got: &[f32], expected: &[f64]) -> f64 {
    assert_eq!(got.len(), expected.len());
    let apart: f64 = got.iter().zip(expected).map(|(a, b)| (f64::from(*a) - b).powi(2)).sum();
    (apart / expected.iter().map(|b| b * b).sum::<f64>()).sqrt()
}

/// How far the output of a plan is from what it should be.
fn distance(gpu: &Gpu, plan: &Plan, problem: &Problem, expected: &[f64]) -> f64 {
    let mut workspace = Workspace::default();
    let out = block_on(gpu, async {
        workspace.prepare(gpu, plan, problem).await.expect("buffers");
        gpu.run(plan, &workspace, &Progress::default()).await.expect("a run");
        workspace.read_f32(gpu, "out", 0).await.expect("an output")
    });
    apart(&out, expected)
}

/// `softmax(q k^T / sqrt d) v` in float64.
fn exact(p: &Problem) -> Vec<f64> {
    let (d, d_v) = (p.dims.d as usize, p.dims.d_v as usize);
    let row = |q: &[f32]| {
        let scores: Vec<f64> =
            p.k.chunks_exact(d)
                .map(|k| q.iter().zip(k).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>() / (d as f64).sqrt())
                .collect();
        let total: f64 = scores.iter().map(|score| score.exp()).sum();
        let mut out = vec![0.0; d_v];
        for (score, v) in scores.iter().zip(p.v.chunks_exact(d_v)) {
            out.iter_mut().zip(v).for_each(|(out, v)| *out += score.exp() / total * f64::from(*v));
        }
        out
    };
    p.q.chunks_exact(d).flat_map(row).collect()
}

#[test]
fn every_key_counts() {
    let gpu = pollster::block_on(Gpu::open(true)).expect("a device");
    // The widest rows are those whose loops a driver may leave as loops.
    for (d, d_v) in [(64, 48), (128, 128)] {
        every_key_counts_in(&gpu, &problem(d, d_v));
    }
}

fn every_key_counts_in(gpu: &Gpu, problem: &Problem) {
    let dims = problem.dims;
    let expected = exact(problem);
    for way in [Way::Online, Way::Rowwise, Way::Materialized] {
        let full = Full { way, shared_qk: false, semantics: Semantics::PLAIN };
        let plan = full::plan(&dims, &full, gpu.limits).expect("a plan that fits");
        let distance = distance(gpu, &plan, problem, &expected);
        assert!(distance < 1e-4, "{way:?}, {dims:?}: {distance}");
    }
    // With one projected key that is the mean of all, every output is the mean value.
    let one = Linformer {
        k: 1,
        shared_ef: true,
        projection_heads: 1,
        max_pooling: false,
        biased: false,
        triangle: false,
        score_scale: ScoreScale::InverseSqrtD,
    };
    let plan = linformer::plan(&dims, &one, gpu.limits).expect("a plan that fits");
    let mean = f64::from(KEYS - 1) / 2.0 / f64::from(KEYS);
    let distance = distance(gpu, &plan, problem, &vec![mean; (dims.n_q * dims.d_v) as usize]);
    assert!(distance < 1e-4, "Linformer, {dims:?}: {distance}");
}

/// Tokens in groups of equal ones that lie side by side: a walk that ends early misses whole groups, and
/// what should come out is a sum over groups.
const GROUPS: usize = 41;
const GROUP: usize = 100;
const WIDE: usize = 128;
/// One chunk of 4,096 tokens and one of the rest.
const CHUNK: u32 = 4096;

/// A row of numbers a group, in float64.
type Rows = Vec<Vec<f64>>;

fn wide_dims() -> Dims {
    let (n, d) = ((GROUPS * GROUP) as u32, WIDE as u32);
    Dims { n_q: n, n_kv: n, heads: 1, k_heads: 1, v_heads: 1, d, d_v: d }
}

/// Every token has the row of its group.
fn tokens(groups: &[Vec<f64>]) -> Vec<f64> {
    groups.iter().flat_map(|row| std::iter::repeat_n(row, GROUP)).flatten().copied().collect()
}

/// The output of exact attention where keys are queries, and the gradients of `|out|^2 / 2` by both and by
/// the values, of one token of each group.
fn wide_exact(q: &[Vec<f64>], v: &[Vec<f64>]) -> [Rows; 3] {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let (many, scale) = (GROUP as f64, 1.0 / (WIDE as f64).sqrt());
    let add = |to: &mut [f64], by: f64, row: &[f64]| to.iter_mut().zip(row).for_each(|(to, x)| *to += by * x);
    let zero = || vec![vec![0.0; WIDE]; GROUPS];
    let (mut out, mut dq, mut dv) = (zero(), zero(), zero());
    for a in 0..GROUPS {
        let terms: Vec<f64> = q.iter().map(|key| (dot(&q[a], key) * scale).exp()).collect();
        let total = many * terms.iter().sum::<f64>();
        for b in 0..GROUPS {
            add(&mut out[a], many * terms[b] / total, &v[b]);
        }
        for b in 0..GROUPS {
            let weight = many * terms[b] / total;
            let slope = weight * (dot(&out[a], &v[b]) - dot(&out[a], &out[a])) * scale;
            add(&mut dv[b], weight, &out[a]);
            add(&mut dq[a], slope, &q[b]);
            add(&mut dq[b], slope, &q[a]);
        }
    }
    [out, dq, dv]
}

/// The widest rows and chunks longer than a pass may walk: LSH attention in which every chunk sees all
/// others is exact attention, forward and backward.
#[test]
fn every_pair_counts_in_wide_rows() {
    let gpu = pollster::block_on(Gpu::open(true)).expect("a device");
    let rows = |tag: u64, scale: f32| -> Rows {
        let row = |group| (0..WIDE as u64).map(move |c| tag << 32 | group << 16 | c);
        let number = |at| f64::from(scale * normal(5, Stream::Noise, at));
        (0..GROUPS as u64).map(|group| row(group).map(number).collect()).collect()
    };
    let (q, v) = (rows(1, 0.5), rows(2, 1.0));
    let held = |groups: &Rows| tokens(groups).into_iter().map(|x| x as f32).collect::<Vec<f32>>();
    let dims = wide_dims();
    let problem = Problem { dims, q: held(&q), k: held(&q), v: held(&v), ..problem(1, 1) };
    let expected = wide_exact(&q, &v);
    let semantics = Semantics { same_bucket: false, wrap: Wrap::InRound, ..Semantics::PLAIN };
    let lsh = Lsh { rounds: 1, factors: vec![2], chunk_len: CHUNK, rotation_heads: 1, semantics, keep_rounds: false };
    let full = Full { way: Way::Online, shared_qk: true, semantics };
    let limits = gpu.limits;
    for (method, forward, backward) in [
        ("LSH attention", lsh::plan(&dims, &lsh, limits), lsh_plan(&dims, &lsh, limits)),
        ("full attention", full::plan(&dims, &full, limits), full_plan(&dims, &full, limits)),
    ] {
        let mut workspace = Workspace::default();
        for plan in [forward, backward] {
            let plan = plan.expect("a plan that fits");
            block_on(&gpu, async {
                workspace.prepare(&gpu, &plan, &problem).await.expect("buffers");
                gpu.run(&plan, &workspace, &Progress::default()).await.expect("a run");
            });
        }
        for (name, expected) in ["out", "dq", "dv"].into_iter().zip(&expected) {
            let got = block_on(&gpu, workspace.read_f32(&gpu, name, 0)).expect(name);
            let distance = apart(&got, &tokens(expected));
            assert!(distance < 1e-4, "{method}, {name}: {distance}");
        }
    }
}
