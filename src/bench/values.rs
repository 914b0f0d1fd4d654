//! Values to try for each setting.

use crate::settings::{Key, Settings};

/// Numbers to try where a setting takes any: powers of two, their neighbours, odd ones, a fraction.
const NUMBERS: [&str; 16] =
    ["0", "0.5", "1", "2", "3", "4", "7", "8", "16", "31", "32", "64", "65", "100", "128", "1000"];

/// Values that a setting takes: every word and every bound of what it says that it allows, and a few
/// numbers. A new setting or a new choice is among them by itself.
pub fn values(key: &Key) -> Vec<String> {
    let allowed = (key.allowed)();
    let words = allowed.split([' ', ',']).filter(|word| !word.is_empty());
    let mut values: Vec<String> = Vec::new();
    for word in words.chain(NUMBERS) {
        let mut settings = Settings::default();
        // As it is written back: "1e6" and "1000000" are one value.
        if (key.set)(&mut settings, word) {
            let value = (key.get)(&settings);
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::KEYS;

    #[test]
    fn every_setting_has_values_to_try() {
        for key in KEYS {
            assert!(values(key).len() >= 2, "{}: {:?}", key.name, values(key));
        }
    }

    #[test]
    fn choices_and_bounds_are_read_from_what_is_allowed() {
        let of = |name: &str| values(KEYS.iter().find(|key| key.name == name).expect("a setting"));
        assert_eq!(of("causal"), ["true", "false"]);
        assert_eq!(of("method"), ["full", "full-rowwise", "full-materialized", "lsh", "linformer", "reversible"]);
        let wanted = ["include", "exclude", "-1000000", "1000000", "0.5"];
        assert!(wanted.iter().all(|value| of("self").contains(&(*value).to_owned())), "{:?}", of("self"));
        assert!(of("n").contains(&"262144".to_owned()) && !of("n").contains(&"0".to_owned()));
    }
}
