//! The views of buckets and attention over runs on a software adapter, as pictures in
//! `target/screenshots` and as assertions on what they say and ask.

mod pictures;

use attention_lab::app::scene::{Answer, Command, Missing, Question, Scene};
use attention_lab::app::views::{attention, buckets};
use attention_lab::gpu::{Gpu, block_on, run::Progress};
use attention_lab::inputs::{self, Input, Picture, sample_bytes};
use attention_lab::lab::{LabError, Run};
use attention_lab::methods::measure::Window;
use attention_lab::settings::{InputKind, Method, Sample, Settings};
use egui::{Event, Modifiers, MouseWheelSource, MouseWheelUnit, Role, ScrollArea, Theme, TouchPhase, Ui, pos2, vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use pictures::save;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// What a scene borrows, and the device that answers questions.
struct Stage {
    settings: Settings,
    input: Rc<Input>,
    gpu: Gpu,
    /// Full attention, LSH attention, Linformer.
    runs: [RefCell<Run>; 3],
    answers: RefCell<HashMap<(usize, Question), Answer>>,
}

fn slot(method: Method) -> usize {
    match method {
        Method::Lsh => 1,
        Method::Linformer => 2,
        _ => 0,
    }
}

impl Stage {
    fn new(settings: Settings) -> Self {
        let gpu = pollster::block_on(Gpu::open(true)).expect("a software adapter");
        let picture = Picture::decode(sample_bytes(Sample::Astronaut).expect("shipped")).expect("a photograph");
        let input = Rc::new(block_on(&gpu, inputs::build(&settings, Some(&picture))).expect("an input"));
        let runs = [Method::Full, Method::Lsh, Method::Linformer].map(|method| {
            let settings = Settings { method, ..settings.clone() };
            RefCell::new(block_on(&gpu, Run::new(&gpu, &settings, &input, &Progress::default())).expect("a run"))
        });
        Self { settings, input, gpu, runs, answers: RefCell::default() }
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
                other => panic!("these views do not ask {other:?}"),
            })
        })
    }

    /// The answer at once, computed when it is first asked for.
    fn answer(&self, method: Method, question: Question) -> Answer {
        let known = self.answers.borrow().get(&(slot(method), question)).cloned();
        known.unwrap_or_else(|| {
            let answer = self.compute(method, question).expect("an answer");
            self.answers.borrow_mut().insert((slot(method), question), answer.clone());
            answer
        })
    }

    /// Shows a scene of this stage; `answers` says whether the device answers.
    fn with_scene<R>(
        &self,
        method: Method,
        token: Option<u32>,
        answers: bool,
        look: impl FnOnce(&Scene<'_>) -> R,
    ) -> R {
        let outcomes = self.runs.each_ref().map(|run| run.borrow().outcome.clone());
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

fn wheel(by: f32) -> Event {
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

/// Draws a view on the pages that it must fit, down to its end, after clicks on the named buttons.
fn pages<S: Default>(name: &str, clicks: &[&str], show: impl Fn(&mut Ui, &mut S)) {
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
            save(&mut harness, &page);
            for part in 2..=3 {
                // Over the title, which is not zoomed by the wheel.
                harness.hover_at(pos2(40.0, 20.0));
                harness.event(wheel(-height + 60.0));
                harness.run_steps(12);
                save(&mut harness, &format!("{page}-{part}"));
            }
        }
    }
}

#[test]
fn a_picture() {
    let stage = Stage::new(Settings { n: 1024, ..Settings::default() });
    let draw_buckets = |name: &str, method, token| {
        pages(name, &[], |ui, state| {
            stage.with_scene(method, token, true, |scene| buckets::show(ui, scene, state, &mut Vec::new()));
        });
    };
    draw_buckets("buckets-picture", Method::Lsh, None);
    draw_buckets("buckets-picture-token", Method::Full, Some(430));
    let draw_attention = |name: &str, method, token, clicks: &[&str]| {
        pages(name, clicks, |ui, state| {
            stage.with_scene(method, token, true, |scene| attention::show(ui, scene, state, &mut Vec::new()));
        });
    };
    draw_attention("attention-lsh", Method::Lsh, Some(430), &["top 32 keys"]);
    draw_attention("attention-lsh-weights", Method::Lsh, None, &["Weights used"]);
    draw_attention("attention-linformer", Method::Linformer, Some(430), &[]);
    draw_attention("attention-full", Method::Full, Some(430), &["Exact weights", "logarithmic colours"]);
}

/// Shows a view without a token and hands over what it asked for and told, over all frames.
fn touch<S: Default>(
    stage: &Stage,
    method: Method,
    show: impl Fn(&mut Ui, &Scene<'_>, &mut S, &mut Vec<Command>),
    test: impl FnOnce(&mut Harness<'_>, &RefCell<Vec<Command>>),
) {
    let commands = RefCell::new(Vec::new());
    let mut state = S::default();
    let mut harness = Harness::builder().with_size(vec2(960.0, 800.0)).build_ui(|ui| {
        stage.with_scene(method, None, true, |scene| show(ui, scene, &mut state, &mut commands.borrow_mut()));
    });
    harness.run();
    test(&mut harness, &commands);
}

fn last_window(commands: &RefCell<Vec<Command>>) -> Window {
    let window = |command: &Command| match command {
        Command::Ask(Question::PairMap { window, .. }) => Some(*window),
        _ => None,
    };
    commands.borrow().iter().rev().find_map(window).expect("a map was asked for")
}

#[test]
fn the_map_zooms_around_the_pointer_and_tells_the_query() {
    let stage = Stage::new(Settings { n: 300, input: InputKind::Clusters, ..Settings::default() });
    touch(&stage, Method::Lsh, attention::show, |harness, commands| {
        assert_eq!(last_window(commands), Window::whole(300, 300));
        let map = harness.get_by_role_and_label(Role::Image, "Map of the attention matrix").rect();
        harness.hover_at(map.lerp_inside(vec2(0.25, 0.505)));
        harness.run();
        assert!(commands.borrow().contains(&Command::Hover(151)), "{:?}", commands.borrow());
        harness.event(wheel(400.0));
        harness.run_steps(12);
        let zoomed = last_window(commands);
        assert!(zoomed.col_count < 200 && zoomed.row_count < 200, "{zoomed:?}");
        let key = zoomed.col_start as f32 + 0.25 * zoomed.col_count as f32;
        assert!((key - 75.0).abs() < 2.0, "what is under the pointer stays: {zoomed:?}");
        harness.get_by_label("Whole matrix").click();
        harness.run();
        assert_eq!(last_window(commands), Window::whole(300, 300));
    });
}

#[test]
fn buckets_of_every_input_are_named() {
    for input in [InputKind::Clusters, InputKind::Duplication] {
        let stage = Stage::new(Settings { n: 300, heads: 2, input, ..Settings::default() });
        let name = format!("{input:?}").to_lowercase();
        pages(&format!("buckets-{name}"), &[], |ui, state| {
            stage.with_scene(Method::Lsh, Some(37), true, |scene| buckets::show(ui, scene, state, &mut Vec::new()));
        });
        pages(&format!("attention-{name}"), &["top 32 keys"], |ui, state| {
            stage.with_scene(Method::Lsh, Some(237), true, |scene| attention::show(ui, scene, state, &mut Vec::new()));
        });
        let outcome = stage.runs[1].borrow().outcome.clone();
        let lists = outcome.lists.as_ref().expect("LSH attention sorts");
        let bucket = lists.of(&lists.buckets, 300, 0, 0)[37];
        let others = lists.sizes(300, 0, 0)[bucket as usize] - 1;
        touch(
            &stage,
            Method::Lsh,
            |ui, scene, state: &mut buckets::State, commands| {
                buckets::show(ui, &Scene { token: Some(37), ..copy(scene) }, state, commands);
            },
            |harness, _| {
                let words = format!("Token 37 is in bucket {bucket} with {others} others");
                assert!(harness.query_by_label_contains(&words).is_some(), "{words}");
            },
        );
    }
}

/// The harness fails a view that asks for frames while nothing changes.
#[test]
fn a_view_that_waits_says_so_and_draws_no_frames() {
    let stage = Stage::new(Settings { n: 2000, input: InputKind::Clusters, ..Settings::default() });
    for method in [Method::Full, Method::Lsh, Method::Linformer] {
        let mut state = attention::State::default();
        let mut harness = Harness::builder().with_size(vec2(960.0, 800.0)).build_ui(|ui| {
            stage.with_scene(method, Some(7), false, |scene| attention::show(ui, scene, &mut state, &mut Vec::new()));
        });
        harness.run();
        assert!(harness.query_by_label("The weights of this query are being computed.").is_some());
        assert!(harness.query_by_label("The curve is being computed.").is_some());
    }
    let commands = RefCell::new(Vec::new());
    let mut state = buckets::State::default();
    let later = Missing::PutOff { seconds: 9.0 };
    let mut harness = Harness::builder().with_size(vec2(960.0, 800.0)).build_ui(|ui| {
        stage.with_scene(Method::Lsh, None, false, |scene| {
            buckets::show(ui, &Scene { lsh: Err(&later), ..copy(scene) }, &mut state, &mut commands.borrow_mut());
        });
    });
    harness.run();
    harness.get_by_role(Role::Button).click();
    harness.run();
    assert!(commands.borrow().contains(&Command::RunNow(Method::Lsh)));
    // More tokens than ribbons.
    pages("buckets-many", &[], |ui, state| {
        stage.with_scene(Method::Lsh, None, true, |scene| buckets::show(ui, scene, state, &mut Vec::new()));
    });
}

#[test]
fn one_token_is_drawn_and_attends_to_itself() {
    let stage = Stage::new(Settings { n: 1, input: InputKind::Clusters, ..Settings::default() });
    for method in [Method::Full, Method::Lsh, Method::Linformer] {
        let look = |ui: &mut Ui, scene: &Scene<'_>, state: &mut attention::State, commands: &mut Vec<Command>| {
            attention::show(ui, &Scene { token: Some(0), ..copy(scene) }, state, commands);
        };
        touch(&stage, method, look, |harness, _| {
            let words = "Its 1 strongest keys hold 100 %";
            assert!(harness.query_by_label_contains(words).is_some(), "{method:?}");
        });
        touch(&stage, method, buckets::show, |harness, _| {
            assert!(harness.query_by_label_contains("no pair of one bucket is lost").is_some());
        });
    }
}

fn copy<'a>(scene: &Scene<'a>) -> Scene<'a> {
    Scene { ..*scene }
}
