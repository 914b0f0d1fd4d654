//! What is on the screen and what takes it over: new settings begin a [`Stage`], and keep of the others what
//! they do not touch.

use super::Session;
use crate::app::job::Built;
use crate::app::scene::Missing;
use crate::app::stage::{FAMILIES, Stage, family, key, shows_own, slot, soon};
use crate::gpu::Fault;
use crate::inputs::Picture;
use crate::lab::{self, LabError, Run};
use crate::settings::{Method, Sample, Settings};
use std::rc::Rc;
use std::time::Duration;
use web_time::Instant;

/// Exact attention that takes longer than this runs only when asked.
const PUT_OFF_MS: f64 = 3000.0;
/// The other two are what people came for: they wait only where a slider has made them quadratic.
const PUT_OFF_SPARSE_MS: f64 = 20_000.0;
/// Settings that change again within this time are not run.
const SETTLE: Duration = Duration::from_millis(60);

impl Session {
    /// Takes new settings, which must be valid; outcomes that they do not touch are kept.
    pub fn change(&mut self, settings: Settings) {
        if family(settings.method) == Method::Full {
            self.full_way = settings.method;
        }
        let input = self.stages().find(|stage| stage.has_input_of(&settings, self.own.as_ref()));
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
        self.begin(Stage { settings, own: self.own.clone(), input, slots });
        self.due = Instant::now() + SETTLE;
    }

    /// The user's own picture, for `sample = own`.
    pub fn open(&mut self, picture: Picture) {
        self.own = Some(Rc::new(picture));
        if let Some(settings) = self.target().map(|stage| stage.settings.clone()).filter(shows_own) {
            self.begin(Stage { settings, own: self.own.clone(), input: None, slots: soon() });
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

    pub(super) fn target(&self) -> Option<&Stage> {
        self.next.as_ref().or(self.shown.as_ref())
    }

    pub(super) fn target_mut(&mut self) -> Option<&mut Stage> {
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

    pub(super) fn built(&mut self, result: Built) {
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

    pub(super) fn ran(&mut self, method: Method, result: Result<Run, LabError>) {
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

    /// Puts off what takes long, lets the next stage take the screen over, and forgets answers about
    /// what is no longer there.
    pub(super) fn settle(&mut self) {
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
        self.answers.turn_to(subject);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::Gpu;
    use crate::inputs::Shown;
    use crate::settings::InputKind;
    use image::{Rgb, RgbImage};

    /// Nothing but this colour.
    fn picture(colour: [u8; 3]) -> Picture {
        Picture::new(RgbImage::from_pixel(8, 8, Rgb(colour)))
    }

    fn own(n: u32) -> Settings {
        let input = InputKind::Picture;
        Settings { input, sample: Sample::Own, n, d: 4, rounds: 1, k: Some(4), ..Settings::default() }
    }

    const A: [u8; 3] = [200, 0, 0];
    const B: [u8; 3] = [0, 0, 200];

    fn settle(session: &mut Session) {
        while session.has_work() {
            session.poll();
        }
    }

    /// A session that shows picture A of 16 tokens.
    fn session() -> Session {
        let gpu = pollster::block_on(Gpu::open(true)).expect("a software Vulkan driver");
        let mut session = Session::new(gpu, own(16), &egui::Context::default());
        session.open(picture(A));
        settle(&mut session);
        assert_eq!(shown(&session), (16, A));
        session
    }

    fn shown(session: &Session) -> (u32, [u8; 3]) {
        let input = session.shown.as_ref().and_then(|stage| stage.input.as_ref()).expect("an input");
        let Shown::Picture(picture) = &input.shown else { panic!("no picture") };
        let [r, g, b, _] = picture.photograph().get_pixel(0, 0).0;
        (picture.n, [r, g, b])
    }

    #[test]
    fn a_picture_is_not_lost_to_the_one_before_when_a_setting_goes_and_comes_back() {
        let mut session = session();
        session.open(picture(B));
        session.change(own(24));
        session.change(own(16));
        settle(&mut session);
        assert_eq!(shown(&session), (16, B));
        // What is of the same picture is kept.
        let input = session.shown.as_ref().and_then(|stage| stage.input.clone()).expect("an input");
        session.change(Settings { rounds: 2, ..own(16) });
        assert!(
            session.next.as_ref().and_then(|stage| stage.input.as_ref()).is_some_and(|next| Rc::ptr_eq(next, &input))
        );
    }

    #[test]
    fn a_picture_is_not_lost_to_the_one_before_when_it_is_opened_on_the_way_to_another_input() {
        let mut session = session();
        session.change(Settings { sample: Sample::Astronaut, ..own(16) });
        session.open(picture(B));
        session.change(own(16));
        settle(&mut session);
        assert_eq!(shown(&session), (16, B));
    }
}
