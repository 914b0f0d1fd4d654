//! A masked key has weight exactly 0, whatever the numbers are: what stands behind the mask changes no bit of
//! the result. That kernels stay finite and agree with their twins on such numbers is among the cases of
//! `attention_lab::check`.

use attention_lab::gpu::{Gpu, block_on, run::Progress, workspace::Workspace};
use attention_lab::lab;
use attention_lab::methods::full::{Full, Way};
use attention_lab::methods::lsh::Lsh;
use attention_lab::methods::measure::{self, Measured, Sample, Weights};
use attention_lab::plan::{Limits, Plan};
use attention_lab::problem::{Dims, Named, Problem, Projections, Rotations};
use attention_lab::random::{Stream, normal};
use attention_lab::semantics::{KeyNorm, ScoreScale, SelfRule, Semantics};

const N: u32 = 90;
const D: u32 = 6;
const DIMS: Dims = Dims { n_q: N, n_kv: N, heads: 1, k_heads: 1, v_heads: 1, d: D, d_v: 4 };

/// Rows of which every third is `longest` long, every third tiny and every third one and the same; scores lie between
/// plus and minus the square of `longest` where nothing takes the length of a key out.
fn problem(longest: f32) -> Problem {
    let number = |tag: u64, i: u32| normal(17, Stream::Noise, (tag << 32) | u64::from(i));
    let row = |i: u32| -> Vec<f32> {
        let seed = if i % 3 == 2 { 0 } else { i };
        let direction: Vec<f32> = (0..D).map(|c| number(1, seed * D + c)).collect();
        let length = direction.iter().map(|x| x * x).sum::<f32>().sqrt();
        let wanted = [longest, 1e-40, 1.0][i as usize % 3];
        direction.iter().map(|x| x / length * wanted).collect()
    };
    let qk: Vec<f32> = (0..N).flat_map(row).collect();
    Problem {
        dims: DIMS,
        q: qk.clone(),
        k: qk,
        v: (0..N * 4).map(|i| number(2, i)).collect(),
        rotations: Rotations::Seeded(3),
        projections: Projections::Mean,
        named: Named::new(),
    }
}

fn methods(semantics: Semantics) -> Vec<Measured> {
    let full = |way| Measured::Full(Full { way, shared_qk: true, semantics });
    let lsh = |rounds, same_bucket| {
        let semantics = Semantics { same_bucket, pair_count_eps: 1e-9, ..semantics };
        Measured::Lsh(Lsh { rounds, factors: vec![4], chunk_len: 20, rotation_heads: 1, semantics, keep_rounds: false })
    };
    vec![full(Way::Online), full(Way::Rowwise), full(Way::Materialized), lsh(1, true), lsh(4, true), lsh(2, false)]
}

fn rules() -> Vec<(Semantics, f32)> {
    let causal = Semantics { causal: true, ..Semantics::PAPER };
    let plain = Semantics { key_norm: KeyNorm::None, score_scale: ScoreScale::One, ..causal };
    vec![
        (causal, 1e4),
        (Semantics { self_rule: SelfRule::Exclude, ..causal }, 1e4),
        // Scores of 10^6 and -10^6.
        (plain, 1e3),
        (Semantics { self_rule: SelfRule::Include, ..plain }, 1e3),
    ]
}

fn plan(method: &Measured) -> Plan {
    lab::plan(&DIMS, method, Limits::WEBGPU).expect("a plan")
}

fn run(gpu: &Gpu, plans: &[&Plan], problem: &Problem) -> Workspace {
    let mut workspace = Workspace::default();
    for plan in plans {
        block_on(gpu, async {
            workspace.prepare(gpu, plan, problem).await.expect("prepared");
            gpu.run(plan, &workspace, &Progress::default()).await.expect("run");
        });
    }
    workspace
}

fn rows(gpu: &Gpu, workspace: &Workspace, name: &str) -> Vec<f32> {
    block_on(gpu, workspace.read_f32(gpu, name, 0)).expect("read back")
}

#[test]
fn what_a_later_key_holds_changes_no_bit_of_an_earlier_output() {
    let gpu = pollster::block_on(Gpu::open(true)).expect("a software Vulkan driver");
    for (semantics, longest) in rules() {
        let before = problem(longest);
        for method in methods(semantics) {
            let plan = plan(&method);
            let reference = rows(&gpu, &run(&gpu, &[&plan], &before), "out");
            assert!(reference.iter().all(|value| value.is_finite()), "{method:?}");
            for first in [1, 2, N / 2, N - 1] {
                let mut after = before.clone();
                after.v[(first * 4) as usize..].fill(1e30);
                let out = rows(&gpu, &run(&gpu, &[&plan], &after), "out");
                let same = (first * 4) as usize;
                let bits = |values: &[f32]| values[..same].iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&out), bits(&reference), "{method:?}: values from {first} on");
                if first <= 2 {
                    assert_ne!(out[same..], reference[same..], "{method:?}: they are seen by those behind them");
                }
            }
        }
    }
}

#[test]
fn weights_of_masked_keys_are_exactly_zero() {
    let gpu = pollster::block_on(Gpu::open(true)).expect("a software Vulkan driver");
    for (semantics, longest) in rules() {
        let problem = problem(longest);
        for method in methods(semantics) {
            let all = Sample::all(0, N);
            let weights = measure::weights(&DIMS, &method, Weights::Effective, 0, all, None, Limits::WEBGPU);
            let weights = rows(&gpu, &run(&gpu, &[&plan(&method), &weights.expect("a plan")], &problem), "weights");
            for (i, row) in (0..N).zip(weights.chunks(N as usize)) {
                let masked = (0..N).filter(|j| !semantics.sees(i, *j));
                assert!(masked.into_iter().all(|j| row[j as usize] == 0.0), "{method:?}, row {i}: {row:?}");
                assert!(row.iter().all(|weight| weight.is_finite()), "{method:?}, row {i}: {row:?}");
            }
        }
    }
}
