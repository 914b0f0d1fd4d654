//! A part of the n x n matrix and the pixels that show it.

/// Most rows of a map of weights.
pub const MAP_ROWS: u32 = 512;

/// A window of the n x n matrix: rows are queries, columns keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    pub row_start: u32,
    pub row_count: u32,
    pub col_start: u32,
    pub col_count: u32,
}

impl Window {
    pub fn whole(rows: u32, cols: u32) -> Self {
        Self { row_start: 0, row_count: rows, col_start: 0, col_count: cols }
    }

    /// Pixels `(width, height)` of its map of pairs: one a pair, at most [`MAP_ROWS`] a side.
    pub fn pixels(&self) -> (u32, u32) {
        (self.col_count.min(MAP_ROWS), self.row_count.min(MAP_ROWS))
    }

    /// Pairs of each pixel for which `sees(query, key)` holds. The rule changes on the diagonal only,
    /// so elsewhere one pair speaks for its pixel.
    pub fn counts(&self, sees: impl Fn(u32, u32) -> bool) -> Vec<f32> {
        let (width, height) = self.pixels();
        let edge = |start: u32, count: u32, pixels: u32, at: u32| {
            start + (u64::from(at) * u64::from(count)).div_ceil(u64::from(pixels)) as u32
        };
        let mut counts = Vec::with_capacity((width * height) as usize);
        for y in 0..height {
            let rows =
                edge(self.row_start, self.row_count, height, y)..edge(self.row_start, self.row_count, height, y + 1);
            for x in 0..width {
                let cols =
                    edge(self.col_start, self.col_count, width, x)..edge(self.col_start, self.col_count, width, x + 1);
                let on_diagonal = rows.start < cols.end && cols.start < rows.end;
                let count = if on_diagonal {
                    rows.clone().map(|i| cols.clone().filter(|j| sees(i, *j)).count()).sum()
                } else if sees(rows.start, cols.start) {
                    rows.len() * cols.len()
                } else {
                    0
                };
                counts.push(count as f32);
            }
        }
        counts
    }
}
