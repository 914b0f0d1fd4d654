//! Checks a device: every kernel against its twin in float64, on small seeded problems, natively and
//! in the browser alike.
//!
//! A case is a list of plans. First its passes run one at a time: each kernel and its twin get the
//! very inputs that the device wrote before, and every word that either may write is compared:
//! integers exactly, floats within a bound derived from float32 (see `bounds`). Then the plans run as
//! they do in use, but cut into short dispatches, and must give the same bits. All buffers are
//! poisoned, so that what was never written shows.

mod bounds;
mod cases;

pub use cases::{Case, cases};

use crate::gpu::run::Progress;
use crate::gpu::workspace::{Words, Workspace};
use crate::gpu::{Fault, Gpu};
use crate::interpreter::{self, POISON};
use crate::plan::{ALIGNMENT, Binding, Kind, Pass, Plan};
use crate::steps::{Access, Data, Kernel, Widths};
use std::fmt;

/// Float32 may choose another bucket only when float64 sees it this close to the best, in units of
/// |x| times the rms column norm of R.
pub const TIE: f64 = 1e-5;
/// Largest share of positions that may lie so close. Gaps of 1e-5 are that rare: the density of the
/// gap between the largest two of a few thousand normal numbers is below 10 at 0.
pub const TIE_SHARE: f64 = 1e-3;

/// A twin, and a kernel whose own twin it replaces: a test sees that a wrong one is caught.
pub type Swap<'a> = Option<(&'a Kernel, fn(&[u8], Widths, &mut [Data]))>;

/// What one case gave.
#[derive(Clone, Debug, Default)]
pub struct CaseResult {
    pub name: String,
    /// Largest absolute error of a float.
    pub error: f64,
    /// Largest share of its bound that an error took.
    pub share: f64,
    /// Positions hashed, over all rounds and heads, and those that nearly tie.
    pub hashed: u64,
    pub near_ties: u64,
    /// The first thing that was wrong.
    pub failure: Option<String>,
}

impl CaseResult {
    pub fn passed(&self) -> bool {
        self.failure.is_none()
    }
}

impl fmt::Display for CaseResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, error, share, .. } = self;
        match &self.failure {
            Some(failure) => write!(f, "failed: {name}: {failure}"),
            None => write!(f, "passed: {name}: largest error {error:.1e}, {:.0} % of its bound", share * 100.0),
        }
    }
}

/// How many cases passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub passed: u32,
    pub failed: u32,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// Runs every case and tells each result as it comes; the progress counts cases.
pub async fn run_all(gpu: &Gpu, progress: &Progress, mut report: impl FnMut(&CaseResult)) -> Summary {
    let mut summary = Summary::default();
    let cases = cases();
    progress.total.set(cases.len() as f64);
    for case in cases {
        let result = run_case(gpu, &case, None).await;
        report(&result);
        *(if result.passed() { &mut summary.passed } else { &mut summary.failed }) += 1;
        progress.done.set(progress.done.get() + 1.0);
    }
    summary
}

/// Runs one case.
pub async fn run_case(gpu: &Gpu, case: &Case, swap: Swap<'_>) -> CaseResult {
    let mut result = CaseResult { name: case.name.clone(), ..CaseResult::default() };
    // Dropped with the future too, so that a cancelled check leaves no poison behind.
    let _poison = Poisoned::new(gpu);
    result.failure = examine(gpu, case, swap, &mut result).await.err();
    result
}

struct Poisoned<'a>(&'a Gpu);

impl<'a> Poisoned<'a> {
    fn new(gpu: &'a Gpu) -> Self {
        gpu.poison(Some(POISON));
        Self(gpu)
    }
}

impl Drop for Poisoned<'_> {
    fn drop(&mut self) {
        self.0.poison(None);
        self.0.widest_dispatch(u32::MAX);
    }
}

async fn examine(gpu: &Gpu, case: &Case, swap: Swap<'_>, result: &mut CaseResult) -> Result<(), String> {
    let words = |fault: Fault| fault.to_string();
    let problem = case.problem();
    let plans = case.plans.as_ref().map_err(ToString::to_string)?;
    let (mut device, mut oracle) = (Workspace::default(), interpreter::Workspace::default());
    for plan in plans {
        device.prepare(gpu, plan, &problem).await.map_err(words)?;
        oracle.prepare(plan, &problem);
        for pass in plan.in_order() {
            let pass = &*pass;
            let inputs = oracle.bound(plan, pass);
            let mut want = inputs.clone();
            let twin = swap.filter(|(kernel, _)| named(kernel) == named(pass.kernel)).map_or(pass.kernel.twin, |s| s.1);
            twin(&pass.params, pass.widths, &mut want);
            let alone = Plan { buffers: plan.buffers.clone(), passes: vec![pass.clone()], ..Plan::default() };
            gpu.run(&alone, &device, &Progress::default()).await.map_err(words)?;
            let mut got = inputs.clone();
            let allowed = bounds::of(pass, &inputs, &want);
            for (at, binding) in written(pass) {
                let read = read(gpu, &device, plan, binding).await.map_err(words)?;
                let spec = &plan.buffers[binding.buffer.0];
                compare(pass, &inputs, &want[at], &read, &allowed[at], result).map_err(|failure| {
                    format!("{} of {}, buffer \"{}\": {failure}", pass.kernel.entry, pass.kernel.stem, spec.name)
                })?;
                got[at] = as_data(read);
            }
            // Later passes go on from what the device wrote: errors do not add up, ties are followed.
            oracle.store(plan, pass, got);
        }
        // Everything that a plan may write is written: no twin shares an omission with its kernel.
        for pass in plan.in_order() {
            let pass = &*pass;
            let bound = oracle.bound(plan, pass);
            if let Some((at, _)) = written(pass).find(|(at, _)| left(&bound[*at])) {
                let name = plan.buffers[pass.bindings[at].buffer.0].name;
                return Err(format!("buffer \"{name}\" was never written to its end"));
            }
        }
    }
    if result.near_ties as f64 > TIE_SHARE * result.hashed as f64 {
        return Err(format!("{} of {} positions nearly tie in the hash", result.near_ties, result.hashed));
    }
    same_in_one_go(gpu, case, plans, &device).await
}

/// The whole plans at once, in short dispatches, give the same bits as pass by pass.
async fn same_in_one_go(gpu: &Gpu, case: &Case, plans: &[Plan], stepwise: &Workspace) -> Result<(), String> {
    let words = |fault: Fault| fault.to_string();
    let mut whole = Workspace::default();
    for plan in plans {
        whole.prepare(gpu, plan, &case.problem()).await.map_err(words)?;
        // A third of the largest grid, unless that grid shows what happens at the limit itself.
        let groups = plan.passes.iter().map(|pass| pass.groups).max().unwrap_or(1);
        gpu.widest_dispatch(if groups > 65_535 { u32::MAX } else { groups / 3 + 1 });
        gpu.run(plan, &whole, &Progress::default()).await.map_err(words)?;
        gpu.widest_dispatch(u32::MAX);
    }
    for spec in whole.specs() {
        for range in 0..spec.ranges {
            let once = whole.read(gpu, spec.name, range, 0, u64::MAX).await.map_err(words)?;
            let steps = stepwise.read(gpu, spec.name, range, 0, u64::MAX).await.map_err(words)?;
            if once.map(bits) != steps.map(bits) {
                return Err(format!("buffer \"{}\" differs between one pass at a time and all in one go", spec.name));
            }
        }
    }
    Ok(())
}

fn named(kernel: &Kernel) -> (&'static str, &'static str) {
    (kernel.stem, kernel.entry)
}

/// The writable bindings of a pass.
fn written(pass: &Pass) -> impl Iterator<Item = (usize, &Binding)> {
    let each = pass.bindings.iter().enumerate().zip(pass.kernel.bindings);
    each.filter(|(_, access)| **access == Access::ReadWrite).map(|(binding, _)| binding)
}

async fn read(gpu: &Gpu, device: &Workspace, plan: &Plan, binding: &Binding) -> Result<Words, Fault> {
    let spec = &plan.buffers[binding.buffer.0];
    let (range, start) = ((binding.offset / spec.stride()) as u32, binding.offset % spec.stride() / 4);
    debug_assert_eq!(binding.offset % ALIGNMENT, 0);
    let words = device.read(gpu, spec.name, range, start, binding.bytes / 4).await?;
    Ok(words.unwrap_or(if spec.kind == Kind::F32 { Words::F32(Vec::new()) } else { Words::U32(Vec::new()) }))
}

fn as_data(words: Words) -> Data {
    match words {
        Words::F32(values) => Data::F(values.into_iter().map(f64::from).collect()),
        Words::U32(values) => Data::U(values),
    }
}

fn bits(words: Words) -> Vec<u32> {
    match words {
        Words::F32(values) => values.into_iter().map(f32::to_bits).collect(),
        Words::U32(values) => values,
    }
}

fn left(data: &Data) -> bool {
    match data {
        Data::F(values) => values.iter().any(|value| value.is_nan()),
        Data::U(values) => values.contains(&POISON),
    }
}

/// Compares what the device holds after a pass with what the twin says.
fn compare(
    pass: &Pass,
    inputs: &[Data],
    want: &Data,
    got: &Words,
    allowed: &[f64],
    result: &mut CaseResult,
) -> Result<(), String> {
    match (want, got) {
        (Data::U(want), Words::U32(got)) if pass.kernel.stem == "random_rotation_hash" => {
            let ties = bounds::ties(pass, inputs, want, got);
            result.hashed += got.len() as u64;
            result.near_ties += ties.near;
            ties.wrong.map_or(Ok(()), |(at, bucket)| {
                Err(format!("position {at} is in bucket {bucket}, the twin says {}, and it is no tie", want[at]))
            })
        }
        (Data::U(want), Words::U32(got)) if want.len() == got.len() => {
            let wrong = want.iter().zip(got).position(|(want, got)| want != got);
            wrong.map_or(Ok(()), |at| Err(format!("word {at} is {}, the twin says {}", got[at], want[at])))
        }
        (Data::F(want), Words::F32(got)) if want.len() == got.len() => {
            for (at, (want, got)) in want.iter().zip(got).enumerate() {
                if want.is_nan() {
                    if got.to_bits() != POISON {
                        return Err(format!("word {at} is {got}, the twin does not write it"));
                    }
                    continue;
                }
                let allowed = allowed.get(at).copied().unwrap_or(0.0);
                let error = (f64::from(*got) - want).abs();
                result.error = result.error.max(error);
                if error > 0.0 {
                    result.share = result.share.max(error / allowed);
                }
                if error.is_nan() || error > allowed {
                    return Err(format!(
                        "word {at} is {got:e}, the twin says {want:e}, allowed is {allowed:.1e} apart"
                    ));
                }
            }
            Ok(())
        }
        _ => Err(format!("not the {} words that the twin has", want.len())),
    }
}
