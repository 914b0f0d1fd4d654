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
    for (case, bytes) in each_group() {
        let verdict = block_on(&gpu, verify::verify(&gpu, &case, &bytes));
        assert!(verdict.passes(), "{}", verify::line(&case.name, &verdict));
        // The tolerances of this group are not by array.
        let of_layers = ["y1", "y2", "dx1", "dx2", "df_w", "df_b", "dg_w", "dg_b"].map(str::to_owned).to_vec();
        let names = if case.group == "reversible" { of_layers } else { case.tolerance.keys().cloned().collect() };
        for name in &names {
            let tampered = tamper(&bytes, name);
            let verdict = block_on(&gpu, verify::verify(&gpu, &case, &tampered));
            assert!(!verdict.passes(), "{}: a change in \"{name}\" went unnoticed", case.name);
        }
    }
}

/// A case of each group, with the bytes of its file.
fn each_group() -> Vec<(manifest::Case, Vec<u8>)> {
    let of = |group: &str| {
        let text = std::fs::read_to_string(golden().join("manifest.json")).expect("manifest");
        let manifest = manifest::parse(&text).expect("manifest");
        let case = manifest.cases.into_iter().find(|case| case.group == group).expect("a case of each group");
        let bytes = std::fs::read(golden().join(&case.file)).expect("file");
        (case, bytes)
    };
    ["lsh", "full", "linformer", "spectrum", "real", "reversible"].map(of).into()
}

/// The sentence with which a case fails.
fn refusal(gpu: &Gpu, case: &manifest::Case, bytes: &[u8]) -> String {
    match block_on(gpu, verify::verify(gpu, case, bytes)) {
        Verdict::Failed(why) => why,
        Verdict::Compared(worst) => panic!("{} was compared: {worst:?}, {:?}", case.name, case.tolerance),
    }
}

/// A tolerance asks for a comparison: one that nothing is compared at fails, for every group.
#[test]
fn no_array_with_a_tolerance_is_passed_over() {
    let gpu = gpu();
    for (mut case, bytes) in each_group() {
        let tolerances = case.tolerance.clone();
        case.tolerance.insert("v".to_owned(), serde_json::json!({ "atol": 1.0, "rtol": 1.0 }));
        let why = refusal(&gpu, &case, &bytes);
        assert!(why.contains("tolerance.v is for nothing that is compared"), "{}: {why}", case.name);
        case.tolerance.clear();
        let why = refusal(&gpu, &case, &bytes);
        assert!(why.contains("the manifest gives no tolerance"), "{}: {why}", case.name);
        for (key, tolerance) in &tolerances {
            let other = if tolerance.is_string() { serde_json::json!({ "atol": 1.0 }) } else { "tight".into() };
            for wrong in [other, serde_json::Value::Null, 1.into()] {
                case.tolerance = tolerances.clone();
                case.tolerance.insert(key.clone(), wrong);
                let why = refusal(&gpu, &case, &bytes);
                assert!(why.contains(&format!("tolerance.{key} is ")), "{}: {why}", case.name);
            }
        }
    }
}

/// Full attention is held to all that a case may store of it.
#[test]
fn every_result_of_full_attention_is_compared() {
    let gpu = gpu();
    let text = std::fs::read_to_string(golden().join("manifest.json")).expect("manifest");
    let plain = |case: &manifest::Case| case.group == "full" && case.flags.get("shared_qk") == Some(&false.into());
    let of = manifest::parse(&text).expect("manifest").cases.into_iter();
    let mut case = of.filter(plain).find(|case| case.flags.get("causal") == Some(&false.into())).expect("a case");
    let bytes = std::fs::read(golden().join(&case.file)).expect("file");
    let file = safetensors::SafeTensors::deserialize(&bytes).expect("arrays");
    let floats = |name: &str| -> Vec<f32> { bytemuck::pod_collect_to_vec(file.tensor(name).expect("array").data()) };
    let [heads, n, d] = *file.tensor("q").expect("q").shape() else { panic!("q is [heads, n, d]") };
    let scale = case.flags.get("score_scale").and_then(serde_json::Value::as_f64).expect("a scale");
    let (q, k) = (floats("q"), floats("k"));
    let lse = |query: usize| -> f32 {
        let keys = &k[query / n * n * d..][..n * d];
        let score = |key: &[f32]| -> f64 {
            q[query * d..].iter().zip(key).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>() * scale
        };
        keys.chunks(d).map(|key| score(key).exp()).sum::<f64>().ln() as f32
    };
    let (out, lse) = (floats("out"), (0..heads * n).map(lse).collect::<Vec<f32>>());
    let stored: [(&str, &[f32], Vec<usize>); 4] = [
        ("out", &out, vec![heads, n, d]),
        ("out_f64", &out, vec![heads, n, d]),
        ("lse", &lse, vec![heads, n]),
        ("lse_f64", &lse, vec![heads, n]),
    ];
    for (name, _, shape) in &stored {
        let shape = shape.iter().map(|size| *size as u64).collect();
        case.arrays.insert((*name).to_owned(), manifest::ArraySpec { dtype: "F32".to_owned(), shape });
        case.tolerance.insert((*name).to_owned(), serde_json::json!({ "atol": 2e-5, "rtol": 1e-5 }));
    }
    let view = |values, shape: &[usize]| {
        safetensors::tensor::TensorView::new(safetensors::Dtype::F32, shape.to_vec(), bytemuck::cast_slice(values))
    };
    let inputs = file.tensors().into_iter().filter(|(name, _)| name != "out");
    let results =
        stored.iter().map(|(name, values, shape)| ((*name).to_owned(), view(*values, shape).expect("a view")));
    let bytes = safetensors::serialize(inputs.chain(results), None).expect("a file");
    let verdict = block_on(&gpu, verify::verify(&gpu, &case, &bytes));
    assert!(verdict.passes(), "{}", verify::line(&case.name, &verdict));
    for (name, ..) in &stored {
        let verdict = block_on(&gpu, verify::verify(&gpu, &case, &tamper(&bytes, name)));
        assert!(matches!(&verdict, Verdict::Compared(worst) if !worst.passes()), "{name}: {verdict:?}");
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
