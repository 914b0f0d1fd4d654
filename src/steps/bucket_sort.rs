//! Stable sort of the positions by (bucket, position), each round of one head on its own.
//!
//! A counting sort by digits of seven bits, least significant first: one pass up to 128 buckets,
//! two up to 8,192. Every workgroup owns a tile of the list and every thread one digit, which it
//! looks for from the tile's first entry to its last: stable without ranks or atomics.

use super::{Access, Data, Kernel, Widths, params, read_params};

/// Entries of a tile.
pub const TILE: u32 = 1024;
/// Values of a digit, and threads of a workgroup.
pub const DIGITS: u32 = 128;
/// Bits of a digit.
pub const DIGIT_BITS: u32 = DIGITS.ilog2();

params! {
    /// `groups = rounds * tiles` for `count` and `scatter`, `rounds` for `scan`; `tiles = ceil(n / 1024)`.
    Params as "Params" {
        first_group: u32,
        n: u32,
        tiles: u32,
        /// Lowest bit of the digit.
        shift: u32,
        /// 1 in the first pass: the list is 0, 1, ..., n-1 and `order_in` is not read.
        from_identity: u32,
        chunk_len: u32,
    }
}

/// Entries of each digit in each tile.
pub static COUNT: Kernel = kernel("count", &[Access::Read, Access::Read, Access::ReadWrite], count_twin);
/// Exclusive sums in the order (digit, tile): where each tile's entries of a digit begin.
pub static SCAN: Kernel = kernel("scan", &[Access::ReadWrite], scan_twin);
/// The sorted list, and the chunk in which each position lies.
pub static SCATTER: Kernel = kernel(
    "scatter",
    &[Access::Read, Access::Read, Access::ReadWrite, Access::ReadWrite, Access::ReadWrite],
    scatter_twin,
);

const fn kernel(entry: &'static str, bindings: &'static [Access], twin: fn(&[u8], Widths, &mut [Data])) -> Kernel {
    Kernel {
        stem: "bucket_sort",
        entry,
        source: include_str!("../../shaders/bucket_sort.wgsl"),
        params: &[Params::WGSL],
        include: "",
        bindings,
        twin,
    }
}

/// Passes that `buckets` buckets need.
pub fn passes(buckets: u32) -> u32 {
    let bits = u32::BITS - (buckets - 1).leading_zeros();
    bits.div_ceil(DIGIT_BITS).max(1)
}

/// Words of the table of one head.
pub fn table_len(n: u32, rounds: u32) -> u64 {
    u64::from(rounds) * u64::from(DIGITS) * u64::from(n.div_ceil(TILE))
}

fn entry(p: &Params, order_in: &[u32], round: usize, e: usize) -> u32 {
    if p.from_identity != 0 { e as u32 } else { order_in[round * p.n as usize + e] }
}

fn digit(p: &Params, buckets: &[u32], round: usize, position: u32) -> usize {
    ((buckets[round * p.n as usize + position as usize] >> p.shift) & (DIGITS - 1)) as usize
}

fn count_twin(params: &[u8], _: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let (n, tiles, digits) = (p.n as usize, p.tiles as usize, DIGITS as usize);
    let rounds = buffers[0].len() / n;
    let mut table = vec![0; rounds * digits * tiles];
    for round in 0..rounds {
        for e in 0..n {
            let position = entry(&p, buffers[1].u(), round, e);
            let d = digit(&p, buffers[0].u(), round, position);
            table[(round * digits + d) * tiles + e / TILE as usize] += 1;
        }
    }
    buffers[2].u_mut().copy_from_slice(&table);
}

fn scan_twin(params: &[u8], _: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    for table in buffers[0].u_mut().chunks_mut(DIGITS as usize * p.tiles as usize) {
        let mut sum = 0;
        for word in table {
            sum += std::mem::replace(word, sum);
        }
    }
}

/// Sorts each tile list with the library's stable sort; the table is not needed.
fn scatter_twin(params: &[u8], _: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let n = p.n as usize;
    let rounds = buffers[0].len() / n;
    for round in 0..rounds {
        let mut list: Vec<u32> = (0..n).map(|e| entry(&p, buffers[1].u(), round, e)).collect();
        list.sort_by_key(|position| digit(&p, buffers[0].u(), round, *position));
        for (at, position) in list.iter().enumerate() {
            buffers[3].u_mut()[round * n + at] = *position;
            buffers[4].u_mut()[round * n + *position as usize] = at as u32 / p.chunk_len;
        }
    }
}
