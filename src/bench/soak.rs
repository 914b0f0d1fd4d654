//! A long game with the sliders on the worker of the app, at full speed, with an eye on memory.
//!
//! Settings change before a result came, half-way and after it; results are asked every question, and
//! left before the answer; runs are cancelled, resumed and forced. Every so often the worker comes to rest
//! on the settings that it began with, and memory is read: so all samples are of the same state.

use super::growth::{Sample, give_back, heap, resident};
use super::questions::{of_every_kind, question};
use super::{Draw, values};
use crate::app::job::Exam;
use crate::app::scene::{Answer, Missing, Question};
use crate::app::session::{Again, Session};
use crate::gpu::{Fault, Gpu};
use crate::inputs::{Picture, sample_bytes};
use crate::lab::Start;
use crate::lab::rank::EXACT_UP_TO;
use crate::methods::fit::Loss;
use crate::settings::{InputKind, KEYS, LayerAttention, Method, Sample as Photograph, Settings};
use std::time::{Duration, Instant};

/// A q of more bytes is not drawn: the game is about many changes.
const LARGEST_Q: u64 = 32 << 20;
/// The longest that the game waits for one result.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is played.
pub struct Soak {
    pub duration: Duration,
    pub seed: u32,
    /// Begins with these and rests on them.
    pub settings: Settings,
    /// Samples of memory, evenly over the time.
    pub samples: u32,
}

impl Soak {
    /// Plays and tells every sample.
    ///
    /// # Errors
    /// The fault that ended the game: no device should ever fail here.
    pub fn play(&self, gpu: Gpu, mut tell: impl FnMut(&Sample)) -> Result<Vec<Sample>, Fault> {
        let mut session = Session::new(gpu, self.settings.clone(), &egui::Context::default());
        if let Some(Ok(picture)) = sample_bytes(Photograph::Cat).map(Picture::decode) {
            session.open(picture);
        }
        let mut game =
            Game { session, draw: Draw::new(self.seed), settings: self.settings.clone(), count: Sample::default() };
        game.warm_up()?;
        let begun = Instant::now();
        let mut samples = Vec::new();
        for number in 1..=self.samples {
            let until = self.duration.mul_f64(f64::from(number) / f64::from(self.samples));
            loop {
                game.turn()?;
                if begun.elapsed() >= until {
                    break;
                }
            }
            game.rest(&self.settings)?;
            // A fit stays on the device until the next one begins: it is this one in every sample.
            let start = Start { head: 0, k: 64, loss: Loss::Output, rate: 100 };
            game.finish(&[Question::Fit { start, until: 1 }])?;
            let sample = Sample { seconds: begun.elapsed().as_secs_f64(), ..game.read() };
            tell(&sample);
            samples.push(sample);
        }
        Ok(samples)
    }
}

struct Game {
    session: Session,
    draw: Draw,
    settings: Settings,
    count: Sample,
}

impl Game {
    /// Runs every input at every width and answers every question once, so that what is compiled once and kept is no growth later.
    fn warm_up(&mut self) -> Result<(), Fault> {
        let mut begins = true;
        let of = |name: &str| KEYS.iter().find(|key| key.name == name).map(values).unwrap_or_default();
        for (input, d) in of("input").iter().flat_map(|input| of("d").into_iter().map(move |d| (input.clone(), d))) {
            for patch in of("patch") {
                let query = format!("n=64&input={input}&d={d}&patch={patch}");
                let Ok(settings) = Settings::from_query(&query) else { continue };
                // Only a picture has patches.
                if settings.input != InputKind::Picture && settings.patch != self.settings.patch {
                    continue;
                }
                for full in [Method::Full, Method::FullRowwise, Method::FullMaterialized] {
                    self.rest(&Settings { method: full, ..settings.clone() })?;
                }
                // The layers of a stack have an attention of their own.
                for (method, attention) in
                    [(Method::Lsh, LayerAttention::Full), (Method::Linformer, LayerAttention::Lsh)]
                {
                    let settings = Settings { method, attention, ..settings.clone() };
                    self.rest(&settings)?;
                    let mut questions = of_every_kind(&mut self.draw, &settings);
                    // Once is enough where the settings do not matter.
                    questions.retain(|question| begins || !question.stands_alone());
                    begins = false;
                    self.finish(&questions)?;
                }
            }
        }
        // Above a length the spectrum comes from products with many columns at once.
        for d in of("d") {
            let Ok(settings) = Settings::from_query(&format!("n={}&d={d}", EXACT_UP_TO + 1)) else { continue };
            self.rest(&settings)?;
            self.finish(&[Question::LowRank { head: 0, random: false }])?;
        }
        Ok(())
    }

    /// Somebody drags a slider, a change a frame, and then does something else.
    fn turn(&mut self) -> Result<(), Fault> {
        for _ in 0..=self.draw.below(12) {
            self.settings = self.drawn();
            self.session.change(self.settings.clone());
            self.count.moves += 1;
            self.frame_at_once()?;
        }
        match self.draw.below(8) {
            // Drags again at once, or half-way to the result.
            0 | 1 => Ok(()),
            2 => self.polls(30),
            3 => {
                self.polls(30)?;
                self.count.cancels += 1;
                self.session.cancel();
                if self.draw.once_in(2) {
                    self.session.resume();
                    self.polls(10)?;
                }
                Ok(())
            }
            4 => {
                self.session.check(Exam::Twins);
                self.polls(10)?;
                self.session.forget_check();
                Ok(())
            }
            _ => {
                self.wait(|session| !session.is_old())?;
                if self.session.is_old() {
                    return Ok(());
                }
                self.count.results += 1;
                self.force()?;
                self.questions()
            }
        }
    }

    /// One to three settings other than before, all of them allowed together.
    fn drawn(&mut self) -> Settings {
        loop {
            let mut settings = self.settings.clone();
            for _ in 0..=self.draw.below(3) {
                let key = match self.draw.below(2) {
                    0 => &KEYS[self.draw.below(KEYS.len() as u32) as usize],
                    _ => self.slider(),
                };
                let value = match key.name {
                    "n" => {
                        let longest = if self.draw.once_in(16) { 65_536 } else { 4096 };
                        self.draw.log_uniform(64, longest).to_string()
                    }
                    "rounds" => (1 + self.draw.below(16)).to_string(),
                    "buckets" => (2 * self.draw.log_uniform(1, 1024)).to_string(),
                    "k" => self.draw.log_uniform(1, settings.n).to_string(),
                    _ => {
                        let values = values(key);
                        values[self.draw.below(values.len() as u32) as usize].clone()
                    }
                };
                (key.set)(&mut settings, &value);
            }
            let q = u64::from(settings.n) * u64::from(settings.heads) * u64::from(settings.d) * 4;
            if settings != self.settings && q <= LARGEST_Q && settings.validate().is_ok() {
                return settings;
            }
        }
    }

    fn slider(&mut self) -> &'static crate::settings::Key {
        let name = ["n", "rounds", "buckets", "k"][self.draw.below(4) as usize];
        KEYS.iter().find(|key| key.name == name).unwrap_or(&KEYS[0])
    }

    /// Now and then runs what was put off, and leaves it.
    fn force(&mut self) -> Result<(), Fault> {
        let put_off =
            self.session.scene(&|_| None).is_some_and(|scene| matches!(scene.full, Err(Missing::PutOff { .. })));
        if put_off && self.draw.once_in(4) {
            self.session.run_now(Method::Full);
            self.polls(20)?;
        }
        Ok(())
    }

    /// Asks what the views ask about what is on the screen, waits for some of it and leaves the rest.
    fn questions(&mut self) -> Result<(), Fault> {
        let Some(shown) = self.session.scene(&|_| None).map(|scene| scene.settings.clone()) else { return Ok(()) };
        for _ in 0..self.draw.below(4) {
            let question = question(&mut self.draw, &shown);
            self.session.ask(&[question]);
            if self.draw.once_in(3) {
                self.polls(10)?;
            } else {
                self.wait(|session| session.answer(question).is_some())?;
            }
            let answered = self.session.answer(question).is_some_and(|answer| !matches!(answer, Answer::Failed(_)));
            self.count.answers += u64::from(answered);
        }
        self.session.ask(&[]);
        Ok(())
    }

    /// A few frames, at most so many.
    fn polls(&mut self, most: u32) -> Result<(), Fault> {
        (0..=self.draw.below(most)).try_for_each(|_| self.frame())
    }

    fn frame(&mut self) -> Result<(), Fault> {
        if let Again::After(wait) = self.session.poll() {
            std::thread::sleep(wait);
        }
        self.survive()
    }

    /// A frame of a program that is not asked to come back.
    fn frame_at_once(&mut self) -> Result<(), Fault> {
        self.session.poll();
        self.survive()
    }

    fn survive(&mut self) -> Result<(), Fault> {
        match self.session.fault() {
            // The device survives it, and the game goes on to settings that may fit.
            Some(Fault::OutOfMemory(_)) => {
                self.count.shortages += 1;
                self.session.change(self.settings.clone());
                Ok(())
            }
            Some(fault) => Err(fault.clone()),
            None => Ok(()),
        }
    }

    /// Frames until it is so, nothing is left to do or patience ends.
    fn wait(&mut self, done: impl Fn(&Session) -> bool) -> Result<(), Fault> {
        let begun = Instant::now();
        while !done(&self.session) && self.session.has_work() && begun.elapsed() < PATIENCE {
            self.frame()?;
        }
        Ok(())
    }

    /// Nothing to do any more, on these settings.
    fn rest(&mut self, settings: &Settings) -> Result<(), Fault> {
        self.settings = settings.clone();
        self.session.forget_check();
        self.session.change(settings.clone());
        // For an answer that is not known yet the buffers of the method are on the device, always.
        let query = self.draw.below(settings.n);
        self.finish(&[Question::Row { head: 0, query }])
    }

    /// Waits until everything is done, the answers too.
    fn finish(&mut self, questions: &[Question]) -> Result<(), Fault> {
        self.session.ask(questions);
        while self.session.has_work() {
            self.frame()?;
        }
        self.session.ask(&[]);
        Ok(())
    }

    /// Reads memory, once nothing is in flight.
    fn read(&self) -> Sample {
        let gpu = self.session.gpu();
        gpu.queue.submit([]);
        // A lost device has been seen before this.
        let _ = gpu.device.poll(wgpu::PollType::wait_indefinitely());
        let report = gpu.device.generate_allocator_report();
        give_back();
        Sample {
            heap: heap(),
            resident: resident(),
            ledger: gpu.ledger.bytes(),
            allocated: report.as_ref().map(|report| report.total_allocated_bytes),
            reserved: report.as_ref().map(|report| report.total_reserved_bytes),
            pipelines: gpu.pipelines_held() as u64,
            ..self.count
        }
    }
}
