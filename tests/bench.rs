//! `attention-lab bench` as its user meets it. No time is asserted: only what stands in the table.
#![cfg(not(target_arch = "wasm32"))]

mod program;

use program::program;
use serde_json::Value;

const METHODS: [&str; 5] = ["full", "full-rowwise", "full-materialized", "lsh", "linformer"];

fn bench(flags: &str) -> (Option<i32>, String, String) {
    let output = program().arg("bench").args(flags.split_whitespace()).output().expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn every_method_is_timed_at_every_length() {
    let (code, out, err) = bench("speed --software --from 100 --to 450 --repeats 3 --input clusters --k 150 --json");
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let result: Value = serde_json::from_str(&out).expect("one JSON object");
    let times = result["times"].as_array().expect("times");
    let found: Vec<(u64, &str)> =
        times.iter().map(|row| (row["n"].as_u64().expect("n"), row["method"].as_str().expect("a method"))).collect();
    let wanted: Vec<(u64, &str)> =
        [100, 200, 400].into_iter().flat_map(|n| METHODS.map(|method| (n, method))).collect();
    assert_eq!(found, wanted);
    for row in times {
        let number = |key: &str| row[key].as_f64().unwrap_or(f64::NAN);
        // k = 150 of 100 tokens is no projection.
        if row["method"] == "linformer" && row["n"] == 100 {
            assert!(
                row["ms"].is_null() && row["why_not"].as_str().is_some_and(|why| why.contains("allowed is 1 to n"))
            );
        } else {
            assert!(
                number("least") > 0.0 && number("least") <= number("ms") && number("ms") <= number("most"),
                "{row}"
            );
            assert!(row["method"] != "full" || number("ratio") == 1.0, "{row}");
            assert!(number("ratio") > 0.0, "{row}");
        }
    }
    let crossovers = result["crossovers"].as_array().expect("crossovers");
    let names: Vec<&str> = crossovers.iter().filter_map(|found| found["method"].as_str()).collect();
    assert_eq!(names, METHODS[1..]);
    for found in crossovers {
        let [behind, ahead, about] = ["slower_up_to", "faster_from", "about"].map(|key| found[key].as_f64());
        match (behind, ahead) {
            (Some(behind), Some(ahead)) => assert!(about.is_some_and(|n| (behind..=ahead).contains(&n)), "{found}"),
            _ => assert!(about.is_none() && behind.or(ahead).is_some(), "{found}"),
        }
    }
}

#[test]
fn the_table_says_the_same_in_words() {
    let (code, out, _) = bench("speed --software --from 64 --to 64 --repeats 1 --d 8");
    assert_eq!(code, Some(0));
    assert!(METHODS.iter().all(|method| out.contains(method)), "{out}");
    assert!(out.contains("x 1.00") && out.contains("full attention at"), "{out}");
}

#[test]
fn bad_values_are_named_in_one_line() {
    for (flags, line) in [
        ("speed --to 10", "--to 10: allowed is 128 to 262144"),
        ("speed --repeats none", "--repeats none: allowed is 1 to 1000"),
        ("speed --sample own", "--sample own: bench has no picture of yours; allowed are astronaut and cat"),
        ("speed --rounds 17", "--rounds 17: allowed is a whole number from 1 to 16"),
        ("soak --minutes 0", "--minutes 0: allowed is 0.1 to 10000"),
        ("soak --samples 3", "--samples 3: allowed is 4 to 10000"),
    ] {
        let (code, out, err) = bench(flags);
        assert_eq!((code, out.as_str(), err.as_str()), (Some(2), "", format!("{line}\n").as_str()), "{flags}");
    }
}
