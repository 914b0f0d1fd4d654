//! Layer by head: how low the rank of a trained model's attention is, above that of random Q and K.

use super::super::{caption, colour, format, waiting_for};
use crate::app::scene::{Answer, Command, Question, Scene};
use crate::lab::rank::trained::{HEADS, Layer, N};
use crate::text::{Text, fill};
use colour::Scale;
use egui::{Align2, FontId, Rect, Role, Sense, Ui, WidgetInfo, pos2, vec2};

const ROW: f32 = 28.0;
/// Room for the names of the rows, and for the numbers of the heads.
const MARGIN: egui::Vec2 = vec2(92.0, 34.0);
const CELL: f32 = 52.0;

pub fn show(ui: &mut Ui, scene: &Scene<'_>, commands: &mut Vec<Command>) {
    commands.push(Command::Ask(Question::Trained));
    match (scene.answer)(Question::Trained) {
        Some(Answer::Trained(layers)) => map(ui, &layers),
        other => waiting_for(ui, other, Text::TrainedSoon.get()),
    }
    caption(ui, Text::TrainedCaption.get());
    ui.small(Text::TrainedSource.get());
}

fn map(ui: &mut Ui, layers: &[Layer]) {
    let rows: Vec<(String, &[f64])> = layers
        .iter()
        .flat_map(|layer| {
            let name = fill(Text::TrainedLayer, &[&layer.layer.to_string()]);
            [(name, &layer.trained[..]), (Text::TrainedRandom.get().to_owned(), &layer.random[..])]
        })
        .collect();
    let all = || rows.iter().flat_map(|(_, shares)| *shares).copied();
    let lowest = all().fold(f64::INFINITY, f64::min) as f32;
    let scale = Scale::linear((lowest * 20.0).floor() / 20.0, 1.0);
    let width = ((ui.available_width() - MARGIN.x - 8.0) / HEADS as f32).min(CELL);
    let size = MARGIN + vec2(width * HEADS as f32, ROW * rows.len() as f32);
    let (outer, response) = ui.allocate_exact_size(size, Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, Text::TrainedMap.get()));
    let area = Rect::from_min_size(outer.min + MARGIN, size - MARGIN);
    let painter = ui.painter();
    let (ink, font) = (ui.visuals().text_color(), FontId::proportional(11.0));
    let cell = |row: usize, head: usize| {
        let corner = area.min + vec2(head as f32 * width, row as f32 * ROW);
        Rect::from_min_size(corner, vec2(width, ROW)).shrink(0.5)
    };
    painter.text(pos2(area.center().x, outer.top()), Align2::CENTER_TOP, Text::TrainedHeads.get(), font.clone(), ink);
    for (row, (name, shares)) in rows.iter().enumerate() {
        let side = pos2(area.left() - 6.0, cell(row, 0).center().y);
        painter.text(side, Align2::RIGHT_CENTER, name, font.clone(), ink);
        for (head, share) in shares.iter().enumerate() {
            let rect = cell(row, head);
            if row == 0 {
                let above = pos2(rect.center().x, area.top() - 3.0);
                painter.text(above, Align2::CENTER_BOTTOM, (head + 1).to_string(), font.clone(), ink);
            }
            let fill = colour::magnitude(scale.place(*share as f32));
            painter.rect_filled(rect, 0.0, fill);
            if width > 28.0 {
                let text = format!("{:.0} %", share * 100.0);
                painter.text(rect.center(), Align2::CENTER_CENTER, text, font.clone(), colour::ink_on(fill));
            }
        }
    }
    if let Some(pointer) = response.hover_pos().filter(|pointer| area.contains(*pointer)) {
        let at = (pointer - area.min) / vec2(width, ROW);
        let (row, head) = (at.y as usize, at.x as usize);
        if let Some(((name, _), share)) = rows.get(row).and_then(|row| Some((row, row.1.get(head)?))) {
            let words = [name.as_str(), &(head + 1).to_string(), &format::percent(*share), &(N / 4).to_string()];
            response.on_hover_text_at_pointer(fill(Text::TrainedCell, &words));
        }
    }
    colour::bar(ui, colour::magnitude, scale, Text::TrainedBar.get());
}
