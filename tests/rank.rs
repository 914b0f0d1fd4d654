//! The low rank of P: exact and randomised spectra on a software adapter against each other and against P itself.
#![cfg(not(target_arch = "wasm32"))]

use attention_lab::algebra::{self, Matrix};
use attention_lab::gpu::run::Progress;
use attention_lab::gpu::{Gpu, block_on};
use attention_lab::inputs;
use attention_lab::lab::rank::{self, Head, LowRank, trained};
use attention_lab::semantics::Semantics;
use attention_lab::settings::{InputKind, Settings};
use attention_lab::spectrum::{Way, pooled, rank_of, squares};
use std::path::Path;

fn gpu() -> Gpu {
    pollster::block_on(Gpu::open(true)).expect("these tests need a graphics adapter")
}

/// The first head of clusters on the sphere: a spectrum that falls, but not at once.
fn clusters(n: u32) -> Head {
    let settings =
        Settings { input: InputKind::Clusters, n, d: 24, clusters: 30, sharpness: 40.0, ..Settings::default() };
    let input = pollster::block_on(inputs::build(&settings, None)).expect("an input");
    Head::of(&input.problem, 0)
}

/// P in float64 from its definition.
fn softmax(head: &Head, causal: bool) -> Vec<f64> {
    let (n, d) = (head.n as usize, head.d as usize);
    let row = |rows: &[f32], at: usize| rows[at * d..(at + 1) * d].iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
    let keys: Vec<Vec<f64>> = (0..n).map(|j| row(&head.k, j)).collect();
    let mut p = Vec::with_capacity(n * n);
    for i in 0..n {
        let q = row(&head.q, i);
        let score = |k: &Vec<f64>| q.iter().zip(k).map(|(a, b)| a * b).sum::<f64>() / (d as f64).sqrt();
        let scores: Vec<f64> = keys.iter().map(score).collect();
        let seen = if causal { i + 1 } else { n };
        let top = scores[..seen].iter().copied().fold(f64::MIN, f64::max);
        let total: f64 = scores[..seen].iter().map(|s| (s - top).exp()).sum();
        p.extend((0..n).map(|j| if j < seen { (scores[j] - top).exp() / total } else { 0.0 }));
    }
    p
}

fn distance(a: impl IntoIterator<Item = f64>, b: impl IntoIterator<Item = f64>) -> f64 {
    a.into_iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

/// The sum of the first r parts, row by row.
fn sum_of_parts(low_rank: &LowRank, r: usize) -> Vec<f64> {
    let (svd, n) = (&low_rank.spectrum.svd, low_rank.spectrum.n as usize);
    let mut sum = vec![0.0; n * n];
    for part in 0..r {
        for (i, u) in svd.left.row(part).iter().enumerate() {
            for (j, v) in svd.right.row(part).iter().enumerate() {
                sum[i * n + j] += f64::from(*u) * f64::from(*v);
            }
        }
    }
    sum
}

#[test]
fn the_spectrum_of_p_is_that_of_its_definition() {
    let gpu = gpu();
    let head = clusters(150);
    for causal in [false, true] {
        let rule = Semantics { causal, ..Semantics::PLAIN };
        let own = block_on(&gpu, rank::exact(&gpu, &head, rule, &Progress::default())).expect("a spectrum");
        let p = softmax(&head, causal);
        let entries: Vec<f32> = p.iter().map(|x| *x as f32).collect();
        let wanted = algebra::svd(&Matrix { rows: 150, cols: 150, entries }).expect("singular values").values;
        let values = &own.spectrum.svd.values;
        assert!(values.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-5), "{values:?} {wanted:?}");
        // The sum of their squares is the squared Frobenius norm, and what r parts leave out is the tail.
        let energy: f64 = p.iter().map(|x| x * x).sum();
        assert!(
            (squares(values) - energy).abs() < 1e-5 * energy && (own.spectrum.energy - energy).abs() < 1e-5 * energy
        );
        for r in [1, 7, 40, 149] {
            let left_out = distance(sum_of_parts(&own, r), p.iter().copied());
            let tail = own.spectrum.energy_after(r as u32).sqrt();
            assert!((left_out - tail).abs() < 1e-4 * energy.sqrt(), "rank {r}: {left_out} is not {tail}");
            assert!((own.spectrum.error(r as u32) - left_out / energy.sqrt()).abs() < 1e-4);
        }
        let shares = own.spectrum.cumulative();
        assert!(shares.iter().all(|share| share.low == share.high) && shares.is_sorted_by(|a, b| a.low <= b.low));
        assert!((shares[149].low - 1.0).abs() < 1e-12);
        let ninety = rank_of(shares.iter().map(|share| share.low), 0.9).expect("a rank") as usize;
        assert!(shares[ninety - 1].low >= 0.9 && (ninety == 1 || shares[ninety - 2].low < 0.9));
        assert_eq!(own.leading, own.spectrum.svd.first(6));
        // The picture is the mean of P, pixel by pixel; all parts together give it, too.
        let side = own.picture.len().isqrt();
        assert_eq!(side, 150);
        assert!(own.picture.iter().zip(&p).all(|(a, b)| (f64::from(*a) - b).abs() < 1e-6));
        let again = own.spectrum.reconstruction(150, 50);
        let whole = own.spectrum.reconstruction(150, 150);
        let coarse: Vec<f32> = (0..50)
            .flat_map(|y| {
                let rows: Vec<f32> =
                    (0..150).map(|x| (0..3).map(|i| whole[(3 * y + i) * 150 + x]).sum::<f32>() / 3.0).collect();
                pooled(&rows, 50)
            })
            .collect();
        assert!(again.iter().zip(coarse).all(|(a, b)| (a - b).abs() < 1e-5));
    }
}

/// The randomised method against P and all its singular values, each figure within the error that it states.
#[test]
fn the_randomised_spectrum_keeps_to_its_own_error() {
    let gpu = gpu();
    let head = clusters(420);
    for causal in [false, true] {
        let rule = Semantics { causal, ..Semantics::PLAIN };
        let exact = block_on(&gpu, rank::exact(&gpu, &head, rule, &Progress::default())).expect("a spectrum");
        let leading = block_on(&gpu, rank::leading(&gpu, &head, rule, 5, &Progress::default())).expect("a spectrum");
        let (all, some) = (&exact.spectrum, &leading.spectrum);
        let Way::Randomised { left_out } = some.way else { panic!("{:?}", some.way) };
        assert!(some.known() >= 100 && some.known() < some.n && some.svd.values.is_sorted_by(|a, b| a >= b));
        assert!((some.energy - all.energy).abs() < 1e-5 * all.energy, "{} {}", some.energy, all.energy);
        // None is too large, and none smaller by more than what was left out.
        for (found, value) in some.svd.values.iter().zip(&all.svd.values) {
            let (found, value) = (f64::from(*found), f64::from(*value));
            assert!(found < value + 1e-4 && found > value - left_out - 1e-4, "{found} {value} {left_out}");
        }
        // The leading ones, far above the rest, are exact.
        for (found, value) in some.svd.values.iter().zip(&all.svd.values).take(20) {
            assert!((found - value).abs() < 1e-4, "{found} {value}");
        }
        // What is left out, from P itself: its Frobenius norm as stated, its spectral norm below the bound.
        let p = softmax(&head, causal);
        let parts = sum_of_parts(&leading, some.known() as usize);
        let rest: Vec<f64> = p.iter().zip(parts).map(|(a, b)| a - b).collect();
        let norm = rest.iter().map(|x| x * x).sum::<f64>().sqrt();
        let stated = some.error(some.known()) * all.energy.sqrt();
        assert!((norm * norm - stated * stated).abs() < 1e-5 * all.energy, "{norm} {stated}");
        let entries = rest.iter().map(|x| *x as f32).collect();
        let largest = algebra::svd(&Matrix { rows: 420, cols: 420, entries }).expect("values").values[0];
        assert!(f64::from(largest) < left_out, "{largest} {left_out}");
        // The true sums lie between the two ends.
        for (some, all) in [(some.cumulative(), all.cumulative()), (some.cumulative_energy(), all.cumulative_energy())]
        {
            for (between, truth) in some.iter().zip(all) {
                assert_eq!(truth.low, truth.high);
                assert!(between.low <= truth.low + 1e-5 && truth.low <= between.high + 1e-5, "{between:?} {truth:?}");
            }
        }
        // So does the least error of each rank, which is that of the best approximation; and the ends say something.
        for r in 0..=some.known() {
            let (between, truth) = (some.least_error(r), all.error(r));
            assert!(between.low <= truth + 1e-5 && truth <= between.high + 1e-5, "{r}: {between:?} {truth}");
            assert_eq!(all.least_error(r).low, all.least_error(r).high);
        }
        assert!(some.least_error(8).low > 0.9 * all.error(8));
        // Pixels are means over all entries.
        let side = leading.picture.len().isqrt();
        let edge = |at: usize| at * 420 / side;
        for (at, mean) in leading.picture.iter().enumerate() {
            let (rows, cols) = (edge(at / side)..edge(at / side + 1), edge(at % side)..edge(at % side + 1));
            let count = (rows.len() * cols.len()) as f64;
            let wanted = rows.flat_map(|i| cols.clone().map(move |j| (i, j))).map(|(i, j)| p[i * 420 + j]).sum::<f64>();
            assert!((f64::from(*mean) - wanted / count).abs() < 1e-5);
        }
    }
}

#[test]
fn the_baseline_has_the_same_lengths_and_another_spectrum() {
    let gpu = gpu();
    let head = clusters(150);
    let random = pollster::block_on(head.random(3));
    let length = |rows: &[f32]| {
        let rows = rows.chunks_exact(head.d as usize);
        rows.clone().map(|row| squares(row).sqrt()).sum::<f64>() / rows.len() as f64
    };
    assert!((length(&head.q) - length(&random.q)).abs() < 1e-4 * length(&head.q));
    assert!((length(&head.k) - length(&random.k)).abs() < 1e-4 * length(&head.k));
    assert_eq!(random, pollster::block_on(head.random(3)), "the same seed, the same baseline");
    assert_ne!(random, pollster::block_on(head.random(4)));
    let share = |head: &Head| {
        let own = block_on(&gpu, rank::exact(&gpu, head, Semantics::PLAIN, &Progress::default())).expect("a spectrum");
        own.spectrum.share_at(37).expect("a share")
    };
    let (own, baseline) = (share(&head), share(&random));
    assert!(own > baseline + 0.05, "30 clusters have a lower rank than noise: {own} {baseline}");
}

/// The shipped Q and K are those of the golden data, but for rounding, and their heat map has every head.
#[test]
fn the_trained_heads_are_those_of_the_golden_data() {
    let golden = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden"));
    let file = std::fs::read(golden.join("real_minilm_textA_layer3_n128_h2_d32.safetensors")).expect("a file");
    let tensors = safetensors::SafeTensors::deserialize(&file).expect("tensors");
    let layers = trained::heads(trained::BYTES).expect("the heads");
    for (name, of) in [("q", (|head| &head.q) as fn(&Head) -> &Vec<f32>), ("k", |head| &head.k)] {
        let stored: Vec<f32> = bytemuck::pod_collect_to_vec(tensors.tensor(name).expect("an array").data());
        for (rows, head) in stored.chunks_exact(128 * 32).zip([5, 11]) {
            let shipped = &of(&layers[1][head])[..128 * 32];
            assert!(rows.iter().zip(shipped).all(|(a, b)| (a - b).abs() <= trained::UNIT / 2.0 + 1e-6));
        }
    }
    let gpu = gpu();
    let map = block_on(&gpu, trained::map(&gpu, trained::BYTES, &Progress::default())).expect("a map");
    assert_eq!(map.iter().map(|layer| layer.layer).collect::<Vec<_>>(), [0, 3]);
    // The golden data's own values at n / 4 of heads 0, 5 and 11 of both layers.
    let wanted = [[0.8444, 0.6173, 0.8957], [0.8315, 0.8662, 0.8932]];
    for (layer, wanted) in map.iter().zip(wanted) {
        assert_eq!((layer.trained.len(), layer.random.len()), (12, 12));
        for (head, share) in [0, 5, 11].into_iter().zip(wanted) {
            assert!((layer.trained[head] - share).abs() < 2e-3, "{} {head}: {}", layer.layer, layer.trained[head]);
        }
    }
}
