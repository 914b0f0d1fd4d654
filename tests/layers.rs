//! The stack of layers: gradients against finite differences, the twins against the device, the
//! ledger as the timeline, chunks, and what grows with depth.

use attention_lab::gpu::run::Progress;
use attention_lab::gpu::{Gpu, block_on};
use attention_lab::inputs;
use attention_lab::interpreter::Workspace;
use attention_lab::lab::stack::{Moment, Passage, Phase, Share, Stack, Walk, Way, planned_bytes};
use attention_lab::methods::lsh::Lsh;
use attention_lab::methods::stack::{
    Attention, BUCKETS, Branches, GRADIENT, GRADIENTS, LOSSES, Layer, Loss, STREAM, STREAMS, TARGETS,
};
use attention_lab::plan::{Limits, Plan, Step};
use attention_lab::problem::{Dims, Named, Problem, Projections, Rotations};
use attention_lab::random::{Stream, normal};
use attention_lab::semantics::{Semantics, Wrap};
use attention_lab::settings::Settings;
use attention_lab::steps::Data;

const LIMITS: Limits = Limits::WEBGPU;

fn open() -> Gpu {
    pollster::block_on(Gpu::open(true)).expect("a software Vulkan driver")
}

fn reformer(n: u32, heads: u32, d: u32, attention: Attention, d_ff: u32, chunks: u32) -> Layer {
    let dims = Dims { n_q: n, n_kv: n, heads, k_heads: heads, v_heads: heads, d, d_v: d };
    Layer { n, width: heads * d, branches: Branches::Reformer { dims, attention, d_ff, chunks } }
}

fn lsh(rounds: u32, buckets: u32, chunk_len: u32, semantics: Semantics) -> Attention {
    let factors = vec![buckets];
    Attention::Lsh(Lsh { rounds, factors, chunk_len, rotation_heads: 1, semantics, keep_rounds: false })
}

/// Noise in everything, biases and gains too, so that no gradient is 0 by chance.
fn problem(layer: &Layer) -> Problem {
    let noise = |tag: u64, len: usize, scale: f32, level: f32| -> Vec<f32> {
        (0..len).map(|i| level + scale * normal(11, Stream::Noise, tag << 32 | i as u64)).collect()
    };
    let mut named = Named::new();
    let loss = Loss::Vocabulary { vocabulary: VOCABULARY, sections: 1 };
    for (tag, parameter) in (0..).zip(layer.parameters().into_iter().chain(loss.parameters(layer.width, 2))) {
        let level = if parameter.name.ends_with("gain") { 1.0 } else { 0.0 };
        let scale = 0.7 / (parameter.inputs.max(4) as f32).sqrt();
        named.insert(parameter.name, noise(tag, parameter.len(), scale, level));
    }
    for (tag, name) in (50..).zip([STREAMS[0], STREAMS[1], STREAM]) {
        named.insert(name, noise(tag, (layer.n * layer.width) as usize, 1.0, 0.0));
    }
    let (n, d) = (layer.n, layer.width);
    let dims = Dims { n_q: n, n_kv: n, heads: 1, k_heads: 1, v_heads: 1, d, d_v: d };
    let dims = if let Branches::Reformer { dims, .. } = &layer.branches { *dims } else { dims };
    let rotations = Rotations::Seeded(3);
    Problem { dims, q: vec![], k: vec![], v: vec![], rotations, projections: Projections::Mean, named }
}

fn without_hash(plan: Plan) -> Plan {
    let passes = plan.passes.into_iter().filter(|pass| pass.step != Step::Hash).collect();
    Plan { passes, ..plan }
}

/// A buffer's number that is moved: name, range, place, by how much.
type Nudge<'a> = Option<(&'a str, u32, usize, f64)>;

/// One layer in float64, forward and back.
struct Twin<'a> {
    layer: &'a Layer,
    problem: &'a Problem,
    stored: bool,
    loss: Loss,
}

impl Twin<'_> {
    fn streams(&self) -> &'static [&'static str] {
        if self.stored { &[STREAM] } else { &STREAMS }
    }

    /// The forward pass with frozen buckets.
    fn forward(&self, buckets: &[Data], nudge: Nudge<'_>) -> Workspace {
        let plan = if self.stored { self.layer.residual_forward(LIMITS) } else { self.layer.forward(false, LIMITS) };
        let mut plan = plan.expect("a plan");
        let mut workspace = Workspace::default();
        workspace.prepare(&plan, self.problem);
        if !buckets.is_empty() {
            plan = without_hash(plan);
        }
        for (head, ids) in (0..).zip(buckets) {
            workspace.write_u32(BUCKETS, head, ids.u());
        }
        // The matrix of the loss is not the layer's.
        if let Some((name, range, at, by)) = nudge
            && let Some(mut values) = workspace.read(name, range)
        {
            values.f_mut()[at] += by;
            workspace.write(name, range, values.f());
        }
        workspace.run(&plan, self.problem);
        workspace
    }

    /// By its definition: half the sum of squares of the outputs, or the mean of the targets' surprise.
    fn loss(&self, workspace: &Workspace, nudge: Nudge<'_>) -> f64 {
        let (n, width) = (self.layer.n as usize, self.layer.width);
        let outputs = self.streams().iter().map(|name| workspace.read(name, 0).expect("a stream"));
        let outputs: Vec<Vec<f64>> = outputs.map(|values| unpadded(values.f(), width)).collect();
        let Loss::Vocabulary { vocabulary, .. } = self.loss else {
            return outputs.iter().flatten().map(|y| y * y).sum::<f64>() / 2.0;
        };
        let (words, row) = (vocabulary as usize, vocabulary.next_multiple_of(4) as usize);
        let mut matrix: Vec<f64> = self.problem.named[MATRIX].iter().map(|x| f64::from(*x)).collect();
        if let Some((MATRIX, range, at, by)) = nudge {
            matrix[(range * width) as usize * words + at / row * words + at % row] += by;
        }
        let token = |i: usize| {
            let side_by_side = outputs.iter().flat_map(|stream| &stream[i * width as usize..][..width as usize]);
            let side_by_side: Vec<f64> = side_by_side.copied().collect();
            let logit = |word: usize| side_by_side.iter().zip(0..).map(|(y, c)| y * matrix[c * words + word]).sum();
            let logits: Vec<f64> = (0..words).map(logit).collect();
            logits.iter().map(|logit| logit.exp()).sum::<f64>().ln() - logits[target(i, words) as usize]
        };
        (0..n).map(token).sum::<f64>() / n as f64
    }

    fn check(&self) {
        let layer = self.layer;
        let mut workspace = self.forward(&[], None);
        let heads = self.problem.dims.heads;
        let buckets: Vec<Data> = (0..heads).filter_map(|head| workspace.read(BUCKETS, head)).collect();
        let outputs = workspace.read(self.streams()[0], 0).expect("outputs");
        let pairs: Vec<_> =
            if self.stored { vec![(STREAM, GRADIENT)] } else { STREAMS.into_iter().zip(GRADIENTS).collect() };
        let plan = layer.loss(self.loss, &pairs, LIMITS).expect("a plan");
        workspace.prepare(&plan, self.problem);
        let targets: Vec<u32> = (0..layer.n as usize).map(|i| target(i, VOCABULARY as usize)).collect();
        workspace.write_u32(TARGETS, 0, &targets);
        workspace.run(&plan, self.problem);
        if self.loss.has_words() {
            let losses = workspace.read(LOSSES, 0).expect("losses");
            let mean = losses.f().iter().sum::<f64>() / f64::from(layer.n);
            assert!((mean - self.loss(&workspace, None)).abs() < 1e-12, "{mean}");
        }
        let back = if self.stored { layer.residual_backward(LIMITS) } else { layer.backward(false, LIMITS) };
        workspace.run(&back.expect("a plan"), self.problem);
        if !self.stored {
            assert_ne!(workspace.read(STREAMS[0], 0).expect("x1"), outputs);
            for name in STREAMS {
                let rebuilt = unpadded(workspace.read(name, 0).expect(name).f(), layer.width);
                let apart = rebuilt.iter().zip(&self.problem.named[name]).map(|(a, b)| (a - f64::from(*b)).abs());
                assert!(apart.fold(0.0, f64::max) < 1e-12, "{name} is rebuilt");
            }
        }
        let mut checked: Vec<(&str, &str, u32, u32, u32)> =
            pairs.iter().map(|(stream, gradient)| (*stream, *gradient, 1, layer.n, layer.width)).collect();
        let parameters = layer.parameters().into_iter().chain(self.loss.parameters(layer.width, pairs.len()));
        checked.extend(parameters.map(|p| (p.name, p.gradient, p.ranges, p.rows, p.width)));
        for (tag, (name, gradient, ranges, rows, width)) in (0u64..).zip(checked) {
            let row = width.next_multiple_of(4);
            for range in 0..ranges {
                let held = workspace.read(gradient, range).expect(gradient);
                let size = (held.f().iter().map(|x| x * x).sum::<f64>() / f64::from(rows * width)).sqrt();
                assert!(size > 1e-6, "{gradient} is not 0");
                for pick in 0..4u64 {
                    let word = attention_lab::random::below(5, Stream::Noise, tag << 8 | pick, rows * width);
                    let at = (word / width * row + word % width) as usize;
                    let step = 1e-5;
                    let [more, less] = [step, -step].map(|by| {
                        let nudge = Some((name, range, at, by));
                        self.loss(&self.forward(&buckets, nudge), nudge)
                    });
                    let slope = (more - less) / (2.0 * step);
                    let off = (slope - held.f()[at]).abs();
                    assert!(off < 1e-6 * (size + slope.abs()), "{name} {range} {at}: {slope}, {}", held.f()[at]);
                }
            }
        }
    }
}

const VOCABULARY: u32 = 7;
const MATRIX: &str = "W vocabulary";

/// The word that a token should give.
fn target(token: usize, words: usize) -> u32 {
    (token * 5 % words) as u32
}

fn unpadded(rows: &[f64], width: u32) -> Vec<f64> {
    rows.chunks(width.next_multiple_of(4) as usize).flat_map(|row| row[..width as usize].to_vec()).collect()
}

fn gradients_are_slopes(layer: &Layer) {
    gradients_are_slopes_of(layer, SQUARES);
}

const SQUARES: Loss = Loss::Squares(1.0);

fn gradients_are_slopes_of(layer: &Layer, loss: Loss) {
    let problem = problem(layer);
    Twin { layer, problem: &problem, stored: false, loss }.check();
    if layer.branches != Branches::Linear {
        Twin { layer, problem: &problem, stored: true, loss }.check();
    }
}

/// Sections that end within the sequence, and one that is longer than it.
#[test]
fn gradients_of_a_vocabulary_are_slopes() {
    for (n, sections) in [(70, 2), (9, 1)] {
        let layer = reformer(n, 2, 3, lsh(2, 4, 5, Semantics::PAPER), 7, 1);
        gradients_are_slopes_of(&layer, Loss::Vocabulary { vocabulary: VOCABULARY, sections });
    }
}

#[test]
fn gradients_of_linear_layers_are_slopes() {
    gradients_are_slopes(&Layer { n: 9, width: 5, branches: Branches::Linear });
}

#[test]
fn gradients_with_full_attention_are_slopes() {
    gradients_are_slopes(&reformer(9, 1, 5, Attention::Full(Semantics::PAPER), 6, 1));
    let causal = Semantics { causal: true, ..Semantics::PAPER };
    gradients_are_slopes(&reformer(20, 2, 3, Attention::Full(causal), 7, 2));
}

#[test]
fn gradients_with_lsh_attention_are_slopes() {
    gradients_are_slopes(&reformer(21, 2, 3, lsh(2, 4, 5, Semantics::PAPER), 7, 3));
    let wrapped = Semantics { causal: true, same_bucket: false, wrap: Wrap::InRound, ..Semantics::PAPER };
    gradients_are_slopes(&reformer(18, 1, 6, lsh(3, 4, 6, wrapped), 5, 1));
}

#[test]
fn the_inverse_turns_a_layer_back() {
    let layer = reformer(21, 2, 3, lsh(2, 4, 5, Semantics::PAPER), 7, 3);
    let problem = problem(&layer);
    let mut workspace = Twin { layer: &layer, problem: &problem, stored: false, loss: SQUARES }.forward(&[], None);
    workspace.run(&layer.inverse(LIMITS).expect("a plan"), &problem);
    for name in STREAMS {
        let rebuilt = unpadded(workspace.read(name, 0).expect(name).f(), layer.width);
        let apart = rebuilt.iter().zip(&problem.named[name]).map(|(a, b)| (a - f64::from(*b)).abs());
        assert!(apart.fold(0.0, f64::max) < 1e-12, "{name}");
    }
}

fn settings(query: &str) -> Settings {
    Settings::from_query(&format!("input=clusters&method=reversible&n=256&d=16&{query}")).expect(query)
}

fn stack(settings: &Settings) -> Stack {
    let input = pollster::block_on(inputs::build(settings, None)).expect("an input");
    pollster::block_on(Stack::new(settings, &input.problem))
}

fn run(gpu: &Gpu, query: &str, way: Way) -> Passage {
    let stack = stack(&settings(query));
    block_on(gpu, stack.run(gpu, way, &Progress::default())).expect("a run")
}

/// What the walk says is held is what the ledger holds, and nothing of a layer outlives it.
fn nothing_outlives_its_layer(passage: &Passage) -> Result<(), String> {
    let first = |phase| passage.moments.iter().find(move |moment| moment.phase == phase);
    for moment in &passage.moments {
        let Moment { phase, layer, shares, ledger, .. } = moment;
        if shares.iter().sum::<u64>() != *ledger {
            return Err(format!("{phase:?} of layer {layer}: the ledger holds {ledger}, the walk {shares:?}"));
        }
        let same = first(*phase).is_some_and(|other| {
            [Share::Streams, Share::Layer].iter().all(|share| other.of(*share) == moment.of(*share))
        });
        if !same {
            return Err(format!("{phase:?} of layer {layer} holds {shares:?}"));
        }
    }
    Ok(())
}

#[test]
fn the_ledger_is_the_timeline() {
    let gpu = open();
    let before = gpu.ledger.bytes();
    for way in [
        Way::default(),
        Way { stored: true, ..Way::default() },
        Way { rehash: true, ..Way::default() },
        Way { swap: true, ..Way::default() },
    ] {
        let passage = run(&gpu, "layers=3&heads=2", way);
        nothing_outlives_its_layer(&passage).expect("a clean ledger");
        assert_eq!(passage.moments.len(), 7);
        assert_eq!(gpu.ledger.bytes(), before, "everything is given back");
        // Ids are kept layer by layer on the way there, and given back on the way back.
        let share = if way.stored { Share::Stored } else { Share::Kept };
        let held: Vec<u64> = passage.moments.iter().map(|moment| moment.of(share)).collect();
        let one = held[1];
        let kept = if way.rehash { [0; 7] } else { [0, one, 2 * one, 3 * one, 2 * one, one, 0] };
        assert_eq!(held, kept, "{way:?}");
        assert_eq!(one == 0, way.rehash);
        let phases: Vec<_> = passage.moments.iter().map(|moment| (moment.phase, moment.layer)).collect();
        assert_eq!(phases[2..5], [(Phase::Forward, 2), (Phase::Loss, 3), (Phase::Backward, 2)]);
        let held = passage.moments.iter().map(|m| m.ledger - m.of(Share::Parameters) - m.of(Share::Gradients)).max();
        let planned = stack(&settings("layers=3&heads=2"));
        let planned = planned_bytes(&planned.layer, 3, planned.loss, way, gpu.limits).expect("it fits");
        assert_eq!(Some(planned), held, "{way:?}: what plans say is what is held");
    }
}

#[test]
fn an_activation_that_outlives_its_layer_is_noticed() {
    let gpu = open();
    let stack = stack(&settings("layers=3"));
    let mut walk = block_on(&gpu, Walk::new(&gpu, &stack, Way::default())).expect("a walk");
    block_on(&gpu, walk.forward(&Progress::default())).expect("forward");
    let leaked = gpu.ledger.create(&gpu.device, "hidden", 1 << 16, wgpu::BufferUsages::STORAGE);
    block_on(&gpu, walk.loss(&Progress::default())).expect("loss");
    block_on(&gpu, walk.backward(&Progress::default())).expect("backward");
    let told = nothing_outlives_its_layer(&walk.passage).expect_err("a leak");
    assert!(told.starts_with("Loss of layer 3"), "{told}");
    drop(leaked);
}

#[test]
fn reversible_memory_is_flat_and_inputs_are_rebuilt() {
    let gpu = open();
    // Many heads with few numbers each keep the most ids for the size of their streams.
    for query in ["n=256", "n=1024&rounds=8", "n=512&heads=4&rounds=1&attention=full", "n=512&heads=8&d=8&rounds=8"] {
        let [few, many] = [2, 12].map(|layers| run(&gpu, &format!("{query}&layers={layers}"), Way::default()));
        let growth = many.activation_bytes() as f64 / few.activation_bytes() as f64;
        assert!(growth < 1.3, "{query}: {growth}");
        assert!(many.reconstruction_error() < 1e-4, "{query}: {:?}", many.errors);
        assert!(many.reconstruction_error() > 0.0 && many.errors.len() == 12);
    }
    let stored = |layers| run(&gpu, &format!("layers={layers}"), Way { stored: true, ..Way::default() });
    let (few, many) = (stored(2), stored(12));
    let layer = few.moments[1].of(Share::Stored);
    assert!(layer > 0);
    assert_eq!(many.activation_bytes() - few.activation_bytes(), 10 * layer, "ten layers more are stored");
}

/// The papers' 4 N for 3 N: what the way back computes again is what the way there computed.
#[test]
fn reversible_layers_compute_the_forward_pass_once_more() {
    let gpu = open();
    let reversible = run(&gpu, "layers=2", Way::default());
    let stored = run(&gpu, "layers=2", Way { stored: true, ..Way::default() });
    let whole = |passage: &Passage| passage.forward.multiply_adds + passage.backward.multiply_adds;
    let again = whole(&reversible) - whole(&stored);
    let share = again / reversible.forward.multiply_adds;
    assert!((0.8..1.05).contains(&share), "{share}");
}

#[test]
fn chunks_of_the_feed_forward_layer_change_no_bit() {
    let gpu = open();
    let outputs = |chunks: u32| {
        let stack = stack(&settings(&format!("n=300&layers=2&d=12&heads=3&ff-chunks={chunks}")));
        let mut walk = block_on(&gpu, Walk::new(&gpu, &stack, Way::default())).expect("a walk");
        block_on(&gpu, walk.forward(&Progress::default())).expect("forward");
        let streams = STREAMS.map(|name| block_on(&gpu, walk.stream(name)).expect(name));
        (streams, walk.passage.activation_bytes())
    };
    let (whole, bytes) = outputs(1);
    let mut last = bytes;
    for chunks in [2, 3, 7] {
        let (parts, bytes) = outputs(chunks);
        assert_eq!(parts, whole, "{chunks} chunks");
        assert!(bytes < last, "{chunks} chunks hold {bytes}, fewer held {last}");
        last = bytes;
    }
}

/// The sections of the loss change neither it nor the gradients, and hold less.
#[test]
fn sections_of_the_loss_change_what_is_held_alone() {
    let gpu = open();
    let walked = |sections: u32| {
        let query = format!("n=300&layers=1&d=12&heads=3&vocabulary=1030&loss-chunks={sections}");
        let stack = stack(&settings(&query));
        let mut walk = block_on(&gpu, Walk::new(&gpu, &stack, Way::default())).expect("a walk");
        block_on(&gpu, walk.forward(&Progress::default())).expect("forward");
        block_on(&gpu, walk.loss(&Progress::default())).expect("loss");
        let streams = GRADIENTS.map(|name| block_on(&gpu, walk.stream(name)).expect(name));
        let matrix = block_on(&gpu, walk.gradient(1, MATRIX)).expect("a gradient");
        (streams, walk.passage.mean_loss.expect("a loss"), matrix, walk.passage.loss_bytes())
    };
    let whole = walked(1);
    assert_eq!(whole.2.len(), 2 * 36 * 1030);
    let mut last = whole.3;
    for sections in [2, 3, 4] {
        let parts = walked(sections);
        assert_eq!((&parts.0, parts.1), (&whole.0, whole.1), "{sections} sections");
        // Sums over the tokens go on from section to section: in another order than all at once.
        let largest = whole.2.iter().fold(0f32, |most, x| most.max(x.abs()));
        let apart = parts.2.iter().zip(&whole.2).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
        assert!(largest > 0.0 && apart <= largest * 300.0 * f32::EPSILON, "{sections} sections: {apart}");
        assert!(parts.3 < last, "{sections} sections hold {}, fewer held {last}", parts.3);
        last = parts.3;
    }
    // The logits of 300 tokens, or of 80: a section begins at an aligned row.
    assert_eq!(whole.3 - last, (300u64 * 1032 * 4).next_multiple_of(256) - 80 * 1032 * 4);
}

/// Kept ids, ids hashed again, parameters in host memory: the gradients are those of kept ids unless a
/// bucket flipped.
#[test]
fn swapped_and_rehashed_stacks_walk_the_same_way() {
    let gpu = open();
    let gradients = |way: Way| {
        let stack = stack(&settings("layers=3&vocabulary=16"));
        let mut walk = block_on(&gpu, Walk::new(&gpu, &stack, way)).expect("a walk");
        block_on(&gpu, walk.forward(&Progress::default())).expect("forward");
        block_on(&gpu, walk.loss(&Progress::default())).expect("loss");
        block_on(&gpu, walk.backward(&Progress::default())).expect("backward");
        (GRADIENTS.map(|name| block_on(&gpu, walk.stream(name)).expect(name)), walk.passage)
    };
    let (kept, passage) = gradients(Way::default());
    assert!(passage.flips.is_empty());
    let (swapped, on_demand) = gradients(Way { swap: true, ..Way::default() });
    assert_eq!(swapped, kept);
    assert!(on_demand.parameter_bytes() * 2 < passage.parameter_bytes());
    let (again, rehashed) = gradients(Way { rehash: true, ..Way::default() });
    assert_eq!(rehashed.flips.len(), 3);
    if rehashed.flips.iter().sum::<u64>() == 0 {
        assert_eq!(again, kept);
    }
}

/// 24 layers of 11 x 2,048 x 2,048 numbers and some vectors take 4.1 GiB: more than a page can keep beside the device.
#[test]
fn parameters_that_host_memory_cannot_hold_are_refused_before_they_are_drawn() {
    let gpu = open();
    let stack = stack(&settings("n=16&heads=16&d=128&layers=24"));
    let way = Way { swap: true, ..Way::default() };
    let refused = block_on(&gpu, Walk::new(&gpu, &stack, way)).err().expect("refused").to_string();
    assert!(refused.contains("all parameters together take 4.1 GiB ("), "{refused}");
    assert!(refused.contains("at most 1.0 GiB"), "{refused}");
}
