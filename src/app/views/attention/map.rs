//! The map of the matrix: a texture with axes, zoomed and panned over windows that the device
//! computes anew.

use super::frame::{Frame, Span};
use super::layer::Layer;
use crate::app::scene::{Answer, Command, Scene};
use crate::app::views::colour::{self, Scale};
use crate::app::views::{format, ticks};
use crate::outcome::{MapImage, Outcome};
use crate::text::{Text, fill};
use egui::{
    Align2, Color32, ColorImage, FontId, Painter, Pos2, Rect, Role, Sense, Stroke, TextureFilter, TextureHandle,
    TextureOptions, Ui, WidgetInfo, pos2, vec2,
};
use std::ops::Range;
use std::rc::Rc;

/// Room for the ticks of the axes, left and above.
const MARGIN: egui::Vec2 = vec2(54.0, 36.0);
/// A logarithmic scale spans this factor below the largest weight.
const LOG_SPAN: f32 = 1e-6;
/// Magnification of a click on a button.
const STEP: f64 = 2.0;

pub struct Map {
    /// `None` until the first frame.
    frame: Option<Frame>,
    /// Equal colour steps for equal factors of a weight.
    pub log: bool,
    painted: Option<Painted>,
    /// Why the device gave no map.
    failed: Option<String>,
}

impl Default for Map {
    /// Weights differ by so many orders of magnitude that linear colours show next to nothing.
    fn default() -> Self {
        Self { frame: None, log: true, painted: None, failed: None }
    }
}

struct Painted {
    image: Rc<MapImage>,
    layer: Layer,
    log: bool,
    scale: Scale,
    texture: TextureHandle,
}

impl Painted {
    fn new(ui: &Ui, image: Rc<MapImage>, layer: Layer, log: bool) -> Self {
        let most = image.values.iter().fold(0.0f32, |most, value| most.max(*value));
        let high = if most > 0.0 { most } else { 1.0 };
        let scale = if log { Scale::log(high * LOG_SPAN, high) } else { Scale::linear(0.0, high) };
        // What is exactly 0 shows the page.
        let colour =
            |value: &f32| if *value > 0.0 { colour::magnitude(scale.place(*value)) } else { Color32::TRANSPARENT };
        let size = [image.width as usize, image.height as usize];
        let pixels = ColorImage::new(size, image.values.iter().map(colour).collect());
        let options = TextureOptions { magnification: TextureFilter::Nearest, ..TextureOptions::LINEAR };
        let texture = ui.ctx().load_texture("attention map", pixels, options);
        Self { image, layer, log, scale, texture }
    }

    /// Queries that the rows of pixels stand for; sampled ones are evenly apart and may reach past
    /// the window.
    fn rows_covered(&self) -> f64 {
        let apart = if self.image.sampled.is_some() { self.image.rows().stride } else { 0 };
        f64::from((self.image.height * apart).max(self.image.row_count))
    }

    /// Queries and keys of a pixel.
    fn pixel(&self) -> (f64, f64) {
        let rows =
            if self.layer.is_weights() { 1.0 } else { f64::from(self.image.row_count) / f64::from(self.image.height) };
        (rows, f64::from(self.image.col_count) / f64::from(self.image.width))
    }
}

impl Map {
    /// Paints the map, at most `max_height` high, and asks for what it shows.
    pub fn show(
        &mut self,
        ui: &mut Ui,
        scene: &Scene<'_>,
        outcome: &Outcome,
        layer: Layer,
        max_height: f32,
        commands: &mut Vec<Command>,
    ) {
        let (rows, cols) = (outcome.dims.n_q, layer.columns(outcome));
        let frame = self.frame.filter(|frame| (frame.rows.total, frame.cols.total) == (rows, cols));
        let frame = frame.unwrap_or_else(|| {
            self.painted = None;
            Frame::whole(rows, cols)
        });
        let frame = self.frame.insert(buttons(ui, frame));
        let side = (ui.available_width() - MARGIN.x - 6.0).min(max_height - MARGIN.y).max(80.0);
        let (outer, _) = ui.allocate_exact_size(egui::Vec2::splat(side) + MARGIN + vec2(6.0, 2.0), Sense::hover());
        let area = Rect::from_min_size(outer.min + MARGIN, egui::Vec2::splat(side));
        // An unzoomed map leaves drags to the page, so that a finger can scroll past it.
        let sense = if frame.is_whole() { Sense::click() } else { Sense::click_and_drag() };
        let response = ui.interact(area, ui.scope_id().with("attention map"), sense);
        response.widget_info(|| WidgetInfo::labeled(Role::Image, true, Text::AttentionMap.get()));
        if response.dragged() {
            let by = response.drag_delta() / side;
            *frame = frame.moved((-f64::from(by.x), -f64::from(by.y)));
        }
        let pointer = response.hover_pos().filter(|pointer| area.contains(*pointer));
        if let Some(pointer) = pointer {
            *frame = wheel(ui, *frame, part_of(area, pointer));
        }
        let frame = *frame;

        let question = layer.question(scene.head, frame.window());
        commands.push(Command::Ask(question));
        let known = match (scene.answer)(question) {
            Some(Answer::Map(image)) => {
                self.take(ui, image, layer);
                self.failed = None;
                true
            }
            Some(Answer::Failed(why)) => {
                self.failed = Some(why);
                self.painted = None;
                true
            }
            _ => false,
        };
        self.paint(ui, area, frame, known);
        let ink = ui.visuals().text_color();
        axes(ui.painter(), area, frame, layer, ink);
        if let Some(token) = scene.token {
            let y = |position: u32| area.top() + area.height() * frame.rows.part(f64::from(position)) as f32;
            let row = Rect::from_x_y_ranges(area.x_range(), y(token)..=y(token + 1));
            let row = Rect::from_center_size(row.center(), vec2(row.width(), row.height().max(1.5)));
            let painter = ui.painter_at(area.expand(1.0));
            painter.rect_stroke(row, 0.0, Stroke::new(1.0, Color32::WHITE), egui::StrokeKind::Outside);
            painter.rect_stroke(row.expand(1.0), 0.0, Stroke::new(1.0, Color32::BLACK), egui::StrokeKind::Outside);
        }
        let mut readout = Text::AttentionReadoutNone.get().to_owned();
        if let Some(pointer) = pointer {
            let (across, down) = part_of(area, pointer);
            let (query, key) = (frame.rows.position(down), frame.cols.position(across));
            crosshair(&ui.painter_at(area), area, pointer);
            commands.push(Command::Hover(query));
            if response.clicked() {
                commands.push(Command::Click(query));
            }
            readout = self.readout(query, key, layer);
        }
        ui.label(readout);
        self.explain(ui);
    }

    fn take(&mut self, ui: &Ui, image: Rc<MapImage>, layer: Layer) {
        let log = self.log && layer.is_weights();
        let is_shown = |painted: &Painted| Rc::ptr_eq(&painted.image, &image) && painted.log == log;
        if !self.painted.as_ref().is_some_and(is_shown) {
            self.painted = Some(Painted::new(ui, image, layer, log));
        }
    }

    /// What is known is drawn where it belongs; until the answer is there, greyed.
    fn paint(&self, ui: &Ui, area: Rect, frame: Frame, known: bool) {
        let painter = ui.painter_at(area);
        painter.rect_filled(area, 0.0, ui.visuals().extreme_bg_color);
        if let Some(painted) = &self.painted {
            let image = &painted.image;
            let edge = |span: Span, range: egui::Rangef, position: f64| egui::lerp(range, span.part(position) as f32);
            let (top, left) = (f64::from(image.row_start), f64::from(image.col_start));
            let (bottom, right) = (top + painted.rows_covered(), left + f64::from(image.col_count));
            let rect = Rect::from_min_max(
                pos2(edge(frame.cols, area.x_range(), left), edge(frame.rows, area.y_range(), top)),
                pos2(edge(frame.cols, area.x_range(), right), edge(frame.rows, area.y_range(), bottom)),
            );
            let uv = Rect::from_min_max(Pos2::ZERO, pos2(1.0, 1.0));
            let tint = if known { Color32::WHITE } else { Color32::from_white_alpha(110) };
            painter.image(painted.texture.id(), rect, uv, tint);
        }
        painter.rect_stroke(area, 0.0, (1.0, ui.visuals().weak_text_color()), egui::StrokeKind::Inside);
        if !known {
            wait(ui, &painter, area);
        }
    }

    fn readout(&self, query: u32, key: u32, layer: Layer) -> String {
        let image = self.painted.as_ref().filter(|painted| painted.layer == layer).map(|painted| &painted.image);
        let known = image.and_then(|image| {
            let [x, y] = image.pixel(query, key)?;
            let value = image.values[(y * image.width + x) as usize];
            Some((image.covered([x, y]), ticks::written(f64::from(value))))
        });
        let ([queries, keys], value) = known.unwrap_or_else(|| ([query..query + 1, key..key + 1], "...".to_owned()));
        let words = match layer {
            Layer::Pattern => Text::AttentionReadoutPairs,
            Layer::Projected => Text::AttentionReadoutProjected,
            Layer::Method | Layer::Effective | Layer::Exact => Text::AttentionReadoutWeight,
        };
        fill(words, &[&positions(&queries), &positions(&keys), &value])
    }

    /// The colour bar, and what the map was made from.
    fn explain(&self, ui: &mut Ui) {
        if let Some(why) = &self.failed {
            ui.colored_label(ui.visuals().error_fg_color, why);
        }
        let Some(painted) = &self.painted else { return };
        let (queries, keys) = painted.pixel();
        let [queries, keys] = [queries, keys].map(ticks::written);
        let unit = if painted.layer.is_weights() { Text::AttentionUnitWeight } else { Text::AttentionUnitPairs };
        colour::bar(ui, colour::magnitude, painted.scale, &fill(unit, &[&queries, &keys]));
        let rows = format::count(u64::from(painted.image.row_count));
        let source = match painted.image.sampled {
            Some(sampled) => fill(Text::AttentionSampled, &[&format::count(u64::from(sampled)), &rows]),
            None if painted.layer.is_weights() => fill(Text::AttentionAllRows, &[&rows]),
            None => Text::AttentionAllPairs.get().to_owned(),
        };
        ui.label(source);
    }
}

/// `7`, `1,000 to 1,003`.
fn positions(range: &Range<u32>) -> String {
    let [first, last] = [range.start, range.end - 1].map(|at| format::count(at.into()));
    if range.len() == 1 { first } else { fill(Text::AttentionSpan, &[&first, &last]) }
}

fn part_of(area: Rect, pointer: Pos2) -> (f64, f64) {
    let part = (pointer - area.min) / area.size();
    (f64::from(part.x), f64::from(part.y))
}

fn buttons(ui: &mut Ui, frame: Frame) -> Frame {
    let mut new = frame;
    ui.horizontal(|ui| {
        for (text, help, factor) in [
            (Text::AttentionZoomIn, Text::AttentionZoomInHelp, STEP),
            (Text::AttentionZoomOut, Text::AttentionZoomOutHelp, 1.0 / STEP),
        ] {
            if ui.button(text.get()).on_hover_text(help.get()).clicked() {
                new = new.zoomed(factor, (0.5, 0.5));
            }
        }
        let reset = ui.add_enabled(!frame.is_whole(), egui::Button::new(Text::AttentionReset.get()));
        if reset.on_hover_text(Text::AttentionResetHelp.get()).clicked() {
            new = Frame::whole(frame.rows.total, frame.cols.total);
        }
    });
    new
}

/// Zooms with the wheel or two fingers; a turn that changes nothing is left to the page.
fn wheel(ui: &Ui, frame: Frame, part: (f64, f64)) -> Frame {
    let (pinch, scroll) = ui.input(|input| (input.zoom_delta(), input.smooth_scroll_delta().y));
    let factor = f64::from(pinch) * (f64::from(scroll) * 0.004).exp();
    let zoomed = frame.zoomed(factor, part);
    if scroll != 0.0 && zoomed != frame {
        ui.input_mut(|input| input.smooth_scroll_delta.y = 0.0);
    }
    zoomed
}

/// A turning arc. It does not ask for the next frame: whoever computes the answer does.
fn wait(ui: &Ui, painter: &Painter, area: Rect) {
    let turn = ui.input(|input| input.time) as f32 * 4.0;
    let points = (0..=16).map(|at| {
        let angle = turn + at as f32 / 16.0 * 4.5;
        area.center() + vec2(angle.cos(), angle.sin()) * 11.0
    });
    painter.circle_filled(area.center(), 17.0, ui.visuals().panel_fill.gamma_multiply(0.85));
    painter.line(points.collect(), Stroke::new(2.5, ui.visuals().strong_text_color()));
}

fn crosshair(painter: &Painter, area: Rect, pointer: Pos2) {
    for (width, colour) in [(2.0, Color32::from_black_alpha(160)), (1.0, Color32::from_white_alpha(220))] {
        painter.hline(area.x_range(), pointer.y, (width, colour));
        painter.vline(pointer.x, area.y_range(), (width, colour));
    }
}

fn axes(painter: &Painter, area: Rect, frame: Frame, layer: Layer, ink: Color32) {
    let font = FontId::proportional(11.0);
    let ticks_of = |span: Span, room: f32, apart: f32| {
        let ticks = ticks::linear(span.start, span.start + span.len, ((room / apart) as usize).max(2));
        ticks.into_iter().filter(move |tick| tick.fract() == 0.0 && span.part(tick + 0.5) < 1.0)
    };
    for tick in ticks_of(frame.cols, area.width(), 62.0) {
        let x = egui::lerp(area.x_range(), frame.cols.part(tick) as f32);
        painter.vline(x, area.top() - 4.0..=area.top(), (1.0, ink));
        let text = format::count(tick as u64);
        painter.text(pos2(x, area.top() - 5.0), Align2::CENTER_BOTTOM, text, font.clone(), ink);
    }
    for tick in ticks_of(frame.rows, area.height(), 40.0) {
        let y = egui::lerp(area.y_range(), frame.rows.part(tick) as f32);
        painter.hline(area.left() - 4.0..=area.left(), y, (1.0, ink));
        let text = format::count(tick as u64);
        painter.text(pos2(area.left() - 6.0, y), Align2::RIGHT_CENTER, text, font.clone(), ink);
    }
    let keys = if layer == Layer::Projected { Text::AttentionAxisProjected } else { Text::AttentionAxisKey };
    painter.text(pos2(area.center().x, area.top() - 20.0), Align2::CENTER_BOTTOM, keys.get(), font.clone(), ink);
    let galley = painter.layout_no_wrap(Text::AttentionAxisQuery.get().to_owned(), font, ink);
    let at = pos2(area.left() - MARGIN.x + 1.0, area.center().y + galley.size().x / 2.0);
    painter.add(egui::epaint::TextShape::new(at, galley, ink).with_angle(-std::f32::consts::FRAC_PI_2));
}
