//! Bucket ids in few bits: what a reversible layer keeps for its backward pass grows with the depth, and
//! ids below `2^bits` need no more than these.

use super::{Access, Data, Kernel, Widths, params, read_params};

params! {
    /// `groups = ceil(words / 64)` for packing, `ceil(count / 64)` for unpacking.
    Params as "Params" {
        first_group: u32,
        count: u32,
        bits: u32,
        per_word: u32,
    }
}

impl Params {
    /// For `count` ids below `below`, of at least one bit.
    pub fn new(count: u32, below: u32) -> Self {
        let bits = (u32::BITS - below.saturating_sub(1).leading_zeros()).max(1);
        Self { first_group: 0, count, bits, per_word: u32::BITS / bits }
    }

    /// Words that hold all ids.
    pub fn words(&self) -> u32 {
        self.count.div_ceil(self.per_word)
    }
}

/// ids `[count]`, the words that hold them.
pub static PACK: Kernel = kernel("pack", pack);
/// The words, the ids that they hold.
pub static UNPACK: Kernel = kernel("unpack", unpack);

const fn kernel(entry: &'static str, twin: fn(&[u8], Widths, &mut [Data])) -> Kernel {
    Kernel {
        stem: "packed_ids",
        entry,
        source: include_str!("../../shaders/packed_ids.wgsl"),
        params: &[Params::WGSL],
        include: "",
        bindings: &[Access::Read, Access::ReadWrite],
        twin,
    }
}

fn pack(params: &[u8], _: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let ids = buffers[0].u()[..p.count as usize].to_vec();
    for (word, ids) in buffers[1].u_mut().iter_mut().zip(ids.chunks(p.per_word as usize)) {
        *word = ids.iter().rev().fold(0, |word, id| word << p.bits | id);
    }
}

fn unpack(params: &[u8], _: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let packed = buffers[0].u().to_vec();
    let each = packed.iter().flat_map(|word| (0..p.per_word).map(move |i| word >> (i * p.bits) & ((1 << p.bits) - 1)));
    for (id, kept) in buffers[1].u_mut()[..p.count as usize].iter_mut().zip(each) {
        *id = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_take_as_few_bits_as_they_need() {
        for (below, bits, per_word) in [(2, 1, 32), (4, 2, 16), (5, 3, 10), (64, 6, 5), (65, 7, 4), (8192, 13, 2)] {
            let p = Params::new(33, below);
            assert_eq!((p.bits, p.per_word), (bits, per_word), "{below}");
            assert_eq!(p.words(), 33u32.div_ceil(per_word));
        }
    }

    #[test]
    fn what_is_packed_comes_back() {
        let p = Params::new(7, 5);
        let params = bytemuck::bytes_of(&p);
        let ids = Data::U(vec![4, 0, 3, 1, 2, 4, 4]);
        let mut buffers = [ids.clone(), Data::U(vec![0; p.words() as usize])];
        pack(params, Widths::new(1, 1), &mut buffers);
        assert_eq!(buffers[1].u(), [4 | 3 << 6 | 1 << 9 | 2 << 12 | 4 << 15 | 4 << 18]);
        let mut back = [buffers[1].clone(), Data::U(vec![u32::MAX; 7])];
        unpack(params, Widths::new(1, 1), &mut back);
        assert_eq!(back[1], ids);
    }
}
