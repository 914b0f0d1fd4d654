//! The ledger against the allocator's own report, and what is left after runs that end early.

use attention_lab::gpu::run::Progress;
use attention_lab::gpu::workspace::Workspace;
use attention_lab::gpu::{Fault, Gpu, block_on};
use attention_lab::lab;
use attention_lab::methods::full::{Full, Way};
use attention_lab::methods::linformer::Linformer;
use attention_lab::methods::lsh::Lsh;
use attention_lab::methods::measure::{self, Measured, Sample};
use attention_lab::plan::{Limit, Plan, Refusal};
use attention_lab::problem::{Dims, Named, Problem, Projections, Rotations};
use attention_lab::random::{Stream, normal};
use attention_lab::semantics::{ScoreScale, Semantics};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// An allocator may round a buffer up to this, the largest alignment that Vulkan drivers ask of a
/// storage buffer.
const GRAIN: u64 = 256;

fn open() -> Gpu {
    pollster::block_on(Gpu::open(true)).expect("a software Vulkan driver")
}

fn problem(n: u32) -> Problem {
    let dims = Dims { n_q: n, n_kv: n, heads: 2, k_heads: 2, v_heads: 2, d: 6, d_v: 5 };
    let make = |tag: u64, width: u32| {
        (0..2 * n * width).map(|i| normal(1, Stream::Noise, (tag << 32) | u64::from(i))).collect::<Vec<f32>>()
    };
    Problem {
        dims,
        q: make(1, 6),
        k: make(2, 6),
        v: make(3, 5),
        rotations: Rotations::Seeded(1),
        projections: Projections::Mean,
        named: Named::new(),
    }
}

fn methods() -> Vec<Measured> {
    let full = |way| Measured::Full(Full { way, shared_qk: true, semantics: Semantics::PAPER });
    vec![
        full(Way::Online),
        full(Way::Rowwise),
        full(Way::Materialized),
        Measured::Linformer(Linformer {
            k: 20,
            shared_ef: true,
            projection_heads: 1,
            max_pooling: false,
            biased: false,
            triangle: false,
            score_scale: ScoreScale::InverseSqrtD,
        }),
        lsh(4),
    ]
}

fn lsh(rounds: u32) -> Measured {
    let semantics = Semantics::PAPER;
    Measured::Lsh(Lsh { rounds, factors: vec![16], chunk_len: 64, rotation_heads: 1, semantics, keep_rounds: false })
}

fn planned(gpu: &Gpu, problem: &Problem, method: &Measured) -> Plan {
    lab::plan(&problem.dims, method, gpu.limits).expect("a plan")
}

/// Sizes that the allocator reports by name, once nothing is in flight.
fn reported(gpu: &Gpu) -> BTreeMap<String, Vec<u64>> {
    gpu.queue.submit([]);
    gpu.device.poll(wgpu::PollType::wait_indefinitely()).expect("an idle device");
    let report = gpu.device.generate_allocator_report().expect("Vulkan reports its allocations");
    let mut sizes: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for allocation in report.allocations {
        sizes.entry(allocation.name).or_default().push(allocation.size);
    }
    sizes
}

fn total(gpu: &Gpu) -> u64 {
    reported(gpu).values().flatten().sum()
}

#[test]
fn the_ledger_holds_what_the_allocator_reports() {
    let gpu = open();
    let problem = problem(1000);
    for method in methods() {
        let plan = planned(&gpu, &problem, &method);
        let before = total(&gpu);
        let mut workspace = Workspace::default();
        block_on(&gpu, workspace.prepare(&gpu, &plan, &problem)).expect("prepared");
        assert_eq!(gpu.ledger.bytes(), plan.method_bytes(), "{method:?}");
        assert_eq!(gpu.ledger.entries().len(), plan.buffers.len());
        let sizes = reported(&gpu);
        for (name, bytes) in gpu.ledger.entries() {
            let held = sizes.get(name).unwrap_or_else(|| panic!("{name} is not reported: {sizes:?}"));
            assert!(held.len() == 1 && (bytes..bytes + GRAIN).contains(&held[0]), "{name}: {bytes} and {held:?}");
        }
        let grown = total(&gpu) - before;
        let rounding = GRAIN * plan.buffers.len() as u64;
        assert!((plan.method_bytes()..plan.method_bytes() + rounding).contains(&grown), "{method:?}: {grown}");
        drop(workspace);
        assert_eq!(gpu.ledger.bytes(), 0);
        assert_eq!(total(&gpu), before, "{method:?}: given back");
    }
}

#[test]
fn runs_and_instruments_give_everything_back() {
    let gpu = open();
    let problem = problem(300);
    for method in methods() {
        let plan = planned(&gpu, &problem, &method);
        let figures = measure::figures(&problem.dims, &method, Sample::golden(300, 50), gpu.limits).expect("a plan");
        let mut workspace = Workspace::default();
        block_on(&gpu, async {
            workspace.prepare(&gpu, &plan, &problem).await.expect("prepared");
            gpu.run(&plan, &workspace, &Progress::default()).await.expect("run");
            assert_eq!(gpu.ledger.bytes(), plan.method_bytes(), "parameters and timestamps are given back");
            assert!(gpu.ledger.peak() > plan.method_bytes(), "and were in the book");
            workspace.prepare(&gpu, &figures, &problem).await.expect("prepared");
            gpu.run(&figures, &workspace, &Progress::default()).await.expect("run");
            workspace.read_f32(&gpu, "out", 1).await.expect("read");
        });
        assert!(gpu.ledger.bytes() > plan.method_bytes());
        workspace.drop_instruments();
        assert_eq!(gpu.ledger.bytes(), plan.method_bytes(), "{method:?}: what only instruments need is given back");
        drop(workspace);
        assert_eq!(gpu.ledger.bytes(), 0);
    }
}

/// Polls a future until something holds of the progress; the future's output if it ends first.
fn drive<F: Future>(gpu: &Gpu, mut future: std::pin::Pin<&mut F>, until: impl Fn() -> bool) -> Option<F::Output> {
    let mut context = Context::from_waker(Waker::noop());
    while !until() {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        let _ = gpu.device.poll(wgpu::PollType::Poll);
    }
    None
}

#[test]
fn a_cancelled_run_leaks_nothing_and_the_next_one_works() {
    let gpu = open();
    let problem = problem(3000);
    let plan = planned(&gpu, &problem, &lsh(4));
    let out = |workspace: &Workspace| block_on(&gpu, workspace.read_f32(&gpu, "out", 1)).expect("read");
    let mut workspace = Workspace::default();
    block_on(&gpu, workspace.prepare(&gpu, &plan, &problem)).expect("prepared");
    block_on(&gpu, gpu.run(&plan, &workspace, &Progress::default())).expect("run");
    let undisturbed = out(&workspace);
    drop(workspace);
    assert_eq!(gpu.ledger.bytes(), 0);

    // One workgroup a dispatch makes several slices of it.
    gpu.widest_dispatch(1);
    let mut workspace = Workspace::default();
    block_on(&gpu, workspace.prepare(&gpu, &plan, &problem)).expect("prepared");
    {
        let progress = Progress::default();
        let mut run = pin!(gpu.run(&plan, &workspace, &progress));
        assert!(drive(&gpu, run.as_mut(), || progress.done.get() > 0.0).is_none(), "still running");
        assert!(progress.fraction() < 1.0);
    }
    assert_eq!(gpu.ledger.bytes(), plan.method_bytes(), "the run's own buffers are given back");
    block_on(&gpu, gpu.run(&plan, &workspace, &Progress::default())).expect("run");
    assert_eq!(out(&workspace), undisturbed);
    drop(workspace);
    assert_eq!(gpu.ledger.bytes(), 0);
    assert_eq!(gpu.fault(), None);

    // So does cancelling while buffers are filled.
    let mut workspace = Workspace::default();
    {
        let mut prepare = pin!(workspace.prepare(&gpu, &plan, &problem));
        assert!(
            drive(&gpu, prepare.as_mut(), || gpu.ledger.bytes() > 0).is_some_and(|done| done.is_ok())
                || gpu.ledger.bytes() > 0
        );
    }
    drop(workspace);
    assert_eq!(gpu.ledger.bytes(), 0);
}

#[test]
fn what_does_not_fit_is_refused_before_allocation() {
    let gpu = open();
    gpu.ledger.reset_peak();
    let dims = Dims { n_q: 65_536, n_kv: 65_536, ..problem(1).dims };
    let full = Measured::Full(Full { way: Way::Materialized, shared_qk: true, semantics: Semantics::PAPER });
    let refusal = lab::plan(&dims, &full, gpu.limits).err().expect("32 GiB do not fit");
    let allowed = gpu.limits.buffer;
    assert_eq!(refusal, Refusal { buffer: "scores", needed: 32 << 30, allowed, limit: Limit::Buffer });
    let words = refusal.to_string();
    assert!(words.contains(&(32u64 << 30).to_string()) && words.contains(&allowed.to_string()), "{words}");
    assert!(!words.contains('\n'));
    assert_eq!((gpu.ledger.bytes(), gpu.ledger.peak()), (0, 0));
}

#[test]
fn a_device_lost_in_mid_run_is_told_in_words() {
    let gpu = open();
    let problem = problem(3000);
    let plan = planned(&gpu, &problem, &lsh(4));
    let mut workspace = Workspace::default();
    block_on(&gpu, workspace.prepare(&gpu, &plan, &problem)).expect("prepared");
    gpu.widest_dispatch(1);
    let progress = Progress::default();
    let lost = {
        let mut run = pin!(gpu.run(&plan, &workspace, &progress));
        assert!(drive(&gpu, run.as_mut(), || progress.done.get() > 0.0).is_none(), "still running");
        gpu.device.destroy();
        drive(&gpu, run, || false).expect("an end")
    };
    let is_lost = |fault: &Fault| matches!(fault, Fault::Lost(_));
    assert!(is_lost(lost.as_ref().expect_err("no result")), "{lost:?}");
    // Whatever is asked afterwards gets the same answer at once.
    let again = block_on(&gpu, gpu.run(&plan, &workspace, &Progress::default()));
    assert!(is_lost(again.as_ref().expect_err("no result")), "{again:?}");
    let read = block_on(&gpu, workspace.read_f32(&gpu, "out", 0));
    assert!(is_lost(read.as_ref().expect_err("no result")), "{read:?}");
    let prepared = block_on(&gpu, Workspace::default().prepare(&gpu, &plan, &problem));
    assert!(is_lost(prepared.as_ref().expect_err("no result")), "{prepared:?}");
    assert!(gpu.fault().as_ref().is_some_and(is_lost), "{:?}", gpu.fault());
    drop(workspace);
    assert_eq!(gpu.ledger.bytes(), 0);
}
