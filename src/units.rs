//! Numbers in words: bytes, and whole numbers in groups.

/// `16.0 GiB`, `1.5 MiB`, `512 B`.
pub fn bytes_in_words(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in units {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") }
}

/// A whole number in groups of three: 65,536.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number as people type it, with the groups that [`grouped`] makes or without.
pub fn ungrouped(text: &str) -> Option<f64> {
    text.replace([',', ' '], "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_three_come_and_go() {
        for (value, text) in [(999, "999"), (65_536, "65,536"), (1_000_000, "1,000,000")] {
            assert_eq!(grouped(value), text);
            assert_eq!(ungrouped(text), Some(value as f64));
        }
        assert_eq!((ungrouped("65 536"), ungrouped("many")), (Some(65_536.0), None));
    }

    #[test]
    fn bytes_have_the_largest_unit_that_leaves_a_whole() {
        for (bytes, text) in [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (16 << 30, "16.0 GiB")] {
            assert_eq!(bytes_in_words(bytes), text);
        }
    }
}
