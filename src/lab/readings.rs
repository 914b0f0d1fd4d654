//! What stands in the buffers of a plan that has run.

use crate::gpu::workspace::Workspace;
use crate::gpu::{Fault, Gpu, yield_now};
use crate::methods::measure::Measured;
use crate::outcome::{Lists, lost_pairs};
use crate::problem::Dims;

/// Output `[heads, n_q, d_v]` of a plan that has run.
pub(super) async fn read_out(gpu: &Gpu, workspace: &Workspace, dims: &Dims) -> Result<Vec<f32>, Fault> {
    let mut out = Vec::new();
    for head in 0..dims.heads {
        out.extend(unpadded(&workspace.read_f32(gpu, "out", head).await?, dims.d_v));
    }
    Ok(out)
}

/// What LSH attention sorted, once its plan has run; `None` for the other methods.
pub(super) async fn read_lists(
    gpu: &Gpu,
    workspace: &Workspace,
    dims: &Dims,
    measured: &Measured,
) -> Result<Option<Lists>, Fault> {
    let Measured::Lsh(lsh) = measured else { return Ok(None) };
    let geometry = lsh.geometry(dims.n_q);
    let mut lists = Lists {
        rounds: lsh.rounds,
        n_buckets: lsh.buckets(),
        chunk_len: geometry.chunk_len,
        buckets: Vec::new(),
        order: Vec::new(),
        lost_pairs: Vec::new(),
    };
    for head in 0..dims.heads {
        let buckets = workspace.read_u32(gpu, "buckets", head).await?;
        let order = workspace.read_u32(gpu, "order", head).await?;
        let n = dims.n_q as usize;
        for (buckets, order) in buckets.chunks(n).zip(order.chunks(n)) {
            let sorted: Vec<u32> = order.iter().map(|position| buckets[*position as usize]).collect();
            lists.lost_pairs.push(lost_pairs(&sorted, &geometry));
            yield_now().await;
        }
        lists.buckets.extend(buckets);
        lists.order.extend(order);
    }
    Ok(Some(lists))
}

/// Rows without the floats that pad them to a multiple of four.
pub(crate) fn unpadded(rows: &[f32], width: u32) -> Vec<f32> {
    let width = width as usize;
    rows.chunks(width.next_multiple_of(4)).flat_map(|row| &row[..width]).copied().collect()
}
