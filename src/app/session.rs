//! The worker: one future at a time, polled once a frame. The newest settings win, and what was
//! asked for before is dropped, which cancels it between two slices.
//!
//! What is on the screen stays consistent: settings, input and outcomes of one [`Stage`] belong
//! together. New settings make a new stage, which takes the screen over when the method on the
//! screen has its outcome.

use super::background::Background;
use super::job::{Berth, Built, Checked, Done, Exam, Job, Task, answer, build, check};
use super::scene::{Answer, Missing, Question, Scene};
use super::stage::{FAMILIES, Stage, Subject, family, input_key, key, slot, soon};
use crate::gpu::run::Progress;
use crate::gpu::{Fault, Gpu};
use crate::inputs::Picture;
use crate::lab::{self, LabError, Run};
use crate::settings::{InputKind, Method, Sample, Settings};
use crate::text::Text;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;
use web_time::Instant;

/// Exact attention that takes longer than this runs only when asked.
const PUT_OFF_MS: f64 = 3000.0;
/// The other two are what people came for: they wait only where a slider has made them quadratic.
const PUT_OFF_SPARSE_MS: f64 = 20_000.0;
/// Settings that change again within this time are not run.
const SETTLE: Duration = Duration::from_millis(60);
/// A frame gives the worker about this long.
const FRAME: Duration = Duration::from_millis(8);
/// On the page, progress is drawn this often; where a frame is computed on the CPU, it takes the work's time.
const PROGRESS: Duration = Duration::from_millis(250);
const SOFTWARE_PROGRESS: Duration = Duration::from_millis(1000);
/// Answers kept for a view that asks again.
const KEPT_ANSWERS: usize = 32;

/// How the result for the newest settings stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stands {
    Running,
    Done,
    Cancelled,
    /// There is no input, or the device failed.
    Failed,
}

/// When the worker wants to be polled again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    Never,
    NextFrame,
    After(Duration),
}

/// The check of the device.
enum Check {
    /// Waits for its turn or runs. New settings go first, and then it starts over.
    Asked(Exam),
    Done(Checked),
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
    /// Asked by the views of the last frame, oldest first.
    asked: Vec<Question>,
    answers: Vec<(Question, Answer)>,
    answered: Option<Subject>,
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
            asked: Vec::new(),
            answers: Vec::new(),
            answered: None,
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

    /// Takes new settings, which must be valid; outcomes that they do not touch are kept.
    pub fn change(&mut self, settings: Settings) {
        if family(settings.method) == Method::Full {
            self.full_way = settings.method;
        }
        let input = self.stages().find(|stage| input_key(&stage.settings) == input_key(&settings));
        let input = input.and_then(|stage| stage.input.clone());
        let slots = FAMILIES.map(|method| {
            let key = key(&settings, method, self.full_way);
            let kept = |stage: &Stage| {
                let same = stage.input.as_ref().zip(input.as_ref()).is_some_and(|(a, b)| Rc::ptr_eq(a, b));
                let outcome = stage.slots[slot(method)].as_ref().ok()?;
                (same && outcome.settings == key).then(|| outcome.clone())
            };
            self.stages().find_map(kept).ok_or(Missing::Soon)
        });
        self.begin(Stage { settings, input, slots });
        self.due = Instant::now() + SETTLE;
    }

    /// The user's own picture, for `sample = own`.
    pub fn open(&mut self, picture: Picture) {
        self.own = Some(Rc::new(picture));
        let shows_own =
            |stage: &Stage| stage.settings.input == InputKind::Picture && stage.settings.sample == Sample::Own;
        if let Some(settings) = self.target().filter(|stage| shows_own(stage)).map(|stage| stage.settings.clone()) {
            self.begin(Stage { settings, input: None, slots: soon() });
        }
    }

    pub fn has_own(&self) -> bool {
        self.own.is_some()
    }

    fn begin(&mut self, stage: Stage) {
        self.task = None;
        self.failure = None;
        self.cancelled = false;
        // Other settings may fit.
        if matches!(self.fault, Some(Fault::OutOfMemory(_))) {
            self.gpu.forget_shortage();
            self.fault = None;
        }
        // A fit is one of the outcome that it starts from.
        if stage.slots[slot(Method::Linformer)].is_err() {
            self.berth.forget_fit();
        }
        self.next = Some(stage);
        self.settle();
    }

    fn stages(&self) -> impl Iterator<Item = &Stage> {
        self.next.iter().chain(&self.shown)
    }

    fn target(&self) -> Option<&Stage> {
        self.next.as_ref().or(self.shown.as_ref())
    }

    fn target_mut(&mut self) -> Option<&mut Stage> {
        self.next.as_mut().or(self.shown.as_mut())
    }

    /// Runs a method that was put off.
    pub fn run_now(&mut self, method: Method) {
        let Some(settings) = self.target().map(|stage| key(&stage.settings, method, self.full_way)) else { return };
        self.forced = Some(settings);
        // It goes first.
        self.task = None;
        self.resume();
    }

    /// Stops what runs; what there is stays.
    pub fn cancel(&mut self) {
        match self.task.take().map(|task| task.job) {
            Some(Job::Ask(question)) => self.keep(question, Answer::Failed(Text::Cancelled.get().to_owned())),
            Some(Job::Check) => self.check = None,
            _ => self.cancelled = true,
        }
    }

    /// Checks this device, once the newest settings have their result.
    pub fn check(&mut self, exam: Exam) {
        // It goes before the other methods.
        self.task = None;
        self.check = Some(Check::Asked(exam));
        self.resume();
    }

    /// True until the check that was asked for is done.
    pub fn is_checking(&self) -> bool {
        self.checking().is_some()
    }

    /// What it is checked on, until that is done.
    pub fn checking(&self) -> Option<&Exam> {
        if let Some(Check::Asked(exam)) = &self.check { Some(exam) } else { None }
    }

    /// What the last check found.
    pub fn checked(&self) -> Option<&Checked> {
        if let Some(Check::Done(checked)) = &self.check { Some(checked) } else { None }
    }

    /// Forgets what the last check found.
    pub fn forget_check(&mut self) {
        self.check = None;
    }

    /// Goes on after [`Session::cancel`].
    pub fn resume(&mut self) {
        self.cancelled = false;
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

    /// What went wrong with the device.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Why there is no input for the newest settings.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// True while the screen shows the result of earlier settings.
    pub fn is_old(&self) -> bool {
        self.next.is_some()
    }

    /// How the result for the newest settings stands.
    pub fn stands(&self) -> Stands {
        if self.fault.is_some() || self.failure.is_some() {
            Stands::Failed
        } else if self.cancelled {
            Stands::Cancelled
        } else if self.is_old() {
            Stands::Running
        } else {
            Stands::Done
        }
    }

    /// What runs, how far it is, and for how long one job has followed the other.
    pub fn running(&self) -> Option<(Job, &Progress, Duration)> {
        let busy = self.busy_since.map_or(Duration::ZERO, |since| since.elapsed());
        self.task.as_ref().map(|task| (task.job, &*task.progress, busy))
    }

    /// Questions of the frame that was just drawn; others are forgotten.
    pub fn ask(&mut self, questions: &[Question]) {
        self.asked.retain(|question| questions.contains(question));
        for question in questions {
            if !self.asked.contains(question) {
                self.asked.push(*question);
            }
        }
        if let Some(Task { job: Job::Ask(question), .. }) = &self.task
            && !self.asked.contains(question)
            && !question.is_seen_through()
        {
            self.task = None;
        }
    }

    pub fn answer(&self, question: Question) -> Option<Answer> {
        self.answers.iter().rev().find(|(known, _)| *known == question).map(|(_, answer)| answer.clone())
    }

    /// What the views look at; `None` before the first result.
    pub fn scene<'a>(&'a self, answer: &'a dyn Fn(Question) -> Option<Answer>) -> Option<Scene<'a>> {
        let stage = self.shown.as_ref()?;
        let outcome = |method: Method| match &stage.slots[slot(method)] {
            Ok(outcome) => Ok(outcome),
            Err(Missing::Soon) if self.cancelled => Err(&self.cancelled_slot),
            Err(missing) => Err(missing),
        };
        Some(Scene {
            settings: &stage.settings,
            input: stage.input.as_ref()?,
            method: family(stage.settings.method),
            full: outcome(Method::Full),
            lsh: outcome(Method::Lsh),
            linformer: outcome(Method::Linformer),
            answer,
            limits: self.gpu.limits,
            token: None,
            locked: false,
            head: 0,
            round: 0,
            adapter: &self.gpu.info.name,
            software: self.gpu.is_software(),
        })
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
        let question = self.asked.iter().rev().find(|question| self.answer(**question).is_none())?;
        let on_device = self.berthed.as_ref() == Some(&subject);
        if on_device { Some(Job::Ask(*question)) } else { (!self.cancelled).then_some(Job::Run(current)) }
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
                let answer = result.unwrap_or_else(|error| Answer::Failed(self.told(error)));
                self.keep(question, answer);
            }
            (_, Done::Checked(checked)) => self.check = Some(Check::Done(checked)),
            _ => {}
        }
        self.settle();
    }

    fn built(&mut self, result: Built) {
        let (input, picture) = match result {
            Ok(built) => built,
            Err(why) => {
                self.failure = Some(why);
                return;
            }
        };
        let Some(target) = self.target_mut() else { return };
        target.input = Some(Rc::new(input));
        let sample = target.settings.sample;
        if let Some(picture) = picture.filter(|_| sample != Sample::Own) {
            self.sample = Some((sample, picture));
        }
    }

    fn ran(&mut self, method: Method, result: Result<Run, LabError>) {
        let told = match result {
            Ok(run) => Ok(run),
            Err(error) => Err(self.told(error)),
        };
        let berth = self.berth.clone();
        let Some(target) = self.target_mut() else { return };
        let on_screen = family(target.settings.method) == method;
        let slot = &mut target.slots[slot(method)];
        let run = match told {
            Ok(run) => run,
            Err(why) => {
                *slot = Err(Missing::Failed(why));
                return;
            }
        };
        // A run that was repeated for its buffers alone changes nothing on the screen.
        if slot.is_err() {
            *slot = Ok(run.outcome.clone());
        }
        if on_screen {
            let subject = target.subject();
            berth.moor(Some(run));
            self.berthed = subject;
        }
    }

    /// The words of an error; a fault is remembered.
    fn told(&mut self, error: LabError) -> String {
        let words = error.to_string();
        if let LabError::Fault(fault) = error {
            self.fault = Some(fault);
        }
        words
    }

    fn keep(&mut self, question: Question, answer: Answer) {
        self.answers.retain(|(known, _)| !question.supersedes(known));
        if self.answers.len() >= KEPT_ANSWERS {
            let asked = &self.asked;
            let oldest = self.answers.iter().position(|(known, _)| !asked.contains(known)).unwrap_or(0);
            self.answers.remove(oldest);
        }
        self.answers.push((question, answer));
    }

    /// Puts off what takes long, lets the next stage take the screen over, and forgets answers about
    /// what is no longer there.
    fn settle(&mut self) {
        for method in FAMILIES {
            if let (Some(missing), Some(target)) = (self.judge(method), self.target_mut()) {
                target.slots[slot(method)] = Err(missing);
            }
        }
        let ready = |stage: &Stage| stage.input.is_some() && !matches!(stage.current(), Err(Missing::Soon));
        if self.next.as_ref().is_some_and(ready) {
            self.shown = self.next.take();
        }
        let subject = self.shown.as_ref().and_then(Stage::subject);
        if subject != self.answered {
            let holds = |answer: &Answer| !matches!(answer, Answer::Failed(_));
            self.answers.retain(|(question, answer)| question.stands_alone() && holds(answer));
            self.answered = subject;
        }
    }

    /// Whether a method is to wait until it is asked for; the pace is known better after each run, so
    /// it is judged again.
    fn judge(&self, method: Method) -> Option<Missing> {
        let target = self.target()?;
        let input = target.input.as_ref()?;
        if !matches!(target.slots[slot(method)], Err(Missing::Soon | Missing::PutOff { .. })) {
            return None;
        }
        let settings = key(&target.settings, method, self.full_way);
        let dims = input.problem.dims;
        let plan = lab::plan(&dims, &lab::measured(&settings, &dims), self.gpu.limits);
        // What is refused takes no time to say so.
        let ms = plan.map_or(0.0, |plan| self.gpu.estimate_ms(&plan));
        let limit = if method == Method::Full { PUT_OFF_MS } else { PUT_OFF_SPARSE_MS };
        let waits = ms > limit && self.forced.as_ref() != Some(&settings);
        Some(if waits { Missing::PutOff { seconds: ms / 1e3 } } else { Missing::Soon })
    }
}
