//! The input's tokens on the screen: patches of the photograph, points on the sphere, or symbols,
//! with a colour over each. Every view that shows tokens paints them here, so that a token looks
//! and answers alike everywhere.

mod grid;

use super::colour;
use crate::app::scene::{Command, Scene};
use crate::inputs::{Input, Shown};
use crate::text::{Text, fill};
use egui::{
    Align2, Color32, ColorImage, FontId, Mesh, Painter, Pos2, Rect, Response, Role, Sense, Shape, Stroke, StrokeKind,
    TextureFilter, TextureHandle, TextureOptions, Ui, Vec2, WidgetInfo, pos2, vec2,
};
use grid::Grid;
use image::RgbaImage;
use std::rc::Rc;

/// What is painted of each token.
#[derive(Clone, Copy)]
pub enum Face<'a> {
    /// The input itself.
    Input,
    /// A picture of the same patches, such as an output put together again.
    Picture(&'a Rc<RgbaImage>),
    /// Other places on or in the unit sphere.
    Points(&'a Rc<[[f32; 3]]>),
    /// Other symbols of the duplication task.
    Symbols(&'a Rc<[u32]>),
}

/// A painting of all tokens; see [`Tokens::show`].
pub struct Tokens<'a> {
    /// What the painting is called by a screen reader.
    pub name: &'a str,
    pub face: Face<'a>,
    /// A colour over each token, `[n]`; transparent leaves the token as it is.
    pub overlay: Option<&'a Rc<[Color32]>>,
    /// Opacity of the overlay, from 0 to 1.
    pub opacity: f32,
    /// Most height that the painting may take; it takes the width that is left.
    pub max_height: f32,
}

/// How a scatter is turned, in radians.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    pub yaw: f32,
    pub pitch: f32,
}

impl Default for Turn {
    fn default() -> Self {
        Self { yaw: 0.6, pitch: 0.35 }
    }
}

impl Turn {
    /// x to the right, y down, z towards the eye.
    fn apply(self, [x, y, z]: [f32; 3]) -> [f32; 3] {
        let (sin, cos) = self.yaw.sin_cos();
        let (x, z) = (cos * x + sin * z, cos * z - sin * x);
        let (sin, cos) = self.pitch.sin_cos();
        [x, cos * y - sin * z, sin * y + cos * z]
    }
}

/// What one painting keeps from frame to frame: textures, rebuilt only when their data changed, and
/// the turn of a scatter.
#[derive(Default)]
pub struct Canvas {
    pub turn: Turn,
    base: Option<(Base, TextureHandle)>,
    overlay: Option<(Rc<[Color32]>, Grid, TextureHandle)>,
}

/// What a base texture was made from.
enum Base {
    Input(Shown, Grid),
    Picture(Rc<RgbaImage>),
    Symbols(Rc<[u32]>, Grid),
}

/// What the pointer did to a painting.
pub struct Touched {
    pub hovered: Option<u32>,
    pub clicked: Option<u32>,
    pub rect: Rect,
}

impl Touched {
    /// Passes it on, so that the token lights up in all views.
    pub fn tell(&self, commands: &mut Vec<Command>) {
        commands.extend(self.hovered.map(Command::Hover));
        commands.extend(self.clicked.map(Command::Click));
    }
}

/// A token in words: its number and what it is.
pub fn describe(input: &Input, token: u32) -> String {
    let number = token.to_string();
    match &input.shown {
        Shown::Picture(picture) => {
            let (row, col) = picture.place(token);
            fill(Text::TokenPatch, &[&number, &row.to_string(), &col.to_string()])
        }
        Shown::Points(points) => {
            let cluster = points.cluster.get(token as usize).copied().unwrap_or_default();
            fill(Text::TokenPoint, &[&number, &cluster.to_string()])
        }
        Shown::Duplication(task) => {
            let symbol = task.symbols.get(token as usize).copied().unwrap_or_default();
            fill(Text::TokenSymbol, &[&number, &symbol.to_string()])
        }
    }
}

impl Tokens<'_> {
    /// Paints the tokens with the scene's token lit up, and says what the pointer touched.
    pub fn show(&self, ui: &mut Ui, scene: &Scene<'_>, canvas: &mut Canvas) -> Touched {
        let room = vec2(ui.available_width(), self.max_height);
        let shown = &scene.input.shown;
        let (response, hovered) = match (shown, self.face) {
            (Shown::Picture(picture), _) => {
                let grid = Grid { n: picture.n, cols: picture.cols, block: picture.n };
                let size = vec2(picture.cols as f32, picture.rows as f32);
                let rect = allocate(ui, size * (room / size).min_elem());
                canvas.picture(ui, shown, self.face, grid);
                self.grid(ui, scene, canvas, grid, rect)
            }
            (Shown::Duplication(task), face) => {
                let symbols = if let Face::Symbols(symbols) = face { symbols } else { task.symbols.as_slice() };
                let grid = Grid::for_symbols(scene.input.problem.dims.n_q, task.period(), room);
                let cell = (room / vec2(grid.cols as f32, grid.rows() as f32)).min(vec2(44.0, 26.0));
                let rect = allocate(ui, cell * vec2(grid.cols as f32, grid.rows() as f32));
                canvas.symbols(ui, shown, face, symbols, grid);
                let touched = self.grid(ui, scene, canvas, grid, rect);
                self.label_symbols(ui, grid, touched.0.rect, symbols);
                touched
            }
            (Shown::Points(points), face) => {
                let places: &[[f32; 3]] = if let Face::Points(places) = face { places } else { &points.display };
                self.scatter(ui, scene, &mut canvas.turn, places, &points.cluster)
            }
        };
        response.widget_info(|| WidgetInfo::labeled(Role::Image, true, self.name));
        let clicked = hovered.filter(|_| response.clicked());
        let rect = response.rect;
        if let Some(token) = hovered {
            response.on_hover_text_at_pointer(describe(scene.input, token));
        }
        Touched { hovered, clicked, rect }
    }

    /// Paints textures cell by cell, the scene's token framed.
    fn grid(
        &self,
        ui: &Ui,
        scene: &Scene<'_>,
        canvas: &mut Canvas,
        grid: Grid,
        at: (Rect, Response),
    ) -> (Response, Option<u32>) {
        let (rect, response) = at;
        let painter = ui.painter_at(rect.expand(3.0));
        let uv = Rect::from_min_max(Pos2::ZERO, pos2(1.0, 1.0));
        if let Some((_, texture)) = &canvas.base {
            painter.image(texture.id(), rect, uv, Color32::WHITE);
        }
        if let Some(overlay) = self.overlay.filter(|overlay| overlay.len() == grid.n as usize) {
            let texture = canvas.overlay_texture(ui, overlay, grid);
            painter.image(texture.id(), rect, uv, Color32::WHITE.gamma_multiply(self.opacity));
        }
        if let Some(token) = scene.token.filter(|token| *token < grid.n) {
            frame(&painter, grid.cell(rect, token), scene.locked);
        }
        let hovered = response.hover_pos().and_then(|pointer| grid.token_at(rect, pointer));
        (response, hovered)
    }

    /// Writes symbols where cells are large enough, and a line under each repetition.
    fn label_symbols(&self, ui: &Ui, grid: Grid, rect: Rect, symbols: &[u32]) {
        let painter = ui.painter_at(rect);
        for block in 1..grid.n.div_ceil(grid.block) {
            let y = grid.cell(rect, block * grid.block).top();
            painter.hline(rect.x_range(), y, (2.0, ui.visuals().strong_text_color()));
        }
        let cell = grid.cell(rect, 0);
        if cell.width() < 18.0 || cell.height() < 11.0 {
            return;
        }
        let font = FontId::proportional((cell.height() * 0.6).min(13.0));
        for (token, symbol) in symbols.iter().enumerate() {
            let over = self.overlay.and_then(|overlay| overlay.get(token)).copied().unwrap_or_default();
            let ink = colour::ink_on(blend(symbol_colour(*symbol), over, self.opacity));
            let centre = grid.cell(rect, token as u32).center();
            painter.text(centre, Align2::CENTER_CENTER, symbol.to_string(), font.clone(), ink);
        }
    }

    /// Paints points on the sphere, those behind first; a drag turns it.
    fn scatter(
        &self,
        ui: &mut Ui,
        scene: &Scene<'_>,
        turn: &mut Turn,
        places: &[[f32; 3]],
        clusters: &[u32],
    ) -> (Response, Option<u32>) {
        let side = ui.available_width().min(self.max_height).max(40.0);
        let (rect, response) = ui.allocate_exact_size(Vec2::splat(side), Sense::click_and_drag());
        if response.dragged() {
            turn.yaw += response.drag_delta().x / side * 3.0;
            turn.pitch = (turn.pitch - response.drag_delta().y / side * 3.0).clamp(-1.5, 1.5);
        }
        let painter = ui.painter_at(rect);
        let (centre, radius) = (rect.center(), side * 0.46);
        let line = ui.visuals().weak_text_color().gamma_multiply(0.6);
        painter.circle_stroke(centre, radius, Stroke::new(1.0, line));
        let seen: Vec<(Pos2, f32)> = places
            .iter()
            .map(|place| {
                let [x, y, z] = turn.apply(*place);
                (centre + vec2(x, y) * radius, z)
            })
            .collect();
        let dot = (side / (places.len() as f32).sqrt() * 0.22).clamp(1.2, 4.0);
        let page = ui.visuals().panel_fill;
        for front in [false, true] {
            let mut mesh = Mesh::default();
            for (at, (pos, depth)) in seen.iter().enumerate().filter(|(_, seen)| (seen.1 >= 0.0) == front) {
                let over = self.overlay.and_then(|overlay| overlay.get(at)).copied().unwrap_or_default();
                let own = colour::bucket(clusters.get(at).copied().unwrap_or_default());
                let shown = blend(own, over, self.opacity);
                // What lies behind fades into the page, unless its colour means something: then it is smaller.
                if self.overlay.is_some() {
                    add_dot(&mut mesh, *pos, if front { dot } else { dot * 0.6 }, shown);
                } else {
                    let behind = (0.2 - 0.4 * depth).clamp(0.0, 0.5);
                    add_dot(&mut mesh, *pos, dot, blend(shown, page, behind));
                }
            }
            painter.add(Shape::mesh(mesh));
        }
        if let Some((pos, _)) = scene.token.and_then(|token| seen.get(token as usize)) {
            frame(&painter, Rect::from_center_size(*pos, Vec2::splat(dot * 2.0)), scene.locked);
        }
        let hovered = response.hover_pos().and_then(|pointer| nearest(&seen, pointer, dot + 8.0));
        (response, hovered)
    }
}

fn allocate(ui: &mut Ui, size: Vec2) -> (Rect, Response) {
    ui.allocate_exact_size(size, Sense::click())
}

/// The point under the pointer, one in front before one behind.
fn nearest(seen: &[(Pos2, f32)], pointer: Pos2, reach: f32) -> Option<u32> {
    let mut best: Option<(bool, f32, usize)> = None;
    for (at, (pos, depth)) in seen.iter().enumerate() {
        let distance = pos.distance(pointer);
        let here = (*depth < 0.0, distance, at);
        if distance <= reach && best.is_none_or(|best| (here.0, here.1) < (best.0, best.1)) {
            best = Some(here);
        }
    }
    best.map(|(_, _, at)| at as u32)
}

/// An octagon, or a square where it is too small to be told apart.
fn add_dot(mesh: &mut Mesh, centre: Pos2, radius: f32, colour: Color32) {
    if radius < 2.0 {
        mesh.add_colored_rect(Rect::from_center_size(centre, Vec2::splat(radius * 1.8)), colour);
        return;
    }
    let first = mesh.vertices.len() as u32;
    for corner in 0..8 {
        let angle = (corner as f32 + 0.5) * std::f32::consts::FRAC_PI_4;
        mesh.colored_vertex(centre + Vec2::angled(angle) * radius, colour);
    }
    (1..7).for_each(|corner| mesh.add_triangle(first, first + corner, first + corner + 1));
}

/// Frames the token lit up in all views: a double line that stands out from anything.
fn frame(painter: &Painter, cell: Rect, locked: bool) {
    let cell = Rect::from_center_size(cell.center(), cell.size().max(Vec2::splat(6.0)));
    let bright = if locked { Color32::from_rgb(255, 196, 0) } else { Color32::WHITE };
    painter.rect_stroke(cell, 0.0, Stroke::new(3.5, Color32::BLACK), StrokeKind::Outside);
    painter.rect_stroke(cell.expand(0.75), 0.0, Stroke::new(2.0, bright), StrokeKind::Outside);
}

/// `over` laid on an opaque colour.
fn blend(under: Color32, over: Color32, opacity: f32) -> Color32 {
    under.blend(over.gamma_multiply(opacity))
}

/// The 0 that stands before each w is grey.
fn symbol_colour(symbol: u32) -> Color32 {
    if symbol == 0 { Color32::from_gray(150) } else { colour::bucket(symbol) }
}

/// Patches and cells stay sharp however large they are painted.
fn sharp() -> TextureOptions {
    TextureOptions { magnification: TextureFilter::Nearest, ..TextureOptions::LINEAR }
}

impl Canvas {
    fn picture(&mut self, ui: &Ui, shown: &Shown, face: Face<'_>, grid: Grid) {
        let load = |picture: &RgbaImage| {
            let size = [picture.width() as usize, picture.height() as usize];
            let image = ColorImage::from_rgba_unmultiplied(size, picture.as_raw());
            ui.ctx().load_texture("tokens", image, sharp())
        };
        match (face, &self.base) {
            (Face::Picture(new), Some((Base::Picture(old), _))) if Rc::ptr_eq(new, old) => {}
            (Face::Picture(new), _) => self.base = Some((Base::Picture(new.clone()), load(new))),
            (_, Some((Base::Input(old, _), _))) if old == shown => {}
            _ => {
                if let Shown::Picture(picture) = shown {
                    self.base = Some((Base::Input(shown.clone(), grid), load(&picture.photograph())));
                }
            }
        }
    }

    fn symbols(&mut self, ui: &Ui, shown: &Shown, face: Face<'_>, symbols: &[u32], grid: Grid) {
        let load = || {
            let colour = |token: u32| symbol_colour(symbols.get(token as usize).copied().unwrap_or_default());
            ui.ctx().load_texture("tokens", grid.image(colour), sharp())
        };
        match (face, &self.base) {
            (Face::Symbols(new), Some((Base::Symbols(old, was), _))) if Rc::ptr_eq(new, old) && *was == grid => {}
            (Face::Symbols(new), _) => self.base = Some((Base::Symbols(new.clone(), grid), load())),
            (_, Some((Base::Input(old, was), _))) if old == shown && *was == grid => {}
            _ => self.base = Some((Base::Input(shown.clone(), grid), load())),
        }
    }

    fn overlay_texture(&mut self, ui: &Ui, overlay: &Rc<[Color32]>, grid: Grid) -> &TextureHandle {
        let kept = self.overlay.take().filter(|(old, was, _)| Rc::ptr_eq(old, overlay) && *was == grid);
        let fresh = || {
            let image = grid.image(|token| overlay[token as usize]);
            (overlay.clone(), grid, ui.ctx().load_texture("overlay", image, sharp()))
        };
        &self.overlay.insert(kept.unwrap_or_else(fresh)).2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_in_front_is_found_first() {
        let seen = [(pos2(5.0, 5.0), -0.5), (pos2(6.0, 5.0), 0.5), (pos2(50.0, 5.0), -0.2)];
        assert_eq!(nearest(&seen, pos2(5.0, 5.0), 4.0), Some(1));
        assert_eq!(nearest(&seen, pos2(50.0, 6.0), 4.0), Some(2));
        assert_eq!(nearest(&seen, pos2(30.0, 30.0), 4.0), None);
    }

    #[test]
    fn turning_keeps_lengths() {
        let [x, y, z] = Turn { yaw: 1.1, pitch: -0.4 }.apply([0.6, -0.64, 0.48]);
        assert!((x * x + y * y + z * z - 1.0).abs() < 1e-5);
    }
}
