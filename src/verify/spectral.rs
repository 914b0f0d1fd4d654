//! Singular values of stored Q and K, by the same formation of P as on the screen.

use super::cases::{WIDEST, semantics};
use super::compare::Worst;
use super::manifest::{Case, Tensors};
use crate::gpu::Gpu;
use crate::gpu::run::Progress;
use crate::lab::rank::{self, Head};
use crate::spectrum::Spectrum;

/// Longest sequence whose singular values are computed here: some minutes of work.
const MAX_N: u32 = 4096;

/// Group "spectrum": q and k `[n, d]` of one head.
///
/// # Errors
/// A sentence when the case does not make sense or the device fails.
pub async fn case(gpu: &Gpu, case: &Case, tensors: &Tensors) -> Result<Worst, String> {
    let (n, d) = (case.param("n", 1, MAX_N)?, case.param("d", 1, WIDEST)?);
    if !case.switch("row_softmax")? {
        return Err("flags.row_softmax must be true: P is a softmax over the keys of each query".to_owned());
    }
    let q = tensors.floats("q", &[n, d])?.to_vec();
    let k = tensors.floats("k", &[n, d])?.to_vec();
    let mut worst = Worst::default();
    compare(gpu, case, tensors, &[Head { n, d, q, k }], &[n], &mut worst).await?;
    Ok(worst)
}

/// Compares the values of these heads, stored one after the other as `shape`, with those computed here.
///
/// # Errors
/// A sentence when the case does not make sense or the device fails.
pub async fn compare(
    gpu: &Gpu,
    case: &Case,
    tensors: &Tensors,
    heads: &[Head],
    shape: &[u32],
    worst: &mut Worst,
) -> Result<(), String> {
    let rule = semantics(case)?;
    let mut spectra = Vec::new();
    for head in heads {
        if head.n > MAX_N {
            return Err(format!("params.n is {}; singular values are computed up to {MAX_N}", head.n));
        }
        let spectrum = rank::exact(gpu, head, rule, &Progress::default()).await;
        spectra.push(spectrum.map_err(|error| error.to_string())?.spectrum);
    }
    type Values = fn(&Spectrum) -> Vec<f32>;
    let arrays: [(&str, Values); 3] = [
        ("sv", |spectrum| spectrum.svd.values.clone()),
        ("cum", |spectrum| spectrum.cumulative().iter().map(|share| share.low as f32).collect()),
        ("cum_energy", |spectrum| spectrum.cumulative_energy().iter().map(|share| share.low as f32).collect()),
    ];
    for (name, values) in arrays {
        if let Some(tolerance) = case.tolerance(name)? {
            let got: Vec<f32> = spectra.iter().flat_map(values).collect();
            worst.floats(name, &got, tensors.floats(name, shape)?, tolerance, 1, &|_| false)?;
        }
    }
    Ok(())
}
