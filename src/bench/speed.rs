//! Times of all methods on the same input over the sequence length, taken in turn in one run, so that
//! whatever else the machine does meets them all.

use super::median;
use crate::gpu::run::{Clock, Progress};
use crate::gpu::workspace::Workspace;
use crate::gpu::{Fault, Gpu};
use crate::inputs::{self, Input, Picture};
use crate::lab;
use crate::plan::Plan;
use crate::semantics::Choice;
use crate::settings::{Method, Settings};

/// What is measured.
pub struct Speed {
    /// For every method and length; `n` and `method` are not read.
    pub settings: Settings,
    /// Lengths double from one to the other.
    pub from: u32,
    pub to: u32,
    /// How often each method runs at each length, in turn with the others.
    pub repeats: u32,
}

/// Milliseconds of one method at one length.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    /// Median, least and most.
    pub ms: f64,
    pub least: f64,
    pub most: f64,
    /// Median of the time over that of full attention in the same turn.
    pub ratio: f64,
}

/// One length.
#[derive(Clone, Debug)]
pub struct Row {
    pub n: u32,
    /// In the order of [`Method::ALL`]; or why a method cannot run.
    pub times: Vec<Result<Times, String>>,
}

impl Speed {
    pub fn lengths(&self) -> Vec<u32> {
        std::iter::successors(Some(self.from), |n| n.checked_mul(2)).take_while(|n| *n <= self.to).collect()
    }

    /// Measures one length, and says what measured the time.
    ///
    /// # Errors
    /// When there is no input, or the device fails.
    pub async fn measure(&self, gpu: &Gpu, picture: Option<&Picture>, n: u32) -> Result<(Row, Clock), String> {
        let words = |fault: Fault| fault.to_string();
        let base = Settings { n, k: None, ..self.settings.clone() };
        let input = inputs::build(&base, picture).await.map_err(|error| error.to_string())?;
        let mut prepared = Vec::new();
        for (method, _) in Method::ALL {
            prepared.push(match self.plan(gpu, *method, n, &input) {
                Ok(plan) => {
                    let mut workspace = Workspace::default();
                    workspace.prepare(gpu, &plan, &input.problem).await.map_err(words)?;
                    // Compiles and warms up.
                    gpu.run(&plan, &workspace, &Progress::default()).await.map_err(words)?;
                    Ok((plan, workspace))
                }
                Err(why) => Err(why),
            });
        }
        let mut clock = Clock::Timestamps;
        let mut turns: Vec<Vec<f64>> = vec![Vec::new(); prepared.len()];
        for _ in 0..self.repeats {
            for (times, ready) in turns.iter_mut().zip(&prepared) {
                let Ok((plan, workspace)) = ready else { continue };
                let timing = gpu.run(plan, workspace, &Progress::default()).await.map_err(words)?;
                times.push(timing.ms);
                if timing.clock == Clock::Wall {
                    clock = Clock::Wall;
                }
            }
        }
        let full = turns.first().cloned().unwrap_or_default();
        let times = turns.into_iter().zip(prepared).map(|(turns, ready)| ready.map(|_| Times::of(&turns, &full)));
        Ok((Row { n, times: times.collect() }, clock))
    }

    fn plan(&self, gpu: &Gpu, method: Method, n: u32, input: &Input) -> Result<Plan, String> {
        // Linformer's k is no business of the others.
        let k = if method == Method::Linformer { self.settings.k } else { None };
        let settings = Settings { n, k, method, ..self.settings.clone() };
        settings.validate().map_err(|error| error.to_string())?;
        let dims = input.problem.dims;
        lab::plan(&dims, &lab::measured(&settings, &dims), gpu.limits).map_err(|refusal| refusal.to_string())
    }
}

impl Times {
    fn of(turns: &[f64], full: &[f64]) -> Self {
        let ratios = turns.iter().zip(full).map(|(own, full)| own / full).collect();
        Self {
            ms: median(turns.to_vec()).unwrap_or(f64::NAN),
            least: turns.iter().copied().fold(f64::INFINITY, f64::min),
            most: turns.iter().copied().fold(0.0, f64::max),
            ratio: median(ratios).unwrap_or(f64::NAN),
        }
    }
}

/// Where a method overtakes full attention, as far as was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossover {
    /// Faster at every length measured.
    Always,
    /// Slower up to the first length, faster from the second to the last.
    Between(u32, u32),
    /// Not faster at the longest length.
    Never,
}

/// Where a method overtakes full attention and stays ahead; `None` when it did not run.
pub fn crossover(rows: &[Row], method: Method) -> Option<Crossover> {
    let at = Method::ALL.iter().position(|(known, _)| *known == method)?;
    let ratios: Vec<(u32, f64)> =
        rows.iter().filter_map(|row| Some((row.n, row.times.get(at)?.as_ref().ok()?.ratio))).collect();
    let slower = ratios.iter().rposition(|(_, ratio)| *ratio >= 1.0 || ratio.is_nan());
    match slower {
        _ if ratios.is_empty() => None,
        None => Some(Crossover::Always),
        Some(last) => Some(match ratios.get(last + 1) {
            Some((n, _)) => Crossover::Between(ratios[last].0, *n),
            None => Crossover::Never,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(ratios: &[f64]) -> Vec<Row> {
        let times = |ratio: f64| Ok(Times { ms: 1.0, least: 1.0, most: 1.0, ratio });
        let row = |(n, ratio): (u32, &f64)| Row { n, times: Method::ALL.iter().map(|_| times(*ratio)).collect() };
        (7..).map(|power| 1 << power).zip(ratios).map(row).collect()
    }

    #[test]
    fn a_crossover_is_where_it_stays_faster() {
        let of = |ratios: &[f64]| crossover(&rows(ratios), Method::Lsh);
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[0.9, 0.5]), Some(Crossover::Always));
        assert_eq!(of(&[3.0, 0.9, 1.1, 0.8, 0.4]), Some(Crossover::Between(512, 1024)));
        assert_eq!(of(&[0.9, 0.8, 1.0]), Some(Crossover::Never));
        let refused = [Row { n: 128, times: vec![Err("too large".to_owned()); Method::ALL.len()] }];
        assert_eq!(crossover(&refused, Method::Lsh), None);
    }

    #[test]
    fn a_ratio_is_taken_turn_by_turn() {
        let times = Times::of(&[2.0, 40.0, 6.0], &[1.0, 10.0, 2.0]);
        assert_eq!((times.ms, times.least, times.most, times.ratio), (6.0, 2.0, 40.0, 3.0));
    }

    #[test]
    fn lengths_double() {
        let speed = Speed { settings: Settings::default(), from: 128, to: 1000, repeats: 1 };
        assert_eq!(speed.lengths(), [128, 256, 512]);
    }
}
