//! Eigenvalues and singular values of a 2 x 2 matrix that can be dragged.

use super::super::{caption, format};
use crate::text::{Text, fill};
use egui::{Align2, Color32, DragValue, FontId, Pos2, Rect, Role, Sense, Shape, Stroke, Ui, Vec2, WidgetInfo, vec2};

/// Side of the drawing.
const SIDE: f32 = 280.0;
/// Half of its extent in units of the plane.
const REACH: f64 = 2.6;
/// A drag moves an entry by multiples of this, so that special matrices can be met.
const STEP: f64 = 0.05;
/// Entries are hundredths: what differs by less differs by rounding.
const SAME: f64 = 1e-9;
const FIRST: Color32 = Color32::from_rgb(222, 110, 30);
const SECOND: Color32 = Color32::from_rgb(20, 160, 110);
const EIGEN: Color32 = Color32::from_rgb(190, 100, 170);

/// The matrix [[a, b], [c, d]]: (a, c) and (b, d) are the images of the two basis vectors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    a: f64,
    b: f64,
    c: f64,
    d: f64,
}

impl Default for State {
    fn default() -> Self {
        Self::SYMMETRIC
    }
}

/// What the eigenvalues of a matrix are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Eigen {
    /// Two real ones, the larger first, with a unit vector each.
    Real([(f64, [f64; 2]); 2]),
    /// Real part and imaginary part.
    Complex(f64, f64),
    /// A double one with a single direction.
    Defective(f64, [f64; 2]),
    /// A multiple of the identity.
    Every(f64),
}

impl State {
    const SYMMETRIC: Self = Self { a: 1.5, b: 0.5, c: 0.5, d: 0.75 };
    const TURN: Self = Self { a: 0.8, b: -0.9, c: 0.9, d: 0.8 };
    const SHEAR: Self = Self { a: 1.0, b: 1.0, c: 0.0, d: 1.0 };

    fn image(self, [x, y]: [f64; 2]) -> [f64; 2] {
        [self.a * x + self.b * y, self.c * x + self.d * y]
    }

    fn is_symmetric(self) -> bool {
        (self.b - self.c).abs() < SAME
    }

    fn eigen(self) -> Eigen {
        let (half, det) = ((self.a + self.d) / 2.0, self.a * self.d - self.b * self.c);
        let square = half * half - det;
        if square < -SAME {
            return Eigen::Complex(half, (-square).sqrt());
        }
        let root = square.max(0.0).sqrt();
        // A - lambda I times an eigenvector is 0: it is perpendicular to the longer row.
        let vector = |lambda: f64| {
            let rows = [[self.a - lambda, self.b], [self.c, self.d - lambda]];
            let length = |row: [f64; 2]| row[0].hypot(row[1]);
            let row = if length(rows[0]) >= length(rows[1]) { rows[0] } else { rows[1] };
            [-row[1] / length(row), row[0] / length(row)]
        };
        if square > SAME {
            return Eigen::Real([half + root, half - root].map(|lambda| (lambda, vector(lambda))));
        }
        if self.b.abs() < SAME && self.c.abs() < SAME {
            Eigen::Every(half)
        } else {
            Eigen::Defective(half, vector(half))
        }
    }

    /// Half axes of the image of the unit circle.
    fn singular(self) -> [f64; 2] {
        let sum = (self.a + self.d).hypot(self.b - self.c);
        let difference = (self.a - self.d).hypot(self.b + self.c);
        [(sum + difference) / 2.0, (sum - difference).abs() / 2.0]
    }
}

pub fn show(ui: &mut Ui, state: &mut State) {
    ui.horizontal_wrapped(|ui| {
        for (name, help, matrix) in [
            (Text::PlaneSymmetric, Text::PlaneSymmetricHelp, State::SYMMETRIC),
            (Text::PlaneTurn, Text::PlaneTurnHelp, State::TURN),
            (Text::PlaneShear, Text::PlaneShearHelp, State::SHEAR),
        ] {
            if ui.selectable_label(*state == matrix, name.get()).on_hover_text(help.get()).clicked() {
                *state = matrix;
            }
        }
    });
    ui.horizontal(|ui| {
        draw(ui, state);
        if ui.available_width() > 260.0 {
            ui.vertical(|ui| explain(ui, state));
        }
    });
    if ui.available_width() < SIDE + 276.0 {
        explain(ui, state);
    }
    caption(ui, Text::PlaneCaption.get());
}

/// The unit circle, its image, the images of the basis vectors, which can be dragged, and the eigenvectors.
fn draw(ui: &mut Ui, state: &mut State) {
    let side = ui.available_width().min(SIDE);
    let (rect, response) = ui.allocate_exact_size(Vec2::splat(side), Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, Text::PlaneDrawing.get()));
    let unit = f64::from(side) / (2.0 * REACH);
    let place = |[x, y]: [f64; 2]| rect.center() + vec2((x * unit) as f32, (-y * unit) as f32);
    for (name, x, y) in
        [(Text::PlaneFirst, &mut state.a, &mut state.c), (Text::PlaneSecond, &mut state.b, &mut state.d)]
    {
        let tip = Rect::from_center_size(place([*x, *y]), Vec2::splat(26.0));
        let tip = ui.interact(tip, ui.scope_id().with(name), Sense::drag());
        tip.widget_info(|| WidgetInfo::labeled(Role::Slider, true, name.get()));
        if let Some(pointer) = tip.interact_pointer_pos().filter(|_| tip.dragged()) {
            let at = (pointer - rect.center()) / unit as f32;
            let snap = |x: f32| ((f64::from(x) / STEP).round() * STEP).clamp(-2.5, 2.5);
            (*x, *y) = (snap(at.x), snap(-at.y));
        }
        tip.on_hover_cursor(egui::CursorIcon::Grab).on_hover_text(Text::PlaneDrag.get());
    }
    let state = *state;
    let painter = ui.painter_at(rect);
    let faint = Stroke::new(1.0, ui.visuals().weak_text_color().gamma_multiply(0.5));
    painter.rect_filled(rect, 2.0, ui.visuals().extreme_bg_color);
    painter.hline(rect.x_range(), rect.center().y, faint);
    painter.vline(rect.center().x, rect.y_range(), faint);
    let font = FontId::proportional(11.0);
    for tick in [-2.0, -1.0, 1.0, 2.0] {
        let ink = ui.visuals().weak_text_color();
        painter.text(place([tick, 0.0]) + vec2(0.0, 2.0), Align2::CENTER_TOP, format::number(tick), font.clone(), ink);
        painter.text(
            place([0.0, tick]) - vec2(3.0, 0.0),
            Align2::RIGHT_CENTER,
            format::number(tick),
            font.clone(),
            ink,
        );
    }
    let circle = |map: &dyn Fn([f64; 2]) -> [f64; 2]| -> Vec<Pos2> {
        let turns = (0..=72).map(|step| f64::from(step) / 72.0 * std::f64::consts::TAU);
        turns.map(|angle| place(map([angle.cos(), angle.sin()]))).collect()
    };
    painter.add(Shape::line(circle(&|at| at), faint));
    let ellipse = Stroke::new(2.0, ui.visuals().text_color());
    painter.add(Shape::line(circle(&|at| state.image(at)), ellipse));
    let directions: &[[f64; 2]] = match &state.eigen() {
        Eigen::Real([(_, first), (_, second)]) => &[*first, *second],
        Eigen::Defective(_, only) => &[*only],
        Eigen::Complex(..) | Eigen::Every(_) => &[],
    };
    for [x, y] in directions {
        let ends = [-3.7, 3.7].map(|far| place([x * far, y * far]));
        painter.extend(Shape::dashed_line(&ends, Stroke::new(1.5, EIGEN), 5.0, 4.0));
    }
    for (colour, tip, name) in
        [(FIRST, [state.a, state.c], Text::PlaneFirst), (SECOND, [state.b, state.d], Text::PlaneSecond)]
    {
        let (from, to) = (rect.center(), place(tip));
        painter.line_segment([from, to], Stroke::new(2.5, colour));
        painter.circle_filled(to, 6.0, colour);
        painter.text(to + vec2(8.0, -6.0), Align2::LEFT_BOTTOM, name.get(), font.clone(), ui.visuals().text_color());
    }
}

/// The entries, and what they make of the plane.
fn explain(ui: &mut Ui, state: &mut State) {
    egui::Grid::new("matrix of the plane").show(ui, |ui| {
        for row in [[("a", &mut state.a), ("b", &mut state.b)], [("c", &mut state.c), ("d", &mut state.d)]] {
            for (name, entry) in row {
                let value = DragValue::new(&mut *entry)
                    .speed(STEP)
                    .range(-2.5..=2.5)
                    .fixed_decimals(2)
                    .prefix(format!("{name} = "));
                if ui.add(value).on_hover_text(Text::PlaneEntryHelp.get()).changed() {
                    *entry = (*entry * 100.0).round() / 100.0;
                }
            }
            ui.end_row();
        }
    });
    let number = |value: f64| format::number(if value.abs() < SAME { 0.0 } else { value });
    ui.label(match state.eigen() {
        Eigen::Real([(first, _), (second, _)]) => {
            let text = if state.is_symmetric() { Text::PlaneSpectral } else { Text::PlaneReal };
            fill(text, &[&number(first), &number(second)])
        }
        Eigen::Complex(real, imaginary) => fill(Text::PlaneComplex, &[&number(real), &number(imaginary)]),
        Eigen::Defective(value, _) => fill(Text::PlaneDefective, &[&number(value)]),
        Eigen::Every(value) => fill(Text::PlaneEvery, &[&number(value)]),
    });
    let [first, second] = state.singular();
    ui.label(fill(Text::PlaneSingular, &[&number(first), &number(second)]));
    ui.label(Text::PlaneWhy.get());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algebra::{Matrix, svd};

    #[test]
    fn the_three_cases_are_told_apart() {
        assert!(matches!(State::SYMMETRIC.eigen(), Eigen::Real(_)));
        assert_eq!(State::TURN.eigen(), Eigen::Complex(0.8, 0.9));
        assert!(matches!(State::SHEAR.eigen(), Eigen::Defective(value, _) if value == 1.0));
        assert_eq!(State { a: -0.5, b: 0.0, c: 0.0, d: -0.5 }.eigen(), Eigen::Every(-0.5));
    }

    #[test]
    fn a_hundredth_apart_is_not_symmetric() {
        assert!(State::SYMMETRIC.is_symmetric());
        for c in [0.49, 0.51, 0.52] {
            assert!(!State { c, ..State::SYMMETRIC }.is_symmetric(), "b = 0.5, c = {c}");
        }
        // As far as rounding goes: 0.1 + 0.2 is not 0.3.
        assert!(State { b: 0.1 + 0.2, c: 0.3, ..State::SYMMETRIC }.is_symmetric());
    }

    #[test]
    fn an_eigenvector_keeps_its_direction() {
        for state in
            [State::SYMMETRIC, State { a: 0.3, b: 1.2, c: 0.4, d: -1.1 }, State { a: 2.0, b: 0.0, c: 0.7, d: 1.0 }]
        {
            let Eigen::Real(pairs) = state.eigen() else { panic!("{state:?}") };
            for (value, vector) in pairs {
                let image = state.image(vector);
                assert!((0..2).all(|at| (image[at] - value * vector[at]).abs() < 1e-9), "{state:?} {value} {vector:?}");
            }
        }
        let Eigen::Defective(value, vector) = State::SHEAR.eigen() else { panic!("a shear") };
        assert_eq!((value, State::SHEAR.image(vector)), (1.0, vector));
    }

    #[test]
    fn singular_values_are_those_of_the_library() {
        for state in [State::SYMMETRIC, State::TURN, State::SHEAR, State { a: 0.3, b: -1.2, c: 0.4, d: 0.1 }] {
            let entries = [state.a, state.b, state.c, state.d].map(|x| x as f32).to_vec();
            let values = svd(&Matrix { rows: 2, cols: 2, entries }).expect("singular values").values;
            let apart = state.singular().iter().zip(values).map(|(a, b)| (a - f64::from(b)).abs()).fold(0.0, f64::max);
            assert!(apart < 1e-6, "{state:?}");
        }
    }
}
