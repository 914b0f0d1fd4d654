//! Every kernel against its twin on a software adapter, and a wrong twin for each that is caught.

use attention_lab::check::{self, CaseResult};
use attention_lab::gpu::{Gpu, block_on};

fn open() -> Gpu {
    pollster::block_on(Gpu::open(true)).expect("a software Vulkan driver")
}

#[test]
fn every_case_passes() {
    let gpu = open();
    let mut wrong = Vec::new();
    let mut clock = std::time::Instant::now();
    let summary = block_on(
        &gpu,
        check::run_all(&gpu, |result: &CaseResult| {
            println!("{result}  {:?} {} {}", clock.elapsed(), result.near_ties, result.hashed);
            clock = std::time::Instant::now();
            if !result.passed() {
                wrong.push(result.to_string());
            }
        }),
    );
    println!("{summary}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
