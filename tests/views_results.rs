//! The views of results, memory and comparison over runs on a software adapter, as pictures in
//! `target/screenshots` and as assertions on what they say.
#![cfg(not(target_arch = "wasm32"))]

mod pictures;

use attention_lab::app::scene::{Answer, Command, Missing, Question, Scene};
use attention_lab::app::views::{compare, format, memory, result};
use attention_lab::gpu::{Gpu, block_on, run::Progress};
use attention_lab::inputs::{self, Input, Picture, Shown, sample_bytes};
use attention_lab::lab::Run;
use attention_lab::outcome::Outcome;
use attention_lab::settings::{InputKind, Method, Sample, Settings};
use egui::{Role, ScrollArea, Theme, Ui, vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use pictures::save;
use std::cell::RefCell;
use std::rc::Rc;

/// What a scene borrows.
struct Stage {
    settings: Settings,
    input: Rc<Input>,
    /// Full attention, LSH attention, Linformer.
    runs: [Run; 3],
    outcomes: [Result<Rc<Outcome>, Missing>; 3],
    gpu: Gpu,
}

impl Stage {
    /// Runs the three methods.
    fn new(settings: Settings) -> Self {
        let gpu = pollster::block_on(Gpu::open(true)).expect("a software adapter");
        let picture = Picture::decode(sample_bytes(Sample::Astronaut).expect("shipped")).expect("a photograph");
        let input = Rc::new(block_on(&gpu, inputs::build(&settings, Some(&picture))).expect("an input"));
        let runs = [Method::Full, Method::Lsh, Method::Linformer].map(|method| {
            let settings = Settings { method, ..settings.clone() };
            block_on(&gpu, Run::new(&gpu, &settings, &input, &Progress::default())).expect("a run")
        });
        let outcomes = runs.each_ref().map(|run| Ok(run.outcome.clone()));
        Self { settings, input, runs, outcomes, gpu }
    }

    fn scene(&self, method: Method) -> Scene<'_> {
        let [full, lsh, linformer] = self.outcomes.each_ref().map(Result::as_ref);
        Scene {
            settings: &self.settings,
            input: &self.input,
            method,
            full,
            lsh,
            linformer,
            answer: &|_| None,
            limits: self.gpu.limits,
            token: None,
            locked: false,
            head: 0,
            round: 0,
            adapter: &self.gpu.info.name,
            software: true,
        }
    }
}

/// Draws a view on the four pages that it must fit, each with a state of its own.
fn pages<S: Default>(name: &str, show: impl Fn(&mut Ui, &mut S)) {
    for (width, height) in [(1280.0, 800.0), (390.0, 844.0)] {
        for theme in [Theme::Dark, Theme::Light] {
            let mut state = S::default();
            let view = |ui: &mut Ui| {
                ScrollArea::vertical().auto_shrink(false).show(ui, |ui| show(ui, &mut state));
            };
            let mut harness = Harness::builder().with_size(vec2(width, height)).with_theme(theme).wgpu().build_ui(view);
            harness.run();
            save(&mut harness, &format!("{name}-{width}-{theme:?}").to_lowercase());
        }
    }
}

/// The views of a stage on every page.
fn draw(stage: &Stage, name: &str, token: Option<u32>, answer: &dyn Fn(Question) -> Option<Answer>) {
    let mut scene = stage.scene(Method::Lsh);
    (scene.token, scene.locked, scene.answer) = (token, token.is_some(), answer);
    pages(&format!("memory-{name}"), |ui, state| memory::show(ui, &scene, state, &mut Vec::new()));
    pages(&format!("result-{name}"), |ui, state| result::show(ui, &scene, state, &mut Vec::new()));
    pages(&format!("compare-{name}"), |ui, state| compare::show(ui, &scene, state, &mut Vec::new()));
}

#[test]
fn a_picture() {
    let mut stage = Stage::new(Settings { n: 1024, ..Settings::default() });
    draw(&stage, "picture", Some(500), &|_| None);
    memory_names_every_buffer(&stage);
    a_patch_under_the_pointer_is_told(&stage);
    compare_shows_the_figures(&stage);
    stage.outcomes[0] = Err(Missing::PutOff { seconds: 42.0 });
    what_was_put_off_can_be_run(&stage);
}

fn memory_names_every_buffer(stage: &Stage) {
    for (method, outcome) in [Method::Full, Method::Lsh, Method::Linformer].into_iter().zip(&stage.outcomes) {
        let outcome = outcome.as_ref().expect("all three ran");
        let mut state = memory::State::default();
        let harness = Harness::new_ui(|ui| memory::show(ui, &stage.scene(method), &mut state, &mut Vec::new()));
        for buffer in &outcome.buffers {
            let words = format!("{} {} {}", buffer.name, format::shape(&buffer.shape), format::bytes(buffer.bytes));
            assert!(harness.query_by_label(&words).is_some(), "{words}");
        }
    }
}

fn a_patch_under_the_pointer_is_told(stage: &Stage) {
    let Shown::Picture(picture) = &stage.input.shown else { panic!("a picture was asked for") };
    let commands = RefCell::new(Vec::new());
    let mut state = result::State::default();
    let scene = stage.scene(Method::Lsh);
    let mut harness = Harness::builder()
        .with_size(vec2(1280.0, 800.0))
        .build_ui(|ui| result::show(ui, &scene, &mut state, &mut commands.borrow_mut()));
    harness.run();
    let rect = harness.get_by_role_and_label(Role::Image, "Error of Linformer").rect();
    let pointer = rect.lerp_inside(vec2(0.3, 0.7));
    harness.hover_at(pointer);
    harness.run();
    let expected = (0.7 * picture.rows as f32) as u32 * picture.cols + (0.3 * picture.cols as f32) as u32;
    assert!(commands.borrow().contains(&Command::Hover(expected)), "{:?}", commands.borrow());
}

fn compare_shows_the_figures(stage: &Stage) {
    let scene = stage.scene(Method::Lsh);
    let harness = Harness::new_ui(|ui| compare::show(ui, &scene, &mut compare::State, &mut Vec::new()));
    for outcome in stage.outcomes.iter().flatten() {
        for figure in [
            format::count(outcome.figures.pairs),
            format::percent(outcome.figures.share),
            format::number(outcome.figures.error_plain),
            format::time(outcome.ms),
            format::bytes(outcome.peak_bytes),
        ] {
            assert!(harness.query_all_by_label(&figure).next().is_some(), "{figure}");
        }
    }
}

/// Without full attention outputs are still drawn, errors are not, and a button runs it.
fn what_was_put_off_can_be_run(stage: &Stage) {
    let commands = RefCell::new(Vec::new());
    let mut state = result::State::default();
    let scene = stage.scene(Method::Lsh);
    let mut harness = Harness::builder()
        .with_size(vec2(1280.0, 800.0))
        .wgpu()
        .build_ui(|ui| result::show(ui, &scene, &mut state, &mut commands.borrow_mut()));
    harness.run();
    save(&mut harness, "result-put-off");
    assert!(harness.query_by_role_and_label(Role::Image, "Linformer").is_some());
    assert!(harness.query_by_label("Error of Linformer").is_none());
    harness.get_by_role(Role::Button).click();
    harness.run();
    assert!(commands.borrow().contains(&Command::RunNow(Method::Full)), "{:?}", commands.borrow());
}

#[test]
fn points_with_heads() {
    let stage = Stage::new(Settings { n: 1024, heads: 2, input: InputKind::Clusters, ..Settings::default() });
    draw(&stage, "points", None, &|_| None);
}

#[test]
fn the_duplication_task() {
    let stage = Stage::new(Settings { n: 1024, input: InputKind::Duplication, ..Settings::default() });
    let lsh = &stage.runs[1];
    let accuracy = |rounds| {
        block_on(&stage.gpu, lsh.accuracy(&stage.gpu, rounds, &Progress::default()))
            .expect("a run")
            .expect("the task has an accuracy")
    };
    // A run of its own answers as the run on the screen did, and more rounds find more.
    assert_eq!(Some(accuracy(stage.settings.rounds)), lsh.outcome.figures.accuracy);
    let known = [1, 2, 4, 8].map(|rounds| (rounds, accuracy(rounds)));
    assert!(known[3].1 > known[0].1, "{known:?}");
    let answer = |question| match question {
        Question::Accuracy { rounds } => {
            known.iter().find(|(other, _)| *other == rounds).map(|(_, accuracy)| Answer::Accuracy(Some(*accuracy)))
        }
        _ => None,
    };
    draw(&stage, "duplication", Some(700), &answer);
}
