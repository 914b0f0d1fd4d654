//! The views of results, memory and comparison over runs on a software adapter, as pictures in
//! `target/screenshots` and as assertions on what they say.
#![cfg(not(target_arch = "wasm32"))]

mod stage;

use attention_lab::app::scene::{Answer, Command, Missing, Question, Scene};
use attention_lab::app::views::{compare, format, memory, result};
use attention_lab::inputs::Shown;
use attention_lab::settings::{InputKind, Method, Settings};
use egui::{Role, Ui, vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use stage::{METHODS, Stage, copy, pages, screenshot};
use std::cell::RefCell;

/// The views of a stage on every page.
fn draw(stage: &Stage, name: &str, token: Option<u32>) {
    type Show<S> = fn(&mut Ui, &Scene<'_>, &mut S, &mut Vec<Command>);
    fn view<S: Default>(stage: &Stage, name: &str, token: Option<u32>, show: Show<S>) {
        pages(name, &[], |ui, state| {
            stage.with_scene(Method::Lsh, token, true, |scene| show(ui, scene, state, &mut Vec::new()));
        });
    }
    view(stage, &format!("memory-{name}"), token, memory::show);
    view(stage, &format!("result-{name}"), token, result::show);
    view(stage, &format!("compare-{name}"), token, |ui, scene, _: &mut (), commands| {
        compare::show(ui, scene, commands);
    });
}

#[test]
fn a_picture() {
    let stage = Stage::new(Settings { n: 1024, ..Settings::default() });
    draw(&stage, "picture", Some(500));
    memory_names_every_buffer(&stage);
    a_patch_under_the_pointer_is_told(&stage);
    compare_shows_the_figures(&stage);
    what_was_put_off_can_be_run(&stage);
}

fn memory_names_every_buffer(stage: &Stage) {
    for method in METHODS {
        let mut state = memory::State::default();
        let harness = Harness::new_ui(|ui| {
            stage.with_scene(method, None, true, |scene| memory::show(ui, scene, &mut state, &mut Vec::new()));
        });
        for buffer in &stage.outcome(method).buffers {
            let words = format!("{} {} {}", buffer.name, format::shape(&buffer.shape), format::bytes(buffer.bytes));
            assert!(harness.query_by_label(&words).is_some(), "{words}");
        }
    }
}

fn a_patch_under_the_pointer_is_told(stage: &Stage) {
    let Shown::Picture(picture) = &stage.input.shown else { panic!("a picture was asked for") };
    let commands = RefCell::new(Vec::new());
    let mut state = result::State::default();
    let mut harness = Harness::builder().with_size(vec2(1280.0, 800.0)).build_ui(|ui| {
        stage.with_scene(Method::Lsh, None, true, |scene| {
            result::show(ui, scene, &mut state, &mut commands.borrow_mut());
        });
    });
    harness.run();
    let rect = harness.get_by_role_and_label(Role::Image, "Error of Linformer").rect();
    let pointer = rect.lerp_inside(vec2(0.3, 0.7));
    harness.hover_at(pointer);
    harness.run();
    let expected = (0.7 * picture.rows as f32) as u32 * picture.cols + (0.3 * picture.cols as f32) as u32;
    assert!(commands.borrow().contains(&Command::Hover(expected)), "{:?}", commands.borrow());
}

fn compare_shows_the_figures(stage: &Stage) {
    let harness = Harness::new_ui(|ui| {
        stage.with_scene(Method::Lsh, None, true, |scene| compare::show(ui, scene, &mut Vec::new()));
    });
    for outcome in METHODS.map(|method| stage.outcome(method)) {
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
    let later = Missing::PutOff { seconds: 42.0 };
    let mut harness = Harness::builder().with_size(vec2(1280.0, 800.0)).wgpu().build_ui(|ui| {
        stage.with_scene(Method::Lsh, None, true, |scene| {
            let scene = Scene { full: Err(&later), ..copy(scene) };
            result::show(ui, &scene, &mut state, &mut commands.borrow_mut());
        });
    });
    harness.run();
    screenshot(&mut harness, "result-put-off");
    assert!(harness.query_by_role_and_label(Role::Image, "Linformer").is_some());
    assert!(harness.query_by_label("Error of Linformer").is_none());
    harness.get_by_role(Role::Button).click();
    harness.run();
    assert!(commands.borrow().contains(&Command::RunNow(Method::Full)), "{:?}", commands.borrow());
}

#[test]
fn points_with_heads() {
    let stage = Stage::new(Settings { n: 1024, heads: 2, input: InputKind::Clusters, ..Settings::default() });
    draw(&stage, "points", None);
}

#[test]
fn the_duplication_task() {
    let stage = Stage::new(Settings { n: 1024, input: InputKind::Duplication, ..Settings::default() });
    let accuracy = |rounds| match stage.answer(Method::Lsh, Question::Accuracy { rounds }) {
        Answer::Accuracy(Some(accuracy)) => accuracy,
        _ => panic!("the task has an accuracy"),
    };
    // A run of its own answers as the run on the screen did, and more rounds find more.
    assert_eq!(Some(accuracy(stage.settings.rounds)), stage.outcome(Method::Lsh).figures.accuracy);
    assert!(accuracy(8) > accuracy(1), "{} and {}", accuracy(8), accuracy(1));
    draw(&stage, "duplication", Some(700));
}
