//! Comparators: how far an array is from the stored one, in shares of its tolerance.

use super::manifest::{Case, Tolerance};
use std::collections::BTreeSet;

/// The worst of an array, or of several.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Worst {
    /// Largest absolute difference.
    pub error: f64,
    /// Largest difference as a share of what is allowed there; above 1 fails.
    pub share: f64,
    /// Where the largest share is: array and index.
    pub at: String,
    /// Tolerances, by their names in the manifest, at which something was compared.
    compared: BTreeSet<String>,
}

impl Worst {
    pub fn passes(&self) -> bool {
        self.share <= 1.0
    }

    /// Holds that every tolerance of the case was used: an array that is not looked at must not pass.
    ///
    /// # Errors
    /// A sentence when one was not, or when there is none.
    pub fn uses_all_of(&self, case: &Case) -> Result<(), String> {
        if case.tolerance.is_empty() {
            return Err("the manifest gives no tolerance: nothing can be compared".to_owned());
        }
        match case.tolerance.keys().find(|key| !self.compared.contains(*key)) {
            None => Ok(()),
            Some(key) => Err(format!(
                "tolerance.{key} is for nothing that is compared in the group \"{}\"; compared are {}",
                case.group,
                self.compared.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
            )),
        }
    }

    fn take(&mut self, error: f64, share: f64, at: impl FnOnce() -> String) {
        // A difference that is no number is never within a tolerance.
        let (error, share) =
            if error.is_nan() || share.is_nan() { (f64::INFINITY, f64::INFINITY) } else { (error, share) };
        self.error = self.error.max(error);
        if share > self.share || self.at.is_empty() {
            self.share = self.share.max(share);
            self.at = at();
        }
    }

    /// Compares floats element by element; `self_only(row)` tells the rows that see only themselves,
    /// a row having `width` elements.
    ///
    /// # Errors
    /// A sentence when the lengths differ.
    pub fn floats(
        &mut self,
        name: &str,
        got: &[f32],
        want: &[f32],
        tolerance: Tolerance<'_>,
        width: usize,
        self_only: &dyn Fn(usize) -> bool,
    ) -> Result<(), String> {
        same_length(name, got.len(), want.len())?;
        self.compared.insert(tolerance.key.to_owned());
        for (i, (a, b)) in got.iter().zip(want).enumerate() {
            let (a, b) = (f64::from(*a), f64::from(*b));
            let relative = match tolerance.self_only {
                Some(relative) if self_only(i / width) => relative,
                _ => tolerance.relative,
            };
            let allowed = tolerance.absolute + relative * b.abs();
            let error = (a - b).abs();
            let share = if error == 0.0 { 0.0 } else { error / allowed };
            self.take(error, share, || format!("{name}[{i}] is {a}, stored {b}"));
        }
        Ok(())
    }

    /// Compares integers exactly, except where `skip(index)`.
    ///
    /// # Errors
    /// A sentence when the lengths differ.
    pub fn integers(
        &mut self,
        name: &str,
        got: &[u32],
        want: &[u32],
        skip: &dyn Fn(usize) -> bool,
    ) -> Result<(), String> {
        same_length(name, got.len(), want.len())?;
        self.compared.insert(name.to_owned());
        for (i, (a, b)) in got.iter().zip(want).enumerate() {
            let share = if a == b || skip(i) { 0.0 } else { f64::INFINITY };
            let error = if share > 0.0 { (f64::from(*a) - f64::from(*b)).abs() } else { 0.0 };
            self.take(error, share, || format!("{name}[{i}] is {a}, stored {b}"));
        }
        Ok(())
    }
}

fn same_length(name: &str, got: usize, want: usize) -> Result<(), String> {
    if got == want { Ok(()) } else { Err(format!("{name} has {got} elements, the stored one {want}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIGHT: Tolerance<'_> = Tolerance { key: "x", absolute: 1e-3, relative: 1e-2, self_only: Some(0.5) };

    fn floats(got: &[f32], want: &[f32], self_only: bool) -> Worst {
        let mut worst = Worst::default();
        worst.floats("x", got, want, TIGHT, 1, &|_| self_only).expect("lengths agree");
        worst
    }

    #[test]
    fn a_wrong_float_is_caught() {
        assert!(floats(&[1.0, 2.0], &[1.0, 2.0], false).passes());
        assert!(floats(&[1.0, 2.02], &[1.0, 2.0], false).passes());
        assert!(!floats(&[1.0, 2.03], &[1.0, 2.0], false).passes());
        assert!(floats(&[1.0, 2.03], &[1.0, 2.0], true).passes());
        assert!(!floats(&[1.0, 4.0], &[1.0, 2.0], true).passes());
        assert!(!floats(&[f32::NAN], &[1.0], false).passes());
        assert!(!floats(&[f32::INFINITY], &[1.0], false).passes());
        assert!(Worst::default().floats("x", &[1.0], &[1.0, 2.0], TIGHT, 1, &|_| false).is_err());
    }

    #[test]
    fn a_wrong_integer_is_caught_unless_skipped() {
        let mut worst = Worst::default();
        worst.integers("x", &[1, 2], &[1, 3], &|i| i == 1).expect("lengths agree");
        assert!(worst.passes());
        worst.integers("x", &[1, 2], &[1, 3], &|_| false).expect("lengths agree");
        assert!(!worst.passes());
        assert!(worst.integers("x", &[1], &[1, 3], &|_| false).is_err());
    }
}
