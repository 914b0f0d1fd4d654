//! How low the rank is, in figures.

use super::curves::FLOOR;
use crate::app::views::format;
use crate::lab::rank::LowRank;
use crate::spectrum::{Between, Spectrum, Way, rank_of};
use crate::text::{Text, fill};
use egui::{Grid, ScrollArea, Ui};

/// What was computed, and how.
pub fn say(ui: &mut Ui, own: &LowRank) {
    let spectrum = &own.spectrum;
    let n = format::count(spectrum.n.into());
    ui.label(match spectrum.way {
        Way::Exact => fill(Text::RankExact, &[&n, &n, &format::number(FLOOR)]),
        Way::Randomised { left_out } => {
            let rest = spectrum.error(spectrum.known());
            let known = spectrum.known().to_string();
            fill(Text::RankRandomised, &[&n, &known, &format::number(left_out), &format::percent(rest)])
        }
    });
}

type Row = (Text, Text, fn(&Spectrum) -> String);

const ROWS: &[Row] = &[
    (Text::Rank90, Text::RankOfSumHelp, |s| of_sum(s, 0.90)),
    (Text::Rank99, Text::RankOfSumHelp, |s| of_sum(s, 0.99)),
    (Text::RankSquares90, Text::RankOfSquaresHelp, |s| rank_of_squares(s, 0.90)),
    (Text::RankSquares99, Text::RankOfSquaresHelp, |s| rank_of_squares(s, 0.99)),
    (Text::RankQuarter, Text::RankQuarterHelp, at_a_quarter),
    (Text::RankLargest, Text::RankLargestHelp, |s| {
        s.svd.values.first().map_or_else(String::new, |value| format::number((*value).into()))
    }),
    (Text::RankNorm, Text::RankNormHelp, |s| format::number(s.energy.sqrt())),
];

/// The figures of P beside those of random Q and K.
pub fn table(ui: &mut Ui, own: &LowRank, random: Option<&LowRank>) {
    ScrollArea::horizontal().id_salt("rank figures").auto_shrink([true, true]).show(ui, |ui| {
        Grid::new("rank figures").striped(true).spacing([16.0, 3.0]).show(ui, |ui| {
            ui.label("");
            ui.strong(Text::RankOwn.get()).on_hover_text(Text::RankOwnHelp.get());
            ui.strong(Text::RankRandom.get()).on_hover_text(Text::RankRandomHelp.get());
            ui.end_row();
            for (name, help, figure) in ROWS {
                let quarter = format::count((own.spectrum.n / 4).into());
                ui.label(fill(*name, &[&quarter])).on_hover_text(help.get());
                ui.label(figure(&own.spectrum));
                ui.label(random.map_or_else(|| "...".to_owned(), |random| figure(&random.spectrum)));
                ui.end_row();
            }
        });
    });
}

/// A rank whose share is known between two ends; more than all values that are known is "more than".
fn rank_between(spectrum: &Spectrum, shares: &[Between], share: f64) -> String {
    let first = rank_of(shares.iter().map(|here| here.high), share);
    let last = rank_of(shares.iter().map(|here| here.low), share);
    let known = format::count(spectrum.known().into());
    match (first, last) {
        (Some(first), Some(last)) if first == last => format::count(first.into()),
        (Some(first), Some(last)) => {
            fill(Text::RankFromTo, &[&format::count(first.into()), &format::count(last.into())])
        }
        (Some(first), None) => fill(Text::RankFrom, &[&format::count(first.into())]),
        (None, _) => fill(Text::RankMoreThan, &[&known]),
    }
}

/// The rank that holds this share of the sum of all singular values, in words.
pub fn of_sum(spectrum: &Spectrum, share: f64) -> String {
    rank_between(spectrum, &spectrum.cumulative(), share)
}

fn rank_of_squares(spectrum: &Spectrum, share: f64) -> String {
    rank_between(spectrum, &spectrum.cumulative_energy(), share)
}

fn at_a_quarter(spectrum: &Spectrum) -> String {
    match spectrum.share_at(spectrum.n / 4) {
        Some(share) => format::percent(share),
        None => Text::RankNotReached.get().to_owned(),
    }
}
