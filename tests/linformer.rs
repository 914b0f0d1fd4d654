//! What must hold for Linformer's projections, whatever the numbers are.

use attention_lab::gpu::{Gpu, block_on, run::Progress, workspace::Workspace};
use attention_lab::interpreter;
use attention_lab::methods::full::{self, Full, Way};
use attention_lab::methods::linformer::{self, Linformer};
use attention_lab::plan::{Limits, Plan};
use attention_lab::problem::{Dims, Fill, Problem, Projections, Rotations, Source};
use attention_lab::random::{Stream, normal};
use attention_lab::semantics::{ScoreScale, Semantics};

const LIMITS: Limits = Limits::WEBGPU;

fn gpu() -> Gpu {
    pollster::block_on(Gpu::open(true)).expect("a software Vulkan driver")
}

fn problem(n: u32, heads: u32, projections: Projections) -> Problem {
    let dims = Dims { n_q: n, n_kv: n, heads, k_heads: heads, v_heads: heads, d: 6, d_v: 5 };
    let make = |tag: u64, width: u32| {
        (0..heads * n * width).map(|i| normal(11, Stream::Noise, (tag << 32) | u64::from(i))).collect::<Vec<f32>>()
    };
    Problem { dims, q: make(1, 6), k: make(2, 6), v: make(3, 5), rotations: Rotations::Seeded(9), projections }
}

fn method(k: u32) -> Linformer {
    Linformer {
        k,
        max_pooling: false,
        shared_ef: false,
        projection_heads: 1,
        biased: false,
        triangle: false,
        score_scale: ScoreScale::InverseSqrtD,
    }
}

fn planned(problem: &Problem, linformer: &Linformer) -> Plan {
    linformer::plan(&problem.dims, linformer, LIMITS).expect("a plan")
}

fn in_float64(plan: &Plan, problem: &Problem, name: &str, range: u32) -> Vec<f64> {
    let mut workspace = interpreter::Workspace::default();
    workspace.run(plan, problem);
    workspace.read(name, range).expect(name).f().to_vec()
}

fn on_gpu(gpu: &Gpu, plan: &Plan, problem: &Problem, name: &str, range: u32) -> Vec<f32> {
    let mut workspace = Workspace::default();
    block_on(gpu, async {
        workspace.prepare(gpu, plan, problem).await.expect("prepared");
        gpu.run(plan, &workspace, &Progress::default()).await.expect("run");
        workspace.read_f32(gpu, name, range).await.expect("read")
    })
}

/// E of one head, `[k][n]`.
fn matrix(problem: &Problem, source: Source, head: u32, k: u32) -> Vec<Vec<f32>> {
    let n = problem.dims.n_kv;
    let mut rows = Vec::new();
    problem.rows(Fill { k, ..Fill::whole(source, n) }, head, 0..n, &mut rows);
    let stride = k.next_multiple_of(4) as usize;
    (0..k as usize).map(|i| (0..n as usize).map(|j| rows[j * stride + i]).collect()).collect()
}

#[test]
fn pooling_into_n_windows_is_full_attention() {
    let gpu = gpu();
    let problem = problem(37, 2, Projections::Mean);
    let rule = Full { way: Way::Online, shared_qk: false, semantics: Semantics::PLAIN };
    let full = full::plan(&problem.dims, &rule, LIMITS).expect("a plan");
    for max_pooling in [false, true] {
        let pooled = planned(&problem, &Linformer { max_pooling, ..method(37) });
        for head in 0..2 {
            let want = in_float64(&full, &problem, "out", head);
            let got = in_float64(&pooled, &problem, "out", head);
            assert!(want.iter().zip(&got).all(|(a, b)| (a - b).abs() < 1e-12), "max {max_pooling}");
            // A window of one is copied, and a sum with one term that is not 0 is exact.
            let full = on_gpu(&gpu, &full, &problem, "out", head);
            assert_eq!(on_gpu(&gpu, &pooled, &problem, "out", head), full, "max {max_pooling}");
        }
    }
}

#[test]
fn max_pooling_takes_the_largest_of_each_window() {
    let gpu = gpu();
    let problem = problem(50, 1, Projections::Mean);
    for k in [1, 2, 7, 49, 50] {
        let plan = planned(&problem, &Linformer { max_pooling: true, ..method(k) });
        assert!(plan.find("E").is_none() && plan.find("F").is_none(), "there is no matrix to hold");
        for (name, rows, width) in [("E K", &problem.k, 6), ("F V", &problem.v, 5)] {
            let pooled = on_gpu(&gpu, &plan, &problem, name, 0);
            // Windows follow each other, cover everything and differ by at most one.
            let mut start = 0;
            for (i, got) in pooled.chunks(8).enumerate() {
                let len = 50 / k as usize + usize::from(i < 50 % k as usize);
                let window = &rows[start * width..(start + len) * width];
                for c in 0..width {
                    let largest = window.iter().skip(c).step_by(width).copied().fold(f32::MIN, f32::max);
                    assert_eq!(got[c], largest, "{name}, k = {k}, window {i}, component {c}");
                }
                start += len;
            }
            assert_eq!(start, 50);
        }
    }
}

#[test]
fn mean_pooling_averages_windows_that_differ_by_one() {
    for (n, k) in [(1, 1), (64, 8), (100, 33), (7, 5)] {
        let e = matrix(&problem(n, 1, Projections::Mean), Source::E, 0, k);
        let lengths: Vec<usize> = e.iter().map(|row| row.iter().filter(|x| **x != 0.0).count()).collect();
        let (least, most) = (lengths.iter().min().expect("rows"), lengths.iter().max().expect("rows"));
        assert!(most - least <= 1 && lengths.iter().sum::<usize>() == n as usize, "{lengths:?}");
        for (row, len) in e.iter().zip(&lengths) {
            assert!(row.iter().all(|x| *x == 0.0 || *x == 1.0 / *len as f32));
        }
    }
}

#[test]
fn a_convolution_slides_one_kernel() {
    let make = |n: u32, seed: u32| problem(n, 2, Projections::Convolution(seed));
    for (n, k) in [(64, 8), (100, 33), (50, 1), (9, 9)] {
        let kernel_len = n.div_ceil(k) as usize;
        for source in [Source::E, Source::F] {
            let e = matrix(&make(n, 3), source, 1, k);
            // Row 0 has a window of full length: it shows the kernel.
            let kernel = &e[0][..kernel_len];
            let most = 1.0 / (kernel_len as f32).sqrt();
            assert!(kernel.iter().all(|w| *w != 0.0 && w.abs() <= most));
            let mut start = 0;
            for row in &e {
                let len = row[start..].iter().take_while(|x| **x != 0.0).count();
                assert!(len == kernel_len || len + 1 == kernel_len, "n = {n}, k = {k}: {len}");
                assert_eq!(row[start..start + len], kernel[..len]);
                assert!(row[..start].iter().chain(&row[start + len..]).all(|x| *x == 0.0));
                start += len;
            }
            assert_eq!(start, n as usize);
        }
        let [e, f] = [Source::E, Source::F].map(|source| matrix(&make(n, 3), source, 0, k));
        assert_ne!(e, f);
        assert_ne!(e, matrix(&make(n, 3), Source::E, 1, k), "another head, another kernel");
        assert_ne!(e, matrix(&make(n, 4), Source::E, 0, k), "another seed, another kernel");
        assert_eq!(e, matrix(&make(n, 3), Source::E, 0, k));
    }
}

/// With equal weights of 1 / length a convolution is mean pooling.
#[test]
fn a_convolution_with_equal_weights_is_mean_pooling() {
    let (n, k) = (96, 12);
    let weight = |row: &[f32], mean: &[f32]| -> Vec<f32> {
        row.iter().zip(mean).map(|(w, m)| if *w == 0.0 { 0.0 } else { w / w * m }).collect()
    };
    let mean = matrix(&problem(n, 1, Projections::Mean), Source::E, 0, k);
    let convolution = matrix(&problem(n, 1, Projections::Convolution(1)), Source::E, 0, k);
    let level: Vec<Vec<f32>> = convolution.iter().zip(&mean).map(|(w, m)| weight(w, m)).collect();
    assert_eq!(level, mean, "the same windows");
}
