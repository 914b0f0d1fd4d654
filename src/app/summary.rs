//! The result on the screen in sentences, for screen readers and for tests.

use super::job::{Checked, Exam};
use super::scene::{Answer, Missing, Question, Scene, View};
use super::views::{format, rank};
use crate::outcome::Outcome;
use crate::presets::Preset;
use crate::settings::{InputKind, Method};
use crate::text::{Text, fill};
use crate::units::bytes_in_words;
use crate::units::grouped;
use crate::verify::Totals;

/// The name of a method on its tab.
pub fn method_name(method: Method) -> Text {
    method_tab(method).0
}

/// The tab of a method: its name, and what it does.
pub fn method_tab(method: Method) -> (Text, Text) {
    match method {
        Method::Lsh => (Text::TabLsh, Text::TabLshHelp),
        Method::Linformer => (Text::TabLinformer, Text::TabLinformerHelp),
        Method::Full | Method::FullRowwise | Method::FullMaterialized => (Text::TabFull, Text::TabFullHelp),
    }
}

/// The name of a view on its tab.
pub fn view_name(view: View) -> Text {
    match view {
        View::Buckets => Text::ViewBuckets,
        View::Attention => Text::ViewAttention,
        View::Result => Text::ViewResult,
        View::Memory => Text::ViewMemory,
        View::Codes => Text::ViewCodes,
        View::Projection => Text::ViewProjection,
        View::Theory => Text::ViewTheory,
        View::Rank => Text::ViewRank,
        View::Tables => Text::ViewTables,
        View::Layers => Text::ViewLayers,
        View::Compare => Text::TabCompare,
    }
}

pub fn input_name(input: InputKind) -> Text {
    match input {
        InputKind::Picture => Text::InputPicture,
        InputKind::Clusters => Text::InputClusters,
        InputKind::Duplication => Text::InputDuplication,
    }
}

/// The sentences about one scene.
pub fn of_scene(scene: &Scene<'_>) -> String {
    let mut sentences = match scene.current() {
        Ok(outcome) => of_outcome(outcome),
        Err(missing) => vec![fill(Text::SummaryMissing, &[method_name(scene.method).get(), &why(missing)])],
    };
    if let (true, Some(token)) = (scene.locked, scene.token) {
        sentences.push(fill(Text::SummaryLocked, &[&grouped(token.into())]));
    }
    sentences.join(" ")
}

/// What a device is being checked on.
pub fn of_exam(exam: &Exam) -> Text {
    match exam {
        Exam::Twins => Text::Checking,
        Exam::Published(_) => Text::Verifying,
    }
}

/// How low the rank of P is, once it is known beside its baseline.
pub fn of_rank(scene: &Scene<'_>) -> Option<String> {
    let rank = |random| match (scene.answer)(Question::LowRank { head: scene.head, random }) {
        Some(Answer::LowRank(low_rank)) => Some(rank::of_sum(&low_rank.spectrum, 0.9)),
        _ => None,
    };
    Some(fill(Text::SummaryRank, &[&rank(false)?, &rank(true)?]))
}

/// What the check of the device found: the counts, and a line for each case that failed.
pub fn of_check(checked: &Checked) -> String {
    let Totals { passed, failed } = checked.totals;
    let words = match checked.exam {
        Exam::Twins => Text::Checked,
        Exam::Published(_) => Text::Verified,
    };
    let counts = fill(words, &[&passed.to_string(), &failed.to_string()]);
    std::iter::once(counts).chain(checked.failures.iter().cloned()).collect::<Vec<_>>().join("\n")
}

fn why(missing: &Missing) -> String {
    match missing {
        Missing::Soon => Text::SummarySoon.get().to_owned(),
        Missing::PutOff { seconds } => fill(Text::SummaryPutOff, &[&format::time(seconds * 1e3)]),
        Missing::Failed(why) => why.clone(),
    }
}

fn of_outcome(outcome: &Outcome) -> Vec<String> {
    let (settings, figures) = (&outcome.settings, &outcome.figures);
    let mut sentences = vec![fill(
        Text::SummaryMethod,
        &[
            method_name(settings.method).get(),
            input_name(settings.input).get(),
            &grouped(settings.n.into()),
            &settings.heads.to_string(),
            &settings.d.to_string(),
        ],
    )];
    match settings.method {
        Method::Lsh if outcome.is_short() => {
            sentences.push(fill(Text::SummaryShort, &[&grouped(settings.chunk_len().into())]));
        }
        Method::Lsh => sentences.push(fill(
            Text::SummaryLsh,
            &[
                &settings.rounds.to_string(),
                &grouped(settings.bucket_count().into()),
                &grouped(settings.chunk_len().into()),
            ],
        )),
        Method::Linformer => {
            sentences.push(fill(Text::SummaryLinformer, &[&grouped(settings.projected_len().into())]));
        }
        _ => {}
    }
    if settings.method == Method::Lsh {
        sentences.extend(Preset::of(settings).map(|preset| fill(Text::SummaryPreset, &[preset.title])));
    }
    let counted = if settings.method == Method::Linformer { Text::SummaryProducts } else { Text::SummaryPairs };
    sentences.push(fill(counted, &[&grouped(figures.pairs), &format::percent(figures.share)]));
    sentences.push(fill(Text::SummaryError, &[&format::percent(figures.error)]));
    let mut share = |text: Text, value: Option<f64>| {
        sentences.extend(value.map(|value| fill(text, &[&format::percent(value)])));
    };
    share(Text::SummaryRecall, figures.recall);
    share(Text::SummaryAccuracy, figures.accuracy);
    sentences.extend(outcome.lists.as_ref().map(|lists| fill(Text::SummaryChecksum, &[&lists.checksum()])));
    sentences.extend(figures.sampled.map(|queries| fill(Text::SummarySampled, &[&grouped(queries.into())])));
    sentences.push(fill(
        Text::SummaryCost,
        &[&format::time(outcome.ms), &bytes_in_words(outcome.peak_bytes), &outcome.adapter],
    ));
    sentences
}
