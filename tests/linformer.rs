//! What must hold for Linformer's projections, whatever the numbers are.

use attention_lab::gpu::{Gpu, block_on, run::Progress, workspace::Workspace};
use attention_lab::interpreter;
use attention_lab::lab;
use attention_lab::methods::fit::{self, Descent, Loss};
use attention_lab::methods::full::{self, Full, Way};
use attention_lab::methods::linformer::{self, Linformer};
use attention_lab::plan::{Limits, Plan};
use attention_lab::problem::{Dims, Fill, Named, Problem, Projections, Rotations, Source};
use attention_lab::random::{Stream, normal};
use attention_lab::semantics::{Choice, ScoreScale, Semantics};
use attention_lab::settings::{Method, Projection, Settings, Sharing};

const LIMITS: Limits = Limits::WEBGPU;

fn gpu() -> Gpu {
    pollster::block_on(Gpu::open(true)).expect("a software Vulkan driver")
}

fn problem(n: u32, heads: u32, projections: Projections) -> Problem {
    let dims = Dims { n_q: n, n_kv: n, heads, k_heads: heads, v_heads: heads, d: 6, d_v: 5 };
    let make = |tag: u64, width: u32| {
        (0..heads * n * width).map(|i| normal(11, Stream::Noise, (tag << 32) | u64::from(i))).collect::<Vec<f32>>()
    };
    let rotations = Rotations::Seeded(9);
    Problem { dims, q: make(1, 6), k: make(2, 6), v: make(3, 5), rotations, projections, named: Named::new() }
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
                for (c, got) in got.iter().enumerate().take(width) {
                    let largest = window.iter().skip(c).step_by(width).copied().fold(f32::MIN, f32::max);
                    assert_eq!(*got, largest, "{name}, k = {k}, window {i}, component {c}");
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
    for (n, k) in [(64u32, 8u32), (100, 33), (50, 1), (9, 9)] {
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

/// No matrix is made for it: k n entries of 65,536 rows and columns are more than any host holds.
#[test]
fn the_projections_of_one_head_are_those_of_all() {
    let given =
        |tag: u64, count: u64| (0..count).map(|i| normal(5, Stream::Noise, tag << 32 | i)).collect::<Vec<f32>>();
    let (n, k) = (20, 7);
    let all = [
        Projections::Mean,
        Projections::Convolution(3),
        Projections::Gaussian(3),
        Projections::Given { e: given(1, 420), f: given(2, 420), e_bias: given(3, 21), f_bias: given(4, 21) },
    ];
    let rows = |projections: &Projections, source, head, count| {
        let mut rows = Vec::new();
        let fill = Fill { k, ..Fill::whole(source, count) };
        problem(n, 3, projections.clone()).rows(fill, head, 0..count, &mut rows);
        rows
    };
    for projections in all {
        for head in 0..3 {
            let one = projections.clone().of_head(head);
            for (source, count) in [(Source::E, n), (Source::F, n), (Source::EBias, 1), (Source::FBias, 1)] {
                assert_eq!(rows(&one, source, 0, count), rows(&projections, source, head, count), "{projections:?}");
            }
        }
    }
    let (last, shape) = (65_535, [65_536, 65_536]);
    let gaussian = Projections::Gaussian(3);
    for source in [Source::E, Source::F] {
        let entry = gaussian.clone().of_head(1).entry(source, 0, shape, [last, last]);
        assert_eq!(entry, gaussian.entry(source, 1, shape, [last, last]));
        assert_ne!(entry, gaussian.entry(source, 0, shape, [last, last]));
    }
}

/// With equal weights of 1 / length a convolution is mean pooling: same windows, same output.
#[test]
fn a_convolution_with_equal_weights_is_mean_pooling() {
    let (n, k) = (96, 12);
    let drawn = matrix(&problem(n, 1, Projections::Convolution(1)), Source::E, 0, k);
    let level: Vec<f32> = drawn.iter().flatten().map(|w| if *w == 0.0 { 0.0 } else { 1.0 / 8.0 }).collect();
    let level = Projections::Given { e: level.clone(), f: level, e_bias: Vec::new(), f_bias: Vec::new() };
    let (level, pooled) = (problem(n, 1, level), problem(n, 1, Projections::Mean));
    let plan = planned(&pooled, &method(k));
    let gpu = gpu();
    assert_eq!(on_gpu(&gpu, &plan, &level, "out", 0), on_gpu(&gpu, &plan, &pooled, "out", 0));
}

/// The loss before the first step, and the slopes of E and F, `[n, k]` transposed, in float64.
fn descended(problem: &Problem, descent: &Descent) -> (f64, Vec<f64>, Vec<f64>) {
    let mut workspace = interpreter::Workspace::default();
    workspace.run(&fit::target(&problem.dims, descent.loss, LIMITS).expect("a plan"), problem);
    let length = workspace.read("fit target", 0).expect("a target").f().iter().map(|x| x * x).sum();
    // The weight of the loss is float32.
    workspace.run(&fit::steps(&problem.dims, descent, length, 0, 1, LIMITS).expect("a plan"), problem);
    let read = |name: &str| workspace.read(name, 0).map(|data| data.f().to_vec()).unwrap_or_default();
    (read("fit loss")[0], read("E slope"), read("F slope"))
}

#[test]
fn slopes_of_the_fit_are_finite_differences() {
    let (n, k) = (13u32, 6u32);
    for loss in [Loss::Output, Loss::Map] {
        for shared_ef in [false, true] {
            let descent = Descent { linformer: Linformer { shared_ef, ..method(k) }, loss, rate: 0.01 };
            let draw = |tag: u64| -> Vec<f32> {
                (0..n * k).map(|i| normal(2, Stream::Noise, tag << 32 | u64::from(i)) / 4.0).collect()
            };
            let with = |e: &[f32], f: &[f32]| {
                let given = Projections::Given { e: e.to_vec(), f: f.to_vec(), e_bias: Vec::new(), f_bias: Vec::new() };
                problem(n, 1, given)
            };
            let (e, f) = (draw(8), draw(9));
            let (_, slope_e, slope_f) = descended(&with(&e, &f), &descent);
            assert_eq!(slope_f.is_empty(), shared_ef);
            for at in [0, 5, 20, 41, 77] {
                let (i, j) = (at / n, at % n);
                for of_f in [false, true].into_iter().take(if shared_ef { 1 } else { 2 }) {
                    let moved = |by: f32| {
                        let (mut e, mut f) = (e.clone(), f.clone());
                        let values = if of_f { &mut f } else { &mut e };
                        values[at as usize] += by;
                        let value = f64::from(values[at as usize]);
                        (value, descended(&with(&e, &f), &descent).0)
                    };
                    let (above, below) = (moved(1.0 / 1024.0), moved(-1.0 / 1024.0));
                    let difference = (above.1 - below.1) / (above.0 - below.0);
                    let slope = if of_f { &slope_f } else { &slope_e }[(j * k.next_multiple_of(4) + i) as usize];
                    // The third derivative times the squared distance of 10^-6.
                    let apart = (slope - difference).abs();
                    assert!(apart < 1e-4 * (slope.abs() + 1e-2), "{loss:?} {at}: {slope} is not {difference}");
                }
            }
        }
    }
}

#[test]
fn a_fit_on_the_device_lowers_the_loss_it_is_asked_for() {
    let gpu = gpu();
    let problem = problem(64, 1, Projections::Gaussian(3));
    for loss in [Loss::Output, Loss::Map] {
        for shared_ef in [false, true] {
            let descent = Descent { linformer: Linformer { shared_ef, ..method(16) }, loss, rate: 0.02 };
            let losses = block_on(&gpu, async {
                let (mut workspace, quiet) = (Workspace::default(), Progress::default());
                let target = fit::target(&problem.dims, loss, LIMITS).expect("a plan");
                workspace.prepare(&gpu, &target, &problem).await.expect("prepared");
                gpu.run(&target, &workspace, &quiet).await.expect("run");
                let wanted = workspace.read_f32(&gpu, "fit target", 0).await.expect("read");
                let length = wanted.iter().map(|x| f64::from(*x).powi(2)).sum();
                let mut losses = Vec::new();
                for first in [0, 40, 80] {
                    let plan = fit::steps(&problem.dims, &descent, length, first, 40, LIMITS).expect("a plan");
                    workspace.prepare(&gpu, &plan, &problem).await.expect("prepared");
                    gpu.run(&plan, &workspace, &quiet).await.expect("run");
                    losses.extend(workspace.read_f32(&gpu, "fit loss", 0).await.expect("read"));
                }
                losses
            });
            assert_eq!(losses.len(), 120);
            println!("{loss:?}, E = F {shared_ef}: {} to {}", losses[0], losses[119]);
            assert!(losses[119] < 0.5 * losses[0], "{loss:?}: {} to {}", losses[0], losses[119]);
        }
    }
}

/// The setting changes what runs: how many matrices are held, and whether heads that see the same differ.
#[test]
fn sharing_is_what_runs() {
    let gpu = gpu();
    for projection in [Projection::Gaussian, Projection::Convolution, Projection::Mean, Projection::Max] {
        for (sharing, _) in Sharing::ALL {
            let settings = Settings {
                n: 24,
                heads: 2,
                k: Some(5),
                projection,
                sharing: *sharing,
                method: Method::Linformer,
                ..Settings::default()
            };
            let mut problem = problem(24, 2, projection.projections(7));
            for values in [&mut problem.q, &mut problem.k, &mut problem.v] {
                let half = values.len() / 2;
                values.copy_within(..half, half);
            }
            let measured = lab::measured(&settings, &problem.dims);
            let plan = lab::plan(&problem.dims, &measured, LIMITS).expect("a plan");
            let held = |name: &str| plan.find(name).map_or(0, |buffer| u64::from(buffer.ranges));
            let expected = match projection {
                Projection::Max => 0,
                Projection::Mean => 1,
                _ => sharing.matrices(1, 2),
            };
            assert_eq!(held("E") + held("F"), expected, "{projection:?} {sharing:?}");
            let [first, second] = [0, 1].map(|head| on_gpu(&gpu, &plan, &problem, "out", head));
            let apart = projection.has_parameters() && *sharing == Sharing::None;
            assert_eq!(first != second, apart, "{projection:?} {sharing:?}");
        }
    }
}
