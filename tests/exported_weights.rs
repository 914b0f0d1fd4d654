//! The attention weights that `run --out` writes, held against the output of the same run and against the
//! input, which is made anew from the settings in the file.
#![cfg(not(target_arch = "wasm32"))]

mod program;

use attention_lab::inputs::{self, Picture, sample_bytes};
use attention_lab::lab::{WHOLE_WEIGHTS_UP_TO, measured};
use attention_lab::methods::measure::Measured;
use attention_lab::problem::{Fill, Problem, Source};
use attention_lab::semantics::KeyNorm;
use attention_lab::settings::Settings;
use attention_lab::steps::max_pooling::window;
use program::program;
use safetensors::SafeTensors;
use std::path::Path;

/// Relative error of one rounding to float32, and what `log` may be off by near 1.
const U: f64 = 1.0 / (1u64 << 24) as f64;
const LOG: f64 = 1.0 / (1u64 << 21) as f64;

/// What `run FLAGS --out` wrote.
struct Written {
    settings: Settings,
    weights: Option<Vec<f32>>,
    /// `[heads, rows, columns]`.
    shape: Vec<usize>,
    out: Vec<f32>,
    lse: Vec<f32>,
    said: String,
}

fn written(name: &str, flags: &str) -> Written {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("exported_weights").join(name);
    let ran = program().arg("run").args(flags.split_whitespace()).arg("--out").arg(&folder).output();
    let ran = ran.expect("the program starts");
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(0), "{flags}: {said}");
    let bytes = std::fs::read(folder.join("output.safetensors")).expect("tensors");
    let tensors = SafeTensors::deserialize(&bytes).expect("a safetensors file");
    let floats =
        |name: &str| -> Option<Vec<f32>> { Some(bytemuck::pod_collect_to_vec(tensors.tensor(name).ok()?.data())) };
    let (_, header) = SafeTensors::read_metadata(&bytes).expect("a header");
    let settings = &header.metadata().as_ref().expect("metadata")["settings"];
    Written {
        settings: Settings::from_query(settings).expect("settings that can be read back"),
        weights: floats("weights"),
        shape: tensors.tensor("weights").map(|tensor| tensor.shape().to_vec()).unwrap_or_default(),
        out: floats("out").expect("out"),
        lse: floats("lse").expect("lse"),
        said,
    }
}

fn longest(values: &[f64], width: usize) -> f64 {
    values.chunks(width).map(|row| row.iter().map(|x| x * x).sum::<f64>()).fold(0.0, f64::max).sqrt()
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most, x| most.max(x.abs()))
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|x| f64::from(*x)).collect()
}

/// `E K` or `F V` of a head, `[k, width]`, and how far float32 may lie from it.
fn projected(problem: &Problem, settings: &Settings, source: Source, head: u32, x: &[f64]) -> (Vec<f64>, f64) {
    let (n, k) = (settings.n as usize, settings.projected_len());
    let width = x.len() / n;
    if let Measured::Linformer(linformer) = measured(settings, &problem.dims)
        && linformer.max_pooling
    {
        let top = |i, c: usize| window(i, settings.n, k).map(|j| x[j as usize * width + c]).fold(f64::MIN, f64::max);
        return ((0..k).flat_map(|i| (0..width).map(move |c| top(i, c))).collect(), 0.0);
    }
    let (shared, heads) = settings.projection_sharing();
    let fill = Fill { k, ..Fill::whole(if shared { Source::E } else { source }, settings.n) };
    let mut rows = Vec::new();
    problem.rows(fill, head % heads, 0..settings.n, &mut rows);
    let matrix = wide(&rows);
    let stride = matrix.len() / n;
    let (mut sums, mut sizes) = (vec![0.0; k as usize * width], vec![0.0; k as usize * width]);
    for j in 0..n {
        for i in 0..k as usize {
            for c in 0..width {
                let term = matrix[j * stride + i] * x[j * width + c];
                sums[i * width + c] += term;
                sizes[i * width + c] += term.abs();
            }
        }
    }
    (sums, U * (n as f64 + 2.0) * largest(&sizes))
}

/// How far two float32 outputs over n keys may lie apart where no score exceeds `score`, no value `value`. A
/// score errs by `(d + 3) U score`; with the pair count also by the rounded logarithm. A weight errs by e to
/// twice that, by the roundings of `exp` (6 + 5 |x|, x at most twice the score), of n sums and n shrinkings (7
/// each). Every round adds once more an `exp`, a `log` and the rounding of its log-sum-exp.
fn apart(settings: &Settings, lsh: bool, score: f64, value: f64) -> f64 {
    let (d, n) = (f64::from(settings.d), f64::from(settings.n));
    let mut share = 2.0 * U * ((d + 3.0) * score + 6.0 + 10.0 * score + 8.0 * n);
    if lsh {
        let count = LOG + U * (1.0 + score);
        let round = LOG + U * (16.0 + 12.0 * score + n.ln());
        share += 2.0 * (count + f64::from(settings.rounds) * round);
    }
    2.0 * share.exp_m1() * value
}

fn holds(name: &str, flags: &str) {
    let Written { settings, weights, shape, out, lse, said } = written(name, flags);
    assert_eq!(said, "", "{flags}");
    let weights = weights.expect("weights");
    let picture = photograph();
    let input = pollster::block_on(inputs::build(&settings, Some(&picture))).expect("an input");
    let (problem, dims) = (&input.problem, input.problem.dims);
    let method = measured(&settings, &dims);
    let n = settings.n as usize;
    let columns = if matches!(method, Measured::Linformer(_)) { settings.projected_len() as usize } else { n };
    assert_eq!(shape, [settings.heads as usize, n, columns], "{flags}");
    assert_eq!(weights.len(), shape.iter().product::<usize>());
    assert!(weights.iter().all(|weight| (0.0..=1.0 + 1e-5).contains(weight)), "{flags}: a weight is a share");

    // A lane adds every 128th weight, lanes are added in a tree; then a division and a multiplication.
    let sum_off = 1.01 * U * ((columns as f64 / 128.0).ceil() + 7.0 + 6.0);
    for (at, row) in weights.chunks(columns).enumerate() {
        let sum: f64 = row.iter().map(|weight| f64::from(*weight)).sum();
        let blind = lse[at] == f32::MIN;
        if let Measured::Full(full) = &method {
            assert_eq!(blind, full.semantics.allowed((at % n) as u32, settings.n) == 0, "{flags}: row {at}");
        }
        assert!((sum - if blind { 0.0 } else { 1.0 }).abs() <= sum_off, "{flags}: row {at} sums to {sum}");
    }

    let (d, d_v) = (dims.d as usize, dims.d_v as usize);
    for head in 0..dims.heads {
        let of = |values: &[f32], heads: u32, width: usize| {
            wide(&values[(head % heads) as usize * n * width..][..n * width])
        };
        let (q, k, v) =
            (of(&problem.q, dims.heads, d), of(&problem.k, dims.k_heads, d), of(&problem.v, dims.v_heads, d_v));
        let scale = |factor: f32| f64::from(factor) * longest(&q, d);
        let (values, bound) = match &method {
            Measured::Linformer(linformer) => {
                let (keys, _) = projected(problem, &settings, Source::E, head, &k);
                let (values, off) = projected(problem, &settings, Source::F, head, &v);
                let score = scale(linformer.score_scale.factor(dims.d)) * longest(&keys, d);
                let bound = apart(&settings, false, score, largest(&values)) + 2.0 * off;
                (values, bound)
            }
            Measured::Full(full) => {
                let key = match full.semantics.key_norm {
                    _ if !full.shared_qk => longest(&k, d),
                    KeyNorm::None => longest(&q, d),
                    KeyNorm::L2Max | KeyNorm::L2Rms => 1.0,
                };
                let score = scale(full.semantics.score_scale.factor(dims.d)) * key;
                let bound = apart(&settings, false, score, largest(&v));
                (v, bound)
            }
            Measured::Lsh(lsh) => {
                let key = if lsh.semantics.key_norm == KeyNorm::None { longest(&q, d) } else { 1.0 };
                let score = scale(lsh.semantics.score_scale.factor(dims.d)) * key;
                let bound = apart(&settings, true, score, largest(&v));
                (v, bound)
            }
        };
        assert!(bound < 0.02 * largest(&values), "{flags}: a bound of {bound} would show little");
        for i in 0..n {
            let row = &weights[(head as usize * n + i) * columns..][..columns];
            for c in 0..d_v {
                let sum: f64 = row.iter().enumerate().map(|(j, weight)| f64::from(*weight) * values[j * d_v + c]).sum();
                let got = f64::from(out[(head as usize * n + i) * d_v + c]);
                assert!((sum - got).abs() <= bound, "{flags}: head {head}, row {i}: {sum} and {got}, bound {bound}");
            }
        }
    }
}

fn photograph() -> Picture {
    let bytes = sample_bytes(Settings::default().sample).expect("a shipped photograph");
    Picture::decode(bytes).expect("a picture")
}

#[test]
fn exact_weights_make_the_output() {
    holds("full", "--method full --n 200 --heads 2 --d 16");
    holds("separate", "--method full --n 130 --d 20 --shared-qk false --causal");
    // The first token sees nobody.
    holds("blind", "--method full --n 90 --d 16 --causal --self exclude");
    holds("rowwise", "--method full-rowwise --n 65 --d 8 --input clusters");
    holds("materialized", "--method full-materialized --n 129 --d 8 --heads 3 --input clusters");
}

#[test]
fn weights_of_lsh_attention_make_the_output() {
    holds("lsh", "--method lsh --n 300 --heads 2 --d 16 --rounds 3 --chunk 16");
    // The first token sees only itself, in every round.
    holds("causal", "--method lsh --n 200 --d 16 --rounds 4 --chunk 16 --causal");
    holds("exclude", "--method lsh --n 150 --d 16 --rounds 2 --chunk 8 --self exclude --causal");
    holds("pytorch", "--method lsh --n 192 --d 16 --rounds 2 --chunk 32 --preset reformer-pytorch");
    holds("face", "--method lsh --n 192 --d 16 --rounds 2 --chunk 32 --preset hugging-face");
    // One chunk: full attention runs.
    holds("short", "--method lsh --n 40 --d 16 --preset hugging-face");
    holds("duplication", "--method lsh --n 256 --rounds 4 --input duplication");
}

#[test]
fn weights_of_linformer_make_the_output() {
    for projection in ["mean", "gaussian", "max", "convolution"] {
        let flags = format!("--method linformer --n 150 --heads 2 --d 16 --k 20 --projection {projection}");
        holds(projection, &flags);
    }
    holds("own", "--method linformer --n 100 --heads 2 --d 16 --k 30 --projection gaussian --sharing none");
}

#[test]
fn long_sequences_are_written_without_weights_and_that_is_said() {
    let flags = |n: u32| format!("--method lsh --rounds 1 --input clusters --d 8 --n {n}");
    let most = written("longest", &flags(WHOLE_WEIGHTS_UP_TO));
    assert_eq!((most.shape, most.said.as_str()), (vec![1, 1024, 1024], ""));
    let longer = written("longer", &flags(WHOLE_WEIGHTS_UP_TO + 1));
    assert!(longer.weights.is_none());
    assert_eq!(longer.said.lines().count(), 1, "{}", longer.said);
    for words in ["--n 1025", "no attention weights", "--n 1024 or less"] {
        assert!(longer.said.contains(words), "{words} is not in {}", longer.said);
    }
    let help = program().args(["run", "--help"]).output().expect("the program starts");
    let help = String::from_utf8_lossy(&help.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains(&format!("weights up to n = {WHOLE_WEIGHTS_UP_TO}")), "{help}");
}
