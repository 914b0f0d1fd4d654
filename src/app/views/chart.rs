//! Charts in which lines are formulas and dots are measurements: neither is ever drawn as the other. Thin lines
//! join the dots of one method.

use super::layout::legend;
use crate::text::{Text, fill};
use egui::{Color32, RichText, Ui};
use egui_plot::{AxisHints, GridMark, HoverPosition, Line, LineStyle, Plot, PlotUi, Points};

/// Colours of traces, told apart by people with colour-blindness (after Okabe and Ito), on a dark and a light page.
pub const COLOURS: [Color32; 4] = [
    Color32::from_rgb(64, 120, 220),
    Color32::from_rgb(222, 110, 30),
    Color32::from_rgb(20, 160, 110),
    Color32::from_rgb(190, 100, 170),
];

/// One axis: its words, the values that are marked, from end to end, and how they are written.
pub struct Axis<'a> {
    pub label: &'a str,
    /// Equal lengths for equal factors.
    pub log: bool,
    pub marks: Vec<f64>,
    pub write: fn(f64) -> String,
}

/// A measured value, and the half of its error bar.
#[derive(Clone, Copy, Debug)]
pub struct Dot {
    pub at: [f64; 2],
    pub error: f64,
}

/// What belongs together: a formula, what was measured, or both in one colour.
pub struct Trace {
    pub name: String,
    pub colour: Color32,
    pub line: Vec<[f64; 2]>,
    /// Dashed, for a line that is no prediction of the dots.
    pub dashed: bool,
    pub dots: Vec<Dot>,
    /// The dots are joined by a thin line.
    pub joined: bool,
}

impl Trace {
    /// A formula.
    pub fn line(name: impl Into<String>, colour: Color32, line: Vec<[f64; 2]>) -> Self {
        Self { name: name.into(), colour, line, dashed: false, dots: Vec::new(), joined: false }
    }

    /// Measurements.
    pub fn dots(name: impl Into<String>, colour: Color32, dots: Vec<Dot>) -> Self {
        Self { dots, ..Self::line(name, colour, Vec::new()) }
    }

    pub fn dashed(self) -> Self {
        Self { dashed: true, ..self }
    }

    pub fn joined(self) -> Self {
        Self { joined: true, ..self }
    }
}

pub struct Chart<'a> {
    pub id: &'a str,
    pub x: Axis<'a>,
    pub y: Axis<'a>,
    pub height: f32,
}

impl Axis<'_> {
    fn place(&self, value: f64) -> f64 {
        if self.log { value.max(1e-9).log2() } else { value }
    }

    fn value(&self, place: f64) -> f64 {
        if self.log { place.exp2() } else { place }
    }

    /// Marks of equal weight, so that each has a label.
    fn grid(&self) -> Vec<GridMark> {
        let places: Vec<f64> = self.marks.iter().map(|mark| self.place(*mark)).collect();
        let step_size = places.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::MAX, f64::min);
        places.into_iter().map(|value| GridMark { value, step_size }).collect()
    }

    fn ends(&self) -> impl Iterator<Item = f64> {
        [self.marks.first(), self.marks.last()].into_iter().flatten().map(|mark| self.place(*mark))
    }
}

impl Chart<'_> {
    /// The legend, the words of the vertical axis and the plot.
    pub fn show(&self, ui: &mut Ui, traces: &[Trace]) {
        ui.horizontal_wrapped(|ui| {
            for trace in traces {
                legend(ui, trace.colour, &trace.name, self.y.label);
            }
        });
        ui.label(RichText::new(self.y.label).small());
        let write = [self.x.write, self.y.write];
        let mut plot = Plot::new(self.id)
            .height(self.height)
            .allow_zoom(false)
            .allow_drag(false)
            .allow_scroll(false)
            .allow_boxed_zoom(false)
            .allow_double_click_reset(false)
            .show_crosshair(false)
            .x_grid_spacer(|_| self.x.grid())
            .y_grid_spacer(|_| self.y.grid())
            .custom_x_axes(vec![
                AxisHints::new_x()
                    .label(self.x.label)
                    .label_spacing(10.0..=14.0)
                    .formatter(|mark, _| write[0](self.x.value(mark.value))),
            ])
            .custom_y_axes(vec![
                AxisHints::new_y()
                    .label_spacing(8.0..=14.0)
                    .min_thickness(28.0)
                    .formatter(|mark, _| write[1](self.y.value(mark.value))),
            ])
            .label_formatter(|hover| {
                let HoverPosition::NearDataPoint { plot_name, position, .. } = hover else { return None };
                let at = [self.x.value(position.x), self.y.value(position.y)];
                let words = [plot_name, self.x.label, &write[0](at[0]), self.y.label, &write[1](at[1])];
                Some(fill(Text::ChartPoint, &words))
            });
        for end in self.x.ends() {
            plot = plot.include_x(end);
        }
        for end in self.y.ends() {
            plot = plot.include_y(end);
        }
        plot.show(ui, |plot| traces.iter().for_each(|trace| self.draw(plot, trace)));
    }

    fn draw<'a>(&self, plot: &mut PlotUi<'a>, trace: &Trace) {
        let place = |[x, y]: [f64; 2]| [self.x.place(x), self.y.place(y)];
        let line = |name: String, points: &[[f64; 2]]| {
            Line::new(name, points.iter().map(|at| place(*at)).collect::<Vec<_>>()).color(trace.colour)
        };
        if !trace.line.is_empty() {
            let (name, style) = if trace.dashed {
                (trace.name.clone(), LineStyle::dashed_dense())
            } else {
                (fill(Text::ChartTheory, &[&trace.name]), LineStyle::Solid)
            };
            plot.line(line(name, &trace.line).width(1.6).style(style));
        }
        for Dot { at: [x, y], error } in trace.dots.iter().filter(|dot| dot.error > 0.0) {
            let ends = [[*x, (y - error).max(self.y.marks.first().copied().unwrap_or(0.0))], [*x, y + error]];
            plot.line(line(String::new(), &ends).width(1.5).allow_hover(false));
        }
        if !trace.dots.is_empty() {
            let dots: Vec<[f64; 2]> = trace.dots.iter().map(|dot| place(dot.at)).collect();
            let name = fill(Text::ChartMeasured, &[&trace.name]);
            if trace.joined {
                let joins = Line::new(String::new(), dots.clone()).color(trace.colour).width(1.0);
                plot.line(joins.allow_hover(false));
            }
            plot.points(Points::new(name, dots).radius(3.2).color(trace.colour));
        }
    }
}
