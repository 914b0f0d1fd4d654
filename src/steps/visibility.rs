//! Who sees whom in LSH attention: Reformer equations (4) to (6), with the wrap of the first chunk.
//!
//! No kernel of its own: `visibility.wgsl` is included by every shader that asks the question, and
//! this is its twin.

use super::params;
use crate::semantics::flags;

/// The WGSL side; it reads `p.lsh` and the bindings `chunk_of` and `buckets` of the including shader.
pub const WGSL: &str = include_str!("../../shaders/visibility.wgsl");

/// The same with the walk through the sorted order; it also reads the binding `order`.
pub const WALK_WGSL: &str =
    concat!(include_str!("../../shaders/visibility.wgsl"), include_str!("../../shaders/sorted_walk.wgsl"));

params! {
    /// The sorted and chunked lists of one head. The last chunk of a round may be short.
    Geometry as "Geometry" {
        n: u32,
        rounds: u32,
        chunk_len: u32,
        /// Chunks of a round, `ceil(n / chunk_len)`.
        chunks: u32,
        before: u32,
        after: u32,
        flags: u32,
        pair_count_eps: f32,
        /// The part of a query's window that a pass walks. Slot `step * chunk_len + e` is entry `e` of the
        /// chunk at that step.
        slot_start: u32,
        slot_count: u32,
        pad_0: u32,
        pad_1: u32,
    }
}

/// The arrays of one head that decide visibility, each `[rounds, n]`.
#[derive(Clone, Copy)]
pub struct Lists<'a> {
    pub geometry: Geometry,
    pub chunk_of: &'a [u32],
    pub buckets: &'a [u32],
}

impl Geometry {
    fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Steps of the window: chunks before, the own one, chunks after.
    pub fn steps(&self) -> u32 {
        self.before + 1 + self.after
    }

    /// Whether a pass walks entry `entry` of the chunk at a step of the window.
    pub fn walks(&self, step: u32, entry: u32) -> bool {
        (self.slot_start..self.slot_start + self.slot_count).contains(&(step * self.chunk_len + entry))
    }

    /// The (round, chunk) at a step of the window of chunk `chunk` in `round`.
    pub fn seen_chunk(&self, round: u32, chunk: u32, step: u32) -> Option<(u32, u32)> {
        let offset = i64::from(step) - i64::from(self.before);
        let chunks = i64::from(self.chunks);
        if self.has(flags::WRAP_ACROSS_ROUNDS) {
            let at =
                (i64::from(round) * chunks + i64::from(chunk) + offset).rem_euclid(i64::from(self.rounds) * chunks);
            Some(((at / chunks) as u32, (at % chunks) as u32))
        } else if self.has(flags::WRAP_IN_ROUND) {
            Some((round, (i64::from(chunk) + offset).rem_euclid(chunks) as u32))
        } else {
            let at = i64::from(chunk) + offset;
            (0..chunks).contains(&at).then_some((round, at as u32))
        }
    }
}

impl Lists<'_> {
    fn at(&self, list: &[u32], round: u32, position: u32) -> u32 {
        list[(round * self.geometry.n + position) as usize]
    }

    /// False for a pair that the causal mask or the self rule takes out.
    pub fn allowed(&self, query: u32, key: u32) -> bool {
        let g = &self.geometry;
        !(g.has(flags::CAUSAL) && key > query || g.has(flags::SELF_EXCLUDE) && key == query)
    }

    /// Whether `query` meets `key` at one step of its window in one round.
    pub fn sees(&self, query: u32, key: u32, round: u32, step: u32) -> bool {
        let g = &self.geometry;
        let Some((other, chunk)) = g.seen_chunk(round, self.at(self.chunk_of, round, query), step) else {
            return false;
        };
        let bucket_ok = !g.has(flags::SAME_BUCKET)
            || other == round && self.at(self.buckets, round, query) == self.at(self.buckets, round, key);
        bucket_ok && self.at(self.chunk_of, other, key) == chunk
    }

    /// `N_ij`: rounds in which the key's chunk *of the same round* lies in the query's window.
    pub fn pair_count(&self, query: u32, key: u32) -> u32 {
        let g = &self.geometry;
        let met = |round: u32| {
            let chunk = self.at(self.chunk_of, round, query);
            let in_window = (0..g.steps())
                .any(|step| g.seen_chunk(round, chunk, step) == Some((round, self.at(self.chunk_of, round, key))));
            let bucket_ok =
                !g.has(flags::SAME_BUCKET) || self.at(self.buckets, round, query) == self.at(self.buckets, round, key);
            in_window && bucket_ok
        };
        (0..g.rounds).filter(|round| met(*round)).count() as u32
    }

    /// What the pair count takes off a score: `ln(N_ij + eps)`. A pair that is only met across rounds
    /// has `N_ij = 0`; without an epsilon there is nothing to take off.
    pub fn correction(&self, query: u32, key: u32) -> f64 {
        if !self.geometry.has(flags::PAIR_COUNT) {
            return 0.0;
        }
        let count = f64::from(self.pair_count(query, key)) + f64::from(self.geometry.pair_count_eps);
        if count > 0.0 { count.ln() } else { 0.0 }
    }

    /// Whether the pair is computed in some round.
    pub fn visible(&self, query: u32, key: u32) -> bool {
        let g = &self.geometry;
        self.allowed(query, key)
            && (0..g.rounds).any(|round| (0..g.steps()).any(|step| self.sees(query, key, round, step)))
    }
}
