//! The panel of settings: four sliders on top, everything else folds below.

mod fields;

use self::fields::{choice, note, number, row, section, select, switch, unless};
use super::stage::family;
use super::views::method_name;
use crate::presets::{PRESETS, Preset};
use crate::semantics::{Choice, KeyNorm, ScoreScale, SelfRule, Semantics, Wrap};
use crate::settings::{
    Arrangement, BucketRule, Hash, InputKind, MAX_BUCKETS, MAX_N, Method, Projection, Sample, Settings, Sharing, Short,
};
use crate::text::{Text, fill};
use crate::units::{grouped, ungrouped};
use egui::{Align, ComboBox, DragValue, Layout, RichText, Slider, Ui};
use std::ops::RangeInclusive;

/// Range of the slider of the sequence length; others can be typed.
const SLIDER_N: (u32, u32) = (64, 65_536);

/// What the panel asks for that is no setting.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    pub open_picture: bool,
}

/// The four sliders.
pub fn sliders(ui: &mut Ui, settings: &mut Settings) {
    let mut n = settings.n;
    slider(ui, Text::SequenceLength, Text::SequenceLengthHelp, &mut n, 1..=MAX_N, &steps(SLIDER_N.0, SLIDER_N.1));
    set_n(settings, n);
    let rounds: Vec<u32> = (1..=16).collect();
    slider(ui, Text::Rounds, Text::RoundsHelp, &mut settings.rounds, 1..=16, &rounds);
    let mut buckets = settings.bucket_count();
    let most = settings.n.next_multiple_of(2).clamp(2, MAX_BUCKETS);
    let mut even = steps(2, most);
    even.retain(|buckets| buckets % 2 == 0);
    if slider(ui, Text::Buckets, Text::BucketsHelp, &mut buckets, 2..=MAX_BUCKETS, &even) {
        set_buckets(settings, buckets);
    }
    let mut k = settings.projected_len();
    if slider(ui, Text::ProjectedLength, Text::ProjectedLengthHelp, &mut k, 1..=settings.n, &steps(1, settings.n)) {
        settings.k = Some(k);
    }
    let chunk = u64::from(settings.chunk_len());
    let note = if settings.is_short() {
        Text::ShortNote.get().to_owned()
    } else if settings.chunk_len() >= settings.n {
        let across = !settings.semantics.same_bucket;
        if across { Text::OneChunkAcross } else { Text::OneChunk }.get().to_owned()
    } else {
        fill(Text::ChunkFollows, &[&grouped(chunk)])
    };
    ui.label(RichText::new(note).small().weak());
}

/// A change of n keeps the chunk length, and k stays within n.
pub fn set_n(settings: &mut Settings, n: u32) {
    if n == settings.n {
        return;
    }
    if !settings.chunk_is_free() {
        (settings.chunk, settings.buckets) = (Some(settings.chunk_len()), None);
    }
    settings.n = n;
    settings.k = settings.k.map(|k| k.min(n));
}

fn set_buckets(settings: &mut Settings, buckets: u32) {
    if !settings.chunk_is_free() {
        settings.chunk = None;
    }
    settings.buckets = Some(buckets.next_multiple_of(2).min(MAX_BUCKETS));
}

/// 1, 1.5, 2, 3, 4, 6, 8, ... times a power of two within `[low, high]`, with both ends.
fn steps(low: u32, high: u32) -> Vec<u32> {
    let mut steps: Vec<u32> = (0..u32::BITS - 1)
        .flat_map(|bit| [1u32 << bit, (1u32 << bit) / 2 * 3])
        .chain([low, high])
        .filter(|step| (low..=high).contains(step))
        .collect();
    steps.sort_unstable();
    steps.dedup();
    steps
}

/// A slider over steps, with the value beside its name to be typed freely. True when it changed.
fn slider(ui: &mut Ui, name: Text, help: Text, value: &mut u32, typed: RangeInclusive<u32>, steps: &[u32]) -> bool {
    let before = *value;
    let label = ui
        .horizontal(|ui| {
            let label = ui.label(RichText::new(name.get()).strong()).on_hover_text(help.get());
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                let number = DragValue::new(value)
                    .range(typed)
                    .speed(before as f64 * 0.01)
                    .update_while_editing(false)
                    .custom_formatter(|value, _| grouped(value as u64))
                    .custom_parser(ungrouped);
                ui.add(number).labelled_by(label.id).on_hover_text(help.get());
            });
            label
        })
        .inner;
    let distance = |step: u32| (f64::from(step).ln() - f64::from(*value).ln()).abs();
    let nearest = (0..steps.len()).min_by(|a, b| distance(steps[*a]).total_cmp(&distance(steps[*b])));
    let mut at = nearest.unwrap_or(0);
    ui.spacing_mut().slider_width = ui.available_width();
    let moved = ui.add(Slider::new(&mut at, 0..=steps.len().saturating_sub(1)).show_value(false).trailing_fill(true));
    if moved.labelled_by(label.id).on_hover_text(help.get()).changed()
        && let Some(step) = steps.get(at)
    {
        *value = *step;
    }
    *value != before
}

/// Everything but the four sliders.
pub fn others(ui: &mut Ui, settings: &mut Settings, has_own: bool) -> Asked {
    let mut asked = Asked::default();
    choice(ui, Text::Input, Text::InputHelp, &mut settings.input, InputKind::ALL);
    if settings.input == InputKind::Picture {
        // The user's own picture is a choice once there is one.
        let samples = if has_own || settings.sample == Sample::Own { Sample::ALL } else { &Sample::ALL[..2] };
        choice(ui, Text::Sample, Text::SampleHelp, &mut settings.sample, samples);
    }
    if settings.input == InputKind::Duplication {
        ui.label(RichText::new(Text::InputDuplicationNote.get()).small().weak());
    }
    asked.open_picture = ui.button(Text::OpenPicture.get()).on_hover_text(Text::OpenPictureHelp.get()).clicked();
    ui.add_space(4.0);
    presets(ui, settings);
    section(ui, Text::SectionInput, Text::SectionInputHelp, |ui| input(ui, settings));
    section(ui, Text::SectionShapes, Text::SectionShapesHelp, |ui| shapes(ui, settings));
    let method = family(settings.method);
    let of_lsh = (method != Method::Lsh).then(|| fill(Text::OfLsh, &[method_name(method)]));
    section(ui, Text::SectionHashing, Text::SectionHashingHelp, |ui| unless(ui, of_lsh, |ui| hashing(ui, settings)));
    let no_rules = (method == Method::Linformer).then(|| Text::NoRules.get().to_owned());
    section(ui, Text::SectionRules, Text::SectionRulesHelp, |ui| unless(ui, no_rules, |ui| rules(ui, settings)));
    let of_linformer = (method != Method::Linformer).then(|| fill(Text::OfLinformer, &[method_name(method)]));
    section(ui, Text::SectionProjection, Text::SectionProjectionHelp, |ui| {
        unless(ui, of_linformer, |ui| projection(ui, settings));
    });
    asked
}

fn projection(ui: &mut Ui, settings: &mut Settings) {
    choice(ui, Text::Projection, Text::ProjectionHelp, &mut settings.projection, Projection::ALL);
    let (n, k) = (settings.n, settings.projected_len());
    if settings.projection != Projection::Gaussian {
        let (short, longer) = (n / k, n % k);
        let of = |positions: u32| grouped(positions.into());
        note(
            ui,
            &match longer {
                0 => fill(Text::ProjectionWindows, &[&of(short)]),
                _ => fill(Text::ProjectionWindowsUneven, &[&of(longer), &of(short + 1), &of(short)]),
            },
        );
    }
    if settings.projection == Projection::Convolution {
        note(ui, &fill(Text::ProjectionKernel, &[&grouped(n.div_ceil(k).into())]));
    }
    if settings.projection.has_parameters() {
        choice(ui, Text::Sharing, Text::SharingHelp, &mut settings.sharing, Sharing::ALL);
        if settings.heads == 1 {
            note(ui, Text::SharingOneHead.get());
        }
    } else {
        note(ui, Text::SharingPooled.get());
    }
}

/// Which code's rules these are, and a menu to take another's.
fn presets(ui: &mut Ui, settings: &mut Settings) {
    let now = Preset::of(settings);
    row(ui, Text::Preset, Text::PresetHelp, |ui| {
        let shown = now.map_or(Text::PresetOwn.get(), |preset| preset.title);
        let menu = ComboBox::from_id_salt(Text::Preset).selected_text(shown).truncate();
        let menu = menu.show_ui(ui, |ui| {
            for preset in &PRESETS {
                let chosen = ui.selectable_label(now == Some(preset), preset.title);
                if chosen.on_hover_text(preset_words(preset).get()).clicked() {
                    preset.apply(settings);
                }
            }
        });
        menu.response
    });
    ui.label(RichText::new(now.map_or(Text::PresetOwnNote, preset_words).get()).small().weak());
}

/// What sets a preset apart, in one sentence.
pub fn preset_words(preset: &Preset) -> Text {
    match preset.name {
        "reformer-pytorch" => Text::PresetReformerPytorch,
        "hugging-face" => Text::PresetHuggingFace,
        _ => Text::PresetPaper,
    }
}

fn input(ui: &mut Ui, settings: &mut Settings) {
    match settings.input {
        InputKind::Picture => {
            number(ui, Text::Patch, Text::PatchHelp, &mut settings.patch, 1..=6, 0.05);
            number(ui, Text::Position, Text::PositionHelp, &mut settings.position, 0.0..=8.0, 0.02);
        }
        InputKind::Clusters => {
            choice(ui, Text::Arrangement, Text::ArrangementHelp, &mut settings.arrangement, Arrangement::ALL);
            if matches!(settings.arrangement, Arrangement::Clusters | Arrangement::Repeated) {
                number(ui, Text::Clusters, Text::ClustersHelp, &mut settings.clusters, 1..=1024, 0.1);
            }
            if settings.arrangement == Arrangement::Clusters {
                number(ui, Text::Tightness, Text::TightnessHelp, &mut settings.tightness, 0.0..=1.0, 0.005);
            }
        }
        InputKind::Duplication => number(ui, Text::Noise, Text::NoiseHelp, &mut settings.noise, 0.0..=4.0, 0.01),
    }
    number(ui, Text::Sharpness, Text::SharpnessHelp, &mut settings.sharpness, 0.0..=10_000.0, 2.0);
}

fn shapes(ui: &mut Ui, settings: &mut Settings) {
    number(ui, Text::Heads, Text::HeadsHelp, &mut settings.heads, 1..=16, 0.05);
    number(ui, Text::Width, Text::WidthHelp, &mut settings.d, 1..=128, 0.2);
    number(ui, Text::Seed, Text::SeedHelp, &mut settings.seed, 0..=u32::MAX, 0.1);
    if ui.button(Text::NewSeed.get()).on_hover_text(Text::NewSeedHelp.get()).clicked() {
        settings.seed = settings.seed.wrapping_add(1);
    }
    if !matches!(settings.method, Method::Lsh | Method::Linformer) {
        choice(ui, Text::FullWay, Text::FullWayHelp, &mut settings.method, &Method::ALL[..3]);
    }
    switch(ui, Text::SharedQk, Text::SharedQkHelp, &mut settings.shared_qk);
}

fn hashing(ui: &mut Ui, settings: &mut Settings) {
    let mut free = settings.chunk_is_free();
    if switch(ui, Text::FreeChunk, Text::FreeChunkHelp, &mut free) {
        let (chunk, buckets) = (settings.chunk_len(), settings.bucket_count());
        (settings.chunk, settings.buckets) = (Some(chunk), free.then_some(buckets));
    }
    if free {
        let mut chunk = settings.chunk_len();
        number(ui, Text::Chunk, Text::ChunkHelp, &mut chunk, 1..=MAX_N, 0.2);
        settings.chunk = Some(chunk);
    }
    choice(ui, Text::BucketRule, Text::BucketRuleHelp, &mut settings.bucket_rule, BucketRule::ALL);
    choice(ui, Text::Short, Text::ShortHelp, &mut settings.short, Short::ALL);
    choice(ui, Text::Hash, Text::HashHelp, &mut settings.hash, Hash::ALL);
    let columns = |factors: &[u32]| grouped(factors.iter().map(|factor| u64::from(factor / 2)).sum());
    let plain = settings.bucket_count();
    let cost = match settings.bucket_factors().as_slice() {
        [a, b] => fill(
            Text::HashCostFactorised,
            &[&grouped(plain.into()), &a.to_string(), &b.to_string(), &columns(&[*a, *b]), &columns(&[plain])],
        ),
        factors => fill(Text::HashCost, &[&grouped(plain.into()), &columns(factors)]),
    };
    ui.label(RichText::new(cost).small().weak());
    let one_head = (settings.heads == 1).then(|| Text::RotationsOneHead.get().to_owned());
    unless(ui, one_head, |ui| {
        switch(ui, Text::RotationsPerHead, Text::RotationsPerHeadHelp, &mut settings.rotations_per_head);
    });
}

fn rules(ui: &mut Ui, settings: &mut Settings) {
    let asks_for_itself = settings.input == InputKind::Duplication;
    let is_full = family(settings.method) == Method::Full;
    let separate = (is_full && !settings.shared_qk).then(|| Text::RulesOfShared.get().to_owned());
    let rule = &mut settings.semantics;
    switch(ui, Text::Causal, Text::CausalHelp, &mut rule.causal);
    let factor = if let ScoreScale::Value(factor) = rule.score_scale { factor } else { 0.5 };
    let scales = [
        (ScoreScale::InverseSqrtD, Text::ScaleInverseSqrtD),
        (ScoreScale::One, Text::ScaleOne),
        (ScoreScale::Value(factor), Text::ScaleValue),
    ];
    select(ui, Text::Scale, Text::ScaleHelp, &mut rule.score_scale, &scales);
    if let ScoreScale::Value(factor) = &mut rule.score_scale {
        number(ui, Text::ScaleFactor, Text::ScaleHelp, factor, 0.0..=1000.0, 0.01);
    }
    unless(ui, separate, |ui| key_rules(ui, rule, asks_for_itself));
    let of_lsh = is_full.then(|| Text::RulesOfLsh.get().to_owned());
    unless(ui, of_lsh, |ui| lsh_rules(ui, rule));
}

/// Rules of keys that are queries.
fn key_rules(ui: &mut Ui, rule: &mut Semantics, asks_for_itself: bool) {
    choice(ui, Text::KeyNorm, Text::KeyNormHelp, &mut rule.key_norm, KeyNorm::ALL);
    if rule.key_norm != KeyNorm::None {
        number(ui, Text::KeyNormEps, Text::KeyNormEpsHelp, &mut rule.key_norm_eps, 0.0..=1.0, 1e-4);
    }
    if asks_for_itself {
        note(ui, Text::SelfNever.get());
        return;
    }
    let score = if let SelfRule::Value(score) = rule.self_rule { score } else { -1e5 };
    let rules = [
        (SelfRule::Value(score), Text::SelfValue),
        (SelfRule::Include, Text::SelfInclude),
        (SelfRule::Exclude, Text::SelfExclude),
    ];
    select(ui, Text::SelfPair, Text::SelfPairHelp, &mut rule.self_rule, &rules);
    if let SelfRule::Value(score) = &mut rule.self_rule {
        number(ui, Text::SelfScore, Text::SelfPairHelp, score, -1e6..=1e6, 100.0);
    }
}

fn lsh_rules(ui: &mut Ui, rule: &mut Semantics) {
    switch(ui, Text::SameBucket, Text::SameBucketHelp, &mut rule.same_bucket);
    number(ui, Text::Before, Text::BeforeHelp, &mut rule.chunks_before, 0..=8, 0.05);
    number(ui, Text::After, Text::AfterHelp, &mut rule.chunks_after, 0..=8, 0.05);
    choice(ui, Text::Wrap, Text::WrapHelp, &mut rule.wrap, Wrap::ALL);
    switch(ui, Text::PairCount, Text::PairCountHelp, &mut rule.pair_count);
    if rule.pair_count {
        number(ui, Text::PairCountEps, Text::PairCountEpsHelp, &mut rule.pair_count_eps, 0.0..=1.0, 1e-3);
    }
}
