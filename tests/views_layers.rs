//! The view of layers on a software adapter, as pictures in `target/screenshots` and as assertions on
//! what it says.
#![cfg(not(target_arch = "wasm32"))]

use attention_lab::app::App;
use attention_lab::gpu::device;
use attention_lab::settings::Settings;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use std::path::PathBuf;
use std::sync::Arc;

fn open(size: [f32; 2], theme: egui::Theme, query: &str) -> Harness<'static, App> {
    let settings = Settings::from_query(query).expect(query);
    let mut setup = egui_kittest::wgpu::default_wgpu_setup();
    if let egui_wgpu::WgpuSetup::CreateNew(new) = &mut setup {
        new.device_descriptor = Arc::new(device::descriptor);
    }
    let builder = Harness::builder().with_size(size).with_theme(theme).wgpu_setup(setup);
    let mut app = builder.build_eframe(move |cc| App::with(cc, Some(settings), None));
    settle(&mut app);
    app
}

fn settle(app: &mut Harness<'_, App>) {
    app.run_steps(3);
    while app.state().is_busy() {
        app.step();
    }
    app.run();
}

fn sees(app: &Harness<'_, App>, words: &str) {
    assert!(app.query_all_by_label_contains(words).next().is_some(), "\"{words}\" is not on the screen");
}

fn screenshot(app: &mut Harness<'_, App>, name: &str) {
    let folder =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from).join("screenshots");
    std::fs::create_dir_all(&folder).expect("the folder of screenshots");
    app.render().expect("a picture").save(folder.join(format!("{name}.png"))).expect("a file");
}

const QUERY: &str = "input=clusters&method=reversible&n=256&d=16&rounds=2&layers=4";

/// The address of a reversible stack opens the view; the layers run when asked, and play.
#[test]
fn layers_run_play_and_are_measured() {
    for (size, theme, name) in
        [([1280.0, 800.0], egui::Theme::Dark, "wide"), ([390.0, 844.0], egui::Theme::Light, "phone")]
    {
        let mut app = open(size, theme, QUERY);
        sees(&app, "Reversible layers");
        // High, so that everything stands on the screen.
        app.set_size(egui::vec2(size[0], 3000.0));
        app.run();
        app.get_by_label("Run forward and backward").click();
        settle(&mut app);
        for words in ["reversible", "stored", "multiply-adds", "Error of the rebuilt inputs", "forward, layer 1"] {
            sees(&app, words);
        }
        app.get_by_label("Measure over depth and chunks").click();
        settle(&mut app);
        for words in ["Activations over depth", "Parameters in host memory save"] {
            sees(&app, words);
        }
        app.get_by_label("Play").click();
        app.run_steps(3);
        app.get_by_label("Pause").click();
        app.run();
        screenshot(&mut app, &format!("layers_{name}_all"));
        app.set_size(size.into());
        app.run();
        screenshot(&mut app, &format!("layers_{name}"));
    }
}
