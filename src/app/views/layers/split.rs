//! The picture of a reversible layer: two streams, each changed by a branch of the other.

use crate::text::Text;
use egui::{Align2, Color32, FontId, Pos2, Role, Sense, Stroke, Ui, WidgetInfo, pos2, vec2};

const F: Color32 = Color32::from_rgb(64, 120, 220);
const G: Color32 = Color32::from_rgb(222, 110, 30);

pub fn show(ui: &mut Ui) {
    let width = ui.available_width().min(420.0);
    let (rect, response) = ui.allocate_exact_size(vec2(width, 76.0), Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, Text::LayersSplit.get()));
    response.on_hover_text(Text::LayersSplit.get());
    let painter = ui.painter_at(rect);
    let ink = ui.visuals().text_color();
    let line = Stroke::new(1.5, ink);
    let (top, bottom) = (rect.top() + 14.0, rect.bottom() - 14.0);
    let at = |share: f32, y: f32| pos2(rect.left() + 26.0 + (rect.width() - 52.0) * share, y);
    let font = FontId::proportional(13.0);
    let write = |place: Pos2, text: &str, colour: Color32| {
        painter.text(place, Align2::CENTER_CENTER, text, font.clone(), colour);
    };
    for (y, names) in [(top, ["x1", "y1"]), (bottom, ["x2", "y2"])] {
        painter.arrow(at(0.0, y), at(1.0, y) - at(0.0, y), line);
        write(at(0.0, y) - vec2(14.0, 0.0), names[0], ink);
        write(at(1.0, y) + vec2(14.0, 0.0), names[1], ink);
    }
    // F reads the second stream and adds to the first; G reads the new first and adds to the second.
    for (share, from, to, name, colour) in [(0.3, bottom, top, "F", F), (0.7, top, bottom, "G", G)] {
        painter.arrow(at(share, from), at(share, to) - at(share, from), Stroke::new(1.5, colour));
        let middle = at(share, rect.center().y);
        painter.circle(middle, 11.0, colour, Stroke::NONE);
        write(middle, name, Color32::WHITE);
        painter.circle(at(share, to), 7.0, ui.visuals().panel_fill, Stroke::new(1.5, colour));
        write(at(share, to), "+", ink);
    }
    ui.label(Text::LayersSplitWords.get());
}
