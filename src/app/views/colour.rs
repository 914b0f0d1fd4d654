//! What colours mean, in one place: magnitudes, buckets, and the bar that explains
//! them.

use super::ticks;
use egui::{Align2, Color32, FontId, Mesh, Rect, Role, Sense, Shape, Ui, WidgetInfo, pos2, vec2};

/// Samples of viridis (Smith and van der Walt, CC0), evenly spaced.
const VIRIDIS: [[u8; 3]; 10] = [
    [68, 1, 84],
    [72, 40, 120],
    [62, 73, 137],
    [49, 104, 142],
    [38, 130, 142],
    [31, 158, 137],
    [53, 183, 121],
    [110, 206, 88],
    [181, 222, 43],
    [253, 231, 37],
];
/// From the coldest to the warmest through a grey that stands back on a dark and on a light page.
const SIGNED: [[u8; 3]; 5] = [[20, 80, 200], [90, 140, 200], [150, 150, 150], [225, 160, 90], [235, 110, 10]];

/// A magnitude from 0 to 1, dark to light in even steps.
pub fn magnitude(t: f32) -> Color32 {
    between(&VIRIDIS, t)
}

/// A signed number from -1 to 1: blue, grey, orange.
pub fn signed(t: f32) -> Color32 {
    between(&SIGNED, (t + 1.0) / 2.0)
}

fn between(samples: &[[u8; 3]], t: f32) -> Color32 {
    let at = t.clamp(0.0, 1.0) * (samples.len() - 1) as f32;
    let low = (at as usize).min(samples.len() - 2);
    let part = at - low as f32;
    let [r, g, b] = std::array::from_fn(|c| {
        let (from, to) = (f32::from(samples[low][c]), f32::from(samples[low + 1][c]));
        (from + (to - from) * part).round() as u8
    });
    Color32::from_rgb(r, g, b)
}

/// The colour of a bucket (or a symbol, or a cluster): neighbours in number differ in hue by the
/// golden angle, in turn lighter and darker, and all stand out from a dark and a light page.
pub fn bucket(index: u32) -> Color32 {
    let hue = (index as f32 * 0.618_034).fract() * std::f32::consts::TAU;
    let lightness = [0.70, 0.58, 0.78][index as usize % 3];
    oklch(lightness, 0.13, hue)
}

/// From OKLCh (Ottosson 2020) to sRGB.
fn oklch(lightness: f32, chroma: f32, hue: f32) -> Color32 {
    let (a, b) = (chroma * hue.cos(), chroma * hue.sin());
    let l = (lightness + 0.396_337_78 * a + 0.215_803_76 * b).powi(3);
    let m = (lightness - 0.105_561_346 * a - 0.063_854_17 * b).powi(3);
    let s = (lightness - 0.089_484_18 * a - 1.291_485_5 * b).powi(3);
    let linear = [
        4.076_741_7 * l - 3.307_711_6 * m + 0.230_969_94 * s,
        -1.268_438 * l + 2.609_757_4 * m - 0.341_319_4 * s,
        -0.004_196_086 * l - 0.703_418_6 * m + 1.707_614_7 * s,
    ];
    let [r, g, b] = linear.map(|x| x.clamp(0.0, 1.0));
    egui::Rgba::from_rgb(r, g, b).into()
}

/// Black or white, whichever is easier to read on `background`.
pub fn ink_on(background: Color32) -> Color32 {
    let [r, g, b, _] = background.to_array().map(f32::from);
    if 0.299 * r + 0.587 * g + 0.114 * b > 140.0 { Color32::BLACK } else { Color32::WHITE }
}

/// Where a value stands between the ends of a colour map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    pub low: f32,
    pub high: f32,
    /// Equal steps for equal factors; `low` is then above 0.
    pub log: bool,
}

impl Scale {
    pub fn linear(low: f32, high: f32) -> Self {
        Self { low, high, log: false }
    }

    pub fn log(low: f32, high: f32) -> Self {
        Self { low, high, log: true }
    }

    /// 0 at the low end, 1 at the high end, no value outside; 1 when there is no room between them.
    pub fn place(&self, value: f32) -> f32 {
        let (low, high, value) = if self.log {
            (self.low.ln(), self.high.ln(), value.max(self.low).ln())
        } else {
            (self.low, self.high, value)
        };
        if high > low { ((value - low) / (high - low)).clamp(0.0, 1.0) } else { 1.0 }
    }

    fn ticks(&self, most: usize) -> Vec<f64> {
        let (low, high) = (f64::from(self.low), f64::from(self.high));
        if self.log { ticks::decades(low, high, most) } else { ticks::linear(low, high, most) }
    }
}

/// Paints the bar that explains a colour map, over the width that is left: colours, ticks, and a
/// label with the unit.
pub fn bar(ui: &mut Ui, map: fn(f32) -> Color32, scale: Scale, label: &str) {
    const STEPS: u32 = 64;
    let font = FontId::proportional(11.0);
    let width = ui.available_width().min(420.0);
    let (rect, response) = ui.allocate_exact_size(vec2(width, 40.0), Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, label));
    // Labels of the ends stick out by half their width.
    let strip = Rect::from_min_max(pos2(rect.left() + 14.0, rect.top()), pos2(rect.right() - 24.0, rect.top() + 10.0));
    let x = |t: f32| egui::lerp(strip.x_range(), t);
    let mut mesh = Mesh::default();
    for step in 0..STEPS {
        let (from, to) = (step as f32 / STEPS as f32, (step + 1) as f32 / STEPS as f32);
        let piece = Rect::from_x_y_ranges(x(from)..=x(to), strip.y_range());
        mesh.add_colored_rect(piece, map((from + to) / 2.0));
    }
    let painter = ui.painter();
    painter.add(Shape::mesh(mesh));
    let ink = ui.visuals().text_color();
    for tick in scale.ticks((width / 60.0) as usize) {
        let at = x(scale.place(tick as f32));
        painter.vline(at, strip.bottom()..=strip.bottom() + 3.0, (1.0, ink));
        let below = pos2(at, strip.bottom() + 3.0);
        painter.text(below, Align2::CENTER_TOP, ticks::written(tick), font.clone(), ink);
    }
    painter.text(rect.left_bottom(), Align2::LEFT_BOTTOM, label, font, ui.visuals().weak_text_color());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn luma(colour: Color32) -> f32 {
        let [r, g, b, _] = colour.to_array().map(f32::from);
        0.2126 * r + 0.7152 * g + 0.0722 * b
    }

    #[test]
    fn magnitudes_grow_lighter() {
        let lumas: Vec<f32> = (0..=32).map(|step| luma(magnitude(step as f32 / 32.0))).collect();
        assert!(lumas.is_sorted(), "{lumas:?}");
        assert_eq!(magnitude(-1.0), magnitude(0.0));
    }

    #[test]
    fn signs_are_told_apart() {
        assert_eq!(signed(0.0), Color32::from_gray(150));
        let [below, above] = [-1.0, 1.0].map(|t| signed(t).to_array());
        assert!(below[2] > below[0] && above[0] > above[2]);
    }

    #[test]
    fn buckets_stand_out_from_both_pages_and_from_each_other() {
        for index in 0..512 {
            let here = luma(bucket(index));
            assert!((70.0..215.0).contains(&here), "bucket {index} has luma {here}");
            let apart = |other: u32| {
                let (a, b) = (bucket(index).to_array(), bucket(other).to_array());
                (0..3).map(|c| (f32::from(a[c]) - f32::from(b[c])).powi(2)).sum::<f32>().sqrt()
            };
            assert!(apart(index + 1) > 60.0, "buckets {index} and {} look alike", index + 1);
        }
    }

    #[test]
    fn scales_place_values() {
        let linear = Scale::linear(0.0, 4.0);
        assert_eq!([-1.0, 0.0, 1.0, 4.0, 9.0].map(|v| linear.place(v)), [0.0, 0.0, 0.25, 1.0, 1.0]);
        let log = Scale::log(1e-4, 1.0);
        assert!((log.place(1e-2) - 0.5).abs() < 1e-6);
        assert_eq!(log.place(0.0), 0.0);
        assert_eq!(Scale::linear(2.0, 2.0).place(2.0), 1.0);
    }
}
