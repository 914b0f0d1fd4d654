//! The app in a window of a software adapter, as a person sees it.

use attention_lab::app::App;
use attention_lab::gpu::device;
use attention_lab::settings::Settings;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use std::path::PathBuf;
use std::sync::Arc;

/// Opens the app and waits for all that it computes.
pub fn open(size: [f32; 2], theme: egui::Theme, settings: Settings) -> Harness<'static, App> {
    let mut setup = egui_kittest::wgpu::default_wgpu_setup();
    if let egui_wgpu::WgpuSetup::CreateNew(new) = &mut setup {
        new.device_descriptor = Arc::new(device::descriptor);
    }
    let builder = Harness::builder().with_size(size).with_theme(theme).wgpu_setup(setup);
    let mut app = builder.build_eframe(move |cc| App::with(cc, Some(settings), None));
    settle(&mut app);
    app
}

/// Steps until nothing runs or waits to run.
pub fn settle(app: &mut Harness<'_, App>) {
    app.run_steps(3);
    for _ in 0..100_000 {
        app.step();
        if !app.state().is_busy() {
            app.run();
            return;
        }
    }
    panic!("never came: {}", app.state().summary());
}

pub fn sees(app: &Harness<'_, App>, words: &str) {
    assert!(app.query_all_by_label_contains(words).next().is_some(), "\"{words}\" is not on the screen");
}

/// Saves what the window shows as `NAME.png` in the folder of screenshots.
pub fn screenshot(app: &mut Harness<'_, App>, name: &str) {
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let folder = folder.join("screenshots");
    std::fs::create_dir_all(&folder).expect("the folder of screenshots");
    app.render().expect("a picture").save(folder.join(format!("{name}.png"))).expect("a file");
}
