//! Bad input never wins: settings from a link, manifests, tensors and pictures made at random or
//! damaged at random give a value or a sentence, never a panic.
//!
//! `PROPTEST_CASES=1000000 cargo test --release --test hostile` runs each property a million times.

use attention_lab::inputs::Picture;
use attention_lab::settings::{KEYS, Settings};
use attention_lab::verify::manifest::{self, Tensors};
use proptest::prelude::*;
use std::sync::LazyLock;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
const CASE: &str = "lsh_lr_gauss_n64_d16_h1_c16_b4_r1_wuc";

static MANIFEST: LazyLock<String> =
    LazyLock::new(|| std::fs::read_to_string(format!("{GOLDEN}/manifest.json")).expect("manifest"));
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
        let text = String::from_utf8_lossy(&damaged(&MANIFEST.as_bytes()[..20_000], &changes)).into_owned();
        let _ = manifest::parse(&text);
    }

    #[test]
    fn damaged_tensors_are_told(changes in damage()) {
        let manifest = manifest::parse(&MANIFEST).expect("manifest");
        let case = manifest.cases.iter().find(|case| case.name == CASE).expect("case");
        let _ = Tensors::read(case, &damaged(&TENSORS, &changes));
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
