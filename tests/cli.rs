//! The command line as a user meets it: the built binary on a software adapter.
#![cfg(not(target_arch = "wasm32"))]

mod program;

use program::program;
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

fn output(flags: &str) -> Output {
    program().args(flags.split_whitespace()).output().expect("the program starts")
}

/// What `run FLAGS --json` prints, and nothing else.
fn run(flags: &str) -> Value {
    let output = output(&format!("run --json {flags}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "run {flags}: {err}");
    assert_eq!(err, "", "run {flags}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("run {flags}: {error} in {out}"))
}

fn number(result: &Value, key: &str) -> f64 {
    result[key].as_f64().unwrap_or_else(|| panic!("{key} is {}", result[key]))
}

/// The one line that refuses `args`, exit code 2.
fn refused(args: &[&str]) -> String {
    let output = program().args(args).output().expect("the program starts");
    let line = String::from_utf8_lossy(&output.stderr).into_owned();
    let short: Vec<String> = args.iter().map(|arg| arg.chars().take(40).collect()).collect();
    assert_eq!(output.status.code(), Some(2), "{short:?} gave {line}");
    assert_eq!(line.lines().count(), 1, "{short:?} gave {line}");
    assert!(line.ends_with('\n') && line.len() < 400, "{short:?} gave {line}");
    assert!(output.stdout.is_empty(), "{short:?} printed {}", String::from_utf8_lossy(&output.stdout));
    line
}

#[test]
fn a_preset_is_the_rules_of_a_code() {
    let flags = "--input clusters --d 16 --rounds 2 --chunk 32";
    let [paper, face] = ["paper", "hugging-face"].map(|name| run(&format!("{flags} --n 256 --preset {name}")));
    assert_eq!((&paper["preset"], &face["preset"]), (&"paper".into(), &"hugging-face".into()));
    assert_eq!((&paper["path"], &face["path"]), (&"lsh".into(), &"lsh".into()));
    assert!(number(&face, "pairs") > number(&paper, "pairs"));
    let own = run(&format!("--same-bucket true {flags} --n 256 --preset hugging-face"));
    assert!(own["preset"].is_null(), "other flags override");
    assert!(number(&own, "pairs") < number(&face, "pairs"));
    let short = run(&format!("{flags} --n 32 --preset hugging-face"));
    assert_eq!((&short["path"], &short["buckets"]), (&"full".into(), &Value::Null));
    let told = output(&format!("run {flags} --n 32 --preset hugging-face"));
    assert!(String::from_utf8_lossy(&told.stdout).contains("full attention ran"));
    let line = refused(&["run", "--preset", "trax"]);
    assert_eq!(line, "--preset trax: allowed is paper, reformer-pytorch or hugging-face\n");
}

/// An empty folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli").join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("an old folder can be removed");
    }
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

fn file(folder: &Path, name: &str, bytes: &[u8]) -> String {
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("a file can be written");
    path.to_str().expect("the path is plain").to_owned()
}

fn png(width: u32, height: u32) -> Vec<u8> {
    let pixels = image::RgbImage::from_fn(width, height, |x, y| image::Rgb([(x * 7) as u8, (y * 11) as u8, 90]));
    let mut bytes = std::io::Cursor::new(Vec::new());
    pixels.write_to(&mut bytes, image::ImageFormat::Png).expect("a picture can be encoded");
    bytes.into_inner()
}

const METHODS: [&str; 5] = ["full", "full-rowwise", "full-materialized", "lsh", "linformer"];
const INPUTS: [&str; 3] = ["picture", "clusters", "duplication"];

#[test]
fn json_has_the_same_shape_for_every_method_and_input() {
    let expected: BTreeSet<&str> = [
        "method",
        "n",
        "heads",
        "d",
        "adapter",
        "seed",
        "pairs",
        "share",
        "error",
        "recall",
        "mass",
        "accuracy",
        "lost_pairs",
        "ms",
        "peak_bytes",
        "steps",
        "buffers",
        "visits",
        "error_plain",
        "sampled",
        "clock",
        "rounds",
        "buckets",
        "chunk",
        "k",
        "settings",
        "files",
        "preset",
        "path",
        "buckets_checksum",
    ]
    .into();
    for method in METHODS {
        for input in INPUTS {
            let context = format!("{method} on {input}");
            let result = run(&format!("--method {method} --input {input} --n 100 --heads 2 --d 16 --seed 9 --k 10"));
            let keys: BTreeSet<&str> = result.as_object().expect(&context).keys().map(String::as_str).collect();
            assert_eq!(keys, expected, "{context}");
            assert_eq!(result["method"], method);
            assert_eq!((&result["n"], &result["heads"]), (&100.into(), &2.into()), "{context}");
            assert_eq!((&result["d"], &result["seed"]), (&16.into(), &9.into()), "{context}");
            let (lsh, linformer) = (method == "lsh", method == "linformer");
            for (key, there) in [
                ("mass", !linformer),
                ("recall", true),
                ("accuracy", input == "duplication" && !linformer),
                ("lost_pairs", lsh),
                ("rounds", lsh),
                ("buckets", lsh),
                ("chunk", lsh),
                ("k", linformer),
            ] {
                assert_eq!(result[key].is_number(), there, "{key} of {context} is {}", result[key]);
                assert_eq!(result[key].is_null(), !there, "{key} of {context} is {}", result[key]);
            }
            assert!(number(&result, "ms") > 0.0, "{context}");
            assert!(!result["adapter"].as_str().expect(&context).is_empty());
            let share = number(&result, "pairs") / (2.0 * 100.0 * 100.0);
            assert!((number(&result, "share") - share).abs() < 1e-12, "{context}");
            assert!(number(&result, "visits") >= number(&result, "pairs"), "{context}");
            for key in ["recall", "share"] {
                assert!((0.0..=1.0).contains(&number(&result, key)), "{key} of {context}");
            }
            let steps = result["steps"].as_array().expect(&context);
            assert!(!steps.is_empty(), "{context}");
            for step in steps {
                assert!(step["name"].is_string() && number(step, "bytes") > 0.0, "{context}: {step}");
                assert!(step["flops"].is_u64() && (step["ms"].is_null() || number(step, "ms") >= 0.0), "{context}");
            }
            let buffers = result["buffers"].as_array().expect(&context);
            let held: f64 = buffers.iter().map(|buffer| number(buffer, "bytes")).sum();
            assert_eq!(held, number(&result, "peak_bytes"), "{context}");
            let names: BTreeSet<&str> = buffers.iter().filter_map(|buffer| buffer["name"].as_str()).collect();
            assert_eq!(names.len(), buffers.len(), "{context}");
            assert!(names.contains("q") && names.contains("out"), "{context}");
        }
    }
}

#[test]
fn exact_attention_is_exact_and_whole_in_all_three_ways() {
    for method in &METHODS[..3] {
        for causal in ["", "--causal"] {
            let result = run(&format!("--method {method} --input clusters --n 300 --d 24 --heads 3 {causal}"));
            assert!(number(&result, "error") < 1e-5, "{method} {causal}: {}", result["error"]);
            let share = if causal.is_empty() { 1.0 } else { 301.0 / 600.0 };
            assert!((number(&result, "share") - share).abs() < 1e-12, "{method} {causal}: {}", result["share"]);
            assert_eq!((number(&result, "recall"), number(&result, "mass")), (1.0, 1.0));
        }
    }
}

#[test]
fn separate_keys_are_scaled_as_asked() {
    let plain = |scale: &str| {
        let result = run(&format!("--method full --shared-qk false --input clusters --n 100 --scale {scale}"));
        assert!(number(&result, "error") < 1e-5, "{scale}: {}", result["error"]);
        number(&result, "error_plain")
    };
    assert!(plain("inverse-sqrt-d") < 1e-5);
    assert!(plain("one") > 1e-2, "the factor has no effect");
}

#[test]
fn one_chunk_across_buckets_is_full_attention() {
    for causal in ["", "--causal"] {
        let result = run(&format!("--input picture --n 200 --chunk 200 --same-bucket false --rounds 3 {causal}"));
        assert!(number(&result, "error") < 1e-5, "{causal}: {}", result["error"]);
        let share = if causal.is_empty() { 1.0 } else { 201.0 / 400.0 };
        assert!((number(&result, "share") - share).abs() < 1e-12, "{causal}: {}", result["share"]);
        assert_eq!(number(&result, "recall"), 1.0);
        assert_eq!(number(&result, "lost_pairs"), 0.0);
        // Three rounds meet every pair three times.
        assert_eq!(number(&result, "visits"), 3.0 * number(&result, "pairs"));
    }
}

#[test]
fn chunked_attention_is_local_and_wrong_where_pairs_are_lost() {
    let result = run("--input clusters --n 512 --rounds 1 --buckets 8 --chunk 16");
    assert_eq!((number(&result, "buckets"), number(&result, "chunk")), (8.0, 16.0));
    // At most two chunks of 16 a query.
    assert!(number(&result, "share") <= 32.0 / 512.0, "{}", result["share"]);
    assert!(number(&result, "lost_pairs") > 0.0);
    assert!(number(&result, "error") > 1e-3 && number(&result, "mass") < 0.9, "{result}");
}

#[test]
fn chunk_and_buckets_follow_each_other() {
    let sizes = |flags: &str| {
        let result = run(&format!("--input clusters --n 256 --d 8 {flags}"));
        (number(&result, "buckets"), number(&result, "chunk"))
    };
    assert_eq!(sizes("--chunk 32"), (16.0, 32.0));
    assert_eq!(sizes("--buckets 32"), (32.0, 16.0));
    assert_eq!(sizes("--buckets 4 --chunk 10"), (4.0, 10.0));
    assert_eq!(sizes(""), (8.0, 64.0));
}

#[test]
fn linformer_counts_its_products_and_an_identity_projection_is_exact() {
    let result = run("--method linformer --input clusters --n 96 --k 12");
    assert_eq!(number(&result, "pairs"), 96.0 * 12.0);
    // Mean pooling to k = n is the identity.
    let whole = run("--method linformer --input clusters --n 96 --k 96");
    assert!(number(&whole, "error") < 1e-5, "{}", whole["error"]);
    assert!(number(&whole, "error") < number(&result, "error"));
}

#[test]
fn the_duplication_task_is_solved_by_exact_attention_and_by_more_rounds() {
    let accuracy = |flags: &str| number(&run(&format!("--input duplication --n 512 {flags}")), "accuracy");
    assert!(accuracy("--method full") > 0.95);
    // Separate keys do not let a position see its own answer: the first half alone tells.
    assert!(accuracy("--method full --shared-qk false") > 0.95);
    let [one, eight] = ["--rounds 1", "--rounds 8"].map(accuracy);
    assert!(one < eight, "{one} with one round, {eight} with eight");
}

#[test]
fn short_and_ragged_lengths_run() {
    let flags = [
        "--n 1",
        "--n 2",
        "--n 63 --chunk 64",
        "--n 72 --chunk 8",
        "--n 100 --chunk 8",
        "--n 8 --chunk 8",
        "--n 65 --causal --chunk 16",
        "--n 1 --method full",
        "--n 1 --method linformer",
        "--n 1 --method full-rowwise",
        "--n 2 --method full-materialized",
        "--n 7 --k 3 --method linformer --projection gaussian",
        "--n 50 --wrap across-rounds --after 1 --chunk 7",
        "--n 90 --hash factorised --buckets 16 --heads 16 --d 1",
        "--n 40 --self exclude",
        "--n 40 --self -3.5",
        "--n 33 --patch 1 --d 128",
        "--n 4 --input duplication",
        "--n 30 --input clusters --arrangement identical",
        "--n 30 --input clusters --arrangement repeated",
    ];
    for flags in flags {
        let result = run(flags);
        for key in ["error", "error_plain", "share"] {
            assert!(number(&result, key).is_finite(), "{key} of {flags}");
        }
    }
    // With one token there is only itself to attend to.
    assert_eq!(number(&run("--n 1"), "share"), 1.0);
    assert!(number(&run("--n 1"), "error") < 1e-6);
}

#[test]
fn a_causal_run_counts_no_later_key() {
    let causal = run("--input clusters --n 256 --d 16 --causal");
    let both = run("--input clusters --n 256 --d 16 --causal=false");
    // Every pair and its mirror are visible or not together, and each token sees itself.
    assert!(number(&causal, "pairs") < number(&both, "pairs"));
    assert!(number(&causal, "share") <= 257.0 / 512.0);
}

#[test]
fn files_hold_the_result_and_depend_on_the_seed_alone() {
    let folder = folder("files");
    let picture = file(&folder, "own picture.png", &png(40, 30));
    let read = |name: &str, seed: u32| {
        let out = folder.join(name).join("below");
        let flags = ["--n", "120", "--heads", "2", "--rounds", "3", "--buckets", "8", "--json", "--seed"];
        let seed = seed.to_string();
        let output = program()
            .args([&["run"], &flags[..], &[&seed, "--image", &picture, "--out"]].concat())
            .arg(&out)
            .output()
            .expect("the program starts");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let result: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
        let files: Vec<&str> = result["files"].as_array().expect("files").iter().filter_map(Value::as_str).collect();
        let found: BTreeSet<PathBuf> =
            std::fs::read_dir(&out).expect("the folder was made").flatten().map(|entry| entry.path()).collect();
        assert_eq!(files.iter().map(PathBuf::from).collect::<BTreeSet<_>>(), found, "what is told and what is there");
        for (name, size) in [("map.png", (120, 120)), ("weights.png", (120, 120)), ("output.png", (52, 40))] {
            let picture = image::open(out.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!((picture.width(), picture.height()), size, "{name}");
        }
        (std::fs::read(out.join("output.safetensors")).expect("tensors"), result)
    };
    let (bytes, result) = read("first", 5);
    let tensors = SafeTensors::deserialize(&bytes).expect("a safetensors file");
    let tensor = |name: &str| tensors.tensor(name).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(tensors.len(), 5);
    for (name, kind, shape) in [
        ("out", Dtype::F32, &[2, 120, 48][..]),
        ("lse", Dtype::F32, &[2, 120]),
        ("weights", Dtype::F32, &[2, 120, 120]),
        ("buckets", Dtype::U32, &[2, 3, 120]),
        ("order", Dtype::U32, &[2, 3, 120]),
    ] {
        assert_eq!((tensor(name).dtype(), tensor(name).shape()), (kind, shape), "{name}");
    }
    let (_, header) = SafeTensors::read_metadata(&bytes).expect("a header");
    let settings = &header.metadata().as_ref().expect("metadata")["settings"];
    let settings = attention_lab::settings::Settings::from_query(settings).expect("settings that can be read back");
    assert_eq!((settings.n, settings.heads, settings.rounds, settings.seed), (120, 2, 3, 5));

    // Each order sorts its buckets, equal ones by position.
    let words = |name: &str| -> Vec<u32> { bytemuck::pod_collect_to_vec(tensor(name).data()) };
    for (buckets, order) in words("buckets").chunks(120).zip(words("order").chunks(120)) {
        let mut expected: Vec<u32> = (0..120).collect();
        expected.sort_by_key(|position| (buckets[*position as usize], *position));
        assert_eq!(order, expected);
        assert!(buckets.iter().all(|bucket| *bucket < 8));
    }
    let out: Vec<f32> = bytemuck::pod_collect_to_vec(tensor("out").data());
    assert!(out.iter().all(|x| (-1e-4..=1.0001).contains(x)), "outputs are means of pixels");

    let (again, same) = read("second", 5);
    assert_eq!(bytes, again, "the same seed gives the same file");
    assert_eq!(result["pairs"], same["pairs"]);
    let (other, _) = read("third", 6);
    let other = SafeTensors::deserialize(&other).expect("a safetensors file");
    assert_ne!(tensor("buckets").data(), other.tensor("buckets").expect("buckets").data(), "another seed");
}

#[test]
fn methods_without_buckets_write_out_and_lse() {
    let folder = folder("full");
    run(&format!("--method linformer --input clusters --n 64 --d 12 --k 8 --out {}", folder.display()));
    let bytes = std::fs::read(folder.join("output.safetensors")).expect("tensors");
    let tensors = SafeTensors::deserialize(&bytes).expect("a safetensors file");
    assert_eq!(tensors.len(), 3);
    assert_eq!(tensors.tensor("out").expect("out").shape(), [1, 64, 12]);
    assert_eq!(tensors.tensor("weights").expect("weights").shape(), [1, 64, 8], "P-bar");
    let map = image::open(folder.join("map.png")).expect("a map").to_luma8();
    assert_eq!(map.dimensions(), (8, 64), "the map of Linformer is n x k");
    assert!(map.pixels().all(|pixel| pixel.0 == [0]), "every product is computed");
    assert!(!folder.join("output.png").exists(), "points are no picture");
}

#[test]
fn bad_values_are_named_in_one_line() {
    let long = "9".repeat(100_000);
    let table: &[(&[&str], &[&str])] = &[
        (&["--n", "0"], &["--n 0", "from 1 to 262144"]),
        (&["--n", "-1"], &["--n -1", "from 1 to 262144"]),
        (&["--n", "1e9"], &["--n 1e9", "from 1 to 262144"]),
        (&["--n", "1000000000"], &["--n 1000000000", "from 1 to 262144"]),
        (&["--n", ""], &["--n \"\"", "from 1 to 262144"]),
        (&["--n="], &["--n", "from 1 to 262144"]),
        (&["--n"], &["--n", "from 1 to 262144"]),
        (&["--n", "12 34"], &["--n \"12 34\""]),
        (&["--n", "1\n2"], &["--n \"1\\n2\""]),
        (&["--n", &long], &["--n 9999", "...", "from 1 to 262144"]),
        (&["--n", "5", "--n", "6"], &["--n", "once"]),
        (&["--heads", "17"], &["--heads 17", "from 1 to 16"]),
        (&["--d", "129"], &["--d 129", "from 1 to 128"]),
        (&["--rounds", "0"], &["--rounds 0", "from 1 to 16"]),
        (&["--buckets", "7"], &["--buckets 7", "even"]),
        (&["--buckets", "8194"], &["--buckets 8194", "8192"]),
        (&["--hash", "factorised", "--buckets", "6"], &["--buckets 6", "multiple of 4"]),
        (&["--chunk", "0"], &["--chunk 0", "auto"]),
        (&["--k", "33", "--n", "32"], &["--k 33", "32"]),
        (&["--seed", "4294967296"], &["--seed", "4294967295"]),
        (&["--sharpness", "NaN"], &["--sharpness NaN", "number"]),
        (&["--sharpness", "inf"], &["--sharpness inf"]),
        (&["--noise", "-0.1"], &["--noise -0.1", "from 0 to 4"]),
        (&["--self", "nan"], &["--self nan", "include"]),
        (&["--causal", "maybe"], &["--causal maybe", "true or false"]),
        (&["--method", "reformer"], &["--method reformer", "lsh"]),
        (&["--method", "LSH"], &["--method LSH", "lsh"]),
        (&["--input", "text"], &["--input text", "duplication"]),
        (&["--input", "duplication", "--n", "3"], &["--n 3", "4 or more"]),
        (&["--sample", "own"], &["--sample own", "--image"]),
        (&["--no-such-flag"], &["--no-such-flag", "--help"]),
        (&["--round", "3"], &["--round", "--rounds"]),
        (&["--n", "8", "stray"], &["stray"]),
        (&[&long], &["9999", "..."]),
    ];
    for (flags, words) in table {
        let line = refused(&[&["run"], *flags].concat());
        for word in *words {
            assert!(line.contains(word), "{word:?} is not in {line}");
        }
    }
    // What host memory cannot hold.
    let line = refused(&["run", "--input", "clusters", "--n", "262144", "--heads", "16", "--d", "128"]);
    assert!(line.contains("--n 262144: q, k and v together take 2.2 GiB (2415919104 bytes) of host memory"), "{line}");
    // The flags of the desktop app are the same ones.
    assert!(refused(&["--n", "0"]).contains("from 1 to 262144"));
    assert!(refused(&["fly"]).contains("run, device, check, verify"));
    assert!(refused(&["device", "--n", "4"]).contains("--n"));
}

#[test]
fn bad_files_are_named_in_one_line() {
    let folder = folder("bad");
    let whole = png(64, 64);
    let missing = folder.join("missing.png").display().to_string();
    let text = file(&folder, "text.png", b"these are words, not pixels");
    let empty = file(&folder, "empty.jpg", b"");
    let cut = file(&folder, "cut.png", &whole[..whole.len() / 2]);
    let header = file(&folder, "header.png", &whole[..20]);
    let fine = file(&folder, "fine.png", &whole);
    let huge = file(&folder, "huge.png", &huge_header());
    for path in [&missing, &text, &empty, &cut, &header, &huge, &folder.display().to_string()] {
        let line = refused(&["run", "--n", "16", "--image", path]);
        assert!(line.starts_with("--image") && line.contains(path) && line.contains("PNG or JPEG"), "{line}");
    }
    for others in [["--input", "clusters"], ["--sample", "cat"]] {
        let line = refused(&[&["run", "--image", &fine], &others[..]].concat());
        assert!(line.contains("--image") && line.contains("picture"), "{line}");
    }
    // A folder cannot be made where a file is.
    for place in [fine.clone(), format!("{fine}/below")] {
        let line = refused(&["run", "--n", "16", "--input", "clusters", "--out", &place]);
        assert!(line.starts_with("--out") && line.contains(&place), "{line}");
    }
    let left: Vec<_> = std::fs::read_dir(&folder).expect("the folder").flatten().map(|entry| entry.path()).collect();
    assert!(left.iter().all(|path| !path.to_string_lossy().ends_with(".part")), "{left:?}");
}

/// A PNG that says it is 40,000 x 40,000 pixels.
fn huge_header() -> Vec<u8> {
    let mut bytes = png(1, 1);
    for at in [16, 20] {
        bytes[at..at + 4].copy_from_slice(&40_000u32.to_be_bytes());
    }
    // The checksum of the header covers the sizes.
    let sum = bytes[12..29].iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg()))
    });
    bytes[29..33].copy_from_slice(&(!sum).to_be_bytes());
    bytes
}

#[test]
fn what_does_not_fit_is_refused_with_both_numbers() {
    let line = refused(&["run", "--method", "full-materialized", "--n", "65536"]);
    assert!(line.contains("--n 65536") && line.contains("full-materialized"), "{line}");
    assert!(line.contains("16.0 GiB (17179869184 bytes)"), "{line}");
    let device: Value = serde_json::from_slice(&output("device --json").stdout).expect("one JSON object");
    assert!(line.contains(&format!("({} bytes)", device["buffer_bytes"])), "{line} and {device}");
}

#[test]
fn the_device_is_told_in_words_and_in_json() {
    let words = String::from_utf8(output("device").stdout).expect("text");
    let device: Value = serde_json::from_slice(&output("device --json").stdout).expect("one JSON object");
    for key in ["adapter", "backend", "type", "driver"] {
        let value = device[key].as_str().expect(key);
        assert!(words.contains(value), "{key} {value} is not in {words}");
    }
    assert!(number(&device, "binding_bytes") >= f64::from(128 << 20));
    assert!(device["software"].is_boolean() && device["timestamps"].is_boolean());
    assert_eq!(output("device --software").status.code(), Some(0));
}

#[test]
fn the_report_in_words_says_what_the_json_says() {
    let flags = "--input duplication --n 64 --d 8 --seed 3";
    let result = run(flags);
    let output = output(&format!("run {flags}"));
    let words = String::from_utf8(output.stdout).expect("text");
    assert!(output.stderr.is_empty());
    for key in ["steps", "buffers"] {
        for entry in result[key].as_array().expect(key) {
            let name = entry["name"].as_str().expect("a name");
            assert!(words.lines().any(|line| line.starts_with(name)), "{name} is not in {words}");
        }
    }
    for label in ["method", "adapter", "pairs", "share", "error", "recall", "mass", "accuracy", "lost pairs", "peak"] {
        assert!(words.lines().any(|line| line.starts_with(label)), "{label} is not in {words}");
    }
    assert!(words.contains(&format!("{:.4}", number(&result, "share"))), "{words}");
    assert!(words.lines().all(|line| line == line.trim_end()), "no blanks at the end of a line");
}

#[test]
fn help_names_every_setting() {
    let help = String::from_utf8(output("run --help").stdout).expect("text");
    for key in attention_lab::settings::KEYS {
        assert!(help.contains(&format!("--{} ", key.name)), "{}", key.name);
    }
    assert!(String::from_utf8_lossy(&output("--version").stdout).contains(env!("CARGO_PKG_VERSION")));
    assert!(String::from_utf8_lossy(&output("--help").stdout).contains("device"));
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let mut child =
        program().args(["run", "--help"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a child");
    // The reading end closes before anything is printed, or in the middle of it.
    drop(child.stdout.take());
    let mut said = String::new();
    child.stderr.take().expect("stderr").read_to_string(&mut said).expect("text");
    assert_eq!((child.wait().expect("an end").code(), said.as_str()), (Some(0), ""));
}

#[test]
fn sixty_five_thousand_tokens_run_in_little_memory() {
    let result = run("--method lsh --n 65536 --rounds 4");
    assert!(number(&result, "share") < 0.2, "{}", result["share"]);
    assert!(number(&result, "peak_bytes") < f64::from(1 << 30) * 2.0, "{}", result["peak_bytes"]);
    assert_eq!(number(&result, "sampled"), 256.0);
    // Outputs and exact outputs are means of the same pixels.
    assert!(number(&result, "error") < 0.5, "{}", result["error"]);
}

/// Memory of a reversible stack hardly grows with its depth, and its inputs are rebuilt.
#[test]
fn a_reversible_stack_reports_its_memory_and_error() {
    let flags = "--method reversible --input clusters --n 256 --d 16 --heads 2";
    let [few, many] = [2, 12].map(|layers| run(&format!("{flags} --layers {layers}")));
    assert_eq!(many["method"], "reversible");
    assert_eq!(many["layers"], 12);
    assert!(number(&many, "activation_bytes") < 1.3 * number(&few, "activation_bytes"));
    for result in [&few, &many] {
        let error = number(result, "reconstruction_error");
        assert!(error > 0.0 && error < 1e-4, "{error}");
        assert!(number(result, "peak_bytes") > number(result, "activation_bytes"));
        assert!(number(result, "share") > 0.0, "the figures of its attention");
    }
    let again = run(&format!("{flags} --layers 3 --rehash true --swap true --attention lsh --d-ff 40 --ff-chunks 3"));
    assert_eq!(again["flips"].as_array().map(Vec::len), Some(3));
    let full = run(&format!("{flags} --layers 3 --attention full"));
    assert_eq!(full["flips"].as_array().map(Vec::len), Some(0));
    assert!(refused(&["run", "--method", "reversible", "--layers", "25"]).contains("layers"));
}
