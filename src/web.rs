//! The page around the program: how it starts, where its errors and its summary are shown, and its address.
//!
//! `web/boot.js` is the other side: it probes the browser, calls [`start`] and sets up `window.attentionLab`.

use std::sync::Arc;

use eframe::egui_wgpu::{WgpuConfiguration, WgpuSetup, WgpuSetupCreateNew};
use wasm_bindgen::prelude::*;

use crate::app::App;
use crate::gpu::device;

#[wasm_bindgen]
extern "C" {
    /// What the browser tells about its graphics adapter, which wgpu does not pass on.
    #[wasm_bindgen(js_namespace = ["window", "attentionLab"], js_name = adapterName)]
    pub fn adapter_name() -> String;

    /// Shows `text` in a banner over the page, below which the program goes on: a lost device, no memory, a broken shader.
    #[wasm_bindgen(js_namespace = ["window", "attentionLab"])]
    pub fn problem(text: &str);

    /// Covers the page with `text` and a button that reloads it: the program has ended.
    #[wasm_bindgen(js_namespace = ["window", "attentionLab"])]
    fn stop(text: &str);
}

/// Starts the program on `canvas`.
///
/// # Errors
/// When the browser grants no device, or no canvas to draw on.
#[wasm_bindgen]
pub async fn start(canvas: web_sys::HtmlCanvasElement) -> Result<(), JsValue> {
    // Only a second start would find a logger in place.
    let _ = eframe::WebLogger::init(log::LevelFilter::Warn);
    // The file and line of the panic are for the console, to which eframe's hook writes before it calls this one.
    std::panic::set_hook(Box::new(|panic| stop(panic.payload_as_str().unwrap_or("panic"))));
    let runner = eframe::WebRunner::new();
    runner.start(canvas, options(), Box::new(|cc| Ok(Box::new(App::new(cc))))).await
}

/// WebGPU and nothing else: there are no compute shaders in WebGL.
fn options() -> eframe::WebOptions {
    let mut setup = WgpuSetupCreateNew::without_display_handle();
    setup.instance_descriptor.backends = wgpu::Backends::BROWSER_WEBGPU;
    setup.device_descriptor = Arc::new(device::descriptor);
    eframe::WebOptions {
        wgpu_options: WgpuConfiguration { wgpu_setup: WgpuSetup::CreateNew(setup), ..Default::default() },
        ..Default::default()
    }
}

/// Says the result in words, to screen readers and to tests. The canvas itself is opaque to both.
pub fn mirror_summary(text: &str) {
    let document = web_sys::window().and_then(|window| window.document());
    if let Some(summary) = document.and_then(|document| document.get_element_by_id("summary")) {
        // A live region is read aloud whenever it is written.
        if summary.text_content().as_deref() != Some(text) {
            summary.set_text_content(Some(text));
        }
    }
}

/// Says whether something is being computed, in the canvas's `aria-busy`.
pub fn mirror_busy(busy: bool) {
    let document = web_sys::window().and_then(|window| window.document());
    if let Some(canvas) = document.and_then(|document| document.get_element_by_id("canvas")) {
        let (name, value) = ("aria-busy", if busy { "true" } else { "false" });
        if canvas.get_attribute(name).as_deref() != Some(value) {
            // A fixed and valid name cannot be refused.
            let _ = canvas.set_attribute(name, value);
        }
    }
}

/// The query of the page's address, without its question mark.
pub fn query() -> String {
    let search = web_sys::window().and_then(|window| window.location().search().ok());
    search.unwrap_or_default().trim_start_matches('?').to_owned()
}

/// Puts `query` into the page's address without a new entry in the history.
pub fn replace_query(query: &str) {
    let Some(window) = web_sys::window() else {
        return;
    };
    let (Ok(path), Ok(history)) = (window.location().pathname(), window.history()) else {
        return;
    };
    let address = if query.is_empty() { path } else { format!("{path}?{query}") };
    // Browsers refuse too many changes in a short time; a later one will carry the same settings.
    let _ = history.replace_state_with_url(&JsValue::NULL, "", Some(&address));
}
