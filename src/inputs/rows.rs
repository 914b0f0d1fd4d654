//! Rows of q and k, and the numbers they are made of.

use crate::gpu::yield_now;
use crate::random::{Stream, normal};

/// Rows made between two pauses: some ten milliseconds of a page's time.
const SLICE: u32 = 2048;

/// Lets the page draw once in a while; called with every row.
pub async fn pause(row: u32) {
    if row % SLICE == SLICE - 1 {
        yield_now().await;
    }
}

/// An index for [`crate::random`] that no other block of the same stream shares.
pub fn index(block: u64, at: u64) -> u64 {
    block << 40 | at
}

/// `count` standard normal numbers.
pub fn normals(seed: u32, stream: Stream, start: u64, count: usize) -> impl Iterator<Item = f32> {
    (start..start + count as u64).map(move |index| normal(seed, stream, index))
}

/// Rows of q and k of one direction each: q of the given length, k of length 1.
pub struct Rows {
    pub q: Vec<f32>,
    pub k: Vec<f32>,
    length: f32,
}

impl Rows {
    pub fn new(length: f32, values: usize) -> Self {
        Self { q: Vec::with_capacity(values), k: Vec::with_capacity(values), length }
    }

    pub fn push(&mut self, direction: &[f32]) {
        let norm = norm(direction);
        let scale = if norm > 0.0 { 1.0 / norm } else { 0.0 };
        self.k.extend(direction.iter().map(|x| x * scale));
        self.q.extend(direction.iter().map(|x| x * scale * self.length));
    }
}

pub fn norm(x: &[f32]) -> f32 {
    x.iter().map(|x| x * x).sum::<f32>().sqrt()
}

/// Makes `x` a unit vector, unless it is zero.
pub fn normalise(x: &mut [f32]) {
    let norm = norm(x);
    if norm > 0.0 {
        x.iter_mut().for_each(|x| *x /= norm);
    }
}

/// `y += weight x`.
pub fn add_scaled(y: &mut [f32], weight: f32, x: &[f32]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y += weight * x);
}
