//! More keys than some drivers let a loop count: Mesa's llvmpipe ends all loops of an invocation
//! after 65,535 iterations in all, without an error, so that sums over keys must come in slices.
#![cfg(not(target_arch = "wasm32"))]

use attention_lab::gpu::{Gpu, block_on, run::Progress, workspace::Workspace};
use attention_lab::methods::full::{self, Full, Way};
use attention_lab::methods::linformer::{self, Linformer};
use attention_lab::plan::Plan;
use attention_lab::problem::{Dims, Named, Problem, Projections, Rotations};
use attention_lab::random::{Stream, normal};
use attention_lab::semantics::{ScoreScale, Semantics};

const KEYS: u32 = 70_000;
const DIMS: Dims = Dims { n_q: 16, n_kv: KEYS, heads: 1, k_heads: 1, v_heads: 1, d: 64, d_v: 48 };

fn problem() -> Problem {
    let noise = |tag: u64, len: u32| (0..len).map(|i| normal(3, Stream::Noise, tag << 32 | u64::from(i))).collect();
    Problem {
        dims: DIMS,
        q: noise(1, DIMS.n_q * DIMS.d),
        k: noise(2, KEYS * DIMS.d),
        // Values grow with the position, so that keys left out at the end are missed.
        v: (0..KEYS * DIMS.d_v).map(|i| (i / DIMS.d_v) as f32 / KEYS as f32).collect(),
        rotations: Rotations::Seeded(1),
        projections: Projections::Mean,
        named: Named::new(),
    }
}

/// How far the output of a plan is from what it should be, `norm(a - b) / norm(b)`.
fn distance(gpu: &Gpu, plan: &Plan, problem: &Problem, expected: &[f64]) -> f64 {
    let mut workspace = Workspace::default();
    let out = block_on(gpu, async {
        workspace.prepare(gpu, plan, problem).await.expect("buffers");
        gpu.run(plan, &workspace, &Progress::default()).await.expect("a run");
        workspace.read_f32(gpu, "out", 0).await.expect("an output")
    });
    assert_eq!(out.len(), expected.len());
    let apart: f64 = out.iter().zip(expected).map(|(a, b)| (f64::from(*a) - b).powi(2)).sum();
    (apart / expected.iter().map(|b| b * b).sum::<f64>()).sqrt()
}

/// `softmax(q k^T / sqrt d) v` in float64.
fn exact(p: &Problem) -> Vec<f64> {
    let (d, d_v) = (DIMS.d as usize, DIMS.d_v as usize);
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
    let problem = problem();
    let expected = exact(&problem);
    for way in [Way::Online, Way::Rowwise, Way::Materialized] {
        let full = Full { way, shared_qk: false, semantics: Semantics::PLAIN };
        let plan = full::plan(&DIMS, &full, gpu.limits).expect("a plan that fits");
        let distance = distance(&gpu, &plan, &problem, &expected);
        assert!(distance < 1e-4, "{way:?}: {distance}");
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
    let plan = linformer::plan(&DIMS, &one, gpu.limits).expect("a plan that fits");
    let mean = f64::from(KEYS - 1) / 2.0 / f64::from(KEYS);
    let distance = distance(&gpu, &plan, &problem, &vec![mean; (DIMS.n_q * DIMS.d_v) as usize]);
    assert!(distance < 1e-4, "Linformer: {distance}");
}
