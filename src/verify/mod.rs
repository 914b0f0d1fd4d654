//! Verifies results against outputs of published implementations, through the plans and kernels of
//! the screen: a folder with a manifest.json and one .safetensors file a case.

pub mod cases;
pub mod compare;
pub mod manifest;
mod reversible;
mod spectral;

use crate::gpu::Gpu;
use crate::gpu::run::Progress;
use compare::Worst;
use manifest::{Case, Tensors};

const MANIFEST: &str = "manifest.json";

/// How a case ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Every array that has a tolerance was compared.
    Compared(Worst),
    /// The case does not make sense or could not be run: a failure.
    Failed(String),
}

impl Verdict {
    pub fn passes(&self) -> bool {
        matches!(self, Self::Compared(worst) if worst.passes())
    }
}

/// Runs one case on the bytes of its file.
pub async fn verify(gpu: &Gpu, case: &Case, file: &[u8]) -> Verdict {
    let tensors = match Tensors::read(case, file) {
        Ok(tensors) => tensors,
        Err(why) => return Verdict::Failed(why),
    };
    match cases::run(gpu, case, &tensors).await {
        Ok(worst) => Verdict::Compared(worst),
        Err(why) => Verdict::Failed(why),
    }
}

/// `name  largest error  share of the tolerance  PASS`, and where a failure is.
pub fn line(name: &str, verdict: &Verdict) -> String {
    match verdict {
        Verdict::Compared(worst) if worst.passes() => {
            format!("{name:<52} {:>10.2e} {:>7.1} %  PASS", worst.error, worst.share * 100.0)
        }
        Verdict::Compared(worst) => {
            format!("{name:<52} {:>10.2e} {:>7.1} %  FAIL  {}", worst.error, worst.share * 100.0, worst.at)
        }
        Verdict::Failed(why) => format!("{name:<52} {:>10} {:>9}  FAIL  {why}", "-", "-"),
    }
}

/// What became of a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub passed: usize,
    pub failed: usize,
}

/// Runs every case whose name contains `filter`, telling each as it ends; the progress counts cases. `read` gives
/// the bytes of a file of the folder, or a sentence that names the file.
///
/// # Errors
/// A sentence when the folder has no readable manifest or no such case.
pub async fn all(
    gpu: &Gpu,
    read: impl AsyncFn(&str) -> Result<Vec<u8>, String>,
    filter: &str,
    progress: &Progress,
    mut tell: impl FnMut(&Case, &Verdict),
) -> Result<Totals, String> {
    let bytes = read(MANIFEST).await?;
    let text = str::from_utf8(&bytes).map_err(|error| format!("{MANIFEST} cannot be read: {error}"))?;
    let manifest = manifest::parse(text)?;
    let chosen: Vec<&Case> = manifest.cases.iter().filter(|case| case.name.contains(filter)).collect();
    if chosen.is_empty() {
        return Err(format!("{MANIFEST} has no case whose name contains \"{filter}\""));
    }
    progress.total.set(chosen.len() as f64);
    let mut totals = Totals::default();
    for case in chosen {
        let verdict = match plain(&case.file) {
            Ok(()) => match read(&case.file).await {
                Ok(bytes) => verify(gpu, case, &bytes).await,
                Err(why) => Verdict::Failed(why),
            },
            Err(why) => Verdict::Failed(why),
        };
        *(if verdict.passes() { &mut totals.passed } else { &mut totals.failed }) += 1;
        tell(case, &verdict);
        progress.done.set(progress.done.get() + 1.0);
    }
    Ok(totals)
}

/// The same for a folder of this machine.
///
/// # Errors
/// As [`all`].
#[cfg(not(target_arch = "wasm32"))]
pub async fn folder(
    gpu: &Gpu,
    folder: &std::path::Path,
    filter: &str,
    tell: impl FnMut(&Case, &Verdict),
) -> Result<Totals, String> {
    let read = async |file: &str| {
        let path = folder.join(file);
        std::fs::read(&path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
    };
    all(gpu, read, filter, &Progress::default(), tell).await
}

/// A manifest may name no file outside its folder.
fn plain(file: &str) -> Result<(), String> {
    let plain = !file.is_empty() && !file.starts_with('.') && !file.contains(['/', '\\', ':', '?', '#', '%']);
    if plain {
        return Ok(());
    }
    Err(format!("the manifest names the file \"{file}\"; it must be a plain name inside the folder"))
}
