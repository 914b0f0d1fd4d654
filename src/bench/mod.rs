//! What can only be measured: how long each method takes as the sequence grows, and whether memory
//! grows while somebody plays with the sliders. Figures, never a test that a slow machine fails.

pub mod growth;
mod questions;
pub mod soak;
pub mod speed;
mod values;

pub use values::values;

use crate::random::{Stream, below};

/// Seeded choices, one after the other.
pub struct Draw {
    seed: u32,
    next: u64,
}

impl Draw {
    pub fn new(seed: u32) -> Self {
        Self { seed, next: 0 }
    }

    /// In `0..count`, which must not be 0.
    pub fn below(&mut self, count: u32) -> u32 {
        self.next += 1;
        below(self.seed, Stream::Noise, self.next, count)
    }

    /// True once in so many times.
    pub fn once_in(&mut self, times: u32) -> bool {
        self.below(times) == 0
    }

    /// In `low..=high`, every doubling as likely as the other.
    pub fn log_uniform(&mut self, low: u32, high: u32) -> u32 {
        let fraction = f64::from(self.below(1 << 20)) / f64::from((1 << 20) - 1);
        let (low, high) = (f64::from(low), f64::from(high));
        (low * (high / low).powf(fraction)).round() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_reach_both_ends() {
        let mut draw = Draw::new(1);
        let seen: Vec<u32> = (0..20_000).map(|_| draw.log_uniform(1, 16)).collect();
        assert!((1..=16).all(|value| seen.contains(&value)) && seen.iter().all(|value| (1..=16).contains(value)));
    }
}
