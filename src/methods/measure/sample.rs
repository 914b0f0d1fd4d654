//! Which queries are measured where all would take too long.

use super::MAP_ROWS;
use super::block::BLOCK_BYTES;
use crate::methods::full::Rows;

/// Up to this length every query is measured, above it [`SAMPLED_QUERIES`].
pub const ALL_QUERIES_UP_TO: u32 = 1024;
pub const SAMPLED_QUERIES: u32 = 256;

/// Distinct queries spread evenly over `[base, base + modulus)`: query `r` is
/// `base + (r * stride) % modulus`. The stride is prime to the modulus and near the golden section,
/// so that a sample does not fall into step with the columns of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    pub count: u32,
    pub base: u32,
    pub stride: u32,
    pub modulus: u32,
}

impl Sample {
    /// Every query of a window, in order.
    pub fn all(base: u32, modulus: u32) -> Self {
        Self { count: modulus, base, stride: 1, modulus }
    }

    /// Golden-section samples of `n` queries; all of them when there are no more than `count`.
    pub fn golden(n: u32, count: u32) -> Self {
        if n <= count {
            return Self::all(0, n);
        }
        let mut stride = (f64::from(n) * 0.618_033_988_75) as u32;
        while gcd(stride, n) != 1 {
            stride += 1;
        }
        Self { count, base: 0, stride, modulus: n }
    }

    /// Evenly spaced rows of a window, at most [`MAP_ROWS`], in order.
    pub fn even(base: u32, modulus: u32) -> Self {
        let stride = modulus.div_ceil(MAP_ROWS);
        Self { count: modulus.div_ceil(stride), base, stride, modulus }
    }

    /// The sample of the figures of quality.
    pub fn for_figures(n: u32) -> Self {
        Self::golden(n, if n <= ALL_QUERIES_UP_TO { n } else { SAMPLED_QUERIES })
    }

    /// The sample of errors of whole rows, so few that one block holds them.
    pub fn for_maps(n: u32) -> Self {
        let most = (BLOCK_BYTES / (u64::from(n) * 4)).clamp(1, u64::from(n)) as u32;
        Self::golden(n, most.min(if n <= ALL_QUERIES_UP_TO { n } else { SAMPLED_QUERIES }))
    }

    pub fn query(&self, row: u32) -> u32 {
        self.base + (row * self.stride) % self.modulus
    }

    pub(super) fn rows(&self, start: u32, count: u32) -> Rows {
        Rows { start, count, base: self.base, stride: self.stride, modulus: self.modulus }
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
