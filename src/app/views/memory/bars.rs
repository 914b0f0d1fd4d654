//! Bars of bytes: measured buffers in proportion, methods on one logarithmic scale.

use super::{Known, section};
use crate::app::scene::{Command, Scene};
use crate::app::views::layout::legend;
use crate::app::views::{contender, format, missing};
use crate::memory::{self, Part, Term};
use crate::outcome::{BufferReport, Outcome};
use crate::plan::Role;
use crate::settings::Method;
use crate::text::{Text, fill};
use egui::{Align2, Color32, FontId, Rect, Response, Sense, TextStyle, Ui, WidgetInfo, pos2, vec2};

/// Height of a bar and of the line of words above it.
const BAR: f32 = 7.0;
const LINE: f32 = 16.0;

fn role_colour(role: Role) -> Color32 {
    match role {
        Role::Tensor => Color32::from_rgb(110, 130, 160),
        Role::Method => Color32::from_rgb(200, 120, 60),
        Role::Instrument => Color32::from_gray(140),
    }
}

/// The buffers of the method on the screen.
pub fn measured(ui: &mut Ui, scene: &Scene<'_>, commands: &mut Vec<Command>) {
    let name = contender::name(scene.current().map_or(scene.method, |outcome| outcome.settings.method));
    section(ui, fill(Text::MemoryMeasured, &[name]), Text::MemoryMeasuredHover);
    match scene.current() {
        Ok(outcome) => buffers(ui, outcome),
        Err(why) => missing(ui, scene.method, why, commands),
    }
}

fn buffers(ui: &mut Ui, outcome: &Outcome) {
    let sum = |role| outcome.buffers.iter().filter(|buffer| buffer.role == role).map(|buffer| buffer.bytes).sum();
    let sums = [
        (Role::Tensor, Text::MemoryRoleTensor, Text::MemoryRoleTensorHover),
        (Role::Method, Text::MemoryRoleMethod, Text::MemoryRoleMethodHover),
        (Role::Instrument, Text::MemoryRoleInstrument, Text::MemoryRoleInstrumentHover),
    ]
    .map(|(role, text, hover)| (role, sum(role), text, hover));
    ui.horizontal_wrapped(|ui| {
        for (role, bytes, text, hover) in sums {
            legend(ui, role_colour(role), &fill(text, &[&format::bytes(bytes)]), hover.get());
        }
    });
    let mut sorted: Vec<&BufferReport> = outcome.buffers.iter().collect();
    sorted.sort_by_key(|buffer| std::cmp::Reverse(buffer.bytes));
    let largest = sorted.first().map_or(1, |buffer| buffer.bytes.max(1));
    close(ui, |ui| {
        for buffer in sorted {
            let part = buffer.bytes as f32 / largest as f32;
            let words = [buffer.name, &format::shape(&buffer.shape), &format::bytes(buffer.bytes)];
            row(ui, words, role_colour(buffer.role), part, &[]).on_hover_text(buffer_hover(buffer.name).get());
        }
    });
    let own = sums.iter().filter(|(role, ..)| *role != Role::Instrument).map(|(_, bytes, ..)| bytes).sum();
    ui.label(fill(Text::MemoryTotal, &[&format::bytes(own), &format::bytes(outcome.peak_bytes)]))
        .on_hover_text(Text::MemoryTotalHover.get());
}

/// Bars below each other, which bring their own distance.
fn close(ui: &mut Ui, rows: impl FnOnce(&mut Ui)) {
    ui.scope(|ui| {
        ui.spacing_mut().item_spacing.y = 0.0;
        rows(ui);
    });
}

/// A name, what belongs to it and a value over a bar that fills `part` of the width. `ticks` are
/// drawn through the bar.
fn row(ui: &mut Ui, [name, about, value]: [&str; 3], colour: Color32, part: f32, ticks: &[f32]) -> Response {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), LINE + BAR + 3.0), Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(egui::Role::Label, true, format!("{name} {about} {value}")));
    let font = TextStyle::Body.resolve(ui.style());
    let small = FontId::proportional(11.0);
    let visuals = ui.visuals();
    let painter = ui.painter();
    let value = painter.text(rect.right_top(), Align2::RIGHT_TOP, value, font.clone(), visuals.text_color());
    let name = painter.text(rect.left_top(), Align2::LEFT_TOP, name, font, visuals.strong_text_color());
    let left = Rect::from_min_max(rect.min, pos2(value.left() - 6.0, rect.bottom()));
    let baseline = pos2(name.right() + 8.0, name.bottom() - 1.0);
    painter.with_clip_rect(left).text(baseline, Align2::LEFT_BOTTOM, about, small, visuals.weak_text_color());
    let bar = Rect::from_min_size(rect.left_top() + vec2(0.0, LINE), vec2(rect.width(), BAR));
    painter.rect_filled(bar, 2.0, visuals.extreme_bg_color);
    let filled = bar.with_max_x(bar.left() + (bar.width() * part.clamp(0.0, 1.0)).max(2.0));
    painter.rect_filled(filled, 2.0, colour);
    for tick in ticks {
        painter.vline(bar.left() + bar.width() * tick, bar.y_range(), (1.0, visuals.window_stroke.color));
    }
    response
}

/// Powers of two between which bars on a logarithmic scale are drawn, in steps of 32.
struct LogScale {
    low: u32,
    high: u32,
}

impl LogScale {
    const STEP: u32 = 5;

    fn around(values: &[u64]) -> Self {
        let low = values.iter().min().map_or(0, |bytes| bytes.max(&1).ilog2()).saturating_sub(1) / Self::STEP;
        let high = values.iter().max().map_or(1, |bytes| bytes.max(&1).ilog2() + 1).div_ceil(Self::STEP);
        Self { low: low * Self::STEP, high: high.max(low + 1) * Self::STEP }
    }

    fn place(&self, bytes: u64) -> f32 {
        let log = (bytes.max(1) as f64).log2() as f32;
        (log - self.low as f32) / (self.high - self.low) as f32
    }

    /// (place, bytes).
    fn ticks(&self) -> Vec<(f32, u64)> {
        (self.low..=self.high).step_by(Self::STEP as usize).map(|bit| (self.place(1 << bit), 1 << bit)).collect()
    }

    fn axis(&self, ui: &mut Ui) {
        let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), LINE), Sense::hover());
        let ticks = self.ticks();
        let last = ticks.len() - 1;
        for (at, (place, bytes)) in ticks.into_iter().enumerate() {
            let anchor = match at {
                0 => Align2::LEFT_TOP,
                at if at == last => Align2::RIGHT_TOP,
                _ => Align2::CENTER_TOP,
            };
            let top = pos2(rect.left() + rect.width() * place, rect.top());
            let words = format::bytes(bytes).replace(".0", "");
            ui.painter().text(top, anchor, words, FontId::proportional(10.0), ui.visuals().weak_text_color());
        }
    }
}

/// The methods on one scale: by formula, and as this program plans them.
pub fn compared(ui: &mut Ui, scene: &Scene<'_>, known: &Known) {
    let dims = &scene.input.problem.dims;
    let formulae: Vec<(Method, Vec<Term>)> = memory::METHODS
        .into_iter()
        .filter_map(|method| Some((method, memory::formula(scene.settings, dims, method)?)))
        .collect();
    let total = |terms: &[Term]| terms.iter().map(|term| term.bytes).sum::<u64>();
    let all: Vec<u64> =
        formulae.iter().map(|(_, terms)| total(terms)).chain(known.here.iter().map(|(_, bytes)| *bytes)).collect();
    let scale = LogScale::around(&all);
    let ticks: Vec<f32> =
        scale.ticks().into_iter().map(|(place, _)| place).filter(|at| *at > 0.0 && *at < 1.0).collect();
    let bar = |ui: &mut Ui, method: Method, about: &str, bytes: u64| {
        let words = [contender::name(method), about, &format::bytes(bytes)];
        row(ui, words, contender::colour(method), scale.place(bytes), &ticks)
    };

    section(ui, fill(Text::MemoryCompared, &[&format::count(u64::from(dims.n_q))]), Text::MemoryFormulaHover);
    ui.label(Text::MemoryFormula.get()).on_hover_text(Text::MemoryFormulaHover.get());
    let seen = memory::chunks_seen(scene.settings).to_string();
    close(ui, |ui| {
        for (method, terms) in &formulae {
            bar(ui, *method, &fill(formula_words(*method), &[&seen]), total(terms)).on_hover_ui(|ui| {
                ui.label(Text::MemoryFormulaHover.get());
                ui.add_space(4.0);
                for term in terms {
                    ui.label(format!("{}: {}", fill(part_words(term.part), &[&seen]), format::bytes(term.bytes)));
                }
                ui.add_space(4.0);
                ui.label(table_words(*method).get());
            });
        }
        scale.axis(ui);
    });
    ui.label(Text::MemoryPlan.get()).on_hover_text(Text::MemoryPlanHover.get());
    close(ui, |ui| {
        for (method, bytes) in known.here {
            bar(ui, method, "", bytes).on_hover_text(Text::MemoryPlanHover.get());
        }
        scale.axis(ui);
    });
}

fn part_words(part: Part) -> Text {
    match part {
        Part::Tensors => Text::MemoryTermTensors,
        Part::Matrix => Text::MemoryTermMatrix,
        Part::Row => Text::MemoryTermRow,
        Part::Lists => Text::MemoryTermLists,
        Part::ChunkScores => Text::MemoryTermChunkScores,
        Part::RoundOutputs => Text::MemoryTermRoundOutputs,
        Part::Rotations => Text::MemoryTermRotations,
        Part::Projections => Text::MemoryTermProjections,
        Part::Projected => Text::MemoryTermProjected,
        Part::ProjectedScores => Text::MemoryTermProjectedScores,
    }
}

/// The leading term of a method, as it stands beside its bar.
fn formula_words(method: Method) -> Text {
    match method {
        Method::FullMaterialized => Text::MemoryLeadingMatrix,
        Method::FullRowwise | Method::Full => Text::MemoryLeadingRow,
        Method::Lsh => Text::MemoryLeadingLsh,
        Method::Linformer => Text::MemoryLeadingLinformer,
    }
}

/// What the papers' tables say about a method's memory.
pub fn table_words(method: Method) -> Text {
    match method {
        Method::FullMaterialized => Text::MemoryTableMatrix,
        Method::FullRowwise => Text::MemoryTableRowwise,
        Method::Full => Text::MemoryTableOnline,
        Method::Lsh => Text::MemoryTableLsh,
        Method::Linformer => Text::MemoryTableLinformer,
    }
}

fn buffer_hover(name: &str) -> Text {
    match name {
        "q" => Text::BufferQ,
        "k" => Text::BufferK,
        "v" => Text::BufferV,
        "out" => Text::BufferOut,
        "lse" => Text::BufferLse,
        "key scale" => Text::BufferKeyScale,
        "scores" => Text::BufferScores,
        "buckets" => Text::BufferBuckets,
        "order" => Text::BufferOrder,
        "chunk of" => Text::BufferChunkOf,
        "rotations" => Text::BufferRotations,
        "sort table" => Text::BufferSortTable,
        "sort list" => Text::BufferSortList,
        "round output" => Text::BufferRoundOutput,
        "round lse" => Text::BufferRoundLse,
        "E" => Text::BufferE,
        "F" => Text::BufferF,
        "E K" => Text::BufferProjectedKeys,
        "F V" => Text::BufferProjectedValues,
        "E K scale" => Text::BufferProjectedScale,
        _ => Text::BufferRest,
    }
}
