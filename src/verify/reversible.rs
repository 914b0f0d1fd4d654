//! The group `reversible`: layers with linear F and G, forward, and backward from the outputs alone,
//! through the walk that the screen uses. Stored are float64 results of plain autograd.

use super::compare::Worst;
use super::manifest::{Case, Tensors};
use crate::gpu::Gpu;
use crate::gpu::run::Progress;
use crate::lab::stack::{Parameters, Stack, Walk, Way};
use crate::methods::stack::{Branches, GRADIENTS, Layer, Loss, STREAMS};
use crate::problem::Named;

/// Stored parameters, their names in a layer, and whether they are matrices.
const PARAMETERS: [(&str, &str, bool); 4] =
    [("f_w", "F weight", true), ("f_b", "F bias", false), ("g_w", "G weight", true), ("g_b", "G bias", false)];

/// Runs a case.
///
/// # Errors
/// A sentence when the case does not make sense or the device fails.
pub async fn run(gpu: &Gpu, case: &Case, tensors: &Tensors) -> Result<Worst, String> {
    let (depth, batch) = (case.param("depth", 1, 64)?, case.param("batch", 1, 1024)?);
    let (n, d) = (case.param("n", 1, 65_536)?, case.param("d", 1, 2048)?);
    let Some("sum of squares of y1 and y2") = case.word("loss")? else {
        return Err("flags.loss must be \"sum of squares of y1 and y2\"".to_owned());
    };
    // Linear branches work row by row: a batch is more rows.
    let streams = [batch, n, d];
    let shape = |matrix: bool| if matrix { vec![depth, d, d] } else { vec![depth, d] };
    let layer = Layer { n: batch * n, width: d, branches: Branches::Linear };
    let mut parameters = vec![Named::new(); depth as usize];
    for (stored, name, matrix) in PARAMETERS {
        let all = tensors.floats(stored, &shape(matrix))?;
        for (named, values) in parameters.iter_mut().zip(all.chunks(all.len() / depth as usize)) {
            named.insert(name, values.to_vec());
        }
    }
    let [x1, x2] = ["x1", "x2"].map(|name| tensors.floats(name, &streams));
    let (x1, x2) = (x1?, x2?);
    // The gradient of a sum of squares is twice the output.
    let loss = Loss::Squares(2.0);
    let parameters = Parameters::Given(parameters);
    let stack = Stack { layer, parameters, inputs: [x1.to_vec(), x2.to_vec()], loss, seed: 0 };
    let given = |key: &'static str| {
        case.tolerance(key)?.ok_or_else(|| format!("the manifest gives no tolerance for \"{key}\""))
    };
    let (outputs, rebuilt) = (given("y and gradients")?, given("rebuilt inputs")?);
    let width = d as usize;
    let mut worst = Worst::default();
    let mut walk = Walk::new(gpu, &stack, Way::default()).await.map_err(|error| error.to_string())?;
    walk.forward(&Progress::default()).await.map_err(|error| error.to_string())?;
    for (name, stored) in STREAMS.into_iter().zip(["y1", "y2"]) {
        let got = walk.stream(name).await.map_err(|fault| fault.to_string())?;
        worst.floats(stored, &got, tensors.floats(stored, &streams)?, outputs, width, &|_| false)?;
    }
    walk.loss(&Progress::default()).await.map_err(|error| error.to_string())?;
    walk.backward(&Progress::default()).await.map_err(|error| error.to_string())?;
    for (name, want) in STREAMS.into_iter().zip([x1, x2]) {
        let got = walk.stream(name).await.map_err(|fault| fault.to_string())?;
        worst.floats(&format!("rebuilt {name}"), &got, want, rebuilt, width, &|_| false)?;
    }
    for name in GRADIENTS {
        let got = walk.stream(name).await.map_err(|fault| fault.to_string())?;
        worst.floats(name, &got, tensors.floats(name, &streams)?, outputs, width, &|_| false)?;
    }
    for (stored, name, matrix) in PARAMETERS {
        let stored = format!("d{stored}");
        let mut got = Vec::new();
        for layer in 0..depth as usize {
            got.extend(walk.gradient(layer, name).await.map_err(|fault| fault.to_string())?);
        }
        worst.floats(&stored, &got, tensors.floats(&stored, &shape(matrix))?, outputs, width, &|_| false)?;
    }
    Ok(worst)
}
