//! Bad input never wins: settings from a link, manifests, tensors and pictures made at random or
//! damaged at random give a value or a sentence, never a panic.
//!
//! `PROPTEST_CASES=1000000 cargo test --test hostile` runs each property a million times; what came of it
//! stands in docs/robustness.md.

use attention_lab::inputs::Picture;
use attention_lab::settings::{KEYS, Settings};
use attention_lab::verify::manifest::{self, Case, Manifest, Tensors};
use proptest::prelude::*;
use serde_json::Value;
use std::sync::LazyLock;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
const CASE: &str = "lsh_lr_gauss_n64_d16_h1_c16_b4_r1_wuc";

/// The manifest with a case of each group that has rules of its own, small enough to be read a million times.
static MANIFEST: LazyLock<String> = LazyLock::new(|| {
    let text = std::fs::read_to_string(format!("{GOLDEN}/manifest.json")).expect("manifest");
    let mut manifest: Value = serde_json::from_str(&text).expect("JSON");
    let cases = manifest["cases"].as_array_mut().expect("cases");
    let chosen = [CASE, "full_std_gauss_n64_d16_h2_n", "lin_lucid_n64_k16_h2_d16"];
    cases.retain(|case| chosen.iter().any(|name| case["name"] == *name));
    assert_eq!(cases.len(), chosen.len());
    manifest.to_string()
});
static PARSED: LazyLock<Manifest> = LazyLock::new(|| manifest::parse(&MANIFEST).expect("a manifest"));

/// The case that [`TENSORS`] belong to.
fn case() -> &'static Case {
    PARSED.cases.iter().find(|case| case.name == CASE).expect("the case")
}

static TENSORS: LazyLock<Vec<u8>> =
    LazyLock::new(|| std::fs::read(format!("{GOLDEN}/{CASE}.safetensors")).expect("tensors"));
static PNG: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let picture = image::RgbImage::from_fn(9, 7, |x, y| image::Rgb([x as u8 * 20, y as u8 * 30, 99]));
    picture.write_to(&mut bytes, image::ImageFormat::Png).expect("encoded");
    bytes.into_inner()
});
static JPEG: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let picture = image::RgbImage::from_fn(17, 11, |x, y| image::Rgb([x as u8 * 9, y as u8 * 20, 50]));
    picture.write_to(&mut bytes, image::ImageFormat::Jpeg).expect("encoded");
    bytes.into_inner()
});

/// One change to a file: a byte set, a part cut out, or the end cut off.
fn damage() -> impl Strategy<Value = Vec<(u8, usize, u8)>> {
    prop::collection::vec((0u8..3, any::<usize>(), any::<u8>()), 1..6)
}

fn damaged(bytes: &[u8], changes: &[(u8, usize, u8)]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (kind, at, value) in changes {
        let at = at % bytes.len().max(1);
        match kind {
            0 if at < bytes.len() => bytes[at] = *value,
            1 => {
                let end = (at + usize::from(*value)).min(bytes.len());
                bytes.drain(at..end);
            }
            _ => bytes.truncate(at.max(bytes.len() / 2)),
        }
    }
    bytes
}

/// Text that looks like the values of settings, and text that does not.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<u32>().prop_map(|x| x.to_string()),
        (0u32..300).prop_map(|x| x.to_string()),
        any::<f32>().prop_map(|x| x.to_string()),
        Just("auto".to_owned()),
        Just("true".to_owned()),
        Just("none".to_owned()),
        "[a-z0-9.%&=+ -]{0,12}",
        any::<String>(),
    ]
}

/// A JSON value of any kind.
fn json() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (0i64..300).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(Value::Array(Vec::new())),
        Just(serde_json::json!({})),
    ]
}

/// Replaces or takes away one value of a tree, found by going down at random.
fn spoil(tree: &mut Value, path: &[usize], new: Value) {
    let Some((at, rest)) = path.split_first() else {
        *tree = new;
        return;
    };
    match tree {
        Value::Object(map) if !map.is_empty() => {
            let name = map.keys().nth(at % map.len()).cloned().unwrap_or_default();
            match map.get_mut(&name) {
                Some(below) if at % 11 != 0 => spoil(below, rest, new),
                _ => drop(map.remove(&name)),
            }
        }
        Value::Array(list) if !list.is_empty() => {
            let len = list.len();
            spoil(&mut list[at % len], rest, new);
        }
        leaf => *leaf = new,
    }
}

/// Everything that the comparison reads of a case; each may be an error, none a panic.
fn read_all(case: &Case) {
    for name in case.params.keys().chain(case.flags.keys()) {
        let _ = (case.param(name, 1, 100), case.switch(name), case.number(name), case.word(name));
    }
    for name in case.arrays.keys().chain(case.tolerance.keys()) {
        let _ = case.tolerance(name);
    }
}

fn read_tensors(case: &Case, bytes: &[u8]) {
    let Ok(tensors) = Tensors::read(case, bytes) else { return };
    for (name, spec) in &case.arrays {
        let shape: Vec<u32> = spec.shape.iter().map(|size| *size as u32).collect();
        assert!(tensors.has(name));
        let _ = (tensors.leading(name), tensors.floats(name, &shape), tensors.integers(name, &shape, 4));
    }
}

/// A header of the .safetensors format with types, shapes and offsets that nobody checked.
fn header() -> impl Strategy<Value = Vec<u8>> {
    let size = || prop_oneof![0u64..9, any::<u64>()];
    let name = prop_oneof![Just("qk".to_owned()), Just("v".to_owned()), Just("out".to_owned()), any::<String>()];
    let dtype = prop_oneof![Just("F32"), Just("I32"), Just("F64"), Just("BOOL"), Just("F4"), Just("none")];
    let entry = (name, dtype, prop::collection::vec(size(), 0..4), size(), size());
    (prop::collection::vec(entry, 0..4), prop::option::of(any::<u64>()), 0usize..64).prop_map(
        |(entries, length, data)| {
            let entries = entries.into_iter().map(|(name, dtype, shape, begin, end)| {
                (name, serde_json::json!({ "dtype": dtype, "shape": shape, "data_offsets": [begin, end] }))
            });
            let text = Value::Object(entries.collect()).to_string();
            let mut bytes = length.unwrap_or(text.len() as u64).to_le_bytes().to_vec();
            bytes.extend_from_slice(text.as_bytes());
            bytes.extend(std::iter::repeat_n(0u8, data));
            bytes
        },
    )
}

proptest! {
    #[test]
    fn a_link_gives_settings_or_a_sentence(pairs in prop::collection::vec((0..KEYS.len(), value()), 0..8)) {
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(pairs.iter().map(|(key, value)| (KEYS[*key].name, value)))
            .finish();
        match Settings::from_query(&query) {
            // What is accepted is written and read back as the same settings, and names valid sizes.
            Ok(settings) => {
                prop_assert_eq!(&Settings::from_query(&settings.to_query()), &Ok(settings.clone()));
                prop_assert!(settings.bucket_count() >= 2 && settings.bucket_count() % 2 == 0);
                prop_assert!(settings.chunk_len() >= 1);
                prop_assert!((1..=settings.n).contains(&settings.projected_len()));
                prop_assert_eq!(settings.bucket_factors().iter().product::<u32>(), settings.bucket_count());
            }
            Err(error) => prop_assert!(error.to_string().contains("allowed is")),
        }
    }

    #[test]
    fn any_text_as_a_link_is_survived(query in any::<String>()) {
        let _ = Settings::from_query(&query);
    }

    #[test]
    fn a_damaged_manifest_is_told(changes in damage()) {
        let text = String::from_utf8_lossy(&damaged(MANIFEST.as_bytes(), &changes)).into_owned();
        if let Ok(manifest) = manifest::parse(&text) {
            manifest.cases.iter().for_each(read_all);
        }
    }

    #[test]
    fn a_manifest_of_other_values_is_told(
        changes in prop::collection::vec((prop::collection::vec(any::<usize>(), 1..6), json()), 1..4)
    ) {
        let mut tree: Value = serde_json::from_str(&MANIFEST).expect("JSON");
        for (path, new) in changes {
            spoil(&mut tree, &path, new);
        }
        if let Ok(manifest) = manifest::parse(&tree.to_string()) {
            for case in &manifest.cases {
                read_all(case);
                read_tensors(case, &TENSORS);
            }
        }
    }

    #[test]
    fn damaged_tensors_are_told(changes in damage()) {
        read_tensors(case(), &damaged(&TENSORS, &changes));
    }

    #[test]
    fn tensors_of_any_header_are_told(bytes in header()) {
        // Its arrays are not those of the case, unless the file says exactly what the manifest does.
        prop_assert!(Tensors::read(case(), &bytes).is_err());
    }

    #[test]
    fn damaged_pictures_are_told(changes in damage(), jpeg in any::<bool>()) {
        let _ = Picture::decode(&damaged(if jpeg { &JPEG } else { &PNG }, &changes));
    }

    #[test]
    fn any_bytes_as_a_picture_are_told(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Picture::decode(&bytes).is_err());
    }
}
