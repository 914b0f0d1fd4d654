//! The table of figures and rules, a column a code; a rule that departs from the paper stands out.

use super::Known;
use crate::app::scene::Scene;
use crate::app::views::format;
use crate::app::views::layout::cell;
use crate::outcome::Outcome;
use crate::presets::PRESETS;
use crate::semantics::{KeyNorm, ScoreScale, SelfRule, Semantics, Wrap};
use crate::settings::{BucketRule, Settings, Short};
use crate::text::{Text, fill};
use egui::{Align, Grid, RichText, ScrollArea, Ui};

type Figure = (Text, Text, fn(&Outcome) -> Option<String>);

const FIGURES: &[Figure] = &[
    (Text::ComparePairs, Text::ComparePairsHover, |o| Some(format::count(o.figures.pairs))),
    (Text::CompareVisits, Text::CompareVisitsHover, |o| Some(format::count(o.figures.visits))),
    (Text::CompareShare, Text::CompareShareHover, |o| Some(format::percent(o.figures.share))),
    (Text::CompareError, Text::CompareErrorHover, |o| Some(format::number(o.figures.error))),
    (Text::CompareErrorPlain, Text::CompareErrorPlainHover, |o| Some(format::number(o.figures.error_plain))),
    (Text::CompareRecall, Text::CompareRecallHover, |o| o.figures.recall.map(format::percent)),
    (Text::CompareMass, Text::CompareMassHover, |o| o.figures.mass.map(format::percent)),
    (Text::CompareAccuracy, Text::CompareAccuracyHover, |o| o.figures.accuracy.map(format::percent)),
    (Text::RulesPath, Text::ShortHelp, |o| Some(path(o.is_short()))),
];

type Rule = (Text, Text, fn(&Settings) -> String);

const RULES: &[Rule] = &[
    (Text::Scale, Text::ScaleHelp, |s| match s.semantics.score_scale {
        ScoreScale::InverseSqrtD => Text::ScaleInverseSqrtD.get().to_owned(),
        ScoreScale::One => Text::ScaleOne.get().to_owned(),
        ScoreScale::Value(factor) => format::number(f64::from(factor)),
    }),
    (Text::KeyNorm, Text::KeyNormHelp, |s| {
        let Semantics { key_norm, key_norm_eps, .. } = s.semantics;
        let text = match key_norm {
            KeyNorm::None => Text::KeyNormNone,
            KeyNorm::L2Max => Text::KeyNormMax,
            KeyNorm::L2Rms => Text::KeyNormRms,
        };
        text.get().replace("eps", &format::number(f64::from(key_norm_eps)))
    }),
    (Text::SelfPair, Text::SelfPairHelp, |s| match s.effective_semantics().self_rule {
        SelfRule::Include => Text::SelfInclude.get().to_owned(),
        SelfRule::Exclude => Text::SelfExclude.get().to_owned(),
        SelfRule::Value(score) => fill(Text::RulesScore, &[&score.to_string()]),
    }),
    (Text::RulesKeys, Text::SameBucketHelp, |s| {
        let text = if s.semantics.same_bucket { Text::RulesOwnBucket } else { Text::RulesAnyBucket };
        text.get().to_owned()
    }),
    (Text::Wrap, Text::WrapHelp, |s| {
        let text = match s.semantics.wrap {
            Wrap::None => Text::WrapNone,
            Wrap::InRound => Text::WrapInRound,
            Wrap::AcrossRounds => Text::WrapAcross,
        };
        text.get().to_owned()
    }),
    (Text::RulesTwice, Text::PairCountHelp, |s| {
        let text = if s.semantics.pair_count { Text::RulesOnce } else { Text::RulesAgain };
        text.get().to_owned()
    }),
    (Text::RulesBuckets, Text::BucketRuleHelp, |s| {
        let text = match s.bucket_rule {
            BucketRule::Paper => Text::BucketRulePaper,
            BucketRule::Chunks => Text::BucketRuleChunks,
            BucketRule::PowerOfTwo => Text::BucketRulePowerOfTwo,
        };
        let factors: Vec<String> = s.bucket_factors().iter().map(u32::to_string).collect();
        fill(Text::RulesBucketCount, &[text.get(), &factors.join(" × ")])
    }),
    (Text::RulesRotations, Text::RotationsPerHeadHelp, |s| {
        let text = if s.rotations_per_head { Text::RulesEachHead } else { Text::RulesSharedByHeads };
        text.get().to_owned()
    }),
    (Text::Short, Text::ShortHelp, |s| path(s.short == Short::Full)),
];

fn path(full: bool) -> String {
    if full { Text::ShortFull } else { Text::ShortLsh }.get().to_owned()
}

/// Figures of the runs, and the rules whether they ran or not.
pub fn show(ui: &mut Ui, scene: &Scene<'_>, known: &[Known; PRESETS.len()]) {
    let settings = PRESETS.each_ref().map(|preset| {
        let mut settings = scene.settings.clone();
        preset.apply(&mut settings);
        settings
    });
    let width = ui.available_width().min(860.0);
    let spacing = 8.0;
    let label = (width * 0.2).clamp(72.0, 150.0);
    let column = (width - label - 4.0 * spacing) / PRESETS.len() as f32;
    ScrollArea::horizontal().id_salt("rules").auto_shrink([true, true]).show(ui, |ui| {
        Grid::new("rules").striped(true).min_col_width(0.0).spacing([spacing, 5.0]).show(ui, |ui| {
            cell(ui, label, Align::Min, RichText::new(""));
            for preset in &PRESETS {
                cell(ui, column, Align::Max, RichText::new(preset.title).strong());
            }
            ui.end_row();
            for (name, hover, read) in FIGURES {
                let figures = known.each_ref().map(|known| known.outcome().and_then(read));
                if figures.iter().all(Option::is_none) {
                    continue;
                }
                cell(ui, label, Align::Min, RichText::new(name.get())).on_hover_text(hover.get());
                for figure in figures {
                    let text = figure.unwrap_or_else(|| Text::CompareNothing.get().to_owned());
                    cell(ui, column, Align::Max, RichText::new(text).monospace()).on_hover_text(hover.get());
                }
                ui.end_row();
            }
            for (name, hover, read) in RULES {
                let rules = settings.each_ref().map(read);
                let shown = |text: &str, departs: bool| {
                    let text = RichText::new(text).size(12.0);
                    if departs { text.strong() } else { text.weak() }
                };
                let paper = &rules[0];
                let differ = rules.iter().any(|rule| rule != paper);
                cell(ui, label, Align::Min, shown(name.get(), differ)).on_hover_text(hover.get());
                for rule in &rules {
                    cell(ui, column, Align::Max, shown(rule, rule != paper)).on_hover_text(hover.get());
                }
                ui.end_row();
            }
        });
    });
    let sampled = known.iter().filter_map(Known::outcome).find_map(|outcome| outcome.figures.sampled);
    if let Some(count) = sampled {
        ui.label(RichText::new(fill(Text::CompareSampled, &[&count.to_string()])).weak());
    }
}
