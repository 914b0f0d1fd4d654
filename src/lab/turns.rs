//! Milliseconds of methods that take turns, so that whatever else the machine does meets them all.

use crate::gpu::run::{Clock, Progress};
use crate::gpu::workspace::Workspace;
use crate::gpu::{Fault, Gpu};
use crate::plan::{Plan, Role};
use crate::problem::Problem;
use web_time::Instant;

/// One method at one length, by warm runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timed {
    /// Milliseconds: median, least and most.
    pub ms: f64,
    pub least: f64,
    pub most: f64,
    /// Median of the time over that of the first method in the same turn.
    pub ratio: f64,
    pub clock: Clock,
    /// Bytes of tensors and the method's own buffers, as they were allocated.
    pub bytes: u64,
}

impl Timed {
    fn of(turns: &[f64], first: &[f64], clock: Clock, bytes: u64) -> Self {
        let ratios = turns.iter().zip(first).map(|(own, first)| own / first).collect();
        Self {
            ms: median(turns.to_vec()).unwrap_or(f64::NAN),
            least: turns.iter().copied().fold(f64::INFINITY, f64::min),
            most: turns.iter().copied().fold(0.0, f64::max),
            ratio: median(ratios).unwrap_or(f64::NAN),
            clock,
            bytes,
        }
    }
}

/// The middle of numbers, the mean of the two middle ones when their count is even; `None` of nothing.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let high = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { high } else { (values[middle - 1] + high) / 2.0 })
}

/// A plan that has run once, in buffers of its own, and the milliseconds of its turns.
struct Contender<'a> {
    plan: &'a Plan,
    workspace: Workspace,
    turns: Vec<f64>,
    clock: Clock,
}

/// Runs all plans once to warm up, then in turn so many times.
///
/// # Errors
/// When the device has no memory left, or fails.
pub async fn take_turns(
    gpu: &Gpu,
    problem: &Problem,
    plans: impl IntoIterator<Item = &Plan>,
    turns: u32,
    progress: &Progress,
) -> Result<Vec<Timed>, Fault> {
    let mut contenders = Vec::new();
    for plan in plans {
        let mut workspace = Workspace::default();
        workspace.prepare(gpu, plan, problem).await?;
        gpu.run(plan, &workspace, progress).await?;
        contenders.push(Contender { plan, workspace, turns: Vec::new(), clock: Clock::Timestamps });
    }
    for _ in 0..turns {
        for contender in &mut contenders {
            let begun = Instant::now();
            let timing = gpu.run(contender.plan, &contender.workspace, progress).await?;
            // Between frames that it draws, a software adapter stamps the handing over of work, not the work.
            let wall = (begun.elapsed().as_secs_f64() * 1e3, Clock::Wall);
            let (ms, clock) = if gpu.is_software() { wall } else { (timing.ms, timing.clock) };
            contender.turns.push(ms);
            if clock == Clock::Wall {
                contender.clock = Clock::Wall;
            }
        }
    }
    let first = contenders.first().map(|first| first.turns.clone()).unwrap_or_default();
    let timed = |Contender { plan, workspace, turns, clock }: &Contender<'_>| {
        let own = plan.buffers.iter().filter(|buffer| buffer.role != Role::Instrument);
        Timed::of(turns, &first, *clock, own.map(|buffer| workspace.bytes(buffer.name)).sum())
    };
    Ok(contenders.iter().map(timed).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 9.0]), Some(3.0));
        assert_eq!(median(vec![4.0, 1.0, 9.0, 2.0]), Some(3.0));
    }

    #[test]
    fn a_ratio_is_taken_turn_by_turn() {
        let timed = Timed::of(&[2.0, 40.0, 6.0], &[1.0, 10.0, 2.0], Clock::Wall, 8);
        assert_eq!((timed.ms, timed.least, timed.most, timed.ratio), (6.0, 2.0, 40.0, 3.0));
    }
}
