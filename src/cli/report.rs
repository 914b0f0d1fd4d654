//! What the command line prints: words for people, one JSON object for programs.

use crate::gpu::Gpu;
use crate::gpu::run::Clock;
use crate::lab::stack::Passage;
use crate::outcome::{Lists, Outcome};
use crate::presets::Preset;
use crate::semantics::Choice;
use crate::settings::{InputKind, Method};
use crate::units::{bytes_in_words, grouped};
use crate::verify::{Totals, Verdict};
use serde::Serialize;
use std::path::PathBuf;

#[derive(Serialize)]
struct RunJson<'a> {
    method: &'static str,
    n: u32,
    heads: u32,
    d: u32,
    adapter: &'a str,
    seed: u32,
    pairs: u64,
    share: f64,
    error: f64,
    recall: Option<f64>,
    mass: Option<f64>,
    accuracy: Option<f64>,
    lost_pairs: Option<u64>,
    ms: f64,
    peak_bytes: u64,
    steps: Vec<StepJson>,
    buffers: Vec<BufferJson<'a>>,
    /// What ran: `lsh` or, for a short sequence, `full`; null for the other methods.
    path: Option<&'static str>,
    /// The preset whose rules the settings have.
    preset: Option<&'static str>,
    visits: u64,
    error_plain: f64,
    /// Queries behind error, recall and mass when not all.
    sampled: Option<u32>,
    clock: &'static str,
    rounds: Option<u32>,
    buckets: Option<u32>,
    chunk: Option<u32>,
    /// The same on every device that hashed alike.
    buckets_checksum: Option<String>,
    k: Option<u32>,
    /// The settings that differ from the default, as in an address.
    settings: String,
    files: &'a [PathBuf],
}

#[derive(Serialize)]
struct LayersJson<'a> {
    #[serde(flatten)]
    run: RunJson<'a>,
    activation_bytes: u64,
    parameter_bytes: u64,
    reconstruction_error: f64,
    layers: usize,
    /// By layer: the error of its rebuilt inputs, and the bucket ids that flipped, if they were hashed again.
    errors: &'a [f64],
    flips: &'a [u64],
    forward_ms: f64,
    loss_ms: f64,
    backward_ms: f64,
    forward_multiply_adds: f64,
    loss_multiply_adds: f64,
    backward_multiply_adds: f64,
    /// In nats, the mean over the tokens, of targets that are drawn.
    loss: Option<f64>,
    /// What is held while the loss is computed, without parameters.
    loss_bytes: u64,
}

#[derive(Serialize)]
struct StepJson {
    name: &'static str,
    ms: Option<f64>,
    bytes: u64,
    flops: u64,
}

#[derive(Serialize)]
struct BufferJson<'a> {
    name: &'static str,
    bytes: u64,
    shape: &'a [u64],
}

#[derive(Serialize)]
struct DeviceJson<'a> {
    adapter: &'a str,
    backend: String,
    r#type: &'static str,
    software: bool,
    driver: &'a str,
    driver_info: &'a str,
    binding_bytes: u64,
    buffer_bytes: u64,
    timestamps: bool,
}

/// One line of JSON.
pub fn json(value: &impl Serialize) -> String {
    // These are plain structures of numbers and text, which always serialise.
    serde_json::to_string(value).unwrap_or_default() + "\n"
}

/// A stack of layers: the figures are those of its attention on the input, time and peak the stack's.
pub fn layers_json(outcome: &Outcome, passage: &Passage, files: &[PathBuf]) -> String {
    let Passage { forward, loss, backward, errors, flips, .. } = passage;
    json(&LayersJson {
        run: RunJson {
            method: "reversible",
            ms: forward.ms + loss.ms + backward.ms,
            peak_bytes: passage.peak_bytes(),
            ..of_run(outcome, files)
        },
        activation_bytes: passage.activation_bytes(),
        parameter_bytes: passage.parameter_bytes(),
        reconstruction_error: passage.reconstruction_error(),
        layers: errors.len(),
        errors,
        flips,
        forward_ms: forward.ms,
        loss_ms: loss.ms,
        backward_ms: backward.ms,
        forward_multiply_adds: forward.multiply_adds,
        loss_multiply_adds: loss.multiply_adds,
        backward_multiply_adds: backward.multiply_adds,
        loss: passage.mean_loss,
        loss_bytes: passage.loss_bytes(),
    })
}

/// The same for people.
pub fn layers_words(passage: &Passage) -> String {
    let Passage { forward, loss, backward, errors, flips, .. } = passage;
    let mut text = format!(
        "reversible, {} layers: {} of activations, {} of parameters and gradients; error of rebuilt inputs {:.1e}; \
         forward {:.1} ms, loss {:.1} ms, backward {:.1} ms\n",
        errors.len(),
        bytes_in_words(passage.activation_bytes()),
        bytes_in_words(passage.parameter_bytes()),
        passage.reconstruction_error(),
        forward.ms,
        loss.ms,
        backward.ms,
    );
    if let Some(mean) = passage.mean_loss {
        let held = bytes_in_words(passage.loss_bytes());
        text += &format!("loss of drawn targets {mean:.4} nats a token, with {held} of activations\n");
    }
    if !flips.is_empty() {
        text += &format!("{} bucket ids flipped when they were hashed again\n", flips.iter().sum::<u64>());
    }
    text
}

pub fn run_json(outcome: &Outcome, files: &[PathBuf]) -> String {
    json(&of_run(outcome, files))
}

fn of_run<'a>(outcome: &'a Outcome, files: &'a [PathBuf]) -> RunJson<'a> {
    let (settings, figures, dims) = (&outcome.settings, outcome.figures, outcome.dims);
    let steps = outcome.steps.iter().map(|step| StepJson {
        name: step.step.name(),
        ms: step.ms,
        bytes: step.bytes as u64,
        flops: step.flops as u64,
    });
    let buffers = outcome.buffers.iter().map(|b| BufferJson { name: b.name, bytes: b.bytes, shape: &b.shape });
    let lists = outcome.lists.as_ref();
    RunJson {
        method: settings.method.spelling(),
        n: dims.n_q,
        heads: dims.heads,
        d: dims.d,
        adapter: &outcome.adapter,
        seed: settings.seed,
        pairs: figures.pairs,
        share: figures.share,
        error: figures.error,
        recall: figures.recall,
        mass: figures.mass,
        accuracy: figures.accuracy,
        lost_pairs: figures.lost_pairs,
        ms: outcome.ms,
        peak_bytes: outcome.peak_bytes,
        steps: steps.collect(),
        buffers: buffers.collect(),
        path: (settings.method == Method::Lsh).then(|| if outcome.is_short() { "full" } else { "lsh" }),
        preset: Preset::of(settings).map(|preset| preset.name),
        visits: figures.visits,
        error_plain: figures.error_plain,
        sampled: figures.sampled,
        clock: clock(outcome.clock),
        rounds: lists.map(|lists| lists.rounds),
        buckets: lists.map(|lists| lists.n_buckets),
        chunk: lists.map(|lists| lists.chunk_len),
        buckets_checksum: lists.map(Lists::checksum),
        k: (settings.method == Method::Linformer).then(|| settings.projected_len()),
        settings: settings.to_query(),
        files,
    }
}

/// One case of `verify`.
#[derive(Serialize)]
pub struct VerdictJson {
    name: String,
    verdict: &'static str,
    /// Largest error, and its share of the tolerance at its worst; null when nothing was compared.
    error: Option<f64>,
    share: Option<f64>,
    /// Where it fails, or why it could not be run.
    why: Option<String>,
}

#[derive(Serialize)]
struct VerifyJson {
    cases: Vec<VerdictJson>,
    passed: usize,
    failed: usize,
    skipped: usize,
}

pub fn verdict_json(name: &str, verdict: &Verdict) -> VerdictJson {
    let (word, worst, why) = match verdict {
        Verdict::Compared(worst) if worst.passes() => ("pass", Some(worst), None),
        Verdict::Compared(worst) => ("fail", Some(worst), Some(worst.at.clone())),
        Verdict::Failed(why) => ("fail", None, Some(why.clone())),
    };
    let (error, share) = worst.map(|worst| (worst.error, worst.share)).unzip();
    VerdictJson { name: name.to_owned(), verdict: word, error, share, why }
}

pub fn verify_json(cases: Vec<VerdictJson>, totals: &Totals) -> String {
    json(&VerifyJson { cases, passed: totals.passed, failed: totals.failed, skipped: 0 })
}

pub fn clock(clock: Clock) -> &'static str {
    match clock {
        Clock::Timestamps => "timestamps",
        Clock::Wall => "wall",
    }
}

pub fn run_words(outcome: &Outcome, files: &[PathBuf]) -> String {
    let (settings, figures, dims) = (&outcome.settings, outcome.figures, outcome.dims);
    let method = settings.method.spelling();
    let method = match (&outcome.lists, settings.method) {
        (Some(lists), _) => {
            format!("{method}, rounds {}, buckets {}, chunks of {}", lists.rounds, lists.n_buckets, lists.chunk_len)
        }
        (None, Method::Linformer) => {
            format!("{method}, k {}, E and F {}", settings.projected_len(), settings.projection.spelling())
        }
        (None, _) if outcome.is_short() => {
            format!("{method}, but full attention ran: n is at most the chunk length {}", settings.chunk_len())
        }
        (None, _) => method.to_owned(),
    };
    let input = match settings.input {
        InputKind::Picture => format!("picture, {}", settings.sample.spelling()),
        InputKind::Clusters => format!("points on the sphere, {}", settings.arrangement.spelling()),
        InputKind::Duplication => "duplication task, nothing trained".to_owned(),
    };
    let ratio = |value: f64| format!("{value:.4}");
    let sample = match figures.sampled {
        Some(count) => format!("from {count} sampled queries a head"),
        None => "from all queries".to_owned(),
    };
    let mut lines = vec![
        vec!["method".to_owned(), method],
        vec!["input".to_owned(), input],
        vec![
            "n".to_owned(),
            format!("{}, heads {}, d {}, d_v {}, seed {}", dims.n_q, dims.heads, dims.d, dims.d_v, settings.seed),
        ],
        vec!["adapter".to_owned(), outcome.adapter.clone()],
        vec![],
        vec![
            "pairs".to_owned(),
            format!(
                "{} of {}",
                grouped(figures.pairs),
                grouped(u64::from(dims.heads) * u64::from(dims.n_q) * u64::from(dims.n_kv))
            ),
        ],
        vec!["share".to_owned(), ratio(figures.share)],
        vec!["visits".to_owned(), grouped(figures.visits)],
        vec!["error".to_owned(), format!("{:.3e} against exact attention, {sample}", figures.error)],
        vec![String::new(), format!("{:.3e} against softmax(Q K^T / sqrt d) V", figures.error_plain)],
    ];
    let optional = [
        ("recall", figures.recall.map(|recall| format!("{} of the exact top 32 keys", ratio(recall)))),
        ("mass", figures.mass.map(|mass| format!("{} of the exact probability is on visible keys", ratio(mass)))),
        ("accuracy", figures.accuracy.map(|accuracy| format!("{} on the second half", ratio(accuracy)))),
        ("lost pairs", figures.lost_pairs.map(|lost| format!("{} of one bucket that no chunks cover", grouped(lost)))),
    ];
    lines.extend(optional.into_iter().filter_map(|(name, text)| Some(vec![name.to_owned(), text?])));
    let clock = match outcome.clock {
        Clock::Timestamps => "by the device's timestamps",
        Clock::Wall => "by the clock on the wall",
    };
    lines.push(vec!["time".to_owned(), format!("{:.3} ms {clock}", outcome.ms)]);
    lines.push(vec![
        "peak".to_owned(),
        format!("{} ({} bytes)", bytes_in_words(outcome.peak_bytes), grouped(outcome.peak_bytes)),
    ]);

    let mut steps = vec![["step", "ms", "bytes", "flops"].map(str::to_owned).to_vec()];
    steps.extend(outcome.steps.iter().map(|step| {
        let ms = step.ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.3}"));
        vec![step.step.name().to_owned(), ms, bytes_in_words(step.bytes as u64), format!("{:.3e}", step.flops)]
    }));
    let mut buffers = vec![["buffer", "bytes", "shape"].map(str::to_owned).to_vec()];
    buffers.extend(outcome.buffers.iter().map(|buffer| {
        let shape: Vec<String> = buffer.shape.iter().map(u64::to_string).collect();
        vec![buffer.name.to_owned(), grouped(buffer.bytes), shape.join(" x ")]
    }));
    let mut text = [table(&lines, &[]), table(&steps, &[1, 2, 3]), table(&buffers, &[1])].join("\n");
    if !files.is_empty() {
        text.push('\n');
        files.iter().for_each(|path| text.push_str(&format!("wrote {}\n", path.display())));
    }
    text
}

fn device_type(gpu: &Gpu) -> &'static str {
    match gpu.info.device_type {
        wgpu::DeviceType::Cpu => "CPU",
        wgpu::DeviceType::DiscreteGpu => "discrete GPU",
        wgpu::DeviceType::IntegratedGpu => "integrated GPU",
        wgpu::DeviceType::VirtualGpu => "virtual GPU",
        wgpu::DeviceType::Other => "other",
    }
}

pub fn device_json(gpu: &Gpu) -> String {
    json(&DeviceJson {
        adapter: &gpu.info.name,
        backend: gpu.info.backend.to_string(),
        r#type: device_type(gpu),
        software: gpu.is_software(),
        driver: &gpu.info.driver,
        driver_info: &gpu.info.driver_info,
        binding_bytes: gpu.limits.binding,
        buffer_bytes: gpu.limits.buffer,
        timestamps: gpu.has_timestamps(),
    })
}

pub fn device_words(gpu: &Gpu) -> String {
    let bytes = |bytes| format!("{} ({} bytes)", bytes_in_words(bytes), grouped(bytes));
    let timestamps = if gpu.has_timestamps() { "yes, milliseconds by step" } else { "no, milliseconds of a whole run" };
    let software = if gpu.is_software() { ", computes in software" } else { "" };
    let lines = [
        ("adapter", gpu.info.name.clone()),
        ("backend", gpu.info.backend.to_string()),
        ("type", format!("{}{software}", device_type(gpu))),
        ("driver", format!("{} {}", gpu.info.driver, gpu.info.driver_info)),
        ("largest binding", bytes(gpu.limits.binding)),
        ("largest buffer", bytes(gpu.limits.buffer)),
        ("timestamps", timestamps.to_owned()),
    ];
    table(&lines.map(|(name, text)| vec![name.to_owned(), text]), &[])
}

/// Columns side by side, those numbered in `right` flush right.
pub fn table(rows: &[Vec<String>], right: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().enumerate().map(|(at, cell)| {
            let width = widths[at];
            if right.contains(&at) { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}
