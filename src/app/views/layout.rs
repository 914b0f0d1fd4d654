//! What views of several panels share: columns and legends.

use egui::{Align, Color32, Layout, Rect, Response, RichText, Role, Sense, TextStyle, Ui, WidgetInfo, vec2};

/// A column whose text is not justified, as that of egui's columns is.
pub fn column(ui: &mut Ui, contents: impl FnOnce(&mut Ui)) {
    ui.with_layout(Layout::top_down(Align::Min), contents);
}

/// A cell of a table with columns of a given width.
pub fn cell(ui: &mut Ui, width: f32, side: Align, text: RichText) -> Response {
    ui.scope(|ui| {
        ui.set_width(width);
        ui.with_layout(Layout::top_down(side), |ui| ui.label(text)).inner
    })
    .inner
}

/// A coloured square and words, which stay together where lines wrap.
pub fn legend(ui: &mut Ui, colour: Color32, words: &str, hover: &str) -> Response {
    let font = TextStyle::Body.resolve(ui.style());
    let galley = ui.painter().layout_no_wrap(words.to_owned(), font, ui.visuals().text_color());
    let (rect, response) = ui.allocate_exact_size(galley.size() + vec2(16.0, 0.0), Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, words));
    let square = Rect::from_center_size(rect.left_center() + vec2(5.0, 0.0), vec2(10.0, 10.0));
    ui.painter().rect_filled(square, 2.0, colour);
    ui.painter().galley(rect.left_top() + vec2(14.0, 0.0), galley, ui.visuals().text_color());
    response.on_hover_text(hover)
}
