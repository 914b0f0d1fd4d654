//! The worker: one future at a time, polled once a frame. The newest settings win, and what was
//! asked for before is dropped, which cancels it between two slices.
//!
//! What is on the screen stays consistent: settings, input and outcomes of one [`Stage`] belong
//! together. New settings make a new stage, which takes the screen over when the method on the
//! screen has its outcome.

mod answers;
mod check;
mod stages;
mod standing;

use super::background::Background;
use super::job::{Berth, Done, Job, Task, answer, build, check};
use super::scene::{Answer, Missing, Question};
use super::stage::{FAMILIES, Stage, Subject, family, key, slot};
use crate::gpu::run::Progress;
use crate::gpu::{Fault, Gpu};
use crate::inputs::Picture;
use crate::lab::{LabError, Run};
use crate::settings::{Method, Sample, Settings};
use crate::text::{self, Text};
use answers::Answers;
use check::Check;
pub use standing::Stands;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;
use web_time::Instant;

/// A frame gives the worker about this long.
const FRAME: Duration = Duration::from_millis(8);
/// On the page, progress is drawn this often; where a frame is computed on the CPU, it takes the work's time.
const PROGRESS: Duration = Duration::from_millis(250);
const SOFTWARE_PROGRESS: Duration = Duration::from_millis(1000);

/// When the worker wants to be polled again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    Never,
    NextFrame,
    After(Duration),
}

pub struct Session {
    gpu: Rc<Gpu>,
    ctx: egui::Context,
    /// On the screen; its input is there.
    shown: Option<Stage>,
    /// What new settings make; takes over from `shown`.
    next: Option<Stage>,
    /// Which of the three ways the exact method takes.
    full_way: Method,
    /// The shipped photograph that was loaded last, and the user's own.
    sample: Option<(Sample, Rc<Picture>)>,
    own: Option<Rc<Picture>>,
    task: Option<Task>,
    /// When the worker began to have something to do.
    busy_since: Option<Instant>,
    /// Nothing starts before this: settings that still move are not run.
    due: Instant,
    berth: Berth,
    berthed: Option<Subject>,
    answers: Answers,
    /// Runs although it takes long.
    forced: Option<Settings>,
    check: Option<Check>,
    cancelled: bool,
    cancelled_slot: Missing,
    failure: Option<String>,
    fault: Option<Fault>,
}

/// A device whose faults are told even when nothing runs.
fn watched(gpu: Gpu, ctx: &egui::Context) -> Rc<Gpu> {
    let ctx = ctx.clone();
    gpu.wake_on_fault(move || ctx.request_repaint());
    Rc::new(gpu)
}

impl Session {
    pub fn new(gpu: Gpu, settings: Settings, ctx: &egui::Context) -> Self {
        let mut session = Self {
            gpu: watched(gpu, ctx),
            ctx: ctx.clone(),
            shown: None,
            next: None,
            full_way: Method::Full,
            sample: None,
            own: None,
            task: None,
            busy_since: None,
            due: Instant::now(),
            berth: Berth::default(),
            berthed: None,
            answers: Answers::default(),
            forced: None,
            check: None,
            cancelled: false,
            cancelled_slot: Missing::Failed(Text::Cancelled.get().to_owned()),
            failure: None,
            fault: None,
        };
        session.change(settings);
        session
    }

    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Which of the three ways exact attention takes.
    pub fn full_way(&self) -> Method {
        self.full_way
    }

    /// Stops what runs; what there is stays.
    pub fn cancel(&mut self) {
        match self.task.take().map(|task| task.job) {
            Some(Job::Ask(_)) => self.answers.cancel(),
            Some(Job::Check) => self.check = None,
            _ => self.cancelled = true,
        }
    }

    /// Goes on after [`Session::cancel`], and tries anew what failed to be answered.
    pub fn resume(&mut self) {
        self.cancelled = false;
        self.answers.ask_anew();
        self.settle();
    }

    /// Starts over on another device, or on the same one after a fault that it survived.
    pub fn reopen(&mut self, gpu: Gpu) {
        self.task = None;
        self.berth.moor(None);
        self.berth.forget_fit();
        self.berthed = None;
        self.gpu = watched(gpu, &self.ctx);
        self.fault = None;
        if let Some(stage) = self.target_mut() {
            for slot in stage.slots.iter_mut().filter(|slot| slot.is_err()) {
                *slot = Err(Missing::Soon);
            }
        }
        self.resume();
    }

    /// Questions of the frame that was just drawn; others are forgotten.
    pub fn ask(&mut self, questions: &[Question]) {
        self.answers.ask(questions);
        if let Some(Task { job: Job::Ask(question), .. }) = &self.task
            && !self.answers.is_asked(question)
            && !question.is_seen_through()
        {
            self.task = None;
        }
    }

    pub fn answer(&self, question: Question) -> Option<Answer> {
        self.answers.get(&question)
    }

    /// True when [`Session::poll`] has something to do.
    pub fn has_work(&self) -> bool {
        self.fault.is_none() && (self.task.is_some() || self.choose().is_some())
    }

    /// True when [`Session::poll`] should be called in the next frame: the browser goes on by itself with what runs.
    pub fn wants_frame(&self) -> bool {
        self.has_work() && !(cfg!(target_arch = "wasm32") && self.task.is_some())
    }

    /// Does a frame's share of the work.
    pub fn poll(&mut self) -> Again {
        let begun = Instant::now();
        while begun.elapsed() < FRAME {
            if self.fault.is_none() {
                self.fault = self.gpu.fault();
            }
            if self.fault.is_some() {
                self.task = None;
                return Again::Never;
            }
            let Some(task) = &mut self.task else {
                let wait = self.due.saturating_duration_since(Instant::now());
                match self.choose() {
                    None => {
                        self.busy_since = None;
                        return Again::Never;
                    }
                    Some(_) if !wait.is_zero() => return Again::After(wait),
                    Some(job) => self.start(job),
                }
                continue;
            };
            match task.work.take() {
                Some(done) => {
                    let job = task.job;
                    self.task = None;
                    self.finish(job, done);
                }
                // The browser goes on by itself; the progress is drawn now and then.
                None if cfg!(target_arch = "wasm32") => {
                    let first = self.busy_since.is_none_or(|since| since.elapsed() < PROGRESS);
                    let seldom = self.gpu.is_software() && !first;
                    return Again::After(if seldom { SOFTWARE_PROGRESS } else { PROGRESS });
                }
                None => {
                    // Waits for the device, but never longer than the frame has.
                    let timeout = FRAME.saturating_sub(begun.elapsed());
                    let wait = wgpu::PollType::Wait { submission_index: None, timeout: Some(timeout) };
                    // A timeout is no error here, and a lost device tells by its own callback.
                    let _ = self.gpu.device.poll(wait);
                }
            }
        }
        Again::NextFrame
    }

    /// What to do next.
    fn choose(&self) -> Option<Job> {
        let target = self.target()?;
        let current = family(target.settings.method);
        if !self.cancelled {
            if target.input.is_none() && self.failure.is_none() {
                return Some(Job::Build);
            }
            let soon = |method: Method| matches!(target.slots[slot(method)], Err(Missing::Soon));
            if self.is_checking() && (target.input.is_none() || !soon(current)) {
                return Some(Job::Check);
            }
            target.input.as_ref()?;
            let mut order = std::iter::once(current).chain(FAMILIES.into_iter().filter(|method| *method != current));
            if let Some(method) = order.find(|method| soon(*method)) {
                return Some(Job::Run(method));
            }
        }
        // Questions are about what is on the screen.
        let subject = self.shown.as_ref().filter(|_| self.next.is_none())?.subject()?;
        let question = self.answers.open()?;
        let on_device = self.berthed.as_ref() == Some(&subject);
        if on_device { Some(Job::Ask(question)) } else { (!self.cancelled).then_some(Job::Run(current)) }
    }

    fn start(&mut self, job: Job) {
        let Some(target) = self.target() else { return };
        let progress = Rc::new(Progress::default());
        let (gpu, shared) = (self.gpu.clone(), progress.clone());
        let future: Pin<Box<dyn Future<Output = Done>>> = match job {
            Job::Build => {
                let settings = target.settings.clone();
                let loaded = self.picture(settings.sample);
                Box::pin(async move { Done::Built(Box::new(build(&settings, loaded).await)) })
            }
            Job::Run(method) => {
                let Some(input) = target.input.clone() else { return };
                let settings = key(&target.settings, method, self.full_way);
                if method == family(target.settings.method) {
                    self.berth.moor(None);
                    self.berthed = None;
                }
                Box::pin(async move { Done::Ran(Box::new(Run::new(&gpu, &settings, &input, &shared).await)) })
            }
            Job::Ask(question) => {
                let mut borrowed = self.berth.borrow();
                Box::pin(async move { Done::Answered(answer(&mut borrowed, &gpu, question, &shared).await) })
            }
            Job::Check => {
                let Some(exam) = self.checking().cloned() else { return };
                Box::pin(async move { Done::Checked(check(&gpu, exam, &shared).await) })
            }
        };
        self.busy_since.get_or_insert_with(Instant::now);
        self.task = Some(Task { job, work: Background::new(future, &self.ctx), progress });
    }

    fn picture(&self, sample: Sample) -> Option<Rc<Picture>> {
        match sample {
            Sample::Own => self.own.clone(),
            _ => self.sample.as_ref().filter(|(loaded, _)| *loaded == sample).map(|(_, picture)| picture.clone()),
        }
    }

    fn finish(&mut self, job: Job, done: Done) {
        match (job, done) {
            (_, Done::Built(result)) => self.built(*result),
            (Job::Run(method), Done::Ran(result)) => self.ran(method, *result),
            (Job::Ask(question), Done::Answered(result)) => {
                let answer = result.unwrap_or_else(|error| Answer::Failed(text::sentence(self.told(error))));
                self.answers.keep(question, answer);
            }
            (_, Done::Checked(checked)) => self.check = Some(Check::Done(checked)),
            _ => {}
        }
        self.settle();
    }

    /// The words of an error; a fault is remembered.
    fn told(&mut self, error: LabError) -> String {
        let words = error.to_string();
        if let LabError::Fault(fault) = error {
            self.fault = Some(fault);
        }
        words
    }
}
