//! Reformer's LSH attention: all rounds are hashed and sorted first, since the pair count needs
//! them, then attended round by round into a running output. Reformer section 2.

use super::{bytes_of, key_norm_pass, output_buffers, pair_flops, query_buffer, value_buffer, words};
use crate::plan::{Binding, BufferId, Builder, Kind, Limits, New, Plan, Refusal, Role, Step};
use crate::problem::{Dims, Fill, Source};
use crate::semantics::{Semantics, Wrap};
use crate::steps::visibility::Geometry;
use crate::steps::{LONGEST_LOOP, WORKGROUP, bucket_sort, chunked_attention, combine_rounds, random_rotation_hash};
use std::sync::Arc;

/// What LSH attention needs beyond the sizes; keys are the queries (shared QK).
#[derive(Clone, Debug, PartialEq)]
pub struct Lsh {
    pub rounds: u32,
    /// Even factors of the bucket count, at most [`random_rotation_hash::MAX_FACTORS`].
    pub factors: Vec<u32>,
    pub chunk_len: u32,
    /// Sets of rotations: 1 for all heads, or one a head.
    pub rotation_heads: u32,
    pub semantics: Semantics,
    /// Keeps each round's output and log-sum-exp instead of one for all.
    pub keep_rounds: bool,
}

impl Lsh {
    pub fn buckets(&self) -> u32 {
        self.factors.iter().product()
    }

    /// Columns of R in a round.
    pub fn columns(&self) -> u32 {
        self.factors.iter().map(|factor| factor / 2).sum()
    }

    /// The chunked lists of one head of `n` positions.
    pub fn geometry(&self, n: u32) -> Geometry {
        let chunk_len = self.chunk_len.min(n);
        Geometry {
            n,
            rounds: self.rounds,
            chunk_len,
            chunks: n.div_ceil(chunk_len),
            before: self.semantics.chunks_before,
            after: self.semantics.chunks_after,
            flags: self.semantics.flags(),
            pair_count_eps: self.semantics.pair_count_eps,
            slot_start: 0,
            slot_count: chunk_len * (self.semantics.chunks_before + 1 + self.semantics.chunks_after),
            pad_0: 0,
            pad_1: 0,
        }
    }

    /// The geometry cut into passes whose loops stay short, with the share of the window that each walks. A
    /// slot goes through `vectors` of its rows, and counts the rounds of its pair, each by the steps of the
    /// window where chunks wrap.
    pub(crate) fn passes(&self, n: u32, vectors: u32) -> impl Iterator<Item = (Geometry, f64)> {
        let whole = self.geometry(n);
        let iterations = 2 + self.rounds * (2 + whole.steps()) + vectors;
        let slots = (LONGEST_LOOP / iterations).max(1);
        (0..whole.slot_count).step_by(slots as usize).map(move |slot_start| {
            let slot_count = slots.min(whole.slot_count - slot_start);
            let share = f64::from(slot_count) / f64::from(whole.slot_count);
            (Geometry { slot_start, slot_count, ..whole }, share)
        })
    }

    /// Visits of one head, masks left out: query-key meetings over all rounds, from the sizes alone.
    pub fn visits(&self, n: u32) -> u64 {
        let g = self.geometry(n);
        let len = |chunk: u32| u64::from(g.chunk_len.min(n - chunk * g.chunk_len));
        let of_chunk = |round: u32, chunk: u32| {
            let keys: u64 =
                (0..g.steps()).filter_map(|step| g.seen_chunk(round, chunk, step)).map(|(_, c)| len(c)).sum();
            len(chunk) * keys
        };
        let of_round = |round: u32| (0..g.chunks).map(|chunk| of_chunk(round, chunk)).sum::<u64>();
        // The rounds are alike unless they see each other.
        match self.semantics.wrap {
            Wrap::AcrossRounds => (0..g.rounds).map(of_round).sum(),
            Wrap::None | Wrap::InRound => u64::from(g.rounds) * of_round(0),
        }
    }
}

/// The buffers that also the figures and maps of LSH attention read.
pub(crate) struct LshBuffers {
    pub q: BufferId,
    pub key_scale: BufferId,
    pub buckets: BufferId,
    pub order: BufferId,
    pub chunk_of: BufferId,
    pub lse: BufferId,
}

pub(crate) fn buffers(b: &mut Builder, dims: &Dims, lsh: &Lsh) -> LshBuffers {
    let lists = [lsh.rounds, dims.n_q];
    LshBuffers {
        q: query_buffer(b, dims),
        key_scale: words(b, "key scale", Kind::F32, Role::Method, dims.heads, &[dims.n_q]),
        buckets: words(b, "buckets", Kind::U32, Role::Method, dims.heads, &lists),
        order: words(b, "order", Kind::U32, Role::Method, dims.heads, &lists),
        chunk_of: words(b, "chunk of", Kind::U32, Role::Method, dims.heads, &lists),
        lse: output_buffers(b, dims).1,
    }
}

/// Plans LSH attention of all heads; `dims.n_kv` is not used, since keys are queries.
///
/// # Errors
/// The first buffer that the device cannot hold.
pub fn plan(dims: &Dims, lsh: &Lsh, limits: Limits) -> Result<Plan, Refusal> {
    let mut b = Builder::new(limits, dims.widths());
    passes(&mut b, dims, lsh, true);
    b.finish()
}

/// Adds LSH attention of all heads on the buffers of the plan; without `hash` the buckets are taken as
/// they stand.
pub(crate) fn passes(b: &mut Builder, dims: &Dims, lsh: &Lsh, hash: bool) {
    let n = dims.n_q;
    let v = value_buffer(b, dims);
    let shared = buffers(b, dims, lsh);
    let rotations = hash.then(|| rotations(b, dims, lsh));
    let (out, lse) = output_buffers(b, dims);
    let table = b.buffer(New {
        name: "sort table",
        kind: Kind::U32,
        role: Role::Method,
        ranges: 1,
        range_words: bucket_sort::table_len(n, lsh.rounds),
        shape: &[lsh.rounds, bucket_sort::DIGITS, n.div_ceil(bucket_sort::TILE)],
    });
    let kept = if lsh.keep_rounds { dims.heads * lsh.rounds } else { 1 };
    let round_out = b.buffer(New {
        name: "round output",
        kind: Kind::F32,
        role: Role::Method,
        ranges: kept,
        range_words: u64::from(n) * b.widths().dv_stride() as u64,
        shape: &[kept, n, dims.d_v],
    });
    let round_lse = words(b, "round lse", Kind::F32, Role::Method, kept, &[n]);

    let visits = lsh.visits(n) as f64 / f64::from(lsh.rounds);
    for head in 0..dims.heads {
        let q = b.range(shared.q, head);
        let key_scale = b.range(shared.key_scale, head);
        key_norm_pass(b, Step::KeyNorm, n, dims.d, &lsh.semantics, q, key_scale);
        if let Some(rotations) = rotations {
            let rotations = b.range(rotations, head);
            hash_pass(b, dims, lsh, q, rotations, head, shared.buckets);
        }
        sort_passes(b, n, lsh, &shared, table, head);
        let [buckets, order, chunk_of] = [shared.buckets, shared.order, shared.chunk_of].map(|id| b.range(id, head));
        let [v, out, lse] = [v, out, lse].map(|id| b.range(id, head));
        for round in 0..lsh.rounds {
            let [round_out, round_lse] = [round_out, round_lse].map(|id| b.range(id, head * lsh.rounds + round));
            let attended: Arc<[Binding]> = Arc::new([q, v, key_scale, order, chunk_of, buckets, round_out, round_lse]);
            let combined: Arc<[Binding]> = Arc::new([round_out, round_lse, out, lse]);
            let widths = b.widths();
            for (geometry, share) in lsh.passes(n, widths.d4 + widths.dv4) {
                let params = chunked_attention::Params {
                    first_group: 0,
                    round,
                    scale: lsh.semantics.score_scale.factor(dims.d),
                    self_value: lsh.semantics.self_value(),
                    lsh: geometry,
                };
                let cost = (visits * pair_flops(dims) * share, bytes_of(&attended) * share);
                b.pass(Step::Attend, &chunked_attention::ATTEND, &params, &attended, n.div_ceil(WORKGROUP), cost);
            }
            let params = combine_rounds::Params { first_group: 0, n, first_round: u32::from(round == 0) };
            let cost = (3.0 * f64::from(n) * f64::from(dims.d_v), bytes_of(&combined));
            b.pass(Step::Combine, &combine_rounds::COMBINE, &params, &combined, n.div_ceil(WORKGROUP), cost);
        }
    }
}

/// Plans the hash alone: the `buckets` of every q.
///
/// # Errors
/// The first buffer that the device cannot hold.
pub fn hash_plan(dims: &Dims, lsh: &Lsh, limits: Limits) -> Result<Plan, Refusal> {
    let mut b = Builder::new(limits, dims.widths());
    let q = query_buffer(&mut b, dims);
    let buckets = words(&mut b, "buckets", Kind::U32, Role::Method, dims.heads, &[lsh.rounds, dims.n_q]);
    let rotations = rotations(&mut b, dims, lsh);
    for head in 0..dims.heads {
        let (q, rotations) = (b.range(q, head), b.range(rotations, head));
        hash_pass(&mut b, dims, lsh, q, rotations, head, buckets);
    }
    b.finish()
}

/// R of every round.
fn rotations(b: &mut Builder, dims: &Dims, lsh: &Lsh) -> BufferId {
    let (rounds, columns) = (lsh.rounds, lsh.columns());
    let rows = rounds * columns;
    let id = b.buffer(New {
        name: "rotations",
        kind: Kind::F32,
        role: Role::Method,
        ranges: lsh.rotation_heads,
        range_words: u64::from(rows) * b.widths().d_stride() as u64,
        shape: &[lsh.rotation_heads, rounds, dims.d, columns],
    });
    b.fill(id, Fill { rounds, columns, ..Fill::whole(Source::Rotations, rows) });
    id
}

fn hash_pass(b: &mut Builder, dims: &Dims, lsh: &Lsh, q: Binding, rotations: Binding, head: u32, buckets: BufferId) {
    let half = |at: usize| lsh.factors.get(at).map_or(0, |factor| factor / 2);
    let tiles = dims.n_q.div_ceil(WORKGROUP);
    let params = random_rotation_hash::Params {
        first_group: 0,
        n: dims.n_q,
        tiles,
        columns: lsh.columns(),
        half_0: half(0),
        half_1: half(1),
        half_2: half(2),
        half_3: half(3),
    };
    let bindings: Arc<[Binding]> = Arc::new([q, rotations, b.range(buckets, head)]);
    let flops = 2.0 * f64::from(dims.n_q) * f64::from(dims.d) * f64::from(lsh.rounds * lsh.columns());
    b.pass(
        Step::Hash,
        &random_rotation_hash::HASH,
        &params,
        &bindings,
        lsh.rounds * tiles,
        (flops, bytes_of(&bindings)),
    );
}

fn sort_passes(b: &mut Builder, n: u32, lsh: &Lsh, shared: &LshBuffers, table: BufferId, head: u32) {
    let passes = bucket_sort::passes(lsh.buckets());
    // Two passes go by way of a second list; one pass reads no list at all.
    let between = (passes > 1).then(|| words(b, "sort list", Kind::U32, Role::Method, 1, &[lsh.rounds, n]));
    let tiles = n.div_ceil(bucket_sort::TILE);
    let [buckets, order, chunk_of] = [shared.buckets, shared.order, shared.chunk_of].map(|id| b.range(id, head));
    let table = b.range(table, 0);
    let between = between.map(|id| b.range(id, 0));
    for pass in 0..passes {
        let params = bucket_sort::Params {
            first_group: 0,
            n,
            tiles,
            shift: pass * bucket_sort::DIGIT_BITS,
            from_identity: u32::from(pass == 0),
            chunk_len: lsh.geometry(n).chunk_len,
        };
        let from = if pass == 0 { buckets } else { between.unwrap_or(buckets) };
        let to = if pass + 1 == passes { order } else { between.unwrap_or(order) };
        // Each thread of a tile looks at every entry.
        let looks = f64::from(lsh.rounds) * f64::from(n) * f64::from(bucket_sort::DIGITS);
        let count: Arc<[Binding]> = Arc::new([buckets, from, table]);
        let scan: Arc<[Binding]> = Arc::new([table]);
        let scatter: Arc<[Binding]> = Arc::new([buckets, from, table, to, chunk_of]);
        b.pass(Step::Sort, &bucket_sort::COUNT, &params, &count, lsh.rounds * tiles, (looks, bytes_of(&count)));
        b.pass(Step::Sort, &bucket_sort::SCAN, &params, &scan, lsh.rounds, (0.0, bytes_of(&scan)));
        b.pass(Step::Sort, &bucket_sort::SCATTER, &params, &scatter, lsh.rounds * tiles, (looks, bytes_of(&scatter)));
    }
}
