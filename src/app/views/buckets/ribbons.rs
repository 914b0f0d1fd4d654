//! From the original to the sorted order, with the borders of the chunks.

use super::Sorted;
use crate::app::scene::Command;
use crate::app::views::colour;
use crate::app::views::{format, ticks};
use crate::methods::measure::Sample;
use crate::text::{Text, fill};
use egui::{
    Align2, Color32, FontId, Mesh, Painter, Pos2, Rect, Role, Sense, Shape, Stroke, Ui, WidgetInfo, pos2, vec2,
};

/// Most ribbons that are drawn.
const MOST: u32 = 1500;
/// Pieces of a curve.
const PIECES: u32 = 20;
/// Height of the strips at both ends.
const STRIP: f32 = 14.0;
/// Least distance between two borders, in points.
const APART: f32 = 5.0;

/// Where things stand in the painting.
struct Frame {
    /// From strip to strip, both left out.
    between: Rect,
    n: u32,
}

impl Frame {
    /// The left edge of a place from 0 to n.
    fn x(&self, place: u32) -> f32 {
        self.between.left() + self.between.width() * (place as f32 / self.n as f32)
    }

    /// The place under the pointer, and whether it is in the lower, sorted half.
    fn place_at(&self, pointer: Pos2) -> Option<(u32, bool)> {
        let part = (pointer.x - self.between.left()) / self.between.width();
        let whole = self.between.expand2(vec2(0.0, STRIP));
        if !whole.contains(pointer) || !(0.0..1.0).contains(&part) {
            return None;
        }
        Some((((part * self.n as f32) as u32).min(self.n - 1), pointer.y > self.between.center().y))
    }

    /// Top and bottom strip.
    fn strips(&self) -> [Rect; 2] {
        let (top, bottom) = (self.between.top(), self.between.bottom());
        [(top - STRIP, top), (bottom, bottom + STRIP)]
            .map(|(top, bottom)| Rect::from_x_y_ranges(self.between.x_range(), top..=bottom))
    }
}

pub fn show(ui: &mut Ui, sorted: &Sorted, token: Option<u32>, commands: &mut Vec<Command>) {
    let n = sorted.n();
    let shown = Sample::golden(n, MOST);
    let drawn = if shown.count < n {
        fill(Text::RibbonsSampled, &[&format::count(u64::from(shown.count)), &format::count(u64::from(n))])
    } else {
        fill(Text::RibbonsAll, &[&format::count(u64::from(n))])
    };
    ui.label(drawn);
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), 220.0), Sense::click());
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, Text::Ribbons.get()));
    let between = Rect::from_min_max(rect.min + vec2(4.0, 18.0 + STRIP), rect.max - vec2(4.0, 34.0 + STRIP));
    let frame = Frame { between, n };
    let painter = ui.painter_at(rect);
    let focus = token.map(|token| sorted.buckets[token as usize]);
    let is_lit = |token: u32| focus.is_none_or(|focus| focus == sorted.buckets[token as usize]);

    let width = (between.width() / n as f32).clamp(1.0, 6.0);
    // Those of the lit bucket lie above the others.
    for lit in [false, true] {
        let alpha = if focus.is_none() {
            0.5
        } else if lit {
            0.9
        } else {
            0.07
        };
        let mut mesh = Mesh::default();
        for token in (0..shown.count).map(|row| shown.query(row)).filter(|token| is_lit(*token) == lit) {
            let colour = colour::bucket(sorted.buckets[token as usize]).gamma_multiply(alpha);
            ribbon(&mut mesh, &frame, token, sorted.place[token as usize], width, colour);
        }
        painter.add(Shape::mesh(mesh));
    }
    let [top, bottom] = frame.strips();
    strip(&painter, &frame, top, |place| sorted.buckets[place as usize]);
    strip(&painter, &frame, bottom, |place| sorted.buckets[sorted.order[place as usize] as usize]);
    let every = borders(&painter, &frame, bottom, sorted, ui.visuals().strong_text_color());
    axes(&painter, &frame, sorted, every, ui.visuals().text_color());
    if let Some(token) = token {
        lit_token(&painter, &frame, sorted, token, ui.visuals().strong_text_color());
    }
    if let Some((place, below)) = response.hover_pos().and_then(|pointer| frame.place_at(pointer)) {
        let token = if below { sorted.order[place as usize] } else { place };
        commands.push(Command::Hover(token));
        if response.clicked() {
            commands.push(Command::Click(token));
        }
    }
}

/// An S from the original place, above, to the sorted one, below, with soft edges.
fn ribbon(mesh: &mut Mesh, frame: &Frame, from: u32, to: u32, width: f32, colour: Color32) {
    let middle = |place: u32| (frame.x(place) + frame.x(place + 1)) / 2.0;
    let (from, to) = (middle(from), middle(to));
    let point = |t: f32| pos2(from + (to - from) * t * t * (3.0 - 2.0 * t), egui::lerp(frame.between.y_range(), t));
    let first = mesh.vertices.len() as u32;
    for piece in 0..=PIECES {
        let t = piece as f32 / PIECES as f32;
        let slope = vec2((to - from) * 6.0 * t * (1.0 - t), frame.between.height());
        let aside = slope.rot90().normalized() * (width / 2.0 + 0.5);
        mesh.colored_vertex(point(t) - aside, Color32::TRANSPARENT);
        mesh.colored_vertex(point(t), colour);
        mesh.colored_vertex(point(t) + aside, Color32::TRANSPARENT);
    }
    for piece in 0..PIECES {
        for side in [0, 1] {
            let corner = first + piece * 3 + side;
            mesh.add_triangle(corner, corner + 1, corner + 3);
            mesh.add_triangle(corner + 1, corner + 3, corner + 4);
        }
    }
}

/// The buckets of the places, as wide as a pixel where places are narrower.
fn strip(painter: &Painter, frame: &Frame, rect: Rect, bucket: impl Fn(u32) -> u32) {
    let pieces = frame.n.min(rect.width() as u32).max(1);
    let mut mesh = Mesh::default();
    for piece in 0..pieces {
        let edge = |piece: u32| rect.left() + rect.width() * piece as f32 / pieces as f32;
        let place = (u64::from(piece) * u64::from(frame.n) / u64::from(pieces)) as u32;
        let cell = Rect::from_x_y_ranges(edge(piece)..=edge(piece + 1), rect.y_range());
        mesh.add_colored_rect(cell, colour::bucket(bucket(place)));
    }
    painter.add(Shape::mesh(mesh));
}

/// Draws the borders of chunks and says of how many one is drawn.
fn borders(painter: &Painter, frame: &Frame, strip: Rect, sorted: &Sorted, ink: Color32) -> u32 {
    let chunk = strip.width() * sorted.geometry.chunk_len as f32 / frame.n as f32;
    let every = ((APART / chunk).ceil().max(1.0) as u32).next_power_of_two();
    for border in (0..=sorted.geometry.chunks).step_by(every as usize) {
        let x = frame.x((border * sorted.geometry.chunk_len).min(frame.n));
        painter.vline(x, strip.top() - 3.0..=strip.bottom() + 4.0, (1.0, ink));
    }
    every
}

fn axes(painter: &Painter, frame: &Frame, sorted: &Sorted, every: u32, ink: Color32) {
    let font = FontId::proportional(11.0);
    let [top, bottom] = frame.strips();
    for tick in ticks::linear(0.0, f64::from(frame.n - 1), (top.width() / 90.0) as usize) {
        let x = frame.x(tick as u32);
        let (text, align) = if tick == 0.0 {
            (Text::RibbonsOriginal.get().to_owned(), Align2::LEFT_BOTTOM)
        } else if x > top.right() - 24.0 {
            (format::count(tick as u64), Align2::RIGHT_BOTTOM)
        } else {
            (format::count(tick as u64), Align2::CENTER_BOTTOM)
        };
        // The name of the axis stands at its beginning.
        if tick == 0.0 || x > top.left() + 150.0 {
            painter.vline(x, top.top() - 3.0..=top.top(), (1.0, ink));
            painter.text(pos2(x, top.top() - 3.0), align, text, font.clone(), ink);
        }
    }
    let m = format::count(u64::from(sorted.geometry.chunk_len));
    let chunks = format::count(u64::from(sorted.geometry.chunks));
    let words = if every == 1 {
        fill(Text::RibbonsSorted, &[&chunks, &m])
    } else {
        fill(Text::RibbonsSortedSome, &[&chunks, &m, &every.to_string()])
    };
    painter.text(bottom.left_bottom() + vec2(0.0, 16.0), Align2::LEFT_TOP, words, font, ink);
}

/// The token's own ribbon, and a line below the chunks that it sees.
fn lit_token(painter: &Painter, frame: &Frame, sorted: &Sorted, token: u32, ink: Color32) {
    let place = sorted.place[token as usize];
    let mut mesh = Mesh::default();
    ribbon(&mut mesh, frame, token, place, 7.0, Color32::BLACK);
    ribbon(&mut mesh, frame, token, place, 3.5, Color32::WHITE);
    painter.add(Shape::mesh(mesh));
    let [_, bottom] = frame.strips();
    let geometry = &sorted.geometry;
    let y = bottom.bottom() + 8.0;
    for step in 0..geometry.steps() {
        let Some((round, chunk)) = geometry.seen_chunk(sorted.round, sorted.chunk_of(token), step) else { continue };
        if round == sorted.round {
            let [from, to] = [chunk, chunk + 1].map(|chunk| frame.x((chunk * geometry.chunk_len).min(frame.n)));
            painter.hline(from..=to, y, Stroke::new(4.0, ink));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_answers_where_it_is_drawn() {
        let between = Rect::from_min_max(pos2(4.0, 40.0), pos2(304.0, 140.0));
        for n in [1, 7, 300, 1000] {
            let frame = Frame { between, n };
            for place in 0..n {
                let x = (frame.x(place) + frame.x(place + 1)) / 2.0;
                assert_eq!(frame.place_at(pos2(x, 45.0)), Some((place, false)), "{n}");
                assert_eq!(frame.place_at(pos2(x, 135.0)), Some((place, true)), "{n}");
            }
            assert_eq!(frame.place_at(pos2(between.right() + 1.0, 60.0)), None);
            assert_eq!(frame.place_at(pos2(100.0, between.bottom() + STRIP + 1.0)), None);
        }
    }
}
