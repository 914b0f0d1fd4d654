//! Where the cell of each token lies, and which token a place on the screen belongs to.

use egui::{Color32, ColorImage, Pos2, Rect, Vec2, vec2};

/// Tokens row by row; every block of them begins a row, so that what repeats stands below itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    pub n: u32,
    pub cols: u32,
    pub block: u32,
}

impl Grid {
    /// Cells as near to square as the room allows, each half of 0w0w a block.
    pub fn for_symbols(n: u32, period: u32, room: Vec2) -> Self {
        let side = (room.x * room.y / n.max(1) as f32).sqrt().clamp(0.5, 30.0);
        Self { n, cols: ((room.x / side) as u32).clamp(1, period.max(1)), block: period.max(1) }
    }

    pub fn rows_of_block(&self) -> u32 {
        self.block.div_ceil(self.cols)
    }

    pub fn rows(&self) -> u32 {
        let whole = self.n / self.block * self.rows_of_block();
        whole + (self.n % self.block).div_ceil(self.cols)
    }

    pub fn place(&self, token: u32) -> (u32, u32) {
        let within = token % self.block;
        (token / self.block * self.rows_of_block() + within / self.cols, within % self.cols)
    }

    pub fn token(&self, row: u32, col: u32) -> Option<u32> {
        let within = row % self.rows_of_block() * self.cols + col;
        let token = row / self.rows_of_block() * self.block + within;
        (col < self.cols && within < self.block && token < self.n).then_some(token)
    }

    pub fn cell(&self, rect: Rect, token: u32) -> Rect {
        let size = rect.size() / vec2(self.cols as f32, self.rows() as f32);
        let (row, col) = self.place(token);
        Rect::from_min_size(rect.min + size * vec2(col as f32, row as f32), size)
    }

    pub fn token_at(&self, rect: Rect, pointer: Pos2) -> Option<u32> {
        let part = (pointer - rect.min) / rect.size();
        if !rect.contains(pointer) || part.x >= 1.0 || part.y >= 1.0 {
            return None;
        }
        self.token((part.y * self.rows() as f32) as u32, (part.x * self.cols as f32) as u32)
    }

    /// One pixel a token.
    pub fn image(&self, colour: impl Fn(u32) -> Color32) -> ColorImage {
        let (rows, cols) = (self.rows(), self.cols);
        let cells = (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col)));
        let pixels = cells.map(|(row, col)| self.token(row, col).map_or(Color32::TRANSPARENT, &colour)).collect();
        ColorImage::new([cols as usize, rows as usize], pixels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::Shown;
    use egui::pos2;

    const RECT: Rect = Rect { min: pos2(10.0, 20.0), max: pos2(110.0, 70.0) };

    fn answers_everywhere(grid: Grid) {
        for token in 0..grid.n {
            let cell = grid.cell(RECT, token);
            assert!(RECT.expand(1e-3).contains_rect(cell), "{grid:?} {token}");
            let (row, col) = grid.place(token);
            assert_eq!(grid.token(row, col), Some(token), "{grid:?}");
            for inside in [cell.center(), cell.min + cell.size() * 0.02, cell.min + cell.size() * 0.98] {
                assert_eq!(grid.token_at(RECT, inside), Some(token), "{grid:?} {inside}");
            }
        }
    }

    #[test]
    fn a_cell_answers_with_its_token() {
        answers_everywhere(Grid { n: 1, cols: 1, block: 1 });
        answers_everywhere(Grid { n: 12, cols: 4, block: 12 });
        answers_everywhere(Grid { n: 11, cols: 4, block: 11 });
        answers_everywhere(Grid { n: 65, cols: 5, block: 32 });
        answers_everywhere(Grid::for_symbols(64, 32, vec2(960.0, 300.0)));
        answers_everywhere(Grid::for_symbols(4097, 2048, vec2(370.0, 300.0)));
    }

    #[test]
    fn the_empty_end_of_a_ragged_row_is_no_token() {
        let grid = Grid { n: 11, cols: 4, block: 11 };
        assert_eq!(grid.rows(), 3);
        assert_eq!(grid.token(2, 2), Some(10));
        assert_eq!(grid.token(2, 3), None);
        assert_eq!(grid.token_at(RECT, RECT.max - vec2(1.0, 1.0)), None);
        assert_eq!(grid.token_at(RECT, RECT.min - vec2(1.0, 0.0)), None);
        assert_eq!(grid.token_at(RECT, RECT.max), None);
    }

    #[test]
    fn the_second_half_stands_below_the_first() {
        let grid = Grid { n: 65, cols: 5, block: 32 };
        for token in 0..32 {
            let ((row, col), (below, same)) = (grid.place(token), grid.place(token + 32));
            assert_eq!((below, same), (row + grid.rows_of_block(), col));
        }
        assert_eq!(grid.place(64), (14, 0));
        assert_eq!(grid.rows(), 15);
    }

    #[test]
    fn a_picture_and_its_grid_agree() {
        let picture = image::RgbImage::from_pixel(90, 60, image::Rgb([9, 9, 9]));
        let settings = crate::settings::Settings { n: 101, ..Default::default() };
        let picture = crate::inputs::Picture::new(picture);
        let mut build = std::pin::pin!(crate::inputs::build(&settings, Some(&picture)));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let input = loop {
            if let std::task::Poll::Ready(input) = build.as_mut().poll(&mut context) {
                break input.expect("an input");
            }
        };
        let Shown::Picture(shown) = &input.shown else { panic!("not a picture") };
        let grid = Grid { n: shown.n, cols: shown.cols, block: shown.n };
        assert_eq!(grid.rows(), shown.rows);
        for y in 0..shown.rows * shown.patch {
            for x in 0..shown.cols * shown.patch {
                assert_eq!(grid.token(y / shown.patch, x / shown.patch), shown.token_at(x, y));
            }
        }
    }
}
