//! Round numbers for axes and colour bars, and how they are written.

/// Multiples of 1, 2 or 5 times a power of ten within `[low, high]`, at most `most` of them.
pub fn linear(low: f64, high: f64, most: usize) -> Vec<f64> {
    let span = high - low;
    if !(span > 0.0 && span.is_finite()) || most == 0 {
        return Vec::new();
    }
    let rough = span / most as f64;
    let power = 10f64.powf(rough.log10().floor());
    let count = |step: f64| (high / step + 1e-9).floor() - (low / step - 1e-9).ceil() + 1.0;
    let step = [1.0, 2.0, 5.0, 10.0, 20.0].map(|factor| factor * power).into_iter().find(|s| count(*s) <= most as f64);
    let step = step.unwrap_or(50.0 * power);
    let first = (low / step - 1e-9).ceil() as i64;
    (first..first + count(step).max(0.0) as i64).map(|at| at as f64 * step).collect()
}

/// Powers of ten within `[low, high]`, evenly thinned to at most `most`.
pub fn decades(low: f64, high: f64, most: usize) -> Vec<f64> {
    if !(low > 0.0 && high >= low) || most == 0 {
        return Vec::new();
    }
    let (first, last) = ((low.log10() - 1e-6).ceil() as i32, (high.log10() + 1e-6).floor() as i32);
    let count = (last - first + 1).max(0) as usize;
    (first..=last).rev().step_by(count.div_ceil(most).max(1)).map(|power| 10f64.powi(power)).collect()
}

/// At most three significant digits, with an exponent where zeros would crowd.
pub fn written(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    if !(1e-3..1e6).contains(&size) {
        let text = format!("{value:.1e}");
        return text.replace(".0e", "e");
    }
    let decimals = (2 - size.log10().floor() as i32).clamp(0, 5) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(linear(0.0, 1024.0, 6), [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
        assert_eq!(linear(0.0, 1.0, 1), [0.0]);
        assert_eq!(linear(0.3, 0.3, 5), [0.0; 0]);
        for (low, high) in [(0.0, 1.0), (17.0, 19.5), (1000.0, 65_536.0), (-3.0, 4.0)] {
            let ticks = linear(low, high, 5);
            assert!((2..=5).contains(&ticks.len()), "{low} {high} {ticks:?}");
            assert!(ticks.iter().all(|tick| (low - 1e-6..=high + 1e-6).contains(tick)), "{ticks:?}");
        }
        assert_eq!(decades(1e-6, 0.5, 3), [0.1, 0.001, 1e-5]);
        assert_eq!(decades(0.0, 1.0, 3), [0.0; 0]);
    }

    #[test]
    fn numbers_are_short() {
        let cases = [
            (0.0, "0"),
            (64.0, "64"),
            (0.25, "0.25"),
            (1234.5, "1234"),
            (1e-6, "1e-6"),
            (0.1 + 0.2, "0.3"),
            (1.5e7, "1.5e7"),
        ];
        for (value, text) in cases {
            assert_eq!(written(value), text);
        }
    }
}
