//! The stack of layers: gradients against finite differences, the twins against the device, the
//! ledger as the timeline, chunks, and what grows with depth.

use attention_lab::gpu::run::Progress;
use attention_lab::gpu::{Gpu, block_on};
use attention_lab::inputs;
use attention_lab::interpreter::Workspace;
use attention_lab::lab::stack::{Moment, Passage, Phase, Share, Stack, Walk, Way};
use attention_lab::methods::lsh::Lsh;
use attention_lab::methods::stack::{
    Attention, BUCKETS, Branches, GRADIENT, GRADIENTS, Layer, STREAM, STREAMS, loss_gradient,
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
    for (tag, parameter) in (0..).zip(layer.parameters()) {
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
}

impl Twin<'_> {
    fn streams(&self) -> &'static [&'static str] {
        if self.stored { &[STREAM] } else { &STREAMS }
    }

    /// The forward pass with frozen buckets.
    fn forward(&self, buckets: &[Data], nudge: Nudge<'_>) -> Workspace {
        let plan = if self.stored { self.layer.residual_forward(LIMITS) } else { self.layer.forward(LIMITS) };
        let mut plan = plan.expect("a plan");
        let mut workspace = Workspace::default();
        workspace.prepare(&plan, self.problem);
        if !buckets.is_empty() {
            plan = without_hash(plan);
        }
        for (head, ids) in (0..).zip(buckets) {
            workspace.write_u32(BUCKETS, head, ids.u());
        }
        if let Some((name, range, at, by)) = nudge {
            let mut values = workspace.read(name, range).expect(name);
            values.f_mut()[at] += by;
            workspace.write(name, range, values.f());
        }
        workspace.run(&plan, self.problem);
        workspace
    }

    /// Half the sum of squares of the outputs.
    fn loss(&self, workspace: &Workspace) -> f64 {
        let all = self.streams().iter().map(|name| workspace.read(name, 0).expect("a stream"));
        all.map(|values| values.f().iter().map(|y| y * y).sum::<f64>()).sum::<f64>() / 2.0
    }

    fn check(&self) {
        let layer = self.layer;
        let mut workspace = self.forward(&[], None);
        let heads = self.problem.dims.heads;
        let buckets: Vec<Data> = (0..heads).filter_map(|head| workspace.read(BUCKETS, head)).collect();
        let outputs = workspace.read(self.streams()[0], 0).expect("outputs");
        let pairs: Vec<_> =
            if self.stored { vec![(STREAM, GRADIENT)] } else { STREAMS.into_iter().zip(GRADIENTS).collect() };
        workspace.run(&loss_gradient(layer, 1.0, &pairs, LIMITS).expect("a plan"), self.problem);
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
        checked.extend(layer.parameters().iter().map(|p| (p.name, p.gradient, p.ranges, p.rows, p.width)));
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
                    let [more, less] =
                        [step, -step].map(|by| self.loss(&self.forward(&buckets, Some((name, range, at, by)))));
                    let slope = (more - less) / (2.0 * step);
                    let off = (slope - held.f()[at]).abs();
                    assert!(off < 1e-6 * (size + slope.abs()), "{name} {range} {at}: {slope}, {}", held.f()[at]);
                }
            }
        }
    }
}

fn unpadded(rows: &[f64], width: u32) -> Vec<f64> {
    rows.chunks(width.next_multiple_of(4) as usize).flat_map(|row| row[..width as usize].to_vec()).collect()
}

fn gradients_are_slopes(layer: &Layer) {
    let problem = problem(layer);
    Twin { layer, problem: &problem, stored: false }.check();
    if layer.branches != Branches::Linear {
        Twin { layer, problem: &problem, stored: true }.check();
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
    let mut workspace = Twin { layer: &layer, problem: &problem, stored: false }.forward(&[], None);
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
    Stack::new(settings, &input.problem)
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
        assert_eq!(passage.moments.len(), 6);
        assert_eq!(gpu.ledger.bytes(), before, "everything is given back");
        // Ids are kept layer by layer on the way there, and given back on the way back.
        let share = if way.stored { Share::Stored } else { Share::Kept };
        let held: Vec<u64> = passage.moments.iter().map(|moment| moment.of(share)).collect();
        let one = held[1];
        let kept = if way.rehash { [0; 6] } else { [0, one, 2 * one, 2 * one, one, 0] };
        assert_eq!(held, kept, "{way:?}");
        assert_eq!(one == 0, way.rehash);
        let phases: Vec<_> = passage.moments.iter().map(|moment| (moment.phase, moment.layer)).collect();
        assert_eq!(phases[2..4], [(Phase::Forward, 2), (Phase::Backward, 2)]);
    }
}

#[test]
fn an_activation_that_outlives_its_layer_is_noticed() {
    let gpu = open();
    let stack = stack(&settings("layers=3"));
    let mut walk = block_on(&gpu, Walk::new(&gpu, &stack, Way::default())).expect("a walk");
    block_on(&gpu, walk.forward(&Progress::default())).expect("forward");
    let leaked = gpu.ledger.create(&gpu.device, "hidden", 1 << 16, wgpu::BufferUsages::STORAGE);
    block_on(&gpu, walk.loss(1.0)).expect("loss");
    block_on(&gpu, walk.backward(&Progress::default())).expect("backward");
    let told = nothing_outlives_its_layer(&walk.passage).expect_err("a leak");
    assert!(told.starts_with("Backward of layer 2"), "{told}");
    drop(leaked);
}

#[test]
fn reversible_memory_is_flat_and_inputs_are_rebuilt() {
    let gpu = open();
    for query in ["n=256", "n=1024&rounds=8", "n=512&heads=4&rounds=1&attention=full"] {
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

/// Kept ids, ids hashed again, parameters in host memory: the gradients are those of kept ids unless a
/// bucket flipped.
#[test]
fn swapped_and_rehashed_stacks_walk_the_same_way() {
    let gpu = open();
    let gradients = |way: Way| {
        let stack = stack(&settings("layers=3"));
        let mut walk = block_on(&gpu, Walk::new(&gpu, &stack, way)).expect("a walk");
        block_on(&gpu, walk.forward(&Progress::default())).expect("forward");
        block_on(&gpu, walk.loss(1.0)).expect("loss");
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
