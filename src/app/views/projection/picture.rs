//! A matrix of signed numbers as a picture with axes, and the bar that explains its colours.

use crate::app::views::{format, ticks};
use crate::lab::Matrix;
use crate::outcome::MapImage;
use crate::text::{Text, fill};
use egui::{
    Align2, Color32, ColorImage, FontId, Mesh, Rect, Role, Sense, Shape, TextureFilter, TextureHandle, TextureOptions,
    Ui, WidgetInfo, pos2, vec2,
};
use std::any::Any;
use std::ops::Range;
use std::rc::Rc;

/// Room for the ticks of the axes, left and above.
const MARGIN: egui::Vec2 = vec2(48.0, 34.0);
/// A logarithmic scale spans this many decades on both sides of 0.
const DECADES: f32 = 4.0;

/// Numbers to be drawn, and what their rows and columns are.
pub struct Grid<'a> {
    pub name: &'a str,
    pub values: &'a [f32],
    /// Pixels across and down.
    pub size: [u32; 2],
    /// Columns and rows that they stand for.
    pub total: [u32; 2],
    /// Names of the axes, across and down.
    pub axes: [Text; 2],
    pub unit: Text,
    /// A map whose pixels are sums over their columns; without it a pixel is one entry of many.
    map: Option<&'a MapImage>,
    /// In words, what was left out.
    sampled: Option<String>,
}

impl<'a> Grid<'a> {
    pub fn of_matrix(matrix: &'a Matrix, name: &'a str) -> Self {
        let (size, total) = ([matrix.width, matrix.height], [matrix.n, matrix.k]);
        let words = [size[1], total[1], size[0], total[0]].map(|count| format::count(count.into()));
        let sampled = (size != total).then(|| fill(Text::MatrixSampled, &words.each_ref().map(String::as_str)));
        let axes = [Text::MatrixAxisColumns, Text::MatrixAxisRows];
        Self { name, values: &matrix.values, size, total, axes, unit: Text::MatrixUnit, map: None, sampled }
    }

    pub fn of_map(map: &'a MapImage, name: &'a str) -> Self {
        let (size, total) = ([map.width, map.height], [map.col_count, map.row_count]);
        let keys = format::number(f64::from(total[0]) / f64::from(size[0]));
        let rows = format::count(u64::from(map.sampled.unwrap_or(map.row_count)));
        let sampled = (size != total).then(|| fill(Text::MapSampled, &[&rows, &keys]));
        let axes = [Text::AttentionAxisKey, Text::AttentionAxisQuery];
        Self { name, values: &map.values, size, total, axes, unit: Text::MapUnit, map: Some(map), sampled }
    }

    /// The row of a pixel, and its columns.
    fn covered(&self, [x, y]: [u32; 2]) -> (u32, Range<u32>) {
        if let Some(map) = self.map {
            let [queries, keys] = map.covered([x, y]);
            return (queries.start, keys);
        }
        let of_all = |pixel: u32, axis: usize| {
            (u64::from(pixel) * u64::from(self.total[axis]) / u64::from(self.size[axis])) as u32
        };
        let (column, row) = (of_all(x, 0), of_all(y, 1));
        (row, column..column + 1)
    }

    /// In words, what a pixel holds.
    fn readout(&self, [x, y]: [u32; 2]) -> String {
        let value = ticks::written(f64::from(self.values[(y * self.size[0] + x) as usize]));
        let (row, columns) = self.covered([x, y]);
        let [row, first, last] = [row, columns.start, columns.end - 1].map(|at| format::count(at.into()));
        match columns.len() {
            1 => fill(Text::PictureReadout, &[&row, &first, &value]),
            count => fill(Text::PictureReadoutSum, &[&row, &count.to_string(), &first, &last, &value]),
        }
    }
}

/// Colours of numbers from `-high` to `high`: 0 shows the page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    pub high: f32,
    /// Equal steps for equal factors, over [`DECADES`] on both sides; what is smaller counts as 0.
    pub log: bool,
}

impl Scale {
    pub fn of(values: &[f32], log: bool) -> Self {
        let high = values.iter().fold(0.0f32, |high, value| high.max(value.abs()));
        Self { high: if high > 0.0 { high } else { 1.0 }, log }
    }

    /// From -1 to 1.
    fn place(self, value: f32) -> f32 {
        let part = (value.abs() / self.high).min(1.0);
        let size = if self.log && part > 0.0 { (1.0 + part.log10() / DECADES).max(0.0) } else { part };
        size.copysign(value)
    }

    fn ticks(self) -> Vec<f64> {
        let high = f64::from(self.high);
        if !self.log {
            return ticks::linear(-high, high, 5);
        }
        let above = ticks::decades(high * 10f64.powf(-f64::from(DECADES) + 0.5), high, 2);
        above.iter().map(|tick| -tick).chain([0.0]).chain(above.iter().copied()).collect()
    }
}

/// Orange above 0, blue below, told apart by people with colour-blindness.
fn signed(t: f32) -> Color32 {
    let colour = if t > 0.0 { Color32::from_rgb(245, 120, 20) } else { Color32::from_rgb(50, 120, 255) };
    colour.gamma_multiply(t.abs().clamp(0.0, 1.0))
}

/// The picture of what it was painted from.
#[derive(Default)]
pub struct Canvas {
    painted: Option<Painted>,
}

struct Painted {
    source: Rc<dyn Any>,
    scale: Scale,
    texture: TextureHandle,
}

impl Canvas {
    /// Paints the grid over the width that is left, with its name above and its colour bar below.
    /// `source` holds its numbers.
    pub fn show<T: Any>(&mut self, ui: &mut Ui, source: &Rc<T>, grid: &Grid<'_>, scale: Scale, height: f32) {
        let same = |painted: &Painted| {
            std::ptr::addr_eq(Rc::as_ptr(&painted.source), Rc::as_ptr(source)) && painted.scale == scale
        };
        let kept = self.painted.take().filter(same);
        let painted = self.painted.insert(kept.unwrap_or_else(|| {
            let size = grid.size.map(|pixels| pixels as usize);
            let pixels = ColorImage::new(size, grid.values.iter().map(|value| signed(scale.place(*value))).collect());
            let options = TextureOptions { magnification: TextureFilter::Nearest, ..TextureOptions::LINEAR };
            let texture = ui.ctx().load_texture(grid.name, pixels, options);
            Painted { source: source.clone(), scale, texture }
        }));
        ui.label(grid.name);
        let width = (ui.available_width() - MARGIN.x - 12.0).clamp(60.0, 640.0);
        let (outer, _) = ui.allocate_exact_size(vec2(width, height) + MARGIN + vec2(8.0, 4.0), Sense::hover());
        let area = Rect::from_min_size(outer.min + MARGIN, vec2(width, height));
        let response = ui.interact(area, ui.scope_id().with((grid.name, "picture")), Sense::hover());
        response.widget_info(|| WidgetInfo::labeled(Role::Image, true, grid.name));
        let painter = ui.painter();
        painter.rect_filled(area, 0.0, ui.visuals().extreme_bg_color);
        let uv = Rect::from_min_max(pos2(0.0, 0.0), pos2(1.0, 1.0));
        painter.image(painted.texture.id(), area, uv, Color32::WHITE);
        painter.rect_stroke(area, 0.0, (1.0, ui.visuals().weak_text_color()), egui::StrokeKind::Inside);
        axes(ui, area, grid);
        if let Some(pointer) = response.hover_pos() {
            let part = (pointer - area.min) / area.size();
            let at = |part: f32, count: u32| ((part * count as f32) as u32).min(count - 1);
            response.on_hover_text_at_pointer(grid.readout([at(part.x, grid.size[0]), at(part.y, grid.size[1])]));
        }
        bar(ui, scale, grid.unit.get());
        if let Some(words) = &grid.sampled {
            ui.label(egui::RichText::new(words).small().weak());
        }
    }
}

fn axes(ui: &Ui, area: Rect, grid: &Grid<'_>) {
    let (painter, ink, font) = (ui.painter(), ui.visuals().text_color(), FontId::proportional(11.0));
    let ticks_of = |total: u32, room: f32, apart: f32| {
        let ticks = ticks::linear(0.0, f64::from(total), ((room / apart) as usize).max(2));
        ticks.into_iter().filter(move |tick| tick.fract() == 0.0 && *tick < f64::from(total))
    };
    for tick in ticks_of(grid.total[0], area.width(), 62.0) {
        let x = area.left() + area.width() * (tick / f64::from(grid.total[0])) as f32;
        painter.vline(x, area.top() - 4.0..=area.top(), (1.0, ink));
        let at = pos2(x, area.top() - 5.0);
        painter.text(at, Align2::CENTER_BOTTOM, format::count(tick as u64), font.clone(), ink);
    }
    for tick in ticks_of(grid.total[1], area.height(), 34.0) {
        let y = area.top() + area.height() * (tick / f64::from(grid.total[1])) as f32;
        painter.hline(area.left() - 4.0..=area.left(), y, (1.0, ink));
        let at = pos2(area.left() - 6.0, y);
        painter.text(at, Align2::RIGHT_CENTER, format::count(tick as u64), font.clone(), ink);
    }
    let above = pos2(area.center().x, area.top() - 18.0);
    painter.text(above, Align2::CENTER_BOTTOM, grid.axes[0].get(), font.clone(), ink);
    let galley = painter.layout_no_wrap(grid.axes[1].get().to_owned(), font, ink);
    let at = pos2(area.left() - MARGIN.x + 1.0, area.center().y + galley.size().x / 2.0);
    painter.add(egui::epaint::TextShape::new(at, galley, ink).with_angle(-std::f32::consts::FRAC_PI_2));
}

/// Colours from `-high` to `high`, ticks, and the unit.
fn bar(ui: &mut Ui, scale: Scale, label: &str) {
    const STEPS: u32 = 64;
    let font = FontId::proportional(11.0);
    let width = ui.available_width().min(420.0);
    let (rect, response) = ui.allocate_exact_size(vec2(width, 42.0), Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, label));
    let strip = Rect::from_min_max(pos2(rect.left() + 20.0, rect.top()), pos2(rect.right() - 24.0, rect.top() + 10.0));
    let x = |t: f32| egui::lerp(strip.x_range(), (t + 1.0) / 2.0);
    let mut mesh = Mesh::default();
    for step in 0..STEPS {
        let [from, to] = [step, step + 1].map(|edge| edge as f32 / STEPS as f32 * 2.0 - 1.0);
        let piece = Rect::from_x_y_ranges(x(from)..=x(to), strip.y_range());
        mesh.add_colored_rect(piece, signed((from + to) / 2.0));
    }
    let painter = ui.painter();
    painter.rect_filled(strip, 0.0, ui.visuals().extreme_bg_color);
    painter.add(Shape::mesh(mesh));
    painter.rect_stroke(strip, 0.0, (1.0, ui.visuals().weak_text_color()), egui::StrokeKind::Outside);
    let ink = ui.visuals().text_color();
    for tick in scale.ticks() {
        let at = x(scale.place(tick as f32));
        painter.vline(at, strip.bottom()..=strip.bottom() + 3.0, (1.0, ink));
        painter.text(pos2(at, strip.bottom() + 3.0), Align2::CENTER_TOP, ticks::written(tick), font.clone(), ink);
    }
    painter.text(rect.left_bottom(), Align2::LEFT_BOTTOM, label, font, ui.visuals().weak_text_color());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::measure::{Sample, Window};

    /// Every value is found again where the words say that it stands.
    #[test]
    fn a_pixel_is_read_as_what_it_was_made_of() {
        for (rows, n) in [(64, 300), (300, 700), (1024, 4096)] {
            let sampled = Matrix::sampled(rows, n, |row, column| (row * n + column) as f32);
            let matrix = pollster::block_on(sampled);
            let grid = Grid::of_matrix(&matrix, "E");
            for pixel in [[0, 0], [5, 3], [matrix.width - 1, matrix.height - 1]] {
                let (row, columns) = grid.covered(pixel);
                let value = matrix.values[(pixel[1] * matrix.width + pixel[0]) as usize];
                assert_eq!((value, columns.len()), ((row * n + columns.start) as f32, 1), "{pixel:?} of {rows} x {n}");
            }
        }
    }

    #[test]
    fn a_pixel_of_a_map_says_which_keys_it_sums() {
        let map = |n: u32| {
            let window = Window::whole(n, n);
            let (width, height) = (window.pixels().0, Sample::even(0, n).count);
            MapImage {
                values: vec![0.25; (width * height) as usize],
                width,
                height,
                row_start: 0,
                row_count: n,
                col_start: 0,
                col_count: n,
                sampled: (height < n).then_some(height),
            }
        };
        let whole = map(100);
        assert_eq!(Grid::of_map(&whole, "P").readout([5, 7]), "row 7, column 5: 0.25");
        let eighths = map(4096);
        let words = Grid::of_map(&eighths, "P").readout([0, 511]);
        assert_eq!(words, "row 4,088, sum of the 8 columns 0 to 7: 0.25");
        // Not a multiple of the pixels: every third row, and two or three keys a pixel, none of them twice.
        let uneven = map(1100);
        let grid = Grid::of_map(&uneven, "P");
        assert_eq!(grid.covered([0, 366]).0, 1098);
        let keys: Vec<u32> = (0..512).flat_map(|x| grid.covered([x, 0]).1).collect();
        assert_eq!(keys, (0..1100).collect::<Vec<u32>>());
    }

    #[test]
    fn signs_and_sizes_are_told_apart() {
        let linear = Scale::of(&[0.5, -2.0, 0.0], false);
        assert_eq!([-2.0, -1.0, 0.0, 1.0].map(|value| linear.place(value)), [-1.0, -0.5, 0.0, 0.5]);
        let log = Scale::of(&[1.0], true);
        assert!((log.place(-0.01) + 0.5).abs() < 1e-6 && log.place(1e-9) == 0.0 && log.place(0.0) == 0.0);
        assert_eq!(Scale::of(&[0.0], false).high, 1.0);
        assert_eq!(signed(0.0), Color32::TRANSPARENT);
        let (above, below) = (signed(1.0), signed(-1.0));
        assert!(above.r() > above.b() && below.b() > below.r());
        for scale in [linear, log] {
            let ticks = scale.ticks();
            assert!(ticks.contains(&0.0) && ticks.iter().any(|tick| *tick < 0.0), "{ticks:?}");
        }
    }
}
