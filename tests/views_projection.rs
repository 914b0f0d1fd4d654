//! The view of Linformer's projections on a software adapter, as pictures in `target/screenshots` and as
//! assertions on what it says.
#![cfg(not(target_arch = "wasm32"))]

mod window;

use attention_lab::app::App;
use attention_lab::app::scene::{Command, View};
use attention_lab::settings::{InputKind, Method, Projection, Settings, Sharing};
use egui::accesskit::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};
use window::{screenshot, sees, settle, step_until};

fn open(size: [f32; 2], theme: egui::Theme, settings: Settings) -> Harness<'static, App> {
    let mut app = window::open(size, theme, settings);
    app.state_mut().obey(Command::Open(View::Projection));
    settle(&mut app);
    app
}

/// Steps until some words are on the screen.
fn until(app: &mut Harness<'_, App>, words: &str) {
    step_until(app, |app| app.query_all_by_label_contains(words).next().is_some());
}

fn has_image(app: &Harness<'_, App>, name: &str) {
    assert!(app.query_by_role_and_label(Role::Image, name).is_some(), "no picture \"{name}\"");
}

fn linformer(projection: Projection) -> Settings {
    Settings { n: 256, d: 16, k: Some(32), method: Method::Linformer, projection, ..Settings::default() }
}

#[test]
fn pictures_a_fit_and_the_error_over_k() {
    // The shorter, since a fit of the map grows with the square of n.
    for (size, theme, name, n) in
        [([1280.0, 800.0], egui::Theme::Dark, "wide", 256), ([390.0, 844.0], egui::Theme::Light, "phone", 128)]
    {
        let mut app = open(size, theme, Settings { n, ..linformer(Projection::Gaussian) });
        has_image(&app, "E, which projects the keys");
        screenshot(&mut app, &format!("projection_{name}"));
        // Taller, so that every section stands on the screen.
        let tall = if size[0] > 600.0 { 2600.0 } else { 4300.0 };
        app.set_size(egui::vec2(size[0], tall));
        app.run();
        for picture in ["F, which projects the values", "P-bar F, which multiplies the values", "P, exact"] {
            has_image(&app, picture);
        }
        app.get_by_label("Fit").click();
        until(&mut app, "After ");
        app.get_by_label("Stop").click();
        settle(&mut app);
        has_image(&app, "E, fitted");
        has_image(&app, "P-bar F after the fit");
        app.get_by_label("Measure").click();
        settle(&mut app);
        sees(&app, "are off by");
        app.get_by_label("And fit 200 steps at each k").click();
        settle(&mut app);
        sees(&app, "Fitted to the output");
        sees(&app, "Fitted to the map");
        for count in ["288", "24", "12", "1"] {
            sees(&app, count);
        }
        screenshot(&mut app, &format!("projection_{name}_measured"));
    }
}

#[test]
fn the_bound_of_a_long_input_waits_to_be_asked_for() {
    let settings = Settings { n: 1100, d: 8, input: InputKind::Clusters, ..linformer(Projection::Mean) };
    let mut app = open([390.0, 4300.0], egui::Theme::Light, settings);
    app.get_by_label("Measure").click();
    settle(&mut app);
    sees(&app, "are off by");
    sees(&app, "The bound of the map is not drawn: at n = 1,100");
    // It comes from there, as what a randomised method can say.
    app.state_mut().obey(Command::Open(View::Rank));
    settle(&mut app);
    app.get_by_label("Compute").click();
    settle(&mut app);
    sees(&app, "The least of all matrices of this rank is at most that and at least");
    screenshot(&mut app, "rank_phone_randomised");
    app.state_mut().obey(Command::Open(View::Projection));
    settle(&mut app);
    sees(&app, "Lower end of the bound of the map");
    sees(&app, "the dashed line is the lower one");
    assert!(app.query_all_by_label_contains("is not drawn").next().is_none());
    screenshot(&mut app, "projection_phone_long");
}

#[test]
fn a_fit_stops_goes_on_and_is_cleared_by_new_settings() {
    let mut app = open([1280.0, 2600.0], egui::Theme::Light, linformer(Projection::Mean));
    has_image(&app, "E = F, which projects keys and values");
    app.get_by_label("Fit the map").click();
    app.run_steps(2);
    app.get_by_label("Fit").click();
    until(&mut app, "After ");
    app.get_by_label("Stop").click();
    settle(&mut app);
    sees(&app, "P-bar F after the fit");
    screenshot(&mut app, "projection_mean_fitted_map");
    app.get_by_label("Go on").click();
    app.run_steps(4);
    app.get_by_label("Stop").click();
    settle(&mut app);
    app.get_by_label("Start over").click();
    settle(&mut app);
    assert!(app.query_by_label("Go on").is_none());
    app.get_by_label("Fit").click();
    until(&mut app, "After ");
    let settings = Settings { k: Some(16), ..app.state().settings().clone() };
    app.state_mut().set(settings);
    settle(&mut app);
    assert!(app.query_all_by_label_contains("After ").next().is_none(), "new settings clear the fit");
    app.get_by_label("Fit");
}

fn says_not(app: &Harness<'_, App>, words: &str) {
    assert!(app.query_all_by_label_contains(words).next().is_none(), "\"{words}\" is on the screen");
}

/// The first look had not come when they changed.
#[test]
fn new_settings_clear_what_has_only_begun() {
    let mut app = open([1280.0, 2600.0], egui::Theme::Light, linformer(Projection::Mean));
    app.get_by_label("Fit").click();
    app.run_steps(2);
    let settings = Settings { k: Some(16), ..app.state().settings().clone() };
    app.state_mut().set(settings);
    settle(&mut app);
    app.get_by_label("Fit");
    says_not(&app, "After ");
    // A cancelled one leaves its sentence to the old settings alone.
    app.get_by_label("Fit").click();
    app.run_steps(2);
    app.state_mut().obey(Command::Cancel);
    app.run_steps(4);
    sees(&app, "It was cancelled.");
    app.get_by_label("Fit the map").click();
    settle(&mut app);
    says_not(&app, "It was cancelled.");
    app.get_by_label("Fit");
}

#[test]
fn an_error_below_the_axis_is_told_and_not_drawn() {
    // With a window for every token the mean is the token itself.
    let settings = Settings { n: 64, k: Some(64), input: InputKind::Clusters, ..linformer(Projection::Mean) };
    for (size, theme, name) in
        [([1280.0, 1900.0], egui::Theme::Dark, "wide"), ([390.0, 3400.0], egui::Theme::Light, "phone")]
    {
        let mut app = open(size, theme, settings.clone());
        app.get_by_label("Measure").click();
        settle(&mut app);
        sees(&app, "Below 0.1 %, where the axis ends, and so not drawn: ");
        sees(&app, "at k = 64, output ");
        screenshot(&mut app, &format!("projection_{name}_below_axis"));
    }
}

#[test]
fn pictures_of_a_long_input_say_what_they_leave_out() {
    let settings = Settings { n: 1100, d: 8, input: InputKind::Clusters, ..linformer(Projection::Gaussian) };
    let mut app = open([1280.0, 1600.0], egui::Theme::Dark, settings);
    sees(&app, "Sampled evenly: 32 of 32 rows, 512 of 1,100 columns.");
    for (picture, name) in [("E, which projects the keys", "matrix"), ("P, exact", "map")] {
        let end = app.get_by_role_and_label(Role::Image, picture).rect().right_bottom();
        app.hover_at(end - egui::vec2(0.1, 0.1));
        app.run_steps(30);
        // The last row that is drawn, not that under the pointer: of P every third is.
        sees(
            &app,
            if name == "map" { "row 1,098, sum of the 2 columns 1,098 to 1,099: " } else { "row 31, column 1,097: " },
        );
        screenshot(&mut app, &format!("projection_readout_{name}"));
    }
}

/// Steps of the fit on the screen.
fn steps(app: &Harness<'_, App>) -> u32 {
    let node = app.get_by_label_contains("After ").accesskit_node();
    let words = node.label().or(node.value()).unwrap_or_default();
    let count = words.split(' ').nth(1).unwrap_or_default().replace(',', "");
    count.parse().unwrap_or_else(|error| panic!("{error} in {words}"))
}

#[test]
fn a_fit_is_there_when_its_view_is_come_back_to() {
    let mut app = open([1280.0, 2600.0], egui::Theme::Light, linformer(Projection::Mean));
    app.get_by_label("Fit").click();
    until(&mut app, "After ");
    let before = steps(&app);
    // It runs while the view is left; no longer than what had begun.
    app.state_mut().obey(Command::Open(View::Attention));
    settle(&mut app);
    app.state_mut().obey(Command::Open(View::Projection));
    app.run_steps(2);
    let after = steps(&app);
    assert!(after >= before, "{before} steps, then {after}");
    app.get_by_label("Stop").click();
    settle(&mut app);
    let stopped = steps(&app);
    for view in [View::Result, View::Rank] {
        app.state_mut().obey(Command::Open(view));
        settle(&mut app);
    }
    app.state_mut().obey(Command::Open(View::Projection));
    settle(&mut app);
    assert_eq!(steps(&app), stopped);
    has_image(&app, "P-bar F after the fit");
    app.get_by_label("Go on");
}

#[test]
fn a_matrix_of_its_own_for_every_head() {
    let settings = Settings { heads: 2, sharing: Sharing::None, ..linformer(Projection::Convolution) };
    let mut app = open([1280.0, 1600.0], egui::Theme::Dark, settings);
    app.state_mut().obey(Command::ShowHead(1));
    settle(&mut app);
    has_image(&app, "F, which projects the values");
    app.get_by_label("Fit").click();
    until(&mut app, "After ");
    app.get_by_label("Stop").click();
    settle(&mut app);
    screenshot(&mut app, "projection_convolution");
}

#[test]
fn what_cannot_be_drawn_or_fitted_is_said() {
    let mut app = open([390.0, 2400.0], egui::Theme::Dark, linformer(Projection::Max));
    sees(&app, "no matrix E can be drawn");
    sees(&app, "no n × n map");
    screenshot(&mut app, "projection_max");
    let long = Settings { n: 2100, input: InputKind::Clusters, ..linformer(Projection::Mean) };
    app.state_mut().set(long);
    settle(&mut app);
    app.get_by_label("Fit the map").click();
    settle(&mut app);
    sees(&app, "The map is fitted up to n = 2,048");
}

#[test]
fn the_other_methods_lead_to_linformer() {
    let mut app =
        open([390.0, 844.0], egui::Theme::Light, Settings { method: Method::Lsh, ..linformer(Projection::Mean) });
    app.get_by_label("Show Linformer").click();
    settle(&mut app);
    assert_eq!(app.state().settings().method, Method::Linformer);
    assert_eq!(app.state().view(), View::Projection);
}
