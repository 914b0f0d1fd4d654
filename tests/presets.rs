//! The rules of the paper and of the published codes, as presets: in settings, on the command line,
//! and on the device.
#![cfg(not(target_arch = "wasm32"))]

use attention_lab::gpu::{Gpu, block_on, run::Progress};
use attention_lab::inputs::{self, Input};
use attention_lab::lab::{self, Moved, Run};
use attention_lab::methods::full::Way;
use attention_lab::methods::measure::Measured;
use attention_lab::outcome::Outcome;
use attention_lab::presets::{PRESETS, Preset};
use attention_lab::problem::Dims;
use attention_lab::semantics::{KeyNorm, SelfRule, Semantics, Wrap};
use attention_lab::settings::{Arrangement, InputKind, Method, Settings, Short};
use serde_json::Value;
use std::rc::Rc;

fn preset(name: &str) -> &'static Preset {
    Preset::find(name).expect("a preset")
}

fn under(name: &str, mut settings: Settings) -> Settings {
    preset(name).apply(&mut settings);
    settings
}

fn manifest() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/manifest.json");
    let text = std::fs::read_to_string(path).expect("the manifest");
    let manifest: Value = serde_json::from_str(&text).expect("JSON");
    manifest["cases"].as_array().expect("cases").clone()
}

/// The flags of a published run, in which a preset must agree, over the preset's own semantics.
fn recorded(case: &Value, own: Semantics) -> Semantics {
    let flags = &case["flags"];
    let number = |name: &str| flags[name].as_f64().unwrap_or_else(|| panic!("{name} in {case}"));
    Semantics {
        key_norm: match flags["key_norm"].as_str() {
            Some("l2_max") => KeyNorm::L2Max,
            Some("l2_rms") => KeyNorm::L2Rms,
            other => panic!("{other:?}"),
        },
        key_norm_eps: number("key_norm_eps") as f32,
        self_rule: SelfRule::Value(number("self_value") as f32),
        ..own
    }
}

/// The presets have the flags with which the libraries were run, options at their defaults.
#[test]
fn presets_have_the_flags_of_the_golden_data() {
    let mut found = [0, 0];
    for case in manifest() {
        let name = case["name"].as_str().expect("a name");
        let (at, preset) = match name {
            _ if name.starts_with("lsh_lr_") && name.contains("_xd") && !name.ends_with("rotperhead") => {
                (0, "reformer-pytorch")
            }
            _ if name.starts_with("lsh_hf_") && !name.ends_with("after1") => (1, "hugging-face"),
            _ => continue,
        };
        found[at] += 1;
        let size = |key: &str| case["params"][key].as_u64().expect("a size") as u32;
        let sizes = Settings { n: size("n"), chunk: Some(size("chunk_len")), d: size("d"), ..Settings::default() };
        let settings = under(preset, sizes);
        let (own, flags) = (settings.semantics, &case["flags"]);
        assert_eq!(recorded(&case, own), own, "{name}");
        let scale = f64::from(own.score_scale.factor(settings.d));
        assert!((scale - flags["score_scale"].as_f64().expect("a scale")).abs() < 1e-7, "{name}: {scale}");
        assert_eq!(flags["within_bucket_only"], own.same_bucket, "{name}");
        assert_eq!(flags["pair_count_correction"], own.pair_count, "{name}");
        assert_eq!(flags["chunks_before"], own.chunks_before, "{name}");
        assert_eq!(flags["chunks_after"], own.chunks_after, "{name}");
        assert_eq!((flags["chunk_wrap"].as_str(), own.wrap), (Some("global"), Wrap::AcrossRounds), "{name}");
        assert_eq!(flags["rotations_per_head"], settings.rotations_per_head, "{name}");
        // reformer-pytorch has no choice of buckets; Hugging Face was run with several.
        if at == 0 {
            assert_eq!(u64::from(settings.bucket_count()), u64::from(size("n_buckets")), "{name}");
        }
        let undone = Settings { semantics: Semantics { pair_count: true, ..own }, ..settings };
        if at == 0 {
            assert_eq!(undone.semantics.pair_count_eps, 1e-9, "the option of reformer-pytorch");
        }
    }
    assert!(found.iter().all(|count| *count >= 5), "{found:?}");
}

/// transformers 4.44.2, `_set_num_buckets`, by hand: 2 floor(n / m) down to a power of two, in two
/// factors above 2 max(sqrt(n / m), m).
#[test]
fn hugging_face_counts_and_factorises_its_buckets() {
    for (n, chunk, factors) in [
        (4096, 64, vec![128]),
        (8192, 64, vec![16, 16]),
        (16_384, 64, vec![16, 32]),
        (1000, 64, vec![16]),
        (256, 16, vec![32]),
        (512, 16, vec![8, 8]),
    ] {
        let settings = under("hugging-face", Settings { n, chunk: Some(chunk), ..Settings::default() });
        assert_eq!(settings.bucket_factors(), factors, "n = {n}, m = {chunk}");
    }
    let lucid = under("reformer-pytorch", Settings { n: 65_536, ..Settings::default() });
    assert_eq!(lucid.bucket_factors(), [1024], "reformer-pytorch never factorises");
}

#[test]
fn the_default_is_the_paper_and_every_preset_is_recognised() {
    assert_eq!(Preset::of(&Settings::default()), Some(preset("paper")));
    let with = |change: fn(&mut Settings)| {
        let mut settings = Settings { n: 2048, rounds: 3, buckets: Some(100), seed: 9, ..Settings::default() };
        settings.semantics.causal = true;
        change(&mut settings);
        settings
    };
    for each in &PRESETS {
        let settings = under(each.name, with(|_| {}));
        assert_eq!(Preset::of(&settings), Some(each));
        assert!(settings.semantics.causal, "the causal mask is no part of a preset");
        assert_eq!((settings.rounds, settings.chunk_len()), (3, with(|_| {}).chunk_len()), "sizes stay");
        assert_eq!(Settings::from_query(&settings.to_query()), Ok(settings), "an address holds every setting");
    }
    let own = with(|settings| settings.semantics.chunks_after = 1);
    assert_eq!(Preset::of(&own), None);
    // The paper ties buckets to chunks.
    assert_eq!(Preset::of(&Settings { buckets: Some(16), chunk: Some(64), ..Settings::default() }), None);
}

#[test]
fn a_preset_goes_first_and_others_override() {
    for query in ["preset=hugging-face&scale=0.5&n=512", "n=512&scale=0.5&preset=hugging-face"] {
        let settings = Settings::from_query(query).expect("a link");
        let expected = under("hugging-face", Settings { n: 512, ..Settings::default() });
        let mut expected = expected;
        expected.set("scale", "0.5").expect("a number");
        assert_eq!(settings, expected, "{query}");
        assert_eq!(Preset::of(&settings), None);
        assert!(!settings.to_query().contains("preset"), "it is no setting");
    }
    let error = Settings::from_query("preset=trax").expect_err("not a preset").to_string();
    assert_eq!(error, "--preset trax: allowed is paper, reformer-pytorch or hugging-face");
    assert!(PRESETS.iter().all(|each| Preset::allowed().contains(each.name)));
}

fn small(n: u32) -> Settings {
    Settings { n, d: 16, heads: 2, rounds: 2, chunk: Some(32), input: InputKind::Clusters, ..Settings::default() }
}

fn device() -> Gpu {
    pollster::block_on(Gpu::open(true)).expect("a software adapter")
}

fn input(gpu: &Gpu, settings: &Settings) -> Rc<Input> {
    Rc::new(block_on(gpu, inputs::build(settings, None)).expect("an input"))
}

fn run(gpu: &Gpu, settings: &Settings, input: &Rc<Input>) -> Rc<Outcome> {
    block_on(gpu, Run::new(gpu, settings, input, &Progress::default())).expect("a run").outcome
}

#[test]
fn a_run_differs_where_the_rules_do() {
    let gpu = device();
    let settings = small(256);
    let input = input(&gpu, &settings);
    let [paper, lucid, face] = PRESETS.each_ref().map(|each| run(&gpu, &under(each.name, settings.clone()), &input));
    assert!(lucid.figures.pairs > paper.figures.pairs, "any bucket: more pairs");
    assert!(lucid.figures.visits > paper.figures.visits);
    assert_ne!(paper.out, lucid.out);
    assert_ne!(lucid.out, face.out);
    let buckets = [&paper, &lucid, &face].map(|outcome| outcome.lists.as_ref().expect("lists").n_buckets);
    assert_eq!(buckets, [16, 8, 16]);
    let hashed = |outcome: &Outcome| outcome.lists.as_ref().expect("lists").buckets.clone();
    assert_eq!(hashed(&paper), hashed(&face), "the same rotations and bucket count");
    // One set of rotations for both heads: head 0 of both, since the sets begin alike.
    let shared = lucid.buffers.iter().find(|buffer| buffer.name == "rotations").expect("rotations");
    assert_eq!(shared.shape[0], 1);
}

/// Hugging Face alone turns to full attention when n is at most the chunk length.
#[test]
fn hugging_face_attends_in_full_up_to_one_chunk() {
    let gpu = device();
    for n in [20, 32] {
        let settings = small(n);
        let input = input(&gpu, &settings);
        let face = run(&gpu, &under("hugging-face", settings.clone()), &input);
        assert!(face.is_short() && face.lists.is_none());
        assert!(face.steps.iter().all(|step| step.step.name() != "hash"), "{:?}", face.steps);
        let full = Settings { method: Method::Full, ..under("hugging-face", settings.clone()) };
        let full = run(&gpu, &full, &input);
        assert_eq!(face.out, full.out, "full attention with the same rules, bit for bit");
        assert_eq!(face.figures.pairs, full.figures.pairs);
        // The switch changes what runs.
        let hashed = Settings { short: Short::Lsh, ..under("hugging-face", settings.clone()) };
        let hashed = run(&gpu, &hashed, &input);
        assert!(!hashed.is_short() && hashed.lists.is_some());
        for name in ["paper", "reformer-pytorch"] {
            assert!(run(&gpu, &under(name, settings.clone()), &input).lists.is_some(), "{name} hashes at any length");
        }
    }
    let longer = small(33);
    let dims = Dims { n_q: 33, n_kv: 33, heads: 2, k_heads: 2, v_heads: 2, d: 16, d_v: 3 };
    assert!(matches!(lab::measured(&under("hugging-face", longer), &dims), Measured::Lsh(_)));
    let Measured::Full(full) = lab::measured(&under("hugging-face", small(32)), &dims) else { panic!("not full") };
    assert_eq!((full.way, full.shared_qk), (Way::Online, true));
}

/// The counts by round add up to the figures of the run.
#[test]
fn the_union_of_rounds_is_what_the_figures_say() {
    let gpu = device();
    for name in ["paper", "reformer-pytorch", "hugging-face"] {
        let mut settings = under(name, Settings { rounds: 3, ..small(300) });
        settings.semantics.causal = true;
        let input = input(&gpu, &settings);
        let mut run = block_on(&gpu, Run::new(&gpu, &settings, &input, &Progress::default())).expect("a run");
        let counted = block_on(&gpu, run.by_rounds(&gpu, &Progress::default())).expect("counted").expect("hashed");
        let figures = run.outcome.figures;
        assert_eq!(counted.pairs.iter().sum::<u64>(), figures.pairs, "{name}");
        assert!((counted.share(1) - figures.share).abs() < 1e-12, "{name}");
        assert!((counted.recall(1) - figures.recall.expect("a recall")).abs() < 1e-6, "{name}");
        assert!(counted.share(3) < counted.share(1) && counted.recall(3) < counted.recall(1), "{name}");
        if name == "paper" {
            // Without a wrap a pair is met at most once a round, so visits count the rounds.
            let visits: u64 = counted.pairs.iter().zip(1..).map(|(pairs, rounds)| pairs * rounds).sum();
            assert_eq!(visits, figures.visits);
        }
    }
}

/// With one chunk for all there are no borders to move; with several, earlier outputs move although
/// the causal mask gives later keys no weight.
#[test]
fn a_change_of_the_last_token_moves_earlier_outputs_through_the_sort() {
    let gpu = device();
    let moved = |settings: Settings| -> Moved {
        let input = input(&gpu, &settings);
        let run = block_on(&gpu, Run::new(&gpu, &settings, &input, &Progress::default())).expect("a run");
        block_on(&gpu, run.moved(&gpu, &Progress::default())).expect("moved")
    };
    let n = 256;
    let settings = Settings { heads: 1, arrangement: Arrangement::Isotropic, ..small(n) };
    let settings = under("reformer-pytorch", settings);
    let many = moved(settings.clone());
    let earlier = many.earlier(n, 0);
    assert!(!earlier.is_empty(), "no output moved");
    assert!(earlier.iter().all(|token| *token < n - 1), "{earlier:?}");
    let [before, after] = many.lists.as_ref().expect("it sorts");
    for round in 0..before.rounds {
        let ids = [before, after].map(|lists| lists.of(&lists.buckets, n, 0, round));
        let last = n as usize - 1;
        assert_eq!(ids[0][..last], ids[1][..last], "only the last token's bucket changes");
        assert_eq!((ids[0][last] + before.n_buckets / 2) % before.n_buckets, ids[1][last], "to the opposite one");
    }
    let one = moved(Settings { chunk: Some(n), ..settings.clone() });
    assert_eq!(one.earlier(n, 0), [0u32; 0], "one chunk has no borders");
    let short = under("hugging-face", Settings { chunk: Some(n), ..settings });
    let full = moved(short);
    assert!(full.lists.is_none());
    assert_eq!(full.earlier(n, 0), [0u32; 0], "full attention sorts nothing");
}

#[test]
fn separate_keys_leave_buckets_with_queries_only() {
    let gpu = device();
    let settings = Settings { clusters: 4, ..small(256) };
    let input = input(&gpu, &settings);
    let run = block_on(&gpu, Run::new(&gpu, &settings, &input, &Progress::default())).expect("a run");
    let separate = block_on(&gpu, run.separate_keys(&gpu, &Progress::default())).expect("hashed").expect("hashed");
    for (head, round) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let (queries, keys) = separate.of(head, round);
        assert_eq!((queries.iter().sum::<u32>(), keys.iter().sum::<u32>()), (256, 256));
        let tally = separate.tally(head, round);
        assert_eq!(tally.queries_only + tally.keys_only + tally.both + tally.empty, separate.n_buckets);
        assert!(tally.queries_only > 0 && tally.stranded > 0, "head {head}, round {round}: {tally:?}");
    }
}
