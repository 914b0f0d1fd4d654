//! How figures are written: three significant digits, groups of three, units.

use super::ticks;
pub use crate::units::{bytes_in_words as bytes, grouped as count};
pub use ticks::written as number;

/// `12.3 %` of a share from 0 to 1.
pub fn percent(share: f64) -> String {
    format!("{} %", number(share * 100.0))
}

/// Milliseconds, or seconds from a second on.
pub fn time(ms: f64) -> String {
    if ms < 1000.0 { format!("{} ms", number(ms)) } else { format!("{} s", number(ms / 1000.0)) }
}

/// `4 × 1,024 × 64`
pub fn shape(sizes: &[u64]) -> String {
    let sizes: Vec<String> = sizes.iter().map(|size| count(*size)).collect();
    sizes.join(" × ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_have_units() {
        assert_eq!(percent(0.123_456), "12.3 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(time(0.5), "0.5 ms");
        assert_eq!(time(1234.0), "1.23 s");
        assert_eq!(bytes(17_179_869_184), "16.0 GiB");
        assert_eq!(shape(&[1, 65_536, 64]), "1 × 65,536 × 64");
    }
}
