//! Files from outside: the shipped photographs, pictures that the user opens or drops, and stored outputs.

use crate::inputs::{self, Picture};
use crate::lab::rank::trained;
use crate::settings::Sample;
use crate::text::{Text, fill};
use egui::DroppedFileHandle;

/// The bytes of a shipped photograph.
///
/// # Errors
/// In words, when it cannot be loaded.
pub async fn sample(sample: Sample) -> Result<Vec<u8>, String> {
    #[cfg(not(target_arch = "wasm32"))]
    let bytes = inputs::sample_bytes(sample).map(<[u8]>::to_vec).ok_or_else(String::new);
    #[cfg(target_arch = "wasm32")]
    let bytes = match inputs::sample_path(sample) {
        Some(path) => fetch(path).await,
        None => Err(String::new()),
    };
    bytes.map_err(|why| fill(Text::SampleMissing, &[&why]))
}

/// A file of a folder beside the page, or of this machine.
///
/// # Errors
/// A sentence that names the file.
pub async fn read(folder: &str, file: &str) -> Result<Vec<u8>, String> {
    let path = format!("{}/{file}", folder.trim_end_matches('/'));
    #[cfg(not(target_arch = "wasm32"))]
    let bytes = std::fs::read(&path).map_err(|error| error.to_string());
    #[cfg(target_arch = "wasm32")]
    let bytes = fetch(&path).await;
    bytes.map_err(|why| fill(Text::FileMissing, &[&path, &why]))
}

/// The bytes of Q and K of the trained model.
///
/// # Errors
/// In words, when they cannot be loaded.
pub async fn trained() -> Result<Vec<u8>, String> {
    #[cfg(not(target_arch = "wasm32"))]
    return Ok(trained::BYTES.to_vec());
    #[cfg(target_arch = "wasm32")]
    fetch(trained::PATH).await.map_err(|error| fill(Text::TrainedMissing, &[&error]))
}

#[cfg(target_arch = "wasm32")]
async fn fetch(path: &str) -> Result<Vec<u8>, String> {
    use wasm_bindgen::{JsCast, JsValue};
    use wasm_bindgen_futures::JsFuture;
    let words = |error: JsValue| format!("{error:?}");
    let window = web_sys::window().ok_or("no window")?;
    let response = JsFuture::from(window.fetch_with_str(path)).await.map_err(words)?;
    let response: web_sys::Response = response.dyn_into().map_err(words)?;
    if !response.ok() {
        return Err(fill(Text::ServerAnswered, &[&response.status().to_string()]));
    }
    let buffer = JsFuture::from(response.array_buffer().map_err(words)?).await.map_err(words)?;
    Ok(js_sys::Uint8Array::new(&buffer).to_vec())
}

/// Lets the user choose a picture; `None` when nothing was chosen.
pub async fn pick() -> Option<Result<Picture, String>> {
    let dialog = rfd::AsyncFileDialog::new().add_filter(Text::Pictures.get(), &["png", "jpg", "jpeg"]);
    let bytes = dialog.pick_file().await?.read().await;
    Some(decode(&bytes))
}

/// Reads a picture that was dropped on the window.
pub async fn dropped(file: DroppedFileHandle) -> Option<Result<Picture, String>> {
    #[cfg(not(target_arch = "wasm32"))]
    let bytes = file.bytes();
    #[cfg(target_arch = "wasm32")]
    let bytes = file.bytes_async().await;
    Some(bytes.map_err(|why| fill(Text::FileUnreadable, &[&why])).and_then(|bytes| decode(&bytes)))
}

fn decode(bytes: &[u8]) -> Result<Picture, String> {
    Picture::decode(bytes).map_err(|error| fill(Text::NoPicture, &[&error.to_string()]))
}
