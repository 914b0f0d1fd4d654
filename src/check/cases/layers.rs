//! Whole layers of a stack: forward, the loss and backward, on the same buffers, as a walk has them.

use super::{Cases, Vectors, paper, square};
use crate::methods::stack::{Attention, Branches, GRADIENT, GRADIENTS, KEPT, Layer, Loss, STREAM, STREAMS, TARGETS};
use crate::methods::words;
use crate::plan::{Binding, Builder, Kind, Limits, Plan, Refusal, Role, Step};
use crate::problem::Dims;
use crate::semantics::{Semantics, Wrap};
use crate::steps::WORKGROUP;
use crate::steps::packed_ids::{Params, UNPACK};
use std::sync::Arc;

const LIMITS: Limits = Limits::WEBGPU;
const SQUARES: Loss = Loss::Squares(0.7);

fn layer(dims: Dims, attention: Attention, d_ff: u32, chunks: u32) -> Layer {
    let branches = Branches::Reformer { dims, attention, d_ff, chunks };
    Layer { n: dims.n_q, width: dims.heads * dims.d, branches }
}

/// Targets are the first bucket ids that the first head kept.
fn targets(layer: &Layer, heads: u32, rounds: u32, buckets: u32) -> Result<Plan, Refusal> {
    let n = layer.n;
    let mut b = Builder::new(LIMITS, square(1, 1, 1, 1).widths());
    let kept = Params::new(rounds * n, buckets);
    let kept = words(&mut b, KEPT, Kind::U32, Role::Method, heads, &[kept.words()]);
    let targets = words(&mut b, TARGETS, Kind::U32, Role::Method, 1, &[n]);
    let bindings: Arc<[Binding]> = Arc::new([b.range(kept, 0), b.range(targets, 0)]);
    b.pass(Step::Measure, &UNPACK, &Params::new(n, buckets), &bindings, n.div_ceil(WORKGROUP), (0.0, 0.0));
    b.finish()
}

/// Forward with kept ids, the loss of words in two sections, and back.
fn kept(layer: &Layer, heads: u32, rounds: u32, buckets: u32) -> Result<Vec<Plan>, Refusal> {
    let loss = Loss::Vocabulary { vocabulary: buckets + 3, sections: 2 };
    Ok(vec![
        layer.forward(false, LIMITS)?,
        targets(layer, heads, rounds, buckets)?,
        layer.loss(loss, &pairs(), LIMITS)?,
        layer.backward(false, LIMITS)?,
    ])
}

/// Forward, inverse, forward again, and back with another hash.
fn rehashed(layer: &Layer) -> Result<Vec<Plan>, Refusal> {
    let forward = layer.forward(true, LIMITS)?;
    let loss = layer.loss(SQUARES, &pairs(), LIMITS)?;
    Ok(vec![forward.clone(), layer.inverse(LIMITS)?, forward, loss, layer.backward(true, LIMITS)?])
}

/// The ordinary layer.
fn residual(layer: &Layer) -> Result<Vec<Plan>, Refusal> {
    let loss = layer.loss(SQUARES, &[(STREAM, GRADIENT)], LIMITS)?;
    Ok(vec![layer.residual_forward(LIMITS)?, loss, layer.residual_backward(LIMITS)?])
}

fn pairs() -> Vec<(&'static str, &'static str)> {
    STREAMS.into_iter().zip(GRADIENTS).collect()
}

pub(super) fn add(all: &mut Cases) {
    let normal = Vectors::Normal(1.0);
    for (n, heads, d, rounds, buckets, chunks) in [(1, 1, 1, 1, 2, 1), (70, 3, 5, 2, 6, 2), (130, 2, 16, 3, 130, 3)] {
        let dims = square(n, heads, d, d);
        let causal = Semantics { causal: n == 130, wrap: Wrap::InRound, ..Semantics::PAPER };
        let lsh = crate::methods::lsh::Lsh { semantics: causal, ..paper(rounds, &[buckets], 16) };
        let of = layer(dims, Attention::Lsh(lsh), 2 * heads * d + 1, chunks);
        let name = format!("{n} tokens of {heads} x {d}, {buckets} buckets");
        all.add(format!("reversible layer, {name}"), dims, normal, kept(&of, heads, rounds, buckets));
        all.add(format!("reversible layer hashed again, {name}"), dims, normal, rehashed(&of));
        all.add(format!("residual layer, {name}"), dims, normal, residual(&of));
    }
    let dims = square(65, 2, 7, 7);
    let full = layer(dims, Attention::Full(Semantics::PAPER), 10, 4);
    all.add("reversible layer with full attention", dims, normal, rehashed(&full));
    all.add("residual layer with full attention", dims, normal, residual(&full));
    let dims = square(33, 1, 5, 5);
    let linear = Layer { n: 33, width: 5, branches: Branches::Linear };
    all.add("reversible layer, linear", dims, normal, rehashed(&linear));
}
