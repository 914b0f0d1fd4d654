//! Every offered combination of options runs: each pair of values of any two settings stands together in a
//! run on the device, or is refused in words.

use attention_lab::bench::{Draw, values};
use attention_lab::gpu::{Gpu, block_on, run::Progress};
use attention_lab::inputs::{self, Picture};
use attention_lab::lab::stack::Stacked;
use attention_lab::lab::{self, Run};
use attention_lab::plan::{Limits, Pass, Step};
use attention_lab::settings::{InputKind, KEYS, Method, Sample, Settings};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Tries for each run, of which the one with most new pairs is taken.
const TRIES: u32 = 40;

/// Two settings and a value of each, by number.
type Pair = [(usize, usize); 2];

/// The values of every setting: all that are named, and where it takes numbers both bounds and one between. Sizes
/// stay small, since each combination runs.
fn offered() -> Vec<Vec<String>> {
    let small = |name: &str| match name {
        "n" => Some(vec!["1", "2", "31", "64", "100"]),
        "heads" => Some(vec!["1", "3"]),
        "d" => Some(vec!["1", "7", "16"]),
        "rounds" => Some(vec!["1", "2", "16"]),
        "buckets" => Some(vec!["auto", "2", "8", "8192"]),
        "chunk" => Some(vec!["auto", "1", "16", "1000"]),
        "k" => Some(vec!["auto", "1", "31", "100"]),
        "patch" => Some(vec!["1", "6"]),
        _ => None,
    };
    KEYS.iter()
        .map(|key| match small(key.name) {
            Some(values) => values.into_iter().map(str::to_owned).collect(),
            None => {
                let all = values(key);
                let numbers = all.iter().filter(|value| value.parse::<f64>().is_ok()).count();
                let named = all.len() - numbers;
                // Bounds come first, in the order of what is allowed.
                let mut left = 3;
                let kept = all.into_iter().filter(|value| {
                    let number = value.parse::<f64>().is_ok();
                    left -= i32::from(number);
                    !number || left >= 0
                });
                let kept: Vec<String> = kept.collect();
                assert!(kept.len() >= named.max(2), "{}: {kept:?}", key.name);
                kept
            }
        })
        .collect()
}

fn settings(offered: &[Vec<String>], chosen: &[usize]) -> Settings {
    let mut settings = Settings::default();
    for ((key, values), choice) in KEYS.iter().zip(offered).zip(chosen) {
        assert!((key.set)(&mut settings, &values[*choice]), "{} = {}", key.name, values[*choice]);
    }
    settings
}

fn pairs(chosen: &[usize]) -> impl Iterator<Item = Pair> + '_ {
    let each = chosen.iter().copied().enumerate();
    each.clone().flat_map(move |first| each.clone().skip(first.0 + 1).map(move |second| [first, second]))
}

fn all_pairs(offered: &[Vec<String>]) -> BTreeSet<Pair> {
    let mut all = BTreeSet::new();
    for first in 0..offered.len() {
        for second in first + 1..offered.len() {
            for a in 0..offered[first].len() {
                all.extend((0..offered[second].len()).map(|b| [(first, a), (second, b)]));
            }
        }
    }
    all
}

#[test]
fn every_offered_combination_of_options_runs() {
    let gpu = pollster::block_on(Gpu::open(true)).expect("a software Vulkan driver");
    let pictures: BTreeMap<u8, Picture> = [Sample::Astronaut, Sample::Cat, Sample::Own]
        .map(|sample| {
            // "Own" is what a user opened; here it is the cat.
            let bytes = inputs::sample_bytes(sample).or(inputs::sample_bytes(Sample::Cat)).expect("a photograph");
            (sample as u8, Picture::decode(bytes).expect("decoded"))
        })
        .into();
    let offered = offered();
    let mut open = all_pairs(&offered);
    let total = open.len();
    let mut draw = Draw::new(1);
    let (mut runs, mut refused) = (0, Vec::new());
    let mut ran: BTreeSet<String> = BTreeSet::new();
    while let Some(pair) = open.first().copied() {
        let mut best: Option<(usize, Vec<usize>, Settings)> = None;
        for _ in 0..TRIES {
            let mut chosen: Vec<usize> =
                offered.iter().map(|values| draw.below(values.len() as u32) as usize).collect();
            for (key, value) in pair {
                chosen[key] = value;
            }
            let settings = settings(&offered, &chosen);
            if settings.validate().is_ok() {
                let gain = pairs(&chosen).filter(|pair| open.contains(pair)).count();
                if best.as_ref().is_none_or(|(most, ..)| gain > *most) {
                    best = Some((gain, chosen, settings));
                }
            }
        }
        let Some((_, chosen, settings)) = best else {
            open.remove(&pair);
            refused.push(pair);
            continue;
        };
        let picture = (settings.input == InputKind::Picture).then(|| &pictures[&(settings.sample as u8)]);
        ran.insert(run(&gpu, &settings, picture));
        open.retain(|pair| pair.iter().any(|(key, value)| chosen[*key] != *value));
        runs += 1;
    }
    println!("{total} pairs of values in {runs} runs, {} pairs refused in words; what ran: {ran:?}", refused.len());
    // Only rules that two settings have between them refuse a pair, and they say so.
    for pair in &refused {
        let mut alone = Settings::default();
        for (key, value) in pair {
            (KEYS[*key].set)(&mut alone, &offered[*key][*value]);
        }
        let why = alone.validate().expect_err("a pair that never ran is refused").to_string();
        assert!(why.contains("allowed is"), "{why}");
    }
    assert!(refused.len() * 100 < total, "{} of {total} pairs are refused", refused.len());
    let paths = ["full", "full instead of lsh", "full-materialized", "full-rowwise", "linformer", "lsh", "reversible"];
    assert!(paths.iter().all(|path| ran.contains(*path)), "{ran:?}");
}

/// Runs the settings, holds the outcome against what must hold for any, and names the path that ran.
fn run(gpu: &Gpu, settings: &Settings, picture: Option<&Picture>) -> String {
    let asked = settings.to_query();
    let input = Rc::new(block_on(gpu, inputs::build(settings, picture)).unwrap_or_else(|e| panic!("{asked}: {e}")));
    let run = block_on(gpu, Run::new(gpu, settings, &input, &Progress::default()));
    let run = run.unwrap_or_else(|error| panic!("{asked}: {error}"));
    let outcome = run.outcome.clone();
    let dims = outcome.dims;
    assert_eq!(outcome.out.len(), (dims.heads * dims.n_q * dims.d_v) as usize, "{asked}");
    assert!(outcome.out.iter().all(|value| value.is_finite()), "{asked}: out");
    assert!(outcome.lse.iter().all(|value| value.is_finite()), "{asked}: lse");
    let figures = outcome.figures;
    let shares = [Some(figures.share), figures.recall, figures.mass, figures.accuracy];
    assert!(shares.iter().flatten().all(|share| (-1e-6..=1.0 + 1e-3).contains(share)), "{asked}: {figures:?}");
    assert!(figures.error.is_finite() && figures.error_plain.is_finite(), "{asked}: {figures:?}");
    // The outcome says which path ran: buckets and the step that hashes, or neither.
    let hashed = outcome.lists.is_some();
    assert_eq!(hashed, outcome.steps.iter().any(|step| step.step == Step::Hash), "{asked}");
    assert_eq!(hashed, settings.method == Method::Lsh && !settings.is_short(), "{asked}");
    assert_eq!(outcome.is_short(), settings.method == Method::Lsh && settings.is_short(), "{asked}");
    if settings.reversible {
        let stack = block_on(gpu, run.layers(gpu, Stacked::of(settings), &Progress::default()));
        let passage = stack.unwrap_or_else(|error| panic!("{asked}: {error}"));
        assert!(passage.errors.iter().all(|error| error.is_finite()), "{asked}: {:?}", passage.errors);
        return "reversible".to_owned();
    }
    let method = attention_lab::semantics::Choice::spelling(settings.method);
    if outcome.is_short() { format!("full instead of {method}") } else { method.to_owned() }
}

/// What is computed under these settings: the numbers that go in and the plan, without computing it, and
/// of a reversible stack its counts and its bytes, moment by moment.
fn computed(gpu: &Gpu, settings: &Settings, picture: &Picture) -> Option<String> {
    settings.validate().ok()?;
    let picture = (settings.input == InputKind::Picture).then_some(picture);
    if settings.reversible {
        let input = Rc::new(block_on(gpu, inputs::build(settings, picture)).ok()?);
        let run = block_on(gpu, Run::new(gpu, settings, &input, &Progress::default())).ok()?;
        let passage = block_on(gpu, run.layers(gpu, Stacked::of(settings), &Progress::default())).ok()?;
        let bytes: Vec<u64> = passage.moments.iter().map(|moment| moment.ledger).collect();
        return Some(format!("{} {:?} {bytes:?}", passage.forward.multiply_adds, passage.flips));
    }
    let input = pollster::block_on(inputs::build(settings, picture)).ok()?;
    let plan = lab::plan(&input.problem.dims, &lab::measured(settings, &input.problem.dims), Limits::WEBGPU).ok()?;
    let of = |pass: &Pass| (pass.kernel.entry, pass.groups, pass.params.clone(), pass.bindings.clone());
    let passes: Vec<_> = plan.passes.iter().map(of).collect();
    Some(format!("{:?} {passes:?}", input.problem))
}

#[test]
fn no_setting_is_without_effect() {
    let gpu = pollster::block_on(Gpu::open(true)).expect("a software Vulkan driver");
    let picture = |sample| Picture::decode(inputs::sample_bytes(sample).expect("shipped")).expect("decoded");
    let (astronaut, cat) = (picture(Sample::Astronaut), picture(Sample::Cat));
    let picture = |settings: &Settings| if settings.sample == Sample::Astronaut { &astronaut } else { &cat };
    let bases = ["picture", "clusters", "duplication"].into_iter().flat_map(|input| {
        let methods = ["full", "full-materialized", "lsh", "linformer"];
        methods.map(|method| format!("n=48&d=8&chunk=16&buckets=8&input={input}&method={method}"))
    });
    // Shorter than a chunk; two heads, with the bucket count of a rule, and with projections of their own; layers.
    let others = [
        "n=12&d=8&method=lsh",
        "n=48&d=8&chunk=16&heads=2&method=lsh",
        "n=48&d=8&k=8&heads=2&method=linformer&projection=gaussian",
        "n=48&d=8&chunk=16&input=clusters&method=reversible&layers=2",
    ];
    let bases = bases.chain(others.map(str::to_owned));
    let bases: Vec<Settings> = bases.map(|query| Settings::from_query(&query).expect("settings")).collect();
    for (key, values) in KEYS.iter().zip(offered()) {
        // The stack runs on the device: it goes last, and only where nothing else tells.
        let effect = bases.iter().any(|base| {
            let found: BTreeSet<_> = values
                .iter()
                .filter_map(|value| {
                    let mut settings = base.clone();
                    (key.set)(&mut settings, value).then(|| computed(&gpu, &settings, picture(&settings)))?
                })
                .collect();
            found.len() > 1
        });
        assert!(effect, "{} changes nothing in any of {} settings", key.name, bases.len());
    }
}
