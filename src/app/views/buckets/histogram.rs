//! Sizes of the buckets of one round, with the chunk length drawn in.

use super::Sorted;
use crate::app::views::{colour, format};
use crate::text::{Text, fill};
use egui::{Stroke, Ui};
use egui_plot::{AxisHints, Bar, BarChart, HLine, LineStyle, Plot};

pub fn show(ui: &mut Ui, sorted: &Sorted, focus: Option<u32>, height: f32) {
    let chunk_len = sorted.geometry.chunk_len;
    let ink = ui.visuals().strong_text_color();
    let bars = sorted.sizes.iter().zip(0u32..).map(|(size, bucket)| {
        let faint = focus.is_some_and(|focus| focus != bucket);
        let fill = if faint { colour::bucket(bucket).gamma_multiply(0.35) } else { colour::bucket(bucket) };
        Bar::new(f64::from(bucket), f64::from(*size)).width(0.9).fill(fill).stroke(Stroke::NONE)
    });
    let hovered = |bar: &Bar, _: &BarChart| {
        fill(Text::BucketsBar, &[&bar.argument.to_string(), &format::count(bar.value as u64)])
    };
    let chart = BarChart::new(Text::BucketsBars.get(), bars.collect()).element_formatter(Box::new(hovered));
    let border = HLine::new(Text::BucketsChunkLine.get(), f64::from(chunk_len))
        .color(ink)
        .width(1.5)
        .style(LineStyle::dashed_loose());
    ui.label(fill(Text::BucketsBarsTitle, &[&format::count(u64::from(chunk_len))]));
    Plot::new("bucket sizes")
        .height((height - 80.0).max(120.0))
        .allow_zoom(false)
        .allow_scroll(false)
        .allow_drag(false)
        .allow_boxed_zoom(false)
        .allow_double_click_reset(false)
        .include_y(f64::from(chunk_len) * 1.1)
        .include_y(0.0)
        .custom_x_axes(vec![AxisHints::new_x().label(Text::BucketsAxisBucket.get()).label_spacing(24.0..=36.0)])
        .custom_y_axes(vec![AxisHints::new_y().label_spacing(14.0..=24.0).min_thickness(28.0)])
        .show(ui, |plot| {
            plot.bar_chart(chart);
            plot.hline(border);
        });
    ui.label(words(sorted));
}

/// How many buckets outgrow a chunk, and what is lost by it.
fn words(sorted: &Sorted) -> String {
    let larger = sorted.sizes.iter().filter(|size| **size > sorted.geometry.chunk_len).count() as u64;
    let count = [larger, sorted.sizes.len() as u64].map(format::count);
    let sizes = fill(Text::BucketsLarger, &[&count[0], &count[1]]);
    let lost = if sorted.lost == 0 {
        Text::BucketsNoneLost.get().to_owned()
    } else {
        let share = sorted.lost as f64 / sorted.bucket_pairs().max(1) as f64;
        fill(Text::BucketsLost, &[&format::count(sorted.lost), &format::percent(share)])
    };
    format!("{sizes} {lost}")
}
