//! How many buckets a round has, where it is not set: each published code has a rule of its own.

use super::{MAX_BUCKETS, PLAIN_HASH_BUCKETS};
use crate::semantics::Choice;

/// Ties the bucket count `b` to the chunk length `m` and the sequence length `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketRule {
    /// `b = 2 n / m`: a chunk holds two average buckets, Reformer section 2; above 128 to the nearest
    /// multiple of 16.
    Paper,
    /// `b = n / m`: a chunk holds one average bucket (reformer-pytorch, which refuses a length that is no
    /// multiple of `2 m`; here `b` is the nearest even number).
    Chunks,
    /// `b = 2 floor(n / m)`, rounded down to a power of two (Hugging Face transformers).
    PowerOfTwo,
}

impl Choice for BucketRule {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Paper, "paper"), (Self::Chunks, "chunks"), (Self::PowerOfTwo, "power-of-two")];
}

impl BucketRule {
    /// The even bucket count that follows from a chunk length.
    pub fn bucket_count(self, n: u32, chunk: u32) -> u32 {
        let chunk = chunk.max(1);
        let nearest = |ratio: f64| 2 * (ratio / 2.0).round() as u32;
        let buckets = match self {
            // Where the hash is factorised, sixteen divides the count, so that two near factors exist.
            Self::Paper => match nearest(2.0 * f64::from(n) / f64::from(chunk)) {
                few if few <= PLAIN_HASH_BUCKETS => few,
                many => (many + 8) / 16 * 16,
            },
            Self::Chunks => nearest(f64::from(n) / f64::from(chunk)),
            Self::PowerOfTwo => (2 * (n / chunk)).checked_ilog2().map_or(2, |power| 1 << power),
        };
        buckets.clamp(2, MAX_BUCKETS)
    }

    /// The chunk length that follows from a bucket count.
    pub fn chunk_len(self, n: u32, buckets: u32) -> u32 {
        let held = if self == Self::Chunks { n } else { 2 * n };
        held.div_ceil(buckets.max(2)).max(2)
    }

    /// Most buckets that are drawn without factorising, when the hash may choose. Hugging Face has
    /// `2 max(sqrt(n / m), m)`, with the longest sequence of its model in the place of n.
    pub fn plain_up_to(self, n: u32, chunk: u32) -> u32 {
        match self {
            Self::Paper | Self::Chunks => PLAIN_HASH_BUCKETS,
            Self::PowerOfTwo => 2 * (n / chunk.max(1)).isqrt().max(chunk),
        }
    }
}

/// The two even factors of `buckets` that lie closest together, the smaller one first; `None` when
/// there are none.
pub fn factorise(buckets: u32) -> Option<(u32, u32)> {
    (2..=buckets.isqrt()).rev().find(|a| a.is_multiple_of(2) && buckets.is_multiple_of(2 * a)).map(|a| (a, buckets / a))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, from the code of each library.
    #[test]
    fn each_code_counts_buckets_in_its_own_way() {
        for (n, chunk, counts) in [
            (4096, 64, [128, 64, 128]),
            (1000, 64, [32, 16, 16]),
            (1536, 64, [48, 24, 32]),
            (50_000, 64, [1568, 782, 1024]),
            (64, 64, [2, 2, 2]),
            (32, 64, [2, 2, 2]),
        ] {
            let rules = [BucketRule::Paper, BucketRule::Chunks, BucketRule::PowerOfTwo];
            assert_eq!(rules.map(|rule| rule.bucket_count(n, chunk)), counts, "n = {n}, m = {chunk}");
        }
        assert_eq!(BucketRule::Paper.chunk_len(4096, 128), 64);
        assert_eq!(BucketRule::Chunks.chunk_len(4096, 64), 64);
        assert_eq!(BucketRule::PowerOfTwo.plain_up_to(4096, 64), 128);
        assert_eq!(BucketRule::PowerOfTwo.plain_up_to(4096, 8), 44);
    }
}
