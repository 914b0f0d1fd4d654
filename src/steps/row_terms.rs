//! What the backward pass needs of a row besides its vectors: the log-sum-exp and `dout . out` of a
//! query, the scale of a key. In one buffer, since a stage may bind eight.

use super::{Access, Data, Kernel, Widths, dot, params, read_params};

params! {
    /// `groups = ceil(max(n_q, n_kv) / 64)`.
    Params as "Params" {
        first_group: u32,
        n_q: u32,
        n_kv: u32,
    }
}

/// Rows of 3 x max(n_q, n_kv); what a side does not have is 0.
pub static ROW_TERMS: Kernel = Kernel {
    stem: "row_terms",
    entry: "row_terms",
    source: include_str!("../../shaders/row_terms.wgsl"),
    params: &[Params::WGSL],
    include: "",
    bindings: &[Access::Read, Access::Read, Access::Read, Access::Read, Access::ReadWrite],
    twin,
};

fn twin(params: &[u8], widths: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let rows = p.n_q.max(p.n_kv) as usize;
    let rows_of = |at: usize| buffers[at].f().chunks(widths.dv_stride()).take(p.n_q as usize);
    let deltas = rows_of(0).zip(rows_of(1)).map(|(out, dout)| dot(out, dout)).collect();
    let columns = [buffers[2].f().to_vec(), deltas, buffers[3].f().to_vec()];
    for (terms, mut column) in buffers[4].f_mut().chunks_mut(rows).zip(columns) {
        column.resize(rows, 0.0);
        terms.copy_from_slice(&column);
    }
}
