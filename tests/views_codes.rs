//! The view of published codes on a software adapter, as pictures in `target/screenshots` and as
//! assertions on what it says.
#![cfg(not(target_arch = "wasm32"))]

mod window;

use attention_lab::app::App;
use attention_lab::app::scene::{Command, View};
use attention_lab::presets::{PRESETS, Preset};
use attention_lab::settings::{InputKind, Method, Settings};
use egui::accesskit::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use window::{screenshot, sees, settle};

fn open(size: [f32; 2], theme: egui::Theme, settings: Settings) -> Harness<'static, App> {
    let mut app = window::open(size, theme, settings);
    app.state_mut().obey(Command::Open(View::Codes));
    settle(&mut app);
    app
}

const SECTIONS: [(&str, &str); 3] = [
    ("Who moved my chunk?", "distance of an output from what it was"),
    ("Why Q = K?", "hold queries and not one key"),
    ("Union or intersection of rounds?", "intersection)"),
];

#[test]
fn codes_side_by_side_and_three_questions() {
    // Queries that see any bucket notice every border that moves.
    let mut settings = Settings { n: 576, ..Settings::default() };
    Preset::find("reformer-pytorch").expect("a preset").apply(&mut settings);
    for (size, name) in [([1280.0, 800.0], "wide"), ([390.0, 844.0], "phone")] {
        let mut app = open(size, egui::Theme::Dark, settings.clone());
        for preset in &PRESETS {
            sees(&app, preset.title);
            assert!(app.query_by_role_and_label(Role::Image, preset.title).is_some(), "no output of {}", preset.title);
        }
        sees(&app, "in use");
        screenshot(&mut app, &format!("codes_{name}"));
        // Taller, so that every section stands on the screen.
        app.set_size(egui::vec2(size[0], 2600.0));
        app.run();
        for (section, words) in SECTIONS {
            app.get_by_label(section).click();
            settle(&mut app);
            sees(&app, words);
        }
        screenshot(&mut app, &format!("codes_{name}_unfolded"));
    }
}

#[test]
fn the_rules_of_a_code_can_be_taken() {
    let mut app =
        open([1280.0, 800.0], egui::Theme::Light, Settings { n: 256, d: 16, rounds: 2, ..Settings::default() });
    let buttons: Vec<_> = app.query_all_by_label("Use these rules").collect();
    assert_eq!(buttons.len(), 2, "the third is in use");
    buttons[1].click();
    settle(&mut app);
    let now = Preset::of(app.state().settings()).map(|preset| preset.name);
    assert_eq!(now, Some("hugging-face"));
    assert!(app.state().summary().contains("Rules of Hugging Face."), "{}", app.state().summary());
    screenshot(&mut app, "codes_wide_light");
}

/// The advice is one that can help: neither of these rules keeps queries to their bucket.
#[test]
fn why_nothing_moved_depends_on_the_rules() {
    let mut settings =
        Settings { d: 16, rounds: 1, chunk: Some(64), input: InputKind::Clusters, ..Settings::default() };
    Preset::find("reformer-pytorch").expect("a preset").apply(&mut settings);
    // Of two chunks each sees the other, since the first looks back to the last of the round before, here its own.
    for (n, words) in [(64, "One chunk holds every token"), (128, "Here every query, which sees any bucket")] {
        let mut app = open([1280.0, 1600.0], egui::Theme::Light, Settings { n, ..settings.clone() });
        app.get_by_label("Who moved my chunk?").click();
        settle(&mut app);
        sees(&app, words);
        assert!(app.query_all_by_label_contains("no pair of one bucket").next().is_none());
        screenshot(&mut app, &format!("codes_nothing_moved_{n}"));
    }
}

#[test]
fn a_short_sequence_says_that_full_attention_ran() {
    let mut settings = Settings { n: 64, d: 16, rounds: 2, ..Settings::default() };
    Preset::find("hugging-face").expect("a preset").apply(&mut settings);
    // High, so that every section stands on the screen.
    let mut app = open([1280.0, 1600.0], egui::Theme::Dark, settings);
    sees(&app, "Hugging Face alone turns to full attention");
    assert!(app.state().summary().contains("full attention ran instead of LSH attention"), "{}", app.state().summary());
    for (section, _) in SECTIONS {
        app.get_by_label(section).click();
        settle(&mut app);
    }
    sees(&app, "Full attention ran instead of LSH attention");
    sees(&app, "without a sort no earlier output can move");
    screenshot(&mut app, "codes_short");
    for view in [View::Buckets, View::Attention, View::Result, View::Memory, View::Compare] {
        app.state_mut().obey(Command::Open(view));
        settle(&mut app);
        assert_eq!(app.state().view(), view);
    }
}

#[test]
fn the_other_methods_lead_to_reformer() {
    let settings = Settings { n: 256, d: 16, method: Method::Linformer, ..Settings::default() };
    let mut app = open([390.0, 844.0], egui::Theme::Light, settings);
    app.get_by_label("Show Reformer").click();
    settle(&mut app);
    assert_eq!(app.state().settings().method, Method::Lsh);
    assert_eq!(app.state().view(), View::Codes);
}
