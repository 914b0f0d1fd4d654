//! The app in a window of a software adapter, as a person sees it.

#[path = "../pictures/mod.rs"]
mod pictures;

use attention_lab::app::App;
use attention_lab::gpu::device;
use attention_lab::settings::Settings;
use egui_kittest::kittest::Queryable;
use egui_kittest::{Harness, HarnessBuilder};
pub use pictures::screenshot;
use std::sync::Arc;

/// A window whose device is as the app's own.
pub fn builder(size: [f32; 2], theme: egui::Theme) -> HarnessBuilder<App> {
    let mut setup = egui_kittest::wgpu::default_wgpu_setup();
    if let egui_wgpu::WgpuSetup::CreateNew(new) = &mut setup {
        new.device_descriptor = Arc::new(device::descriptor);
    }
    Harness::builder().with_size(size).with_theme(theme).wgpu_setup(setup)
}

/// Opens the app; without settings it chooses them.
pub fn start(size: [f32; 2], theme: egui::Theme, settings: Option<Settings>) -> Harness<'static, App> {
    builder(size, theme).build_eframe(move |cc| App::with(cc, settings, None))
}

/// Opens the app and waits for all that it computes.
pub fn open(size: [f32; 2], theme: egui::Theme, settings: Settings) -> Harness<'static, App> {
    let mut app = start(size, theme, Some(settings));
    settle(&mut app);
    app
}

/// Steps until nothing runs or waits to run.
pub fn settle(app: &mut Harness<'_, App>) {
    // A click is seen in one frame, and a view asks its questions in the next.
    app.run_steps(3);
    step_until(app, |app| !app.state().is_busy());
    app.run();
}

pub fn step_until(app: &mut Harness<'_, App>, mut done: impl FnMut(&Harness<'_, App>) -> bool) {
    for _ in 0..100_000 {
        app.step();
        if done(app) {
            return;
        }
    }
    panic!("never came: {}", app.state().summary());
}

pub fn sees(app: &Harness<'_, App>, words: &str) {
    assert!(app.query_all_by_label_contains(words).next().is_some(), "\"{words}\" is not on the screen");
}
