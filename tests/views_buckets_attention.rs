//! The views of buckets and attention over runs on a software adapter, as pictures in
//! `target/screenshots` and as assertions on what they say and ask.

mod stage;

use attention_lab::app::scene::{Command, Missing, Question, Scene};
use attention_lab::app::views::{attention, buckets};
use attention_lab::methods::measure::Window;
use attention_lab::settings::{InputKind, Method, Settings};
use egui::{Role, Ui, vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use stage::{METHODS, Stage, copy, pages, wheel};
use std::cell::RefCell;

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
        let outcome = stage.outcome(Method::Lsh);
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
    for method in METHODS {
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
    for method in METHODS {
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
