//! From which length on one method takes less than another, time or bytes.

/// As far as it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Crossover {
    /// Less at every length.
    Always,
    /// Not less at the longest.
    Never,
    Between {
        /// The last length at which it is not less.
        behind: u32,
        /// The next one; from here on it is less at every length.
        ahead: u32,
        /// Where both take the same, by straight lines in logarithmic axes.
        at: f64,
    },
}

impl Crossover {
    /// From (length, what the method takes over what the other takes), in the order of the lengths; `None` of
    /// nothing.
    pub fn of(ratios: impl IntoIterator<Item = (u32, f64)>) -> Option<Self> {
        let ratios: Vec<(u32, f64)> = ratios.into_iter().collect();
        if ratios.is_empty() {
            return None;
        }
        let Some(last) = ratios.iter().rposition(|(_, ratio)| *ratio >= 1.0 || ratio.is_nan()) else {
            return Some(Self::Always);
        };
        let ((behind, above), Some((ahead, below))) = (ratios[last], ratios.get(last + 1).copied()) else {
            return Some(Self::Never);
        };
        // A clock that is too coarse gives no finite ratio.
        let part = Some(above.ln() / (above / below).ln()).filter(|part| part.is_finite()).unwrap_or(1.0);
        let at = f64::from(behind) * (f64::from(ahead) / f64::from(behind)).powf(part);
        Some(Self::Between { behind, ahead, at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lies_where_the_lines_meet() {
        // One takes n, the other n^2 / 1000: straight lines in logarithmic axes.
        let ratios = [128u32, 256, 512, 1024, 2048].map(|n| (n, 1000.0 / f64::from(n)));
        let Some(Crossover::Between { behind: 512, ahead: 1024, at }) = Crossover::of(ratios) else {
            panic!("{:?}", Crossover::of(ratios));
        };
        assert!((at - 1000.0).abs() < 1e-6, "{at}");
        assert_eq!(Crossover::of(ratios[..3].to_vec()), Some(Crossover::Never));
        assert_eq!(Crossover::of(ratios[3..].to_vec()), Some(Crossover::Always));
        assert_eq!(Crossover::of([]), None);
    }

    #[test]
    fn it_is_where_it_stays_ahead() {
        let of = |ratios: &[f64]| Crossover::of((7..).map(|power| 1 << power).zip(ratios.iter().copied()));
        assert!(matches!(of(&[3.0, 0.9, 1.1, 0.8, 0.4]), Some(Crossover::Between { behind: 512, ahead: 1024, .. })));
        assert_eq!(of(&[0.9, 0.8, 1.0]), Some(Crossover::Never));
        assert_eq!(of(&[2.0, f64::NAN]), Some(Crossover::Never));
        // They take the same at a length that was looked at.
        assert_eq!(of(&[1.0, 0.5]), Some(Crossover::Between { behind: 128, ahead: 256, at: 128.0 }));
    }
}
