//! What a run gave: immutable, shared by all views, the command line and the files it writes.

use crate::gpu::run::Clock;
use crate::methods::measure::Sample;
use crate::plan::{Role, Step};
use crate::problem::Dims;
use crate::settings::{Method, Settings};
use crate::steps::attention_map;
use std::ops::Range;

/// One method on one input.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub settings: Settings,
    pub dims: Dims,
    pub adapter: String,
    pub figures: Figures,
    /// Milliseconds of one warm run: no input, compilation, figures or readback.
    pub ms: f64,
    pub clock: Clock,
    pub steps: Vec<StepReport>,
    /// What the method held on the device, in the order of its plan.
    pub buffers: Vec<BufferReport>,
    /// Most bytes held at once while the method ran, read from the ledger.
    pub peak_bytes: u64,
    /// Output `[heads, n_q, d_v]`.
    pub out: Vec<f32>,
    /// Log-sum-exp `[heads, n_q]`; the lowest float32 where a row saw no key.
    pub lse: Vec<f32>,
    pub lists: Option<Lists>,
}

impl Outcome {
    /// The settings ask for LSH attention, and full attention ran, since one chunk holds every token.
    pub fn is_short(&self) -> bool {
        self.settings.method == Method::Lsh && self.settings.is_short()
    }

    /// The output of one head, `[n_q, d_v]`; empty when there is no such head.
    pub fn head(&self, head: u32) -> &[f32] {
        let size = (self.dims.n_q * self.dims.d_v) as usize;
        self.out.chunks_exact(size).nth(head as usize).unwrap_or_default()
    }

    /// The mean of the heads' outputs, `[n_q, d_v]`.
    pub fn mean_of_heads(&self) -> Vec<f32> {
        mean_of_heads(&self.out, &self.dims)
    }
}

/// The mean of outputs `[heads, n_q, d_v]`, `[n_q, d_v]`.
pub fn mean_of_heads(out: &[f32], dims: &Dims) -> Vec<f32> {
    let size = (dims.n_q * dims.d_v) as usize;
    let mut mean = vec![0.0; size];
    for head in out.chunks_exact(size) {
        mean.iter_mut().zip(head).for_each(|(mean, x)| *mean += x / dims.heads as f32);
    }
    mean
}

/// `norm(a - b) / norm(b)` over rows that come one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Distance {
    apart: f64,
    length: f64,
}

impl Distance {
    /// Of two whole outputs.
    pub fn between(a: &[f32], b: &[f32]) -> Self {
        let mut distance = Self::default();
        distance.add(a, b);
        distance
    }

    pub fn add(&mut self, a: &[f32], b: &[f32]) {
        for (a, b) in a.iter().zip(b) {
            self.apart += (f64::from(*a) - f64::from(*b)).powi(2);
            self.length += f64::from(*b).powi(2);
        }
    }

    /// `norm(a - b)` when b is 0.
    pub fn relative(&self) -> f64 {
        if self.length > 0.0 { (self.apart / self.length).sqrt() } else { self.apart.sqrt() }
    }
}

/// What LSH attention sorted; all `[heads, rounds, n]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Lists {
    pub rounds: u32,
    pub n_buckets: u32,
    pub chunk_len: u32,
    pub buckets: Vec<u32>,
    /// Positions in sorted order.
    pub order: Vec<u32>,
    /// Pairs of one bucket that no chunk pair covers, by head and round: `[heads, rounds]`.
    pub lost_pairs: Vec<u64>,
}

impl Lists {
    /// The part of a list that belongs to one head and round.
    pub fn of<'a>(&self, list: &'a [u32], n: u32, head: u32, round: u32) -> &'a [u32] {
        let start = (head * self.rounds + round) as usize * n as usize;
        &list[start..start + n as usize]
    }

    /// The chunk of each position `[n]` of one head and round.
    pub fn chunk_of(&self, n: u32, head: u32, round: u32) -> Vec<u32> {
        let mut chunk_of = vec![0; n as usize];
        for (at, position) in self.of(&self.order, n, head, round).iter().enumerate() {
            chunk_of[*position as usize] = at as u32 / self.chunk_len;
        }
        chunk_of
    }

    /// Tokens in each bucket of one head and round.
    pub fn sizes(&self, n: u32, head: u32, round: u32) -> Vec<u32> {
        let mut sizes = vec![0; self.n_buckets as usize];
        for bucket in self.of(&self.buckets, n, head, round) {
            sizes[*bucket as usize] += 1;
        }
        sizes
    }

    /// FNV-1a over all bucket numbers as little-endian words: equal on two devices that hashed alike.
    pub fn checksum(&self) -> String {
        let bytes = self.buckets.iter().flat_map(|bucket| bucket.to_le_bytes());
        let sum = bytes.fold(0x811c_9dc5_u32, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        format!("{sum:08x}")
    }
}

/// The figures of a result. *Exact* means: same keys, scale, self rule and causal mask.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Distinct unmasked (query, key) pairs over all heads; for Linformer its `heads n k` products.
    pub pairs: u64,
    /// Meetings of a query and a key; a pair met in three rounds counts three times.
    pub visits: u64,
    /// `pairs / (heads n^2)`.
    pub share: f64,
    /// `norm(o - o_exact) / norm(o_exact)`.
    pub error: f64,
    /// The same against plain `softmax(Q K^T / sqrt d) V`.
    pub error_plain: f64,
    /// Share of a row's exact top `min(32, allowed)` keys that are visible, averaged over rows.
    pub recall: Option<f64>,
    /// Exact probability on visible keys, averaged over rows; none for Linformer.
    pub mass: Option<f64>,
    /// Accuracy on the second half of the duplication task.
    pub accuracy: Option<f64>,
    /// Pairs of one bucket that no chunk pair covers, over all heads and rounds.
    pub lost_pairs: Option<u64>,
    /// Queries that error, recall and mass come from when not from all.
    pub sampled: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    pub step: Step,
    /// `None` without timestamps.
    pub ms: Option<f64>,
    /// Bytes read and written when nothing is cached.
    pub bytes: f64,
    pub flops: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct BufferReport {
    pub name: &'static str,
    pub shape: Vec<u64>,
    pub role: Role,
    pub bytes: u64,
}

/// A window of the n x n (or n x k) matrix as pixels.
#[derive(Clone, Debug, PartialEq)]
pub struct MapImage {
    /// Row-major, `height` rows of `width`: pairs a pixel, or weight summed over its columns.
    pub values: Vec<f32>,
    pub width: u32,
    pub height: u32,
    pub row_start: u32,
    pub row_count: u32,
    pub col_start: u32,
    pub col_count: u32,
    /// Rows sampled when not all of the window are drawn.
    pub sampled: Option<u32>,
}

impl MapImage {
    /// The pixel that holds a pair, across and down: where rows are sampled, that of the sampled row above. `None`
    /// outside the window.
    pub fn pixel(&self, query: u32, key: u32) -> Option<[u32; 2]> {
        let (row, column) = (query.checked_sub(self.row_start)?, key.checked_sub(self.col_start)?);
        let y = match self.sampled {
            Some(_) => row / self.rows().stride,
            None => attention_map::pixel(row, self.row_count, self.height),
        };
        let x = attention_map::pixel(column, self.col_count, self.width);
        (row < self.row_count && column < self.col_count).then_some([x, y])
    }

    /// The queries and the keys whose pairs a pixel adds up.
    pub fn covered(&self, [x, y]: [u32; 2]) -> [Range<u32>; 2] {
        let span = |pixel: u32, start: u32, count: u32, pixels: u32| {
            let edge = |pixel: u32| start + (u64::from(pixel) * u64::from(count)).div_ceil(pixels.into()) as u32;
            edge(pixel)..edge(pixel + 1)
        };
        let queries = match self.sampled {
            Some(_) => self.rows().query(y)..self.rows().query(y) + 1,
            None => span(y, self.row_start, self.row_count, self.height),
        };
        [queries, span(x, self.col_start, self.col_count, self.width)]
    }

    /// The rows that are drawn where they are sampled.
    pub fn rows(&self) -> Sample {
        Sample::even(self.row_start, self.row_count)
    }
}

/// One query's weights on every key, `[n]`: exact, and what the method used; the latter is empty for max
/// pooling, which gives no key a weight.
#[derive(Clone, Debug, PartialEq)]
pub struct RowWeights {
    pub head: u32,
    pub query: u32,
    pub exact: Vec<f32>,
    pub method: Vec<f32>,
}

/// The weights that a method gave, `[heads, n_q, columns]`; a row sums to 1, or to 0 where it saw no key.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightMatrix {
    /// n, or k of Linformer's P-bar.
    pub columns: u32,
    pub values: Vec<f32>,
}

/// How much of the exact mass the strongest keys hold, averaged over sampled queries.
#[derive(Clone, Debug, PartialEq)]
pub struct Sparsity {
    /// 1, 2, 4, ... and n.
    pub keys: Vec<u32>,
    pub mass: Vec<f64>,
    /// Queries averaged over.
    pub queries: u32,
}

/// Pairs of one bucket that no chunk of the query's own round covers, for the sorted buckets of one
/// head and round; `allowed` pairs only. Reformer section 2, after equation (5).
///
/// `sorted` holds the bucket of each entry of the sorted order.
pub fn lost_pairs(sorted: &[u32], geometry: &crate::steps::visibility::Geometry) -> u64 {
    let (n, m) = (geometry.n as usize, geometry.chunk_len as usize);
    let causal = geometry.flags & crate::semantics::flags::CAUSAL != 0;
    let mut lost = 0;
    let mut start = 0;
    for bucket in sorted.chunk_by(|a, b| a == b) {
        let end = start + bucket.len();
        for entry in start..end {
            // Within a bucket entries stand by position, so the causal mask leaves those up to here.
            let last = if causal { entry + 1 } else { end };
            let mut chunks: Vec<usize> = (0..geometry.steps())
                .filter_map(|step| geometry.seen_chunk(0, (entry / m) as u32, step))
                .filter(|(round, _)| *round == 0)
                .map(|(_, chunk)| chunk as usize)
                .collect();
            chunks.sort_unstable();
            chunks.dedup();
            let covered: usize = chunks
                .iter()
                .map(|chunk| ((chunk + 1) * m).min(n).min(last).saturating_sub((chunk * m).max(start)))
                .sum();
            lost += (last - start - covered) as u64;
        }
        start = end;
    }
    lost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_relative_and_add_up() {
        assert!((Distance::between(&[3.0, 0.0], &[0.0, 4.0]).relative() - 1.25).abs() < 1e-9);
        assert_eq!(Distance::between(&[3.0, 4.0], &[0.0, 0.0]).relative(), 5.0);
        let mut rows = Distance::between(&[3.0], &[0.0]);
        rows.add(&[0.0], &[4.0]);
        assert!((rows.relative() - 1.25).abs() < 1e-9);
    }

    /// Every pair lies in what its pixel covers, or below the sampled row of it.
    #[test]
    fn a_pixel_covers_the_pairs_that_lead_to_it() {
        let image = |rows: (u32, u32), columns: (u32, u32), height: u32, sampled: Option<u32>| MapImage {
            values: Vec::new(),
            width: columns.1.min(512),
            height,
            row_start: rows.0,
            row_count: rows.1,
            col_start: columns.0,
            col_count: columns.1,
            sampled,
        };
        for (image, apart) in [
            (image((0, 100), (0, 100), 100, None), 1),
            (image((7, 1000), (3, 777), 512, None), 1),
            (image((5, 1100), (9, 1300), 367, Some(367)), 3),
        ] {
            let ends = |start: u32, count: u32| [start, start + 1, start + count / 2, start + count - 1];
            for query in ends(image.row_start, image.row_count) {
                for key in ends(image.col_start, image.col_count) {
                    let [queries, keys] = image.covered(image.pixel(query, key).expect("inside"));
                    assert!(keys.contains(&key), "{key} in {keys:?}");
                    assert!((queries.start..queries.end + apart - 1).contains(&query), "{query} in {queries:?}");
                    assert!(apart == 1 || queries.len() == 1, "{queries:?}");
                }
            }
            assert_eq!(image.pixel(image.row_start + image.row_count, image.col_start), None);
        }
    }
}
