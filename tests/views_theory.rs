//! The view of theory and measurement on a software adapter, as pictures in `target/screenshots` and as
//! assertions on what it says.
#![cfg(not(target_arch = "wasm32"))]

mod window;

use attention_lab::app::App;
use attention_lab::app::scene::{Command, View};
use attention_lab::settings::{InputKind, Settings};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use window::{screenshot, sees, settle};

fn open(size: [f32; 2], theme: egui::Theme, settings: Settings, view: View) -> Harness<'static, App> {
    let mut app = window::open(size, theme, settings);
    app.state_mut().obey(Command::Open(view));
    settle(&mut app);
    app
}

/// The view on the pages that it must fit, in both themes.
fn pictures(app: &mut Harness<'_, App>, name: &str) {
    for (size, page) in [([1280.0, 800.0], "wide"), ([390.0, 844.0], "phone")] {
        for theme in [egui::Theme::Dark, egui::Theme::Light] {
            app.set_size(size.into());
            app.ctx.set_theme(theme);
            settle(app);
            screenshot(app, &format!("{name}_{page}_{theme:?}").to_lowercase());
        }
    }
}

#[test]
fn bounds_beside_measured_errors() {
    let settings = Settings { n: 1024, ..Settings::default() };
    let mut app = open([1280.0, 2000.0], egui::Theme::Dark, settings, View::Theory);
    sees(&app, "existence");
    sees(&app, "All figures come from all queries.");
    assert!(app.query_by_label_contains("being measured").is_none(), "something was never measured");
    screenshot(&mut app, "theory_bounds_wide_dark");
    app.set_size(egui::vec2(390.0, 2600.0));
    app.ctx.set_theme(egui::Theme::Light);
    settle(&mut app);
    screenshot(&mut app, "theory_bounds_phone_light");
}

/// A logarithm of 1 is 0: no bound, and none is drawn.
#[test]
fn a_bound_without_a_meaning_is_not_drawn() {
    // How often each theorem is drawn in three charts; over n the sequence length of the screen is no matter.
    for (n, d, said, drawn) in
        [(128, 1, "At d = 1 theorem 2 says nothing", [3, 0]), (1, 16, "At n = 1 the theorems say nothing", [1, 1])]
    {
        let settings = Settings { n, d, chunk: Some(64), input: InputKind::Clusters, ..Settings::default() };
        let mut app = open([1280.0, 1600.0], egui::Theme::Light, settings, View::Theory);
        sees(&app, said);
        let count = |name| app.query_all_by_label(name).count();
        assert_eq!(["theorem 1", "theorem 2, constants taken as 1"].map(count), drawn);
        if d == 1 {
            // Tokens are 1 or -1, and neighbours alike: their mean is as good as they are.
            sees(&app, "Below 0.001, where the axis ends, and so not drawn: Linformer, mean pooling at k = 64, ");
        }
        screenshot(&mut app, &format!("theory_n{n}_d{d}"));
    }
}

#[test]
fn tables_live() {
    let settings = Settings { n: 256, d: 16, ..Settings::default() };
    let mut app = open([1280.0, 800.0], egui::Theme::Dark, settings, View::Tables);
    sees(&app, "Reformer, table 1");
    sees(&app, "max(b h l d, b h l r (4 l / n_c)²)");
    sees(&app, "printed 1.5 / 1.7");
    sees(&app, "printed 20 / 60");
    // 8 heads, 4 rounds, chunks of 32 at 4,096 tokens: 8 x 4 x (2 x 4096 x 32 - 32 x 32).
    sees(&app, "8,355,840");
    pictures(&mut app, "tables");
    app.set_size(egui::vec2(1280.0, 2000.0));
    app.ctx.set_theme(egui::Theme::Dark);
    app.run();
    app.get_by_label("Take the settings").click();
    settle(&mut app);
    // n = 512 is short enough to be measured unasked; 1,024 is not.
    sees(&app, "here ");
    let measured = |app: &Harness<'_, App>| app.query_all_by_label_contains("here ").count();
    let before = measured(&app);
    app.get_all_by_label("Measure 1,024").next().expect("a button").click();
    settle(&mut app);
    assert_eq!(measured(&app), before + 3);
    screenshot(&mut app, "tables_whole_dark");
    app.set_size(egui::vec2(390.0, 2600.0));
    app.ctx.set_theme(egui::Theme::Light);
    settle(&mut app);
    screenshot(&mut app, "tables_whole_phone_light");
}

#[test]
fn widths_that_the_tables_do_not_have_are_moved() {
    let settings = Settings { n: 128, heads: 1, d: 3, ..Settings::default() };
    let mut app = window::start([390.0, 844.0], egui::Theme::Light, Some(settings));
    app.state_mut().obey(Command::Open(View::Tables));
    window::step_until(&mut app, |app| app.query_by_label("Take the settings").is_some());
    app.get_by_label("Take the settings").click();
    app.run_steps(4);
    sees(&app, "heads");
    sees(&app, "d_model from 3 to 64");
    screenshot(&mut app, "tables_moved_phone_light");
}

#[test]
fn experiments_beside_their_theory() {
    let settings = Settings { n: 256, d: 16, ..Settings::default() };
    let mut app = open([1280.0, 800.0], egui::Theme::Dark, settings.clone(), View::Theory);
    sees(&app, "Who shares a bucket?");
    sees(&app, "cos 0.95");
    assert!(app.query_by_label_contains("being measured").is_none(), "something was never measured");
    pictures(&mut app, "theory");
    // What stands alone is not measured again when the settings change.
    app.state_mut().set(Settings { rounds: 2, ..settings });
    app.run_steps(3);
    while app.state().is_busy() {
        assert!(app.query_by_label("16 buckets: being measured.").is_none(), "measured again");
        app.step();
    }
    app.set_size(egui::vec2(1280.0, 2600.0));
    app.run();
    app.get_by_label("Numbers").click();
    settle(&mut app);
    sees(&app, "2 buckets, theory");
    screenshot(&mut app, "theory_numbers");
}
