//! What the worker does, one job at a time, as futures that can be dropped half-way.

use super::background::Background;
use super::files;
use super::scene::{Answer, Question};
use crate::check;
use crate::gpu::Gpu;
use crate::gpu::run::Progress;
use crate::inputs::{self, Input, Picture};
use crate::lab::rank::trained;
use crate::lab::{Fit, LabError, Run, speed};
use crate::settings::{InputKind, Method, Sample, Settings};
use crate::text::{self, Text, fill};
use crate::verify::manifest::Case;
use crate::verify::{self, Totals, Verdict};
use std::cell::Cell;
use std::rc::Rc;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Job {
    Build,
    Run(Method),
    Ask(Question),
    Check,
}

/// An input, and the picture that it was made of; or why there is none.
pub type Built = Result<(Input, Option<Rc<Picture>>), String>;

/// What a device is checked on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exam {
    /// Every step against its twin.
    Twins,
    /// The plans against stored outputs of published implementations, in this folder beside the page.
    Published(String),
}

/// What a check of the device found.
#[derive(Clone, Debug)]
pub struct Checked {
    pub exam: Exam,
    pub totals: Totals,
    /// One line for each case that failed.
    pub failures: Vec<String>,
}

/// What a job gave.
pub enum Done {
    Built(Box<Built>),
    Ran(Box<Result<Run, LabError>>),
    Answered(Result<Answer, LabError>),
    Checked(Checked),
}

pub struct Task {
    pub job: Job,
    pub work: Background<Done>,
    pub progress: Rc<Progress>,
}

/// What stays on the device to answer questions: the run of the method on the screen, and a fit of Linformer's
/// projections, which outlives it. A question borrows both and gives them back even when it is dropped half-way.
#[derive(Clone, Default)]
pub struct Berth {
    run: Rc<Cell<Option<Run>>>,
    fit: Rc<Cell<Option<Fit>>>,
}

pub struct Borrowed {
    pub run: Option<Run>,
    pub fit: Option<Fit>,
    berth: Berth,
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        self.berth.run.set(self.run.take());
        self.berth.fit.set(self.fit.take());
    }
}

impl Berth {
    /// Leaves with the run and the fit; empty until they are dropped.
    pub fn borrow(&self) -> Borrowed {
        Borrowed { run: self.run.take(), fit: self.fit.take(), berth: self.clone() }
    }

    /// Takes another run in, or none.
    pub fn moor(&self, run: Option<Run>) {
        self.run.set(run);
    }

    pub fn forget_fit(&self) {
        self.fit.set(None);
    }
}

/// Makes the input; the picture that was loaded for it comes along.
pub async fn build(settings: &Settings, loaded: Option<Rc<Picture>>) -> Built {
    let picture = match loaded {
        None if settings.input == InputKind::Picture && settings.sample != Sample::Own => {
            let bytes = files::sample(settings.sample).await?;
            Some(Rc::new(Picture::decode(&bytes).map_err(|error| error.to_string())?))
        }
        loaded => loaded,
    };
    let input = inputs::build(settings, picture.as_deref()).await;
    let input = input.map_err(|error| fill(Text::NoInput, &[&error.to_string()]))?;
    Ok((input, picture))
}

/// Asks what is on the device.
pub async fn answer(
    on_device: &mut Borrowed,
    gpu: &Gpu,
    question: Question,
    progress: &Progress,
) -> Result<Answer, LabError> {
    let Borrowed { run: Some(run), fit, .. } = on_device else {
        return Ok(Answer::Failed(text::sentence(Text::Cancelled.get())));
    };
    Ok(match question {
        Question::PairMap { head, window } => Answer::Map(Rc::new(run.pair_map(gpu, head, window, progress).await?)),
        Question::WeightMap { which, head, window } => {
            Answer::Map(Rc::new(run.weight_map(gpu, which, head, window, progress).await?))
        }
        Question::Row { head, query } => Answer::Row(Rc::new(run.row(gpu, head, query, progress).await?)),
        Question::Sparsity { head } => Answer::Sparsity(Rc::new(run.sparsity(gpu, head, progress).await?)),
        Question::Strongest { head, count } => {
            Answer::Strongest(Rc::new(run.strongest(gpu, head, count, progress).await?))
        }
        Question::Under { preset } => Answer::Under(run.under(gpu, preset, progress).await?),
        Question::LastToken => Answer::LastToken(Rc::new(run.moved(gpu, progress).await?)),
        Question::SeparateKeys => Answer::SeparateKeys(run.separate_keys(gpu, progress).await?.map(Rc::new)),
        Question::ByRounds => Answer::ByRounds(run.by_rounds(gpu, progress).await?.map(Rc::new)),
        Question::Theorem { k } => Answer::Theorem(run.theorem_errors(gpu, k, progress).await?),
        Question::Savings { sizes } => Answer::Savings(speed::savings(gpu, sizes, progress).await?),
        Question::Speed { sizes } => Answer::Speed(speed::speed(gpu, sizes, progress).await?.into()),
        Question::Matrix { source, head } => Answer::Matrix(run.matrix(source, head).await.map(Rc::new)),
        Question::Untrained { head, k } => Answer::Untrained(Rc::new(run.untrained(gpu, head, k, progress).await?)),
        Question::Fit { start, until } => Answer::Fit(Rc::new(run.fit(gpu, fit, start, until, progress).await?)),
        Question::FittedErrors { start, steps } => {
            Answer::FittedErrors(run.fitted_errors(gpu, start, steps, progress).await?)
        }
        Question::Layers(stacked) => Answer::Layers(Rc::new(run.layers(gpu, stacked, progress).await?)),
        Question::Experiment { experiment, seed } => {
            Answer::Series(Rc::new(experiment.run(gpu, seed, progress).await?))
        }
        Question::LowRank { head, random } => {
            Answer::LowRank(Rc::new(run.low_rank(gpu, head, random, progress).await?))
        }
        Question::Trained => {
            let bytes = files::trained().await.map_err(LabError::Failed)?;
            Answer::Trained(Rc::new(trained::map(gpu, &bytes, progress).await?))
        }
        Question::Accuracy { rounds } => Answer::Accuracy(run.accuracy(gpu, rounds, progress).await?),
    })
}

/// Checks the device.
pub async fn check(gpu: &Gpu, exam: Exam, progress: &Progress) -> Checked {
    let mut failures = Vec::new();
    let totals = match &exam {
        Exam::Twins => {
            let report = |result: &check::CaseResult| {
                if !result.passed() {
                    failures.push(result.to_string());
                }
            };
            let summary = check::run_all(gpu, progress, report).await;
            Totals { passed: summary.passed as usize, failed: summary.failed as usize }
        }
        Exam::Published(folder) => {
            let read = async |file: &str| files::read(folder, file).await;
            let tell = |case: &Case, verdict: &Verdict| {
                if !verdict.passes() {
                    let line = verify::line(&case.name, verdict);
                    failures.push(line.split_whitespace().collect::<Vec<_>>().join(" "));
                }
            };
            match verify::all(gpu, read, "", progress, tell).await {
                Ok(totals) => totals,
                Err(why) => {
                    failures.push(why);
                    Totals { passed: 0, failed: 1 }
                }
            }
        }
    };
    Checked { exam, totals, failures }
}
