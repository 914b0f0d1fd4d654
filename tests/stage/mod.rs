//! Scenes over runs on a software adapter, for views that are drawn alone.

#[path = "../pictures/mod.rs"]
mod pictures;

use attention_lab::app::scene::{Answer, Missing, Question, Scene};
use attention_lab::gpu::{Gpu, block_on, run::Progress};
use attention_lab::inputs::{self, Input, Picture, sample_bytes};
use attention_lab::lab::{LabError, Run};
use attention_lab::outcome::Outcome;
use attention_lab::settings::{Method, Sample, Settings};
use egui::{Event, Modifiers, MouseWheelSource, MouseWheelUnit, ScrollArea, Theme, TouchPhase, Ui, pos2, vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
pub use pictures::screenshot;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

pub const METHODS: [Method; 3] = [Method::Full, Method::Lsh, Method::Linformer];

/// What a scene borrows, and the device that answers questions.
pub struct Stage {
    pub settings: Settings,
    pub input: Rc<Input>,
    gpu: Gpu,
    /// Of [`METHODS`].
    runs: [RefCell<Run>; 3],
    answers: RefCell<HashMap<(usize, Question), Answer>>,
}

fn slot(method: Method) -> usize {
    METHODS.iter().position(|known| *known == method).unwrap_or(0)
}

impl Stage {
    /// Runs the three methods.
    pub fn new(settings: Settings) -> Self {
        let gpu = pollster::block_on(Gpu::open(true)).expect("a software adapter");
        let picture = Picture::decode(sample_bytes(Sample::Astronaut).expect("shipped")).expect("a photograph");
        let input = Rc::new(block_on(&gpu, inputs::build(&settings, Some(&picture))).expect("an input"));
        let runs = METHODS.map(|method| {
            let settings = Settings { method, ..settings.clone() };
            RefCell::new(block_on(&gpu, Run::new(&gpu, &settings, &input, &Progress::default())).expect("a run"))
        });
        Self { settings, input, gpu, runs, answers: RefCell::default() }
    }

    pub fn outcome(&self, method: Method) -> Rc<Outcome> {
        self.runs[slot(method)].borrow().outcome.clone()
    }

    fn compute(&self, method: Method, question: Question) -> Result<Answer, LabError> {
        let (gpu, progress) = (&self.gpu, Progress::default());
        let mut run = self.runs[slot(method)].borrow_mut();
        block_on(gpu, async {
            Ok(match question {
                Question::PairMap { head, window } => {
                    Answer::Map(Rc::new(run.pair_map(gpu, head, window, &progress).await?))
                }
                Question::WeightMap { which, head, window } => {
                    Answer::Map(Rc::new(run.weight_map(gpu, which, head, window, &progress).await?))
                }
                Question::Row { head, query } => Answer::Row(Rc::new(run.row(gpu, head, query, &progress).await?)),
                Question::Sparsity { head } => Answer::Sparsity(Rc::new(run.sparsity(gpu, head, &progress).await?)),
                Question::Strongest { head, count } => {
                    Answer::Strongest(Rc::new(run.strongest(gpu, head, count, &progress).await?))
                }
                Question::Accuracy { rounds } => Answer::Accuracy(run.accuracy(gpu, rounds, &progress).await?),
                other => panic!("these views do not ask {other:?}"),
            })
        })
    }

    /// The answer at once, computed when it is first asked for.
    pub fn answer(&self, method: Method, question: Question) -> Answer {
        let known = self.answers.borrow().get(&(slot(method), question)).cloned();
        known.unwrap_or_else(|| {
            let answer = self.compute(method, question).expect("an answer");
            self.answers.borrow_mut().insert((slot(method), question), answer.clone());
            answer
        })
    }

    /// Shows a scene of this stage; `answers` says whether the device answers.
    pub fn with_scene<R>(
        &self,
        method: Method,
        token: Option<u32>,
        answers: bool,
        look: impl FnOnce(&Scene<'_>) -> R,
    ) -> R {
        let outcomes = METHODS.map(|method| self.outcome(method));
        let [full, lsh, linformer] = outcomes.each_ref().map(Ok::<_, &Missing>);
        look(&Scene {
            settings: &self.settings,
            input: &self.input,
            method,
            full,
            lsh,
            linformer,
            answer: &|question| answers.then(|| self.answer(method, question)),
            limits: self.gpu.limits,
            token,
            locked: token.is_some(),
            head: 0,
            round: 0,
            adapter: &self.gpu.info.name,
            software: true,
        })
    }
}

/// To be changed where a test wants another one.
pub fn copy<'a>(scene: &Scene<'a>) -> Scene<'a> {
    Scene { ..*scene }
}

pub fn wheel(by: f32) -> Event {
    Event::MouseWheel {
        unit: MouseWheelUnit::Point,
        source: MouseWheelSource::Wheel,
        delta: vec2(0.0, by),
        phase: TouchPhase::Move,
        modifiers: Modifiers::NONE,
    }
}

/// What the controls leave of 1280 x 800, and a phone.
const PAGES: [(f32, f32); 2] = [(960.0, 700.0), (390.0, 844.0)];

/// Draws a view on the pages that it must fit, down to its end, after clicks on the named buttons; each page has
/// a state of its own.
pub fn pages<S: Default>(name: &str, clicks: &[&str], show: impl Fn(&mut Ui, &mut S)) {
    for (width, height) in PAGES {
        for theme in [Theme::Dark, Theme::Light] {
            let mut state = S::default();
            let view = |ui: &mut Ui| {
                ScrollArea::vertical().auto_shrink(false).show(ui, |ui| show(ui, &mut state));
            };
            let mut harness = Harness::builder().with_size(vec2(width, height)).with_theme(theme).wgpu().build_ui(view);
            harness.run();
            for click in clicks {
                // Reaches what lies below the page, too.
                harness.get_by_label(click).click_accesskit();
                harness.run();
            }
            let page = format!("{name}-{width}-{theme:?}").to_lowercase();
            screenshot(&mut harness, &page);
            for part in 2..=3 {
                // Over the title, which is not zoomed by the wheel.
                harness.hover_at(pos2(40.0, 20.0));
                harness.event(wheel(-height + 60.0));
                harness.run_steps(12);
                screenshot(&mut harness, &format!("{page}-{part}"));
            }
        }
    }
}
