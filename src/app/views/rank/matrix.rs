//! A matrix as a picture with axes.

use crate::app::views::colour::{self, Scale};
use crate::app::views::{format, ticks};
use crate::text::Text;
use egui::{
    Align2, Color32, ColorImage, FontId, Pos2, Rect, Role, Sense, TextureHandle, TextureOptions, Ui, Vec2, WidgetInfo,
    pos2, vec2,
};

/// Room for ticks and words above and beside the picture.
const MARGIN: Vec2 = vec2(46.0, 34.0);

/// Pixels of a square matrix of n queries and n keys; the texture is made when they change.
pub struct Picture(TextureHandle);

impl Picture {
    pub fn new(ui: &Ui, values: &[f32], scale: Scale) -> Self {
        let side = values.len().isqrt();
        let pixels = values.iter().map(|value| colour::magnitude(scale.place(*value))).collect();
        Self(ui.ctx().load_texture("matrix", ColorImage::new([side, side], pixels), TextureOptions::NEAREST))
    }

    /// Paints it at most `most` points wide.
    pub fn show(&self, ui: &mut Ui, name: &str, n: u32, most: f32) {
        let side = (ui.available_width() - MARGIN.x - 8.0).min(most).max(60.0);
        let (outer, response) = ui.allocate_exact_size(Vec2::splat(side) + MARGIN + vec2(8.0, 6.0), Sense::hover());
        response.widget_info(|| WidgetInfo::labeled(Role::Image, true, name));
        let area = Rect::from_min_size(outer.min + MARGIN, Vec2::splat(side));
        let painter = ui.painter();
        painter.image(self.0.id(), area, Rect::from_min_max(Pos2::ZERO, pos2(1.0, 1.0)), Color32::WHITE);
        painter.rect_stroke(area, 0.0, (1.0, ui.visuals().weak_text_color()), egui::StrokeKind::Outside);
        let (ink, font) = (ui.visuals().text_color(), FontId::proportional(11.0));
        for tick in ticks::linear(0.0, f64::from(n), 4).into_iter().filter(|tick| tick.fract() == 0.0) {
            let part = (tick / f64::from(n)) as f32;
            let text = format::count(tick as u64);
            let (x, y) = (egui::lerp(area.x_range(), part), egui::lerp(area.y_range(), part));
            painter.vline(x, area.top() - 4.0..=area.top(), (1.0, ink));
            painter.text(pos2(x, area.top() - 5.0), Align2::CENTER_BOTTOM, &text, font.clone(), ink);
            painter.hline(area.left() - 4.0..=area.left(), y, (1.0, ink));
            painter.text(pos2(area.left() - 6.0, y), Align2::RIGHT_CENTER, text, font.clone(), ink);
        }
        let keys = pos2(area.center().x, area.top() - 19.0);
        painter.text(keys, Align2::CENTER_BOTTOM, Text::AttentionAxisKey.get(), font.clone(), ink);
        let galley = painter.layout_no_wrap(Text::AttentionAxisQuery.get().to_owned(), font, ink);
        let at = pos2(outer.left() + 1.0, area.center().y + galley.size().x / 2.0);
        painter.add(egui::epaint::TextShape::new(at, galley, ink).with_angle(-std::f32::consts::FRAC_PI_2));
    }
}
