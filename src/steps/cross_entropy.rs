//! The loss of a vocabulary, `-log softmax(logits)[target]`, over a section of the rows, and its
//! gradient by the logits in their place. By sections the logits of all rows never stand in memory
//! together (Reformer section 3, "Chunking").

use super::{Access, Data, Kernel, ROW_REDUCTION, Widths, params, read_params};

params! {
    /// `groups = rows`, one workgroup a row.
    Params as "Params" {
        first_group: u32,
        /// Rows of the section; it begins at `row_start`.
        rows: u32,
        row_start: u32,
        /// Logits of a row, and its words.
        vocabulary: u32,
        row: u32,
    }
}

/// logits `[rows, vocabulary]`, targets, loss of every row.
pub static SECTION: Kernel = Kernel {
    stem: "cross_entropy",
    entry: "section",
    source: include_str!("../../shaders/cross_entropy.wgsl"),
    params: &[Params::WGSL],
    include: ROW_REDUCTION,
    bindings: &[Access::ReadWrite, Access::Read, Access::ReadWrite],
    twin,
};

fn twin(params: &[u8], _: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let stride = p.row as usize;
    for row in 0..p.rows as usize {
        let at = p.row_start as usize + row;
        let meant = buffers[1].u()[at] as usize;
        let logits = &mut buffers[0].f_mut()[row * stride..][..stride];
        let (kept, padding) = logits.split_at_mut(p.vocabulary as usize);
        let top = kept.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = kept.iter().map(|logit| (logit - top).exp()).sum();
        let loss = top - kept[meant] + total.ln();
        for (j, logit) in kept.iter_mut().enumerate() {
            *logit = (*logit - top).exp() / total - f64::from(u8::from(j == meant));
        }
        padding.fill(0.0);
        buffers[2].f_mut()[at] = loss;
    }
}
