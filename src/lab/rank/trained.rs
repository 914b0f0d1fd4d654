//! Q and K of a trained model, shipped beside the page: all-MiniLM-L6-v2 on a text of 256 tokens (see
//! `web/samples/README.md`).

use super::{Head, exact};
use crate::gpu::Gpu;
use crate::gpu::run::Progress;
use crate::lab::LabError;
use crate::semantics::Semantics;
use crate::text::Text;

/// Where the file lies, relative to the page.
pub const PATH: &str = "samples/minilm.i16";
/// The file itself; the page fetches [`PATH`] instead, and only when it is asked for.
#[cfg(not(target_arch = "wasm32"))]
pub const BYTES: &[u8] = include_bytes!("../../../web/samples/minilm.i16");

/// Layers in the file, counted from 0 in the model.
pub const LAYERS: [u32; 2] = [0, 3];
pub const HEADS: u32 = 12;
pub const N: u32 = 256;
pub const D: u32 = 32;
/// Numbers are stored as whole multiples of this.
pub const UNIT: f32 = 1.0 / 2048.0;
/// Seed of the random Q and K beside each head.
const SEED: u32 = 1;

/// The normalised cumulative sum at [`N`] / 4 of every head of a layer, and of random Q and K in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    pub layer: u32,
    pub trained: Vec<f64>,
    pub random: Vec<f64>,
}

/// The heads of the file, layer by layer: q `[heads, n, d]`, then k, as little-endian words of 16 bits.
///
/// # Errors
/// A sentence when the file does not have this size.
pub fn heads(bytes: &[u8]) -> Result<Vec<Vec<Head>>, String> {
    let size = (N * D) as usize;
    if bytes.len() != LAYERS.len() * 2 * HEADS as usize * size * 2 {
        return Err(Text::TrainedDamaged.get().to_owned());
    }
    let numbers: Vec<f32> =
        bytes.chunks_exact(2).map(|word| f32::from(i16::from_le_bytes([word[0], word[1]])) * UNIT).collect();
    let layer = |layer: &[f32]| {
        let (q, k) = layer.split_at(HEADS as usize * size);
        let heads = q.chunks_exact(size).zip(k.chunks_exact(size));
        heads.map(|(q, k)| Head { n: N, d: D, q: q.to_vec(), k: k.to_vec() }).collect()
    };
    Ok(numbers.chunks_exact(2 * HEADS as usize * size).map(layer).collect())
}

/// The heat map of all heads.
///
/// # Errors
/// When the file is damaged, or the device fails.
pub async fn map(gpu: &Gpu, bytes: &[u8], progress: &Progress) -> Result<Vec<Layer>, LabError> {
    let layers = heads(bytes).map_err(LabError::Failed)?;
    let total = f64::from(HEADS) * 2.0 * layers.len() as f64;
    let mut done = 0.0;
    let mut map = Vec::new();
    for (layer, heads) in LAYERS.into_iter().zip(layers) {
        let mut shares = [Vec::new(), Vec::new()];
        for head in &heads {
            for (shares, head) in shares.iter_mut().zip([head, &head.random(SEED).await]) {
                let spectrum = exact(gpu, head, Semantics::PLAIN, &Progress::default()).await?.spectrum;
                shares.push(spectrum.share_at(N / 4).unwrap_or_default());
                done += 1.0;
                progress.total.set(total);
                progress.done.set(done);
            }
        }
        let [trained, random] = shares;
        map.push(Layer { layer, trained, random });
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_file_has_every_head() {
        let layers = heads(BYTES).expect("the file");
        assert_eq!(layers.len(), LAYERS.len());
        for head in layers.iter().flatten() {
            let largest = head.q.iter().chain(&head.k).fold(0.0, |most: f32, x| most.max(x.abs()));
            assert!((1.0..16.0).contains(&largest), "{largest}");
        }
        assert!(heads(&BYTES[1..]).is_err() && heads(&[]).is_err());
    }
}
