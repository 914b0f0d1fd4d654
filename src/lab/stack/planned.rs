//! What a stack will hold, from its plans alone.

use super::walk::{backward, forward, is_stream, kept};
use super::{Way, pairs};
use crate::methods::stack::{Layer, Loss};
use crate::plan::{BufferSpec, Limits, Plan, Refusal};
use std::collections::BTreeSet;

/// The most bytes that a stack of `depth` layers holds at once beside parameters and their gradients, by
/// its plans; what uniforms and timestamps take is left out.
///
/// # Errors
/// The first buffer that the device cannot hold.
pub fn planned_bytes(layer: &Layer, depth: u64, loss: Loss, way: Way, limits: Limits) -> Result<u64, Refusal> {
    let there = forward(layer, way, limits)?;
    let middle = layer.loss(loss, &pairs(way), limits)?;
    let back = backward(layer, way, limits)?;
    let parameters = layer.parameters().into_iter().chain(loss.parameters(layer.width, pairs(way).len()));
    let apart: BTreeSet<&str> = parameters.flat_map(|parameter| [parameter.name, parameter.gradient]).collect();
    let bytes = |plan: &Plan, counts: &dyn Fn(&BufferSpec) -> bool| -> u64 {
        plan.buffers.iter().filter(|spec| !apart.contains(spec.name) && counts(spec)).map(BufferSpec::bytes).sum()
    };
    // The loss meets the streams and the gradients by them; both stay until the end.
    let streams = bytes(&middle, &|spec| is_stream(spec.name));
    let names = kept(layer, way, &there, &back);
    let kept = bytes(&there, &|spec| names.contains(spec.name));
    // A layer's plan has its own of what is kept.
    let before = depth.saturating_sub(1) * kept;
    let moments = [
        bytes(&there, &|_| true) + before,
        bytes(&middle, &|_| true) + depth * kept,
        bytes(&back, &|spec| !is_stream(spec.name)) + streams + before,
    ];
    Ok(moments.into_iter().max().unwrap_or(0))
}
