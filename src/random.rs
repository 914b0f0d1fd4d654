//! Random numbers that are the same bit for bit on every platform: counted, not drawn in sequence,
//! so that any part can be made on its own, and through `libm` instead of the platform's functions.

/// What a number is drawn for; different uses never share numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Rotations = 1,
    ProjectionE = 2,
    ProjectionF = 3,
    QueryProjection = 4,
    Points = 5,
    Symbols = 6,
    Codes = 7,
    Noise = 8,
    KeyProjection = 9,
    BaselineQueries = 20,
    BaselineKeys = 21,
    RangeFinder = 22,
    Weights = 30,
    Targets = 31,
}

/// 64 uniform bits for a counter (splitmix64's finaliser over a mixed key).
pub fn bits(seed: u32, stream: Stream, index: u64) -> u64 {
    let key = ((u64::from(seed) << 8) | stream as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut z = mix(key).wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = mix(z);
    mix(z ^ key)
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Uniform in (0, 1).
pub fn uniform(seed: u32, stream: Stream, index: u64) -> f64 {
    ((bits(seed, stream, index) >> 12) as f64 + 0.5) / (1u64 << 52) as f64
}

/// Uniform in `0..count`; the bias is below `count / 2^32`.
pub fn below(seed: u32, stream: Stream, index: u64, count: u32) -> u32 {
    (((bits(seed, stream, index) >> 32) * u64::from(count)) >> 32) as u32
}

/// Standard normal, by Box and Muller.
pub fn normal(seed: u32, stream: Stream, index: u64) -> f32 {
    let word = bits(seed, stream, index);
    let radius = ((word >> 32) as f64 + 0.5) / 4_294_967_296.0;
    let angle = (word & 0xffff_ffff) as f64 / 4_294_967_296.0;
    (libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(std::f64::consts::TAU * angle)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_has_the_moments_of_a_standard_normal() {
        let count = 100_000u32;
        let values: Vec<f64> = (0..count).map(|i| f64::from(normal(7, Stream::Noise, u64::from(i)))).collect();
        let moment = |power: i32| values.iter().map(|x| x.powi(power)).sum::<f64>() / f64::from(count);
        // Four standard errors of each sample moment.
        let error = 4.0 / f64::from(count).sqrt();
        assert!(moment(1).abs() < error);
        assert!((moment(2) - 1.0).abs() < error * 2f64.sqrt());
        assert!((moment(4) - 3.0).abs() < error * 96f64.sqrt());
    }

    #[test]
    fn streams_seeds_and_indices_are_independent() {
        let a = bits(1, Stream::Noise, 0);
        assert_ne!(a, bits(2, Stream::Noise, 0));
        assert_ne!(a, bits(1, Stream::Points, 0));
        assert_ne!(a, bits(1, Stream::Noise, 1));
    }
}
