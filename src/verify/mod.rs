//! Verifies results against outputs of published implementations, through the plans and kernels of
//! the screen: a folder with a manifest.json and one .safetensors file a case.

pub mod cases;
pub mod compare;
pub mod manifest;
mod reversible;
mod spectral;

use crate::gpu::Gpu;
use compare::Worst;
use manifest::{Case, Tensors};
use std::path::Path;

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

/// Runs every case of a folder whose name contains `filter`, telling each as it ends.
///
/// # Errors
/// A sentence when the folder has no readable manifest or no such case.
pub async fn folder(
    gpu: &Gpu,
    folder: &Path,
    filter: &str,
    mut tell: impl FnMut(&Case, &Verdict),
) -> Result<Totals, String> {
    let path = folder.join("manifest.json");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let manifest = manifest::parse(&text)?;
    let chosen: Vec<&Case> = manifest.cases.iter().filter(|case| case.name.contains(filter)).collect();
    if chosen.is_empty() {
        return Err(format!("{} has no case whose name contains \"{filter}\"", path.display()));
    }
    let mut totals = Totals::default();
    for case in chosen {
        let verdict = match read(folder, &case.file) {
            Ok(bytes) => verify(gpu, case, &bytes).await,
            Err(why) => Verdict::Failed(why),
        };
        match &verdict {
            passed if passed.passes() => totals.passed += 1,
            _ => totals.failed += 1,
        }
        tell(case, &verdict);
    }
    Ok(totals)
}

/// A file of the folder itself: a manifest may not name one elsewhere.
fn read(folder: &Path, file: &str) -> Result<Vec<u8>, String> {
    let plain = Path::new(file).file_name().is_some_and(|name| name == file);
    if !plain {
        return Err(format!("the manifest names the file \"{file}\"; it must be a plain name inside the folder"));
    }
    std::fs::read(folder.join(file)).map_err(|error| format!("{file} cannot be read: {error}"))
}
