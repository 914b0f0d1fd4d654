//! Why Q = K: with separate queries and keys a bucket may hold queries and not one key. Reformer
//! section 2, "LSH attention" with shared-QK.

use super::{LabError, Run};
use crate::gpu::run::Progress;
use crate::gpu::workspace::Workspace;
use crate::gpu::{Gpu, yield_now};
use crate::methods::lsh;
use crate::methods::measure::Measured;
use crate::problem::{Named, Problem, Projections};
use crate::random::{Stream, normal};

/// Positions that are projected before anything else may run.
const POSITIONS_A_TURN: usize = 512;

/// The buckets of the queries as they are, and of keys from a projection of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct SeparateKeys {
    pub n_buckets: u32,
    /// Queries, and keys, in each bucket: `[heads, rounds, n_buckets]`.
    pub queries: Vec<u32>,
    pub keys: Vec<u32>,
    rounds: u32,
}

/// Buckets and queries of one head and round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    pub queries_only: u32,
    pub keys_only: u32,
    pub both: u32,
    pub empty: u32,
    /// Queries whose bucket holds no key.
    pub stranded: u32,
}

impl SeparateKeys {
    /// Queries and keys in each bucket of one head and round.
    pub fn of(&self, head: u32, round: u32) -> (&[u32], &[u32]) {
        let size = self.n_buckets as usize;
        let start = (head * self.rounds + round) as usize * size;
        (&self.queries[start..start + size], &self.keys[start..start + size])
    }

    pub fn tally(&self, head: u32, round: u32) -> Tally {
        let (queries, keys) = self.of(head, round);
        let count = |wanted: (bool, bool)| {
            queries.iter().zip(keys).filter(|(q, k)| (**q > 0, **k > 0) == wanted).count() as u32
        };
        Tally {
            queries_only: count((true, false)),
            keys_only: count((false, true)),
            both: count((true, true)),
            empty: count((false, false)),
            stranded: queries.iter().zip(keys).filter(|(_, keys)| **keys == 0).map(|(queries, _)| queries).sum(),
        }
    }
}

impl Run {
    /// Hashes keys `W q`, W seeded with normal entries of variance 1/d, by the rotations of the queries;
    /// `None` where nothing was hashed.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn separate_keys(&self, gpu: &Gpu, progress: &Progress) -> Result<Option<SeparateKeys>, LabError> {
        let (Measured::Lsh(lsh), Some(lists)) = (&self.measured, &self.outcome.lists) else { return Ok(None) };
        let dims = self.dims();
        // Hashes see q alone.
        let problem = Problem {
            dims: *dims,
            q: projected(&self.input.problem, self.outcome.settings.seed).await,
            k: Vec::new(),
            v: Vec::new(),
            rotations: self.input.problem.rotations.clone(),
            projections: Projections::Mean,
            named: Named::new(),
        };
        let plan = lsh::hash_plan(dims, lsh, gpu.limits)?;
        let mut workspace = Workspace::default();
        workspace.prepare(gpu, &plan, &problem).await?;
        gpu.run(&plan, &workspace, progress).await?;
        let mut separate =
            SeparateKeys { n_buckets: lists.n_buckets, queries: Vec::new(), keys: Vec::new(), rounds: lists.rounds };
        for head in 0..dims.heads {
            for round in 0..lists.rounds {
                separate.queries.extend(lists.sizes(dims.n_q, head, round));
            }
            for buckets in workspace.read_u32(gpu, "buckets", head).await?.chunks(dims.n_q as usize) {
                let mut sizes = vec![0; lists.n_buckets as usize];
                buckets.iter().for_each(|bucket| sizes[*bucket as usize] += 1);
                separate.keys.extend(sizes);
            }
        }
        Ok(Some(separate))
    }
}

/// `W q` of every head and position, `[heads, n, d]`, each head with a W of its own.
async fn projected(problem: &Problem, seed: u32) -> Vec<f32> {
    let d = problem.dims.d as usize;
    let mut keys = Vec::with_capacity(problem.q.len());
    for (head, queries) in problem.q.chunks_exact(problem.dims.n_q as usize * d).enumerate() {
        let scale = (d as f32).sqrt().recip();
        let entry = |at: usize| normal(seed, Stream::KeyProjection, (head * d * d + at) as u64) * scale;
        let matrix: Vec<f32> = (0..d * d).map(entry).collect();
        for some in queries.chunks(POSITIONS_A_TURN * d) {
            for q in some.chunks_exact(d) {
                keys.extend(matrix.chunks_exact(d).map(|row| row.iter().zip(q).map(|(w, x)| w * x).sum::<f32>()));
            }
            yield_now().await;
        }
    }
    keys
}
