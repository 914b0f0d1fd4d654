//! The tables of both papers, with their formulas evaluated and their printed values, and what the plans of
//! this program allocate at the same sizes. Nothing here runs.

use crate::lab::stack::{self, planned_bytes};
use crate::memory::{self, UNLIMITED};
use crate::methods::full::{Full, Way};
use crate::methods::lsh::Lsh;
use crate::methods::measure::Measured;
use crate::methods::stack::{self as layers, Branches, Layer, Loss};
use crate::problem::Dims;
use crate::semantics::{Semantics, Wrap};
use crate::settings::{BucketRule, PLAIN_HASH_BUCKETS, factorise};

/// Sizes of a model, as the tables name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sizes {
    /// b.
    pub batch: u32,
    /// h, or n_h.
    pub heads: u32,
    /// L, or n_l.
    pub layers: u32,
    /// l, or n.
    pub length: u32,
    /// Divided by the heads: d_k.
    pub d_model: u32,
    pub d_ff: u32,
    /// r, or n_r.
    pub rounds: u32,
    /// m: n_c = l / m chunks.
    pub chunk: u32,
    /// Linformer's projected length.
    pub k: u32,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { batch: 1, heads: 8, layers: 12, length: 4096, d_model: 512, d_ff: 2048, rounds: 4, chunk: 32, k: 256 }
    }
}

impl Sizes {
    /// Numbers in a query of one head.
    pub fn d(&self) -> u32 {
        (self.d_model / self.heads).max(1)
    }

    /// One head of each sequence of the batch for each head.
    pub fn dims(&self) -> Dims {
        let heads = self.batch * self.heads;
        let n = self.length;
        Dims { n_q: n, n_kv: n, heads, k_heads: heads, v_heads: heads, d: self.d(), d_v: self.d() }
    }

    /// LSH attention of the paper at these sizes.
    pub fn lsh(&self, wrap: Wrap) -> Lsh {
        let buckets = BucketRule::Paper.bucket_count(self.length, self.chunk);
        let factors = match factorise(buckets) {
            Some((a, b)) if buckets > PLAIN_HASH_BUCKETS => vec![a, b],
            _ => vec![buckets],
        };
        Lsh {
            rounds: self.rounds,
            factors,
            chunk_len: self.chunk,
            rotation_heads: self.batch * self.heads,
            semantics: Semantics { wrap, ..Semantics::PAPER },
            keep_rounds: false,
        }
    }

    /// Meetings of a query and a key over all heads and rounds: `r l 2 m` a head where the first chunk
    /// wraps, `r (2 l m - m^2)` where it does not.
    pub fn visits(&self, wrap: Wrap) -> u64 {
        u64::from(self.batch * self.heads) * self.lsh(wrap).visits(self.length)
    }

    fn numbers(&self) -> Numbers {
        let all = [
            self.batch,
            self.heads,
            self.layers,
            self.length,
            self.d_model,
            self.d_ff,
            self.rounds,
            self.chunk,
            self.d(),
        ];
        let [b, h, layers, l, d_model, d_ff, r, m, d] = all.map(f64::from);
        Numbers { b, h, layers, l, d_model, d_ff, r, seen: (4.0 * m).powi(2), d }
    }
}

/// The same as numbers.
struct Numbers {
    b: f64,
    h: f64,
    layers: f64,
    l: f64,
    d_model: f64,
    d_ff: f64,
    r: f64,
    /// `(4 l / n_c)^2` with `n_c = l / m`; table 3 calls it c.
    seen: f64,
    d: f64,
}

/// A row of a table of complexities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row<Name> {
    pub name: Name,
    /// What the paper's expressions come to, in numbers and operations, up to constants.
    pub memory: f64,
    pub time: f64,
}

/// The rows of Reformer's table 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attention {
    ScaledDotProduct,
    Lsh,
}

/// Reformer, table 1.
pub fn reformer_1(sizes: &Sizes) -> [Row<Attention>; 2] {
    let Numbers { b, h, l, r, seen, d, .. } = sizes.numbers();
    let tensors = b * h * l * d;
    let full = tensors.max(b * h * l * l);
    let lsh = tensors.max(b * h * l * r * seen);
    [
        Row { name: Attention::ScaledDotProduct, memory: full, time: full },
        Row { name: Attention::Lsh, memory: lsh, time: lsh },
    ]
}

/// Bytes that this program's plan of a row allocates.
pub fn planned(sizes: &Sizes, name: Attention) -> u64 {
    let measured = match name {
        Attention::ScaledDotProduct => {
            Measured::Full(Full { way: Way::Materialized, shared_qk: false, semantics: Semantics::PLAIN })
        }
        Attention::Lsh => Measured::Lsh(sizes.lsh(Wrap::None)),
    };
    memory::bytes(&sizes.dims(), &measured)
}

/// The rows of Reformer's table 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    Transformer,
    ReversibleTransformer,
    ChunkedReversibleTransformer,
    LshTransformer,
    Reformer,
}

/// Reformer, table 3.
pub fn reformer_3(sizes: &Sizes) -> [Row<Model>; 5] {
    let Numbers { b, h, layers, l, d_model, d_ff, r, seen, .. } = sizes.numbers();
    let feed_forward = b * l * d_ff;
    let (full, lsh) = (b * h * l * l, b * h * l * r * seen);
    let row = |name, memory, attention| Row { name, memory, time: (feed_forward + attention) * layers };
    [
        row(Model::Transformer, feed_forward.max(full) * layers, full),
        row(Model::ReversibleTransformer, feed_forward.max(full), full),
        row(Model::ChunkedReversibleTransformer, (b * l * d_model).max(full), full),
        row(Model::LshTransformer, feed_forward.max(lsh) * layers, lsh),
        row(Model::Reformer, (b * l * d_model).max(lsh), lsh),
    ]
}

/// Parts in which a model with chunks walks its feed-forward layers here.
pub const FEED_FORWARD_CHUNKS: u32 = 16;

/// Bytes of activations that a step of training holds at most, by this program's plans for layers of a row:
/// forward and backward, parameters and their gradients left out, as many sequences as the batch has. Full
/// attention is the one with an online softmax, which holds no matrix.
pub fn planned_model(sizes: &Sizes, name: Model) -> u64 {
    let one = Sizes { batch: 1, ..*sizes };
    let (lsh, stored, chunks) = match name {
        Model::Transformer => (false, true, 1),
        Model::ReversibleTransformer => (false, false, 1),
        Model::ChunkedReversibleTransformer => (false, false, FEED_FORWARD_CHUNKS),
        Model::LshTransformer => (true, true, 1),
        Model::Reformer => (true, false, FEED_FORWARD_CHUNKS),
    };
    let attention = match lsh {
        true => layers::Attention::Lsh(one.lsh(Wrap::None)),
        false => layers::Attention::Full(Semantics::PAPER),
    };
    let dims = one.dims();
    let branches = Branches::Reformer { dims, attention, d_ff: sizes.d_ff, chunks };
    let layer = Layer { n: dims.n_q, width: dims.heads * dims.d, branches };
    let way = stack::Way { stored, ..stack::Way::default() };
    let bytes = planned_bytes(&layer, u64::from(sizes.layers), Loss::Squares(1.0), way, UNLIMITED);
    // Without limits nothing is refused.
    bytes.map_or(u64::MAX, |bytes| bytes * u64::from(sizes.batch))
}

/// The k of Linformer's table 3.
pub const LINFORMER_K: [u32; 5] = [128, 256, 512, 1024, 2048];

/// How many times faster and smaller than standard attention Linformer is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saved {
    pub time: f64,
    pub memory: f64,
}

const fn saved(time: f64, memory: f64) -> Option<Saved> {
    Some(Saved { time, memory })
}

/// Linformer, table 3, as printed, on a V100: for each n what is saved against the standard Transformer at
/// each of [`LINFORMER_K`]; `None` where nothing is printed.
pub const LINFORMER_3: [(u32, [Option<Saved>; 5]); 8] = [
    (512, [saved(1.5, 1.7), saved(1.3, 1.5), None, None, None]),
    (1024, [saved(1.7, 3.0), saved(1.6, 2.9), saved(1.3, 1.8), None, None]),
    (2048, [saved(2.6, 6.1), saved(2.4, 5.6), saved(2.1, 3.6), saved(1.3, 2.0), None]),
    (4096, [saved(3.4, 14.0), saved(3.2, 13.0), saved(2.8, 8.3), saved(2.2, 4.3), saved(1.3, 2.3)]),
    (8192, [saved(5.5, 28.0), saved(5.0, 26.0), saved(4.4, 17.0), saved(3.5, 8.5), saved(2.1, 4.5)]),
    (16_384, [saved(8.6, 56.0), saved(7.8, 48.0), saved(7.0, 32.0), saved(5.6, 16.0), saved(3.3, 8.0)]),
    (32_768, [saved(13.0, 56.0), saved(12.0, 48.0), saved(11.0, 36.0), saved(8.8, 18.0), saved(5.0, 16.0)]),
    (65_536, [saved(20.0, 60.0), saved(18.0, 52.0), saved(16.0, 40.0), saved(14.0, 20.0), saved(7.9, 18.0)]),
];

/// Reformer, table 2, as printed: accuracy in % on the duplication task, trained (rows) and evaluated (columns)
/// with full attention and 8, 4, 2 and 1 rounds.
pub const REFORMER_2: [(&str, [f64; 5]); 4] = [
    ("Full", [100.0, 94.8, 92.5, 76.9, 52.5]),
    ("LSH-4", [0.8, 100.0, 99.9, 99.4, 91.9]),
    ("LSH-2", [0.8, 100.0, 99.9, 98.1, 86.8]),
    ("LSH-1", [0.8, 99.9, 99.6, 94.8, 77.9]),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes() -> Sizes {
        Sizes { batch: 2, heads: 4, layers: 3, length: 1024, d_model: 256, d_ff: 1024, rounds: 2, chunk: 32, k: 64 }
    }

    /// By hand, with c = 128^2 as the caption of table 3 has it for chunks of 32.
    #[test]
    fn formulas_come_to_what_they_come_to_by_hand() {
        let [full, lsh] = reformer_1(&sizes());
        assert_eq!(full.memory, (2 * 4 * 1024 * 1024) as f64);
        assert_eq!(lsh.memory, (2 * 4 * 1024 * 2) as f64 * 128.0 * 128.0);
        let rows = reformer_3(&sizes());
        assert_eq!(rows[0].memory, 3.0 * rows[1].memory);
        assert_eq!(rows[4].time, (2.0 * 1024.0 * 1024.0 + lsh.memory) * 3.0);
        // With short sequences the feed-forward layer is the larger term, and chunking takes it away.
        let short = Sizes { length: 64, ..sizes() };
        assert_eq!(reformer_3(&short)[1].memory, 2.0 * 64.0 * 1024.0);
        assert_eq!(reformer_3(&short)[2].memory, 2.0 * 4.0 * 64.0 * 64.0);
    }

    #[test]
    fn visits_are_the_formulas_of_whole_chunks() {
        let sizes = sizes();
        let (l, m, r, heads) = (1024, 32, 2, 8);
        assert_eq!(sizes.visits(Wrap::InRound), heads * r * l * 2 * m);
        assert_eq!(sizes.visits(Wrap::None), heads * r * (2 * l * m - m * m));
    }

    #[test]
    fn plans_hold_the_matrix_that_table_1_counts() {
        let sizes = sizes();
        let matrix = 4 * 2 * 4 * 1024 * 1024;
        let held = planned(&sizes, Attention::ScaledDotProduct);
        assert!(held > matrix && held < matrix + matrix / 2, "{held}");
        assert!(planned(&sizes, Attention::Lsh) < matrix / 2);
    }

    /// What depth and chunks change, row by row.
    #[test]
    fn plans_grow_with_depth_where_activations_are_stored() {
        let at = |layers, name| planned_model(&Sizes { layers, ..sizes() }, name);
        for (name, stored) in [
            (Model::Transformer, true),
            (Model::ReversibleTransformer, false),
            (Model::ChunkedReversibleTransformer, false),
            (Model::LshTransformer, true),
            (Model::Reformer, false),
        ] {
            let growth = at(12, name) as f64 / at(2, name) as f64;
            assert!(if stored { growth > 3.0 } else { growth < 1.1 }, "{name:?}: {growth}");
        }
        let chunked = at(3, Model::ChunkedReversibleTransformer);
        // Both the hidden numbers and the gradients by them stand there for one chunk of 16.
        let hidden = 2 * 1024 * 1024 * 4;
        assert!(at(3, Model::ReversibleTransformer) - chunked > 2 * hidden / 2, "{chunked}");
        let once = planned_model(&Sizes { batch: 1, ..sizes() }, Model::Reformer);
        assert_eq!(at(3, Model::Reformer), 2 * once);
    }

    #[test]
    fn less_is_saved_at_a_larger_k_and_a_shorter_sequence() {
        for (n, row) in LINFORMER_3 {
            let printed: Vec<Saved> = row.into_iter().flatten().collect();
            assert!(
                printed.windows(2).all(|pair| pair[0].time >= pair[1].time && pair[0].memory >= pair[1].memory),
                "n = {n}"
            );
            let most = LINFORMER_K.iter().zip(row).filter(|(_, cell)| cell.is_some()).map(|(k, _)| *k).max();
            assert!(most.is_some_and(|k| k < n), "n = {n}");
        }
    }
}
