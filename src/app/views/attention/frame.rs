//! What part of the matrix the map shows, and the arithmetic of zooming and panning.

use crate::methods::measure::Window;

/// Fewest positions that fill the map.
const FEWEST: f64 = 8.0;

/// A stretch of one axis, `[start, start + len)` of `total` positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    pub start: f64,
    pub len: f64,
    pub total: u32,
}

impl Span {
    pub fn whole(total: u32) -> Self {
        Self { start: 0.0, len: f64::from(total), total }
    }

    fn clamped(self) -> Self {
        let total = f64::from(self.total);
        let len = self.len.clamp(FEWEST.min(total), total);
        Self { start: self.start.clamp(0.0, total - len), len, ..self }
    }

    /// Magnifies by `factor`; what lies at `part` of the stretch, from 0 to 1, stays there unless an
    /// end is in the way.
    pub fn zoomed(self, factor: f64, part: f64) -> Self {
        let total = f64::from(self.total);
        let len = (self.len / factor).clamp(FEWEST.min(total), total);
        Self { start: self.start + part * (self.len - len), len, ..self }.clamped()
    }

    /// Moves by `parts` of the stretch.
    pub fn moved(self, parts: f64) -> Self {
        Self { start: self.start + parts * self.len, ..self }.clamped()
    }

    /// The position at `part` of the stretch, from 0 to 1.
    pub fn position(self, part: f64) -> u32 {
        ((self.start + part * self.len).max(0.0) as u32).min(self.total.saturating_sub(1))
    }

    /// Where a position's lower end stands in the stretch; outside 0 to 1 when it is not shown.
    pub fn part(self, position: f64) -> f64 {
        (position - self.start) / self.len
    }

    /// Whole positions `(start, count)` that cover the stretch.
    pub fn positions(self) -> (u32, u32) {
        let start = (self.start + 1e-6).floor() as u32;
        let end = ((self.start + self.len - 1e-6).ceil() as u32).min(self.total).max(start + 1);
        (start, end - start)
    }
}

/// The part of the matrix on the screen: rows are queries, columns keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    pub rows: Span,
    pub cols: Span,
}

impl Frame {
    pub fn whole(rows: u32, cols: u32) -> Self {
        Self { rows: Span::whole(rows), cols: Span::whole(cols) }
    }

    pub fn is_whole(self) -> bool {
        self == Self::whole(self.rows.total, self.cols.total)
    }

    /// Parts are (across, down).
    pub fn zoomed(self, factor: f64, part: (f64, f64)) -> Self {
        Self { rows: self.rows.zoomed(factor, part.1), cols: self.cols.zoomed(factor, part.0) }
    }

    pub fn moved(self, parts: (f64, f64)) -> Self {
        Self { rows: self.rows.moved(parts.1), cols: self.cols.moved(parts.0) }
    }

    /// What to ask the device for.
    pub fn window(self) -> Window {
        let ((row_start, row_count), (col_start, col_count)) = (self.rows.positions(), self.cols.positions());
        Window { row_start, row_count, col_start, col_count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_inside(frame: Frame) {
        for (span, (start, count)) in [
            (frame.rows, (frame.window().row_start, frame.window().row_count)),
            (frame.cols, (frame.window().col_start, frame.window().col_count)),
        ] {
            assert!(span.start >= 0.0 && span.start + span.len <= f64::from(span.total) + 1e-9, "{span:?}");
            assert!(count >= 1 && start + count <= span.total, "{span:?} {start} {count}");
            // The window covers what is shown, and no more than a position at each end.
            assert!(f64::from(start) <= span.start + 1e-5 && f64::from(start) > span.start - 1.0);
            assert!(f64::from(start + count) >= span.start + span.len - 1e-5);
            assert!(f64::from(start + count) < span.start + span.len + 1.0);
        }
    }

    #[test]
    fn the_whole_is_the_whole() {
        let frame = Frame::whole(1000, 37);
        assert!(frame.is_whole());
        assert_eq!(frame.window(), Window::whole(1000, 37));
        assert_eq!(frame.zoomed(0.5, (0.3, 0.3)), frame);
        assert_eq!(frame.moved((0.4, -2.0)), frame);
    }

    #[test]
    fn what_is_under_the_pointer_stays_there() {
        let frame = Frame::whole(4096, 4096).zoomed(3.0, (0.4, 0.6)).moved((0.1, 0.2));
        for part in [(0.25, 0.75), (0.5, 0.5), (0.9, 0.1)] {
            let before = (frame.cols.start + part.0 * frame.cols.len, frame.rows.start + part.1 * frame.rows.len);
            let after = frame.zoomed(2.0, part);
            assert!((after.cols.part(before.0) - part.0).abs() < 1e-9);
            assert!((after.rows.part(before.1) - part.1).abs() < 1e-9);
            assert!((after.cols.len - frame.cols.len / 2.0).abs() < 1e-9);
        }
    }

    #[test]
    fn zooming_and_moving_never_leave_the_matrix() {
        for (rows, cols) in [(1, 1), (5, 5), (1000, 7), (65_536, 256)] {
            let mut frame = Frame::whole(rows, cols);
            for step in 0..60 {
                let (x, y) = (f64::from(step * 7 % 11) / 10.0, f64::from(step * 5 % 11) / 10.0);
                frame = frame.zoomed(if step % 4 == 3 { 0.4 } else { 1.7 }, (x, y));
                is_inside(frame);
                frame = frame.moved((x - 0.5, 0.5 - y));
                is_inside(frame);
            }
            for step in 0..200 {
                frame = frame.zoomed(2.0, (0.3, f64::from(step % 2)));
                is_inside(frame);
            }
            assert!((frame.rows.len - FEWEST.min(f64::from(rows))).abs() < 1e-9);
            assert!((frame.cols.len - FEWEST.min(f64::from(cols))).abs() < 1e-9);
        }
    }

    #[test]
    fn a_single_token_is_found_everywhere() {
        let span = Span::whole(1).zoomed(4.0, 0.9).moved(3.0);
        assert_eq!([0.0, 0.5, 1.0, 7.0, -1.0].map(|part| span.position(part)), [0; 5]);
        assert_eq!(span.positions(), (0, 1));
    }

    #[test]
    fn a_position_answers_where_it_is_drawn() {
        let span = Span::whole(1000).zoomed(12.5, 0.37);
        let (start, count) = span.positions();
        for position in start..start + count {
            let middle = span.part(f64::from(position) + 0.5);
            if (0.0..1.0).contains(&middle) {
                assert_eq!(span.position(middle), position);
            }
        }
    }
}
