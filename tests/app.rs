//! The program as its users meet it, on a software adapter, without a window.
#![cfg(not(target_arch = "wasm32"))]

mod window;

use attention_lab::app::App;
use attention_lab::app::scene::{Command, View};
use attention_lab::semantics::Choice;
use attention_lab::settings::{Arrangement, Hash, InputKind, Method, Sample, Settings};
use egui::accesskit::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use std::sync::Arc;
use window::{builder, open, screenshot, sees, settle, start, step_until};

const WIDE: [f32; 2] = [1280.0, 800.0];
const PHONE: [f32; 2] = [390.0, 844.0];

fn small() -> Settings {
    Settings { n: 256, d: 16, rounds: 2, k: Some(32), input: InputKind::Clusters, ..Settings::default() }
}

fn opened(settings: Settings) -> Harness<'static, App> {
    open(WIDE, egui::Theme::Dark, settings)
}

fn says(app: &Harness<'_, App>, words: &str) {
    assert!(app.state().summary().contains(words), "no \"{words}\" in: {}", app.state().summary());
}

fn says_not(app: &Harness<'_, App>, words: &str) {
    assert!(!app.state().summary().contains(words), "\"{words}\" in: {}", app.state().summary());
}

#[test]
fn starts_computes_and_then_rests() {
    let mut app = start(WIDE, egui::Theme::Dark, None);
    says(&app, "Computing the first result.");
    settle(&mut app);
    for words in ["Reformer on Picture", "n = 1,024", "rounds = 4", "share of", "Error ", "Recall ", "KiB"] {
        says(&app, words);
    }
    sees(&app, "chunked attention");
    sees(&app, "software adapter");
    // `run` fails when the app asks for more than a few frames.
    app.run();
    assert!(app.run() <= 2, "an idle app draws nothing");
    screenshot(&mut app, "shell_wide_dark");
}

#[test]
fn the_slider_of_the_length_gives_a_new_result() {
    let mut app = opened(small());
    says(&app, "n = 256");
    let chunk = app.state().settings().chunk_len();
    app.get_by_role_and_label(Role::Slider, "Sequence length n").focus();
    app.run();
    app.key_press(egui::Key::ArrowRight);
    app.step();
    assert_eq!(app.state().settings().n, 384);
    settle(&mut app);
    says(&app, "n = 384");
    says_not(&app, "n = 256");
    assert_eq!(app.state().settings().chunk_len(), chunk, "a change of n keeps the chunk length");
}

#[test]
fn every_slider_changes_its_setting() {
    let mut app = opened(small());
    let before = app.state().settings().clone();
    for name in ["Rounds", "Buckets", "Projected length k"] {
        app.get_by_role_and_label(Role::Slider, name).focus();
        app.step();
        app.key_press(egui::Key::ArrowRight);
        app.step();
    }
    let after = app.state().settings();
    assert_eq!(after.rounds, before.rounds + 1);
    assert!(after.bucket_count() > before.bucket_count());
    assert!(after.projected_len() > before.projected_len());
    assert_eq!(after.chunk_len(), (2 * after.n).div_ceil(after.bucket_count()).max(2));
}

#[test]
fn every_method_has_its_tab() {
    let mut app = opened(small());
    for (tab, words) in [("Full", "Full on Points"), ("Linformer", "k = 32"), ("Reformer", "rounds = 2")] {
        app.get_by_role_and_label(Role::Button, tab).click();
        settle(&mut app);
        says(&app, words);
    }
    app.get_by_role_and_label(Role::Button, "Compare").click();
    settle(&mut app);
}

#[test]
fn a_click_on_a_step_opens_its_view() {
    let mut app = opened(small());
    app.get_by_label_contains("chunked attention").click();
    settle(&mut app);
    assert_eq!(app.state().view(), View::Attention);
}

#[test]
fn a_token_locks_and_unlocks() {
    let mut app = opened(small());
    app.state_mut().obey(Command::Click(5));
    app.run();
    says(&app, "Token 5 is locked.");
    app.state_mut().obey(Command::Click(7));
    app.run();
    says(&app, "Token 7 is locked.");
    app.state_mut().obey(Command::Click(7));
    app.run();
    says_not(&app, "locked");
}

#[test]
fn what_cannot_run_is_said_and_the_last_result_stays() {
    let mut app = opened(small());
    let bad = Settings { hash: Hash::Factorised, buckets: Some(6), ..small() };
    app.state_mut().set(bad);
    settle(&mut app);
    sees(&app, "buckets = 6 cannot run, allowed is a multiple of 4");
    says(&app, "buckets = 8");
    app.state_mut().set(Settings { buckets: Some(12), hash: Hash::Factorised, ..small() });
    settle(&mut app);
    says(&app, "buckets = 12");
    says_not(&app, "cannot run");
}

#[test]
fn a_refusal_has_both_numbers() {
    let mut app = opened(small());
    app.state_mut().set(Settings { n: 65_536, method: Method::FullMaterialized, ..small() });
    step_until(&mut app, |app| app.state().summary().contains("no result"));
    says(&app, "16.0 GiB (17179869184 bytes), this device allows");
}

/// An address keeps such settings: 2 GiB of q alone are more than a page can ask for at once.
#[test]
fn an_input_that_host_memory_cannot_hold_is_refused_and_a_smaller_one_goes_on() {
    for input in [InputKind::Clusters, InputKind::Duplication, InputKind::Picture] {
        let large = Settings { input, n: 262_144, heads: 16, d: 128, ..small() };
        let mut app = start(WIDE, egui::Theme::Dark, Some(large.clone()));
        step_until(&mut app, |app| !app.state().is_busy());
        says(&app, "There is no input: q, k and v together take ");
        says(&app, "of host memory, and at most 1.0 GiB (1073741824 bytes) are kept there; choose a shorter sequence");
        assert_eq!(app.state().settings(), &large, "the settings stay");
        app.state_mut().set(Settings { n: 256, heads: 2, d: 16, ..large });
        settle(&mut app);
        says(&app, "n = 256");
        says_not(&app, "no input");
    }
}

#[test]
fn a_long_run_can_be_cancelled_and_run_again() {
    let mut app = opened(small());
    app.state_mut().set(Settings { n: 8192, d: 64, rounds: 16, ..small() });
    // On a slow machine it would wait to be asked.
    app.state_mut().obey(Command::RunNow(Method::Lsh));
    step_until(&mut app, |app| app.query_by_role_and_label(Role::Button, "Cancel").is_some());
    says(&app, "n = 256");
    says(&app, "A new result is being computed.");
    screenshot(&mut app, "shell_running");
    app.get_by_role_and_label(Role::Button, "Cancel").click();
    app.step();
    settle(&mut app);
    says(&app, "Cancelled.");
    screenshot(&mut app, "shell_cancelled");
    says(&app, "n = 256");
    assert_eq!(app.state().settings().n, 8192, "the settings stay");
    // The newest settings win over what was cancelled.
    app.state_mut().set(Settings { n: 512, ..small() });
    settle(&mut app);
    says(&app, "n = 512");
    says_not(&app, "Cancelled.");
}

#[test]
fn run_again_goes_on_after_a_cancel() {
    let mut app = opened(small());
    app.state_mut().set(Settings { n: 1024, ..small() });
    app.state_mut().obey(Command::Cancel);
    app.run();
    app.get_by_label("Run again").click();
    app.step();
    settle(&mut app);
    says(&app, "n = 1,024");
}

/// In the view of layers, whose button asks for what was cancelled, and by the button that stands above all views.
#[test]
fn a_cancelled_question_is_asked_again() {
    let layers = "input=clusters&method=reversible&n=256&d=16&rounds=2&layers=2";
    let mut app = opened(Settings::from_query(layers).expect(layers));
    let cancel = |app: &mut Harness<'_, App>, button: &str| {
        app.get_by_label(button).click();
        step_until(app, |app| app.state().is_busy());
        // It begins in the next frame.
        app.step();
        app.state_mut().obey(Command::Cancel);
        settle(app);
        sees(app, "Cancelled.");
    };
    cancel(&mut app, "Run forward and backward");
    sees(&app, "It was cancelled.");
    screenshot(&mut app, "shell_cancelled_question");
    app.run_steps(10);
    assert!(!app.state().is_busy(), "it went on by itself");
    cancel(&mut app, "Run forward and backward");
    app.get_by_label("Run forward and backward").click();
    settle(&mut app);
    sees(&app, "forward, layer 1");
    app.set_size(egui::vec2(1280.0, 3000.0));
    app.run();
    cancel(&mut app, "Measure over depth and chunks");
    app.get_by_label("Run again").click();
    settle(&mut app);
    sees(&app, "Parameters in host memory save");
    assert!(app.query_by_label("Run again").is_none());
}

#[test]
fn a_check_gives_way_to_new_settings_and_can_be_cancelled() {
    let mut app = opened(small());
    app.get_by_role_and_label(Role::Button, "Check this device").click();
    step_until(&mut app, |app| app.query_by_role_and_label(Role::Button, "Cancel").is_some());
    says(&app, "Checking this device.");
    app.state_mut().set(Settings { n: 300, ..small() });
    step_until(&mut app, |app| app.state().summary().contains("n = 300"));
    says(&app, "Checking this device.");
    step_until(&mut app, |app| app.query_by_role_and_label(Role::Button, "Cancel").is_some());
    app.get_by_role_and_label(Role::Button, "Cancel").click();
    app.step();
    settle(&mut app);
    says_not(&app, "Checking");
    says_not(&app, "Cancelled.");
    says(&app, "n = 300");
}

#[test]
fn exact_attention_that_takes_long_waits_to_be_asked() {
    let mut app = opened(small());
    let long = Settings { n: 65_536, d: 128, arrangement: Arrangement::Repeated, method: Method::Full, ..small() };
    app.state_mut().set(long);
    step_until(&mut app, |app| app.query_by_label("Run it now").is_some());
    says(&app, "put off");
    app.get_by_label("Run it now").click();
    step_until(&mut app, |app| app.query_by_label_contains("Full: full attention").is_some());
    app.get_by_role_and_label(Role::Button, "Cancel").click();
    app.step();
    settle(&mut app);
    says(&app, "Cancelled.");
}

#[test]
fn a_rejected_command_is_told_and_the_device_can_be_opened_again() {
    let mut device = None;
    let mut app = builder(WIDE, egui::Theme::Dark).build_eframe(|cc| {
        device = cc.wgpu_render_state.as_ref().map(|state| state.device.clone());
        App::with(cc, Some(small()), None)
    });
    settle(&mut app);
    let _ = device.expect("a device").create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: u64::MAX / 2,
        usage: wgpu::BufferUsages::STORAGE,
        mapped_at_creation: false,
    });
    app.run();
    sees(&app, "The graphics device rejected a command");
    says(&app, "The graphics device rejected a command");
    // What there was stays on the screen.
    says(&app, "n = 256");
    app.get_by_label("Open the device again").click();
    app.step();
    app.state_mut().set(Settings { n: 512, ..small() });
    settle(&mut app);
    says(&app, "n = 512");
    says_not(&app, "rejected");
}

#[derive(Debug)]
struct Dropped(&'static str, Vec<u8>);

impl egui::DroppedFile for Dropped {
    fn path(&self) -> &std::path::Path {
        self.0.as_ref()
    }

    fn bytes(&self) -> Result<Vec<u8>, String> {
        Ok(self.1.clone())
    }
}

#[test]
fn a_dropped_picture_becomes_the_input() {
    let mut app = opened(small());
    app.input_mut().dropped_files = vec![Arc::new(Dropped("notes.txt", b"no picture".to_vec()))];
    app.step();
    app.run();
    sees(&app, "neither PNG nor JPEG");
    says(&app, "Points on a sphere");
    app.get_by_label("Close").click();
    app.step();
    app.run();
    says_not(&app, "neither PNG nor JPEG");
    let picture = include_bytes!("../web/samples/cat.jpg").to_vec();
    app.input_mut().dropped_files = vec![Arc::new(Dropped("cat.jpg", picture))];
    app.step();
    settle(&mut app);
    says(&app, "Reformer on Picture: n = 256");
    assert_eq!(app.state().settings().sample, Sample::Own);
}

#[test]
fn the_users_own_picture_is_asked_for_when_there_is_none() {
    let mut app = opened(Settings { input: InputKind::Picture, sample: Sample::Own, ..small() });
    says(&app, "no picture has been opened");
    app.state_mut().set(Settings { input: InputKind::Duplication, ..small() });
    settle(&mut app);
    says(&app, "Duplication task");
    says(&app, "Accuracy ");
    says_not(&app, "no picture");
}

#[test]
fn the_newest_settings_win() {
    let mut app = opened(small());
    for n in [300, 400, 500, 600] {
        app.state_mut().set(Settings { n, ..small() });
        app.step();
    }
    settle(&mut app);
    says(&app, "n = 600");
}

#[test]
fn usable_on_a_phone() {
    for theme in [egui::Theme::Dark, egui::Theme::Light] {
        let name = if theme == egui::Theme::Dark { "dark" } else { "light" };
        let mut app = open(PHONE, theme, small());
        screenshot(&mut app, &format!("shell_phone_{name}"));
        app.get_by_label_contains("Settings").click();
        app.run();
        assert!(app.query_by_role_and_label(Role::Slider, "Rounds").is_some(), "the sliders unfold");
        screenshot(&mut app, &format!("shell_phone_{name}_unfolded"));
    }
}

/// Pictures of every view, to look at.
#[test]
fn every_view_opens_in_both_themes_and_sizes() {
    let mut app = start(WIDE, egui::Theme::Dark, None);
    settle(&mut app);
    for (size, theme, name) in [
        (WIDE, egui::Theme::Dark, "wide_dark"),
        (WIDE, egui::Theme::Light, "wide_light"),
        (PHONE, egui::Theme::Dark, "phone_dark"),
        (PHONE, egui::Theme::Light, "phone_light"),
    ] {
        app.set_size(size.into());
        app.ctx.set_theme(theme);
        for (view, _) in View::ALL.iter().copied() {
            app.state_mut().obey(Command::Open(view));
            app.step();
            settle(&mut app);
            assert_eq!(app.state().view(), view);
            screenshot(&mut app, &format!("app_{name}_{}", format!("{view:?}").to_lowercase()));
        }
    }
}

#[test]
fn light_and_unfolded() {
    let mut app = open(WIDE, egui::Theme::Light, Settings { heads: 2, ..small() });
    for section in ["Input options", "Shapes and seed", "Hashing", "Rules of attention", "Linformer's projection"] {
        app.get_by_label(section).click();
        app.run();
    }
    screenshot(&mut app, "shell_wide_light");
}
