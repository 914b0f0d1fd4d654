//! Published implementations' outputs against the plans and kernels of the screen.

use attention_lab::gpu::{Gpu, block_on};
use attention_lab::verify::{self, Verdict, manifest};
use std::path::Path;

fn gpu() -> Gpu {
    pollster::block_on(Gpu::open(true)).expect("the conformance tests need a graphics adapter")
}

fn golden() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden"))
}

#[test]
fn every_stored_case_agrees() {
    let gpu = gpu();
    let mut failures = Vec::new();
    let run = verify::folder(&gpu, golden(), "", |case, verdict| {
        if !verdict.passes() {
            failures.push(verify::line(&case.name, verdict));
        }
    });
    let totals = block_on(&gpu, run).expect("the folder is readable");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(totals.passed > 40 && totals.failed == 0, "{totals:?}");
}

/// The same case with one number of a stored output changed must fail: for every group.
#[test]
fn a_wrong_stored_output_is_caught() {
    let gpu = gpu();
    let text = std::fs::read_to_string(golden().join("manifest.json")).expect("manifest");
    let manifest = manifest::parse(&text).expect("manifest");
    for group in ["lsh", "full", "linformer", "spectrum", "real", "reversible"] {
        let case = manifest.cases.iter().find(|case| case.group == group).expect("a case of each group");
        let bytes = std::fs::read(golden().join(&case.file)).expect("file");
        let verdict = block_on(&gpu, verify::verify(&gpu, case, &bytes));
        assert!(verdict.passes(), "{}", verify::line(&case.name, &verdict));
        // The tolerances of this group are not by array.
        let of_layers = ["y1", "y2", "dx1", "dx2", "df_w", "df_b", "dg_w", "dg_b"].map(str::to_owned).to_vec();
        let names = if group == "reversible" { of_layers } else { case.tolerance.keys().cloned().collect() };
        for name in &names {
            let tampered = tamper(&bytes, name);
            let verdict = block_on(&gpu, verify::verify(&gpu, case, &tampered));
            assert!(!verdict.passes(), "{}: a change in \"{name}\" went unnoticed", case.name);
        }
    }
}

/// Changes the last number of one array of a .safetensors file.
fn tamper(bytes: &[u8], array: &str) -> Vec<u8> {
    let (header, metadata) = safetensors::SafeTensors::read_metadata(bytes).expect("header");
    let end = 8 + header + metadata.info(array).expect("array").data_offsets.1;
    let mut changed = bytes.to_vec();
    let is_float = metadata.info(array).expect("array").dtype == safetensors::Dtype::F32;
    let last: [u8; 4] = changed[end - 4..end].try_into().expect("four bytes");
    let new = if is_float {
        (f32::from_le_bytes(last) * 1.01 + 0.01).to_le_bytes()
    } else {
        (i32::from_le_bytes(last) ^ 1).to_le_bytes()
    };
    changed[end - 4..end].copy_from_slice(&new);
    changed
}

#[test]
fn a_folder_that_does_not_fit_is_told_in_words() {
    let gpu = gpu();
    let missing = block_on(&gpu, verify::folder(&gpu, Path::new("no/such/folder"), "", |_, _| {}));
    assert!(missing.expect_err("no folder").contains("manifest.json cannot be read"));
    let none = block_on(&gpu, verify::folder(&gpu, golden(), "no such case", |_, _| {}));
    assert!(none.expect_err("no case").contains("no case whose name contains"));
    for text in
        ["", "{}", "[]", r#"{"format": "other/1", "cases": []}"#, r#"{"format": "golden-attention/1", "cases": [{}]}"#]
    {
        assert!(manifest::parse(text).is_err(), "{text}");
    }
}

/// A damaged or unfitting file gives a failure with a sentence, never a panic.
#[test]
fn damaged_files_fail_in_words() {
    let gpu = gpu();
    let text = std::fs::read_to_string(golden().join("manifest.json")).expect("manifest");
    let manifest = manifest::parse(&text).expect("manifest");
    let case = manifest.cases.iter().find(|case| case.group == "lsh").expect("a case");
    let bytes = std::fs::read(golden().join(&case.file)).expect("file");
    let mut nan = bytes.clone();
    let end = nan.len();
    nan[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    for broken in [&bytes[..0], &bytes[..7], &bytes[..100], &bytes[..bytes.len() - 1], &nan] {
        let verdict = block_on(&gpu, verify::verify(&gpu, case, broken));
        assert!(matches!(verdict, Verdict::Failed(_)), "{verdict:?}");
    }
    // Parameters that do not fit the arrays.
    for (name, value) in [("n", 63), ("heads", 17), ("d", 0), ("rounds", 99), ("chunk_len", 0), ("n_buckets", 7)] {
        let mut manifest = manifest::parse(&text).expect("manifest");
        let case = manifest.cases.iter_mut().find(|case| case.group == "lsh").expect("a case");
        case.params.insert(name.to_owned(), value.into());
        let verdict = block_on(&gpu, verify::verify(&gpu, case, &bytes));
        assert!(matches!(verdict, Verdict::Failed(_)), "{name}: {verdict:?}");
    }
}

/// The rounds of Hugging Face's code lie one behind the other, and its chunks may be cut across them. Here
/// they are not, and a case that needs it is refused instead of compared with something else.
#[test]
fn chunks_that_hold_two_rounds_are_refused() {
    let gpu = gpu();
    let text = std::fs::read_to_string(golden().join("manifest.json")).expect("manifest");
    let mut manifest = manifest::parse(&text).expect("manifest");
    let across = |case: &&mut manifest::Case| case.flags.get("chunk_wrap").is_some_and(|wrap| wrap == "global");
    let case = manifest.cases.iter_mut().find(across).expect("a case");
    let bytes = std::fs::read(golden().join(&case.file)).expect("file");
    case.params.insert("chunk_len".to_owned(), 24.into());
    let Verdict::Failed(why) = block_on(&gpu, verify::verify(&gpu, case, &bytes)) else { panic!("compared") };
    assert!(why.contains("no multiple of chunk_len 24: a chunk would hold two rounds"), "{why}");
}
