//! Results as files: tensors for other programs, maps and outputs as pictures.

use crate::outcome::{MapImage, Outcome, WeightMatrix};
use crate::settings::KEYS;
use image::{DynamicImage, GrayImage, ImageFormat};
use safetensors::{Dtype, serialize, tensor::TensorView};
use std::collections::HashMap;
use std::io::{self, Cursor, Write};
use std::path::Path;

/// Writes a file whole or not at all: under another name first, then renamed.
///
/// # Errors
/// The system's; nothing is left behind then.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let written = std::fs::File::create(&part)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&part, path));
    if written.is_err() {
        // The first error is the one to tell.
        let _ = std::fs::remove_file(&part);
    }
    written
}

/// The result in the safetensors format, float32 and uint32, little-endian:
/// `out [heads, n, d_v]`, `lse [heads, n]`, where given `weights [heads, n, n]` (`[heads, n, k]` of Linformer)
/// and, of LSH attention, `buckets` and `order` `[heads, rounds, n]`. The metadata's `settings` hold every
/// setting, as in an address.
///
/// # Errors
/// The format's own words.
pub fn tensors(outcome: &Outcome, weights: Option<&WeightMatrix>) -> Result<Vec<u8>, String> {
    let dims = outcome.dims;
    let (heads, n, d_v) = (dims.heads as usize, dims.n_q as usize, dims.d_v as usize);
    let mut tensors = vec![
        ("out", Dtype::F32, vec![heads, n, d_v], bytemuck::cast_slice(&outcome.out)),
        ("lse", Dtype::F32, vec![heads, n], bytemuck::cast_slice(&outcome.lse)),
    ];
    if let Some(weights) = weights {
        let shape = vec![heads, n, weights.columns as usize];
        tensors.push(("weights", Dtype::F32, shape, bytemuck::cast_slice(&weights.values)));
    }
    if let Some(lists) = &outcome.lists {
        let shape = vec![heads, lists.rounds as usize, n];
        tensors.push(("buckets", Dtype::U32, shape.clone(), bytemuck::cast_slice(&lists.buckets)));
        tensors.push(("order", Dtype::U32, shape, bytemuck::cast_slice(&lists.order)));
    }
    let views: Vec<(&str, TensorView<'_>)> = tensors
        .into_iter()
        .map(|(name, kind, shape, bytes)| Ok((name, TensorView::new(kind, shape, bytes)?)))
        .collect::<Result<_, safetensors::SafeTensorError>>()
        .map_err(|error| error.to_string())?;
    let pairs = KEYS.iter().map(|key| (key.name, (key.get)(&outcome.settings)));
    let settings = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    let metadata = HashMap::from([("settings".to_owned(), settings)]);
    serialize(views, Some(metadata)).map_err(|error| error.to_string())
}

/// A map as a grey PNG: white is nothing, black the largest value, grey goes with the square root,
/// so that sparse pixels can be seen.
///
/// # Errors
/// The encoder's own words.
pub fn map(map: &MapImage) -> Result<Vec<u8>, String> {
    let largest = map.values.iter().copied().fold(0.0, f32::max);
    let grey = |value: &f32| if largest > 0.0 { (255.0 * (1.0 - (value / largest).sqrt())).round() as u8 } else { 255 };
    let pixels = GrayImage::from_vec(map.width, map.height, map.values.iter().map(grey).collect());
    png(pixels.ok_or("the map has another size than it says")?.into())
}

/// # Errors
/// The encoder's own words.
pub fn png(pixels: DynamicImage) -> Result<Vec<u8>, String> {
    let mut bytes = Cursor::new(Vec::new());
    pixels.write_to(&mut bytes, ImageFormat::Png).map_err(|error| error.to_string())?;
    Ok(bytes.into_inner())
}
