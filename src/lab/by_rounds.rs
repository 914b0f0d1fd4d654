//! Union or intersection of rounds: in how many rounds each pair is visible. Reformer takes the union,
//! equation (6).

use super::{LabError, Run};
use crate::gpu::Gpu;
use crate::gpu::run::Progress;
use crate::methods::measure::{self, Measured, RECALL_KEYS, SAMPLED_QUERIES, Sample};
use crate::outcome::Lists;
use crate::semantics::flags;
use crate::steps::NO_KEY;
use crate::steps::top_keys::TOP;
use crate::steps::visibility::Geometry;

/// Up to this length every query is looked at, above it [`SAMPLED_QUERIES`].
const ALL_QUERIES_UP_TO: u32 = 2048;
/// Queries between two looks at whether there is something else to do.
const QUERIES_A_TURN: u32 = 32;

/// Pairs and strongest keys by the number of rounds in which they are visible, over all heads.
#[derive(Clone, Debug, PartialEq)]
pub struct ByRounds {
    /// Pairs of the queries looked at that are visible in exactly `1 + index` rounds.
    pub pairs: Vec<u64>,
    /// Share of a query's exact top 32 keys that are visible in exactly `1 + index` rounds, averaged.
    pub found: Vec<f64>,
    /// Queries looked at, all heads together, and the keys that each has.
    pub queries: u64,
    pub keys: u32,
    /// Queries of a head when not all.
    pub sampled: Option<u32>,
}

impl ByRounds {
    /// Share of all pairs that are visible in at least `rounds` rounds: 1 is the union, all rounds the
    /// intersection.
    pub fn share(&self, rounds: u32) -> f64 {
        let pairs: u64 = self.pairs.iter().skip(rounds.saturating_sub(1) as usize).sum();
        pairs as f64 / (self.queries as f64 * f64::from(self.keys))
    }

    /// Recall when a key must be visible in at least `rounds` rounds.
    pub fn recall(&self, rounds: u32) -> f64 {
        self.found.iter().skip(rounds.saturating_sub(1) as usize).sum()
    }
}

impl Run {
    /// Counts the rounds of every visible pair; `None` where nothing was hashed.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn by_rounds(&mut self, gpu: &Gpu, progress: &Progress) -> Result<Option<ByRounds>, LabError> {
        let outcome = self.outcome.clone();
        let (Measured::Lsh(lsh), Some(lists)) = (self.measured.clone(), &outcome.lists) else { return Ok(None) };
        let dims = *self.dims();
        let n = dims.n_q;
        let sample = Sample::golden(n, if n <= ALL_QUERIES_UP_TO { n } else { SAMPLED_QUERIES });
        let plan = measure::strongest_keys(&dims, &self.measured, sample, gpu.limits)?;
        self.ask(gpu, &plan, progress).await?;
        let rounds = lists.rounds as usize;
        let queries = u64::from(sample.count) * u64::from(dims.heads);
        let mut counted = ByRounds {
            pairs: vec![0; rounds],
            found: vec![0.0; rounds],
            queries,
            keys: n,
            sampled: (sample.count < n).then_some(sample.count),
        };
        for head in 0..dims.heads {
            let top = self.workspace.read_u32(gpu, "top index", head).await?;
            let mut sight = Sight::new(lsh.geometry(n), lists, head);
            for (row, wanted) in (0..sample.count).zip(top.chunks(TOP as usize)) {
                sight.look(sample.query(row));
                sight.seen.iter().for_each(|key| counted.pairs[sight.rounds_of[*key as usize] as usize - 1] += 1);
                let wanted: Vec<u32> =
                    wanted.iter().copied().take(RECALL_KEYS as usize).filter(|key| *key != NO_KEY).collect();
                let each = 1.0 / (wanted.len().max(1) as f64 * queries as f64);
                for key in &wanted {
                    if let Some(at) = (sight.rounds_of[*key as usize] as usize).checked_sub(1) {
                        counted.found[at] += each;
                    }
                }
                // A row without a single allowed key has nothing to miss.
                if wanted.is_empty() {
                    counted.found[rounds - 1] += each;
                }
                if row % QUERIES_A_TURN == 0 {
                    crate::gpu::yield_now().await;
                }
            }
        }
        self.workspace.drop_instruments();
        Ok(Some(counted))
    }
}

/// The keys that one query of a head sees, round by round.
struct Sight<'a> {
    geometry: Geometry,
    /// Of each round, `[n]`.
    orders: Vec<&'a [u32]>,
    buckets: Vec<&'a [u32]>,
    chunk_of: Vec<Vec<u32>>,
    /// Rounds in which the query sees each key, `[n]`, and the last of them that was counted.
    rounds_of: Vec<u32>,
    counted: Vec<u32>,
    /// Keys with a count above 0.
    seen: Vec<u32>,
}

impl<'a> Sight<'a> {
    fn new(geometry: Geometry, lists: &'a Lists, head: u32) -> Self {
        let n = geometry.n;
        let rounds = 0..lists.rounds;
        Self {
            geometry,
            orders: rounds.clone().map(|round| lists.of(&lists.order, n, head, round)).collect(),
            buckets: rounds.clone().map(|round| lists.of(&lists.buckets, n, head, round)).collect(),
            chunk_of: rounds.map(|round| lists.chunk_of(n, head, round)).collect(),
            rounds_of: vec![0; n as usize],
            counted: vec![0; n as usize],
            seen: Vec::new(),
        }
    }

    /// Counts the rounds of every key of a query.
    fn look(&mut self, query: u32) {
        for key in self.seen.drain(..) {
            (self.rounds_of[key as usize], self.counted[key as usize]) = (0, 0);
        }
        let g = self.geometry;
        let has = |flag| g.flags & flag != 0;
        for round in 0..g.rounds {
            let at = round as usize;
            let chunk = self.chunk_of[at][query as usize];
            for (other, seen) in (0..g.steps()).filter_map(|step| g.seen_chunk(round, chunk, step)) {
                if has(flags::SAME_BUCKET) && other != round {
                    continue;
                }
                let start = (seen * g.chunk_len) as usize;
                let end = (start + g.chunk_len as usize).min(g.n as usize);
                for &key in &self.orders[other as usize][start..end] {
                    let masked = has(flags::CAUSAL) && key > query
                        || has(flags::SELF_EXCLUDE) && key == query
                        || has(flags::SAME_BUCKET)
                            && self.buckets[at][key as usize] != self.buckets[at][query as usize];
                    // A key that the window shows twice in a round counts once.
                    if masked || self.counted[key as usize] == round + 1 {
                        continue;
                    }
                    self.counted[key as usize] = round + 1;
                    if self.rounds_of[key as usize] == 0 {
                        self.seen.push(key);
                    }
                    self.rounds_of[key as usize] += 1;
                }
            }
        }
    }
}
