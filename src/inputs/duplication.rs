//! The duplication task of the Reformer paper, section 5: 0w0w, so that every symbol of the second
//! half can be read off the first. Nothing is trained: the keys are constructed.
//!
//! - The first `h = floor(n / 2)` positions are a 0 and a word w of `h - 1` random symbols from 1 to
//!   127, the next h repeat them; when n is odd, one random symbol follows that is never asked for.
//! - q and k of a position hold its own symbol and the three before it, each through a code of its
//!   own, with noise. A position of the second half so finds its counterpart, h before it.
//! - v is a code of the *next* symbol, and the nearest code decodes.
//!
//! The answer stands at the counterpart and at the position itself. Itself must not count, which
//! [`Settings::effective_semantics`] sees to. No later position holds it, but where a context comes
//! back by chance, so that the second half is no easier without the causal mask.

use super::rows::{Rows, add_scaled, index, normalise, normals, pause};
use super::{Input, InputError, Shown};
use crate::random::{Stream, below};
use crate::settings::Settings;
use crate::steps::EMPTY;
use std::ops::Range;

/// Symbols 0 to 127, 0 being the mark before w.
const SYMBOLS: u32 = 128;
/// Weights of a position's own symbol and of those before it: nearer symbols count more, so that
/// position 0, which has none before it, is still the nearest to its counterpart.
const CONTEXT: [f32; 4] = [1.0, 0.7, 0.49, 0.343];
/// Width of a code, d_v.
pub(super) const CODE_WIDTH: usize = 32;

#[derive(Clone, Debug, PartialEq)]
pub struct DuplicationInput {
    pub symbols: Vec<u32>,
    /// Unit vectors, `[SYMBOLS, CODE_WIDTH]`.
    codes: Vec<f32>,
}

impl DuplicationInput {
    fn new(seed: u32, n: u32) -> Self {
        let period = n / 2;
        let word = |at: u32| 1 + below(seed, Stream::Symbols, u64::from(at), SYMBOLS - 1);
        let symbol = |i: u32| match i % period {
            _ if i == 2 * period => word(period),
            0 => 0,
            at => word(at),
        };
        let symbols = (0..n).map(symbol).collect();
        Self { symbols, codes: unit_rows(seed, Stream::Codes, 0, SYMBOLS, CODE_WIDTH) }
    }

    /// Length of 0w.
    pub fn period(&self) -> u32 {
        self.symbols.len() as u32 / 2
    }

    /// The symbol after a position; a 0 after the last one.
    pub fn next(&self, position: u32) -> u32 {
        self.symbols.get(position as usize + 1).copied().unwrap_or(0)
    }

    /// The positions of the second half whose next symbol belongs to w.
    pub fn asked(&self) -> Range<u32> {
        self.period()..2 * self.period() - 1
    }

    /// The symbol whose code is nearest in angle to a row of an output, `[CODE_WIDTH]`.
    pub fn decode(&self, row: &[f32]) -> u32 {
        let mut nearest = (f32::NEG_INFINITY, 0);
        for (code, symbol) in self.codes.chunks_exact(CODE_WIDTH).zip(0..) {
            let likeness = code.iter().zip(row).map(|(a, b)| a * b).sum();
            if likeness > nearest.0 {
                nearest = (likeness, symbol);
            }
        }
        nearest.1
    }

    /// Share of the [`asked`](Self::asked) positions whose output decodes to the next symbol.
    ///
    /// `out` is `[n, d_v]`, of one head or the mean of some. A position that saw no key is wrong:
    /// its log-sum-exp is [`EMPTY`], its output zero.
    pub fn accuracy(&self, out: &[f32], lse: Option<&[f32]>) -> f64 {
        let right = |position: &u32| {
            let at = *position as usize;
            let row = &out[at * CODE_WIDTH..][..CODE_WIDTH];
            let blind = lse.is_some_and(|lse| lse[at] == EMPTY) || row.iter().all(|x| *x == 0.0);
            !blind && self.decode(row) == self.next(*position)
        };
        let asked = self.asked();
        let count = asked.len();
        asked.filter(right).count() as f64 / count as f64
    }
}

/// Seeded unit vectors, `[count, width]`.
fn unit_rows(seed: u32, stream: Stream, block: u64, count: u32, width: usize) -> Vec<f32> {
    let mut rows: Vec<f32> = normals(seed, stream, index(block, 0), count as usize * width).collect();
    rows.chunks_exact_mut(width).for_each(normalise);
    rows
}

pub(super) async fn build(settings: &Settings) -> Result<Input, InputError> {
    let (n, d) = (settings.n, settings.d as usize);
    if n < 4 {
        return Err(InputError::TooShort(n));
    }
    let shown = DuplicationInput::new(settings.seed, n);
    let mut v = Vec::with_capacity(n as usize * CODE_WIDTH);
    (0..n).for_each(|i| v.extend(&shown.codes[shown.next(i) as usize * CODE_WIDTH..][..CODE_WIDTH]));
    let mut rows = Rows::new(settings.sharpness, settings.heads as usize * n as usize * d);
    let noise = settings.noise / (d as f32).sqrt();
    for head in 0..u64::from(settings.heads) {
        // Of each place of the context, a code for each symbol.
        let codes: Vec<Vec<f32>> = (0..CONTEXT.len() as u64)
            .map(|place| unit_rows(settings.seed, Stream::QueryProjection, head << 8 | place, SYMBOLS, d))
            .collect();
        for i in 0..n {
            pause(i).await;
            let mut direction = vec![0.0; d];
            for (symbol, (weight, codes)) in shown.symbols[..=i as usize].iter().rev().zip(CONTEXT.iter().zip(&codes)) {
                add_scaled(&mut direction, *weight, &codes[*symbol as usize * d..][..d]);
            }
            normalise(&mut direction);
            let start = index(head, u64::from(i) * d as u64);
            direction
                .iter_mut()
                .zip(normals(settings.seed, Stream::Noise, start, d))
                .for_each(|(x, g)| *x += noise * g);
            rows.push(&direction);
        }
    }
    Ok(Input { problem: super::problem(settings, rows, v), shown: Shown::Duplication(shown) })
}
