//! The view of the low rank on a software adapter, as pictures in `target/screenshots` and as assertions on what it
//! says.
#![cfg(not(target_arch = "wasm32"))]

mod window;

use attention_lab::app::App;
use attention_lab::app::scene::{Command, View};
use attention_lab::settings::{InputKind, Settings};
use egui::accesskit::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use window::{screenshot, sees, settle};

fn open(size: [f32; 2], theme: egui::Theme, settings: Settings) -> Harness<'static, App> {
    let mut app = window::open(size, theme, settings);
    app.state_mut().obey(Command::Open(View::Rank));
    settle(&mut app);
    app
}

const SIZES: [([f32; 2], &str); 2] = [([1280.0, 800.0], "wide"), ([390.0, 844.0], "phone")];

#[test]
fn a_picture_beside_random_q_and_k() {
    for (size, name) in SIZES {
        for (theme, shade) in [(egui::Theme::Dark, "dark"), (egui::Theme::Light, "light")] {
            let mut app = open(size, theme, Settings { n: 256, d: 16, ..Settings::default() });
            assert!(app.state().summary().contains("The view Rank is open."), "{}", app.state().summary());
            assert!(app.state().summary().contains("Rank for 90 % of the sum of the singular values: "));
            sees(&app, "All 256 singular values of P");
            sees(&app, "random Q and K");
            screenshot(&mut app, &format!("rank_{name}_{shade}"));
            app.set_size(egui::vec2(size[0], 2400.0));
            app.run();
            assert!(app.query_by_label("...").is_none(), "every figure has its baseline");
            sees(&app, "r = 16: norm(P - P_r) / norm(P)");
            for picture in ["P", "sum of the first 16 parts"] {
                assert!(app.query_by_role_and_label(Role::Image, picture).is_some(), "no picture {picture}");
            }
            screenshot(&mut app, &format!("rank_{name}_{shade}_whole"));
        }
    }
}

#[test]
fn trained_heads_and_the_plane() {
    for (size, name) in SIZES {
        let theme = if name == "wide" { egui::Theme::Light } else { egui::Theme::Dark };
        let mut app = open(
            [size[0], 2600.0],
            theme,
            Settings { input: InputKind::Clusters, n: 128, d: 16, ..Settings::default() },
        );
        app.get_by_label("Heads of a trained model").click();
        settle(&mut app);
        app.get_by_label("Eigenvalues and singular values, on a 2 × 2 matrix").click();
        settle(&mut app);
        let map = "Normalised cumulative sum at index n / 4 by layer and head";
        assert!(app.query_by_role_and_label(Role::Image, map).is_some(), "no heat map");
        for (matrix, words) in [
            ("symmetric", "its spectral decomposition"),
            ("turn", "Complex eigenvalues, 0.8 ± 0.9 i"),
            ("shear", "A is defective"),
        ] {
            app.get_by_label(matrix).click();
            app.run();
            sees(&app, words);
        }
        // A drag of an image of a basis vector makes another matrix.
        let tip = app.get_by_label("A e2").rect().center();
        app.drag_at(tip);
        app.step();
        app.hover_at(tip + egui::vec2(-50.0, 40.0));
        app.step();
        app.drop_at(tip + egui::vec2(-50.0, 40.0));
        app.run();
        assert!(app.query_all_by_label_contains("A is defective").next().is_none());
        screenshot(&mut app, &format!("rank_{name}_sections"));
    }
}

#[test]
fn a_long_sequence_waits_until_it_is_asked_for() {
    let mut app = open(
        [1280.0, 1700.0],
        egui::Theme::Dark,
        Settings { input: InputKind::Clusters, n: 1100, d: 8, ..Settings::default() },
    );
    sees(&app, "P is too large to be decomposed whole");
    screenshot(&mut app, "rank_wide_put_off");
    app.get_by_label("Compute").click();
    app.run_steps(2);
    sees(&app, "The leading singular values of P are being found from 8 products");
    settle(&mut app);
    sees(&app, "leading singular values of P, 1,100 × 1,100");
    sees(&app, "Halko, Martinsson and Tropp");
    screenshot(&mut app, "rank_wide_randomised");
}
