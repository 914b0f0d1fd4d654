//! Times of all methods on the same input over the sequence length.

use crate::crossover::Crossover;
use crate::gpu::Gpu;
use crate::gpu::run::Progress;
use crate::inputs::{self, Input, Picture};
use crate::lab;
use crate::lab::turns::{Timed, take_turns};
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

/// One length.
#[derive(Clone, Debug)]
pub struct Row {
    pub n: u32,
    /// In the order of [`Method::ALL`], so that ratios are to full attention; or why a method cannot run.
    pub times: Vec<Result<Timed, String>>,
}

impl Speed {
    pub fn lengths(&self) -> Vec<u32> {
        std::iter::successors(Some(self.from), |n| n.checked_mul(2)).take_while(|n| *n <= self.to).collect()
    }

    /// Measures one length.
    ///
    /// # Errors
    /// When there is no input, or the device fails.
    pub async fn measure(&self, gpu: &Gpu, picture: Option<&Picture>, n: u32) -> Result<Row, String> {
        let base = Settings { n, k: None, ..self.settings.clone() };
        let input = inputs::build(&base, picture).await.map_err(|error| error.to_string())?;
        let plans: Vec<_> = Method::ALL.iter().map(|(method, _)| self.plan(gpu, *method, n, &input)).collect();
        let runs = plans.iter().filter_map(|plan| plan.as_ref().ok());
        let timed = take_turns(gpu, &input.problem, runs, self.repeats, &Progress::default()).await;
        let mut timed = timed.map_err(|fault| fault.to_string())?.into_iter();
        let times = plans.into_iter().filter_map(|plan| plan.map(|_| timed.next()).transpose());
        Ok(Row { n, times: times.collect() })
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

/// Where a method overtakes full attention and stays ahead; `None` when it did not run.
pub fn crossover(rows: &[Row], method: Method) -> Option<Crossover> {
    let at = Method::ALL.iter().position(|(known, _)| *known == method)?;
    Crossover::of(rows.iter().filter_map(|row| Some((row.n, row.times.get(at)?.as_ref().ok()?.ratio))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_run_overtakes_nothing() {
        let refused = [Row { n: 128, times: vec![Err("too large".to_owned()); Method::ALL.len()] }];
        assert_eq!(crossover(&refused, Method::Lsh), None);
        assert_eq!(crossover(&[], Method::Lsh), None);
    }

    #[test]
    fn lengths_double() {
        let speed = Speed { settings: Settings::default(), from: 128, to: 1000, repeats: 1 };
        assert_eq!(speed.lengths(), [128, 256, 512]);
    }
}
