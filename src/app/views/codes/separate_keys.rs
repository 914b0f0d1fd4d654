//! Why Q = K: how many buckets hold queries and not one key, once keys are not the queries.

use super::super::buckets::select_round;
use super::super::layout::legend;
use super::super::{caption, format, waiting};
use super::wide;
use crate::app::scene::{Answer, Command, Question, Scene};
use crate::lab::SeparateKeys;
use crate::text::{Text, fill};
use egui::{Color32, Stroke, Ui};
use egui_plot::{AxisHints, Bar, BarChart, Plot};

const QUERIES: Color32 = Color32::from_rgb(60, 170, 215);
const KEYS: Color32 = Color32::from_rgb(222, 150, 30);

pub fn show(ui: &mut Ui, scene: &Scene<'_>, commands: &mut Vec<Command>) {
    commands.push(Command::Ask(Question::SeparateKeys));
    let separate = match (scene.answer)(Question::SeparateKeys) {
        Some(Answer::SeparateKeys(Some(separate))) => separate,
        Some(Answer::SeparateKeys(None)) => return drop(ui.label(Text::CodesNothingHashed.get())),
        other => return waiting(ui, other),
    };
    let dims = &scene.input.problem.dims;
    let (head, rounds) = (scene.head.min(dims.heads - 1), scene.settings.rounds);
    let round = scene.round.min(rounds - 1);
    ui.horizontal_wrapped(|ui| select_round(ui, round, rounds, commands));
    let tally = separate.tally(head, round);
    let n = f64::from(dims.n_q);
    ui.label(fill(
        Text::SeparateKeysWords,
        &[
            &(round + 1).to_string(),
            &format::count(tally.queries_only.into()),
            &format::count(separate.n_buckets.into()),
            &format::count(tally.stranded.into()),
            &format::percent(f64::from(tally.stranded) / n),
        ],
    ));
    ui.horizontal_wrapped(|ui| {
        for (colour, name) in [(QUERIES, Text::SeparateKeysQueries), (KEYS, Text::SeparateKeysKeys)] {
            legend(ui, colour, name.get(), Text::SeparateKeysCaption.get());
        }
    });
    bars(ui, &separate, head, round);
    wide(ui, "separate keys", |ui| {
        for name in [
            Text::LastTokenRound,
            Text::SeparateKeysQueriesOnly,
            Text::SeparateKeysKeysOnly,
            Text::SeparateKeysBoth,
            Text::SeparateKeysEmpty,
            Text::SeparateKeysStranded,
        ] {
            ui.strong(name.get());
        }
        ui.end_row();
        for round in 0..rounds {
            let tally = separate.tally(head, round);
            ui.label((round + 1).to_string());
            for count in [tally.queries_only, tally.keys_only, tally.both, tally.empty, tally.stranded] {
                ui.label(format::count(count.into()));
            }
            ui.end_row();
        }
    });
    caption(ui, Text::SeparateKeysCaption.get());
}

/// Queries of each bucket upwards, keys downwards.
fn bars(ui: &mut Ui, separate: &SeparateKeys, head: u32, round: u32) {
    let (queries, keys) = separate.of(head, round);
    let chart = |name: Text, sizes: &[u32], sign: f64, colour: Color32| {
        let bars = sizes.iter().zip(0u32..).map(|(size, bucket)| {
            Bar::new(f64::from(bucket), sign * f64::from(*size)).width(0.9).fill(colour).stroke(Stroke::NONE)
        });
        let hovered = move |bar: &Bar, _: &BarChart| {
            fill(
                Text::SeparateKeysBar,
                &[&bar.argument.to_string(), &format::count(bar.value.abs() as u64), name.get()],
            )
        };
        BarChart::new(name.get(), bars.collect()).color(colour).element_formatter(Box::new(hovered))
    };
    let charts =
        [chart(Text::SeparateKeysQueries, queries, 1.0, QUERIES), chart(Text::SeparateKeysKeys, keys, -1.0, KEYS)];
    Plot::new("separate keys by bucket")
        .height(180.0)
        .allow_zoom(false)
        .allow_scroll(false)
        .allow_drag(false)
        .allow_boxed_zoom(false)
        .allow_double_click_reset(false)
        .custom_x_axes(vec![AxisHints::new_x().label(Text::BucketsAxisBucket.get()).label_spacing(24.0..=36.0)])
        .custom_y_axes(vec![
            AxisHints::new_y()
                .formatter(|mark, _| format::number(mark.value.abs()))
                .label_spacing(14.0..=24.0)
                .min_thickness(28.0),
        ])
        .show(ui, |plot| charts.into_iter().for_each(|chart| plot.bar_chart(chart)));
}
