//! Linformer's projections E and F, and which heads and layers share them. Linformer section 4.

use crate::problem::Projections;
use crate::semantics::Choice;

/// What makes k rows of n. Windows of the poolings and of the convolution follow each other; where k
/// does not divide n, the first n mod k windows are one longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Projection {
    /// The mean of each window; E = F.
    Mean,
    /// The largest of each window, component by component: not linear, so there is no E.
    Max,
    /// Seeded normal entries of variance 1/k, untrained.
    Gaussian,
    /// One kernel of `ceil(n / k)` seeded weights that moves from window to window, untrained.
    Convolution,
}

/// Which matrices are one and the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Every head of every layer has an E and an F.
    None,
    /// Every layer has an E and an F for all its heads.
    Headwise,
    /// Every layer has one matrix, E = F.
    KeyValue,
    /// One matrix for all layers, E = F.
    Layerwise,
}

impl Choice for Projection {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Mean, "mean"), (Self::Max, "max"), (Self::Gaussian, "gaussian"), (Self::Convolution, "convolution")];
}
impl Choice for Sharing {
    const ALL: &'static [(Self, &'static str)] = &[
        (Self::None, "none"),
        (Self::Headwise, "headwise"),
        (Self::KeyValue, "key-value"),
        (Self::Layerwise, "layerwise"),
    ];
}

impl Projection {
    /// The entries of E and F; those of max pooling are not read.
    pub fn projections(self, seed: u32) -> Projections {
        match self {
            Self::Mean | Self::Max => Projections::Mean,
            Self::Gaussian => Projections::Gaussian(seed),
            Self::Convolution => Projections::Convolution(seed),
        }
    }

    /// Its numbers are drawn, so that it matters who shares them. Pooling has none.
    pub fn has_parameters(self) -> bool {
        matches!(self, Self::Gaussian | Self::Convolution)
    }
}

impl Sharing {
    /// E and F are one matrix.
    pub fn shares_key_value(self) -> bool {
        matches!(self, Self::KeyValue | Self::Layerwise)
    }

    /// Different matrices E, and as many F unless they are the same, of one layer.
    pub fn heads(self, heads: u32) -> u32 {
        if self == Self::None { heads } else { 1 }
    }

    /// Matrices of a model, Linformer section 4.
    pub fn matrices(self, layers: u64, heads: u64) -> u64 {
        match self {
            Self::None => 2 * layers * heads,
            Self::Headwise => 2 * layers,
            Self::KeyValue => layers,
            Self::Layerwise => 1,
        }
    }

    /// Parameters of a model whose layer l projects n positions to `k[l]`; a matrix for all layers must
    /// have the rows of the largest.
    pub fn parameters(self, n: u64, heads: u64, k: &[u64]) -> u64 {
        let rows: u64 = match self {
            Self::Layerwise => k.iter().copied().max().unwrap_or(0),
            _ => k.iter().sum(),
        };
        self.matrices(1, heads) * rows * n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_the_paper() {
        let of = |sharing: Sharing| sharing.matrices(12, 12);
        assert_eq!(Sharing::ALL.iter().map(|(sharing, _)| of(*sharing)).collect::<Vec<_>>(), [288, 24, 12, 1]);
        for (sharing, _) in Sharing::ALL {
            let level = sharing.parameters(512, 12, &[128; 12]);
            assert_eq!(level, of(*sharing) * 512 * 128);
            // Layers with fewer rows have fewer parameters, except where one matrix serves them all.
            let falling = sharing.parameters(512, 12, &[128, 64, 32]);
            let expected = match sharing {
                Sharing::None => 24 * 224 * 512,
                Sharing::Headwise => 2 * 224 * 512,
                Sharing::KeyValue => 224 * 512,
                Sharing::Layerwise => 128 * 512,
            };
            assert_eq!(falling, expected, "{sharing:?}");
        }
    }
}
