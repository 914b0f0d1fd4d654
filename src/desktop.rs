//! The window of the desktop app.

use crate::app::App;
use crate::gpu::device;
use crate::settings::Settings;
use eframe::egui_wgpu::{WgpuConfiguration, WgpuSetup, WgpuSetupCreateNew};
use std::sync::Arc;

/// Opens the window and returns when it is closed. Without settings it starts with the defaults, at
/// a length that suits the adapter.
///
/// # Errors
/// When there is no display, or no adapter that can draw on it.
pub fn run(settings: Option<Settings>) -> eframe::Result {
    let options = eframe::NativeOptions {
        viewport: egui::ViewportBuilder::default().with_inner_size([1280.0, 800.0]).with_min_inner_size([360.0, 480.0]),
        renderer: eframe::Renderer::Wgpu,
        wgpu_options: configuration(),
        ..Default::default()
    };
    eframe::run_native(
        crate::text::Text::AppName.get(),
        options,
        Box::new(|cc| Ok(Box::new(App::with(cc, settings, None)))),
    )
}

/// The device is asked for what the adapter has; WebGL-like backends without compute are left out.
fn configuration() -> WgpuConfiguration {
    let mut setup = WgpuSetupCreateNew::without_display_handle();
    setup.instance_descriptor.backends = wgpu::Backends::PRIMARY;
    setup.power_preference = wgpu::PowerPreference::HighPerformance;
    setup.device_descriptor = Arc::new(device::descriptor);
    WgpuConfiguration { wgpu_setup: WgpuSetup::CreateNew(setup), ..Default::default() }
}
