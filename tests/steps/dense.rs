//! Wrong twins of the dense layers' kernels.

use super::{Broken, with};
use attention_lab::steps::*;

const RAGGED: &str = "products of 33 x 17, 65 x 17 and 65 x 5";
const BENT: &str = "norm and gelu of 65 x 17, Normal(3.0)";
const LOSS: &str = "loss of 65 rows, 9 words";

const LAYER: &str = "reversible layer, 70 tokens of 3 x 5, 6 buckets";

pub const BROKEN: &[Broken] = &[
    Broken {
        what: "the last id of a word is lost",
        kernel: &packed_ids::PACK,
        case: LAYER,
        twin: |p, w, b| {
            (packed_ids::PACK.twin)(p, w, b);
            b[1].u_mut().iter_mut().for_each(|word| *word &= (1 << 27) - 1);
        },
    },
    Broken {
        what: "ids of one bit less",
        kernel: &packed_ids::UNPACK,
        case: LAYER,
        twin: |p, w, b| {
            (packed_ids::UNPACK.twin)(p, w, b);
            b[0].u_mut().iter_mut().for_each(|id| *id &= 3);
        },
    },
    Broken {
        what: "a matrix that is not transposed",
        kernel: &matrix_product::MULTIPLY,
        case: "products of 64 x 16, 32 x 16 and 32 x 128",
        twin: |p, w, b| product(p, w, b, |p| (p.a_row, p.a_column) = (p.a_column, p.a_row)),
    },
    Broken {
        what: "the last term is lost",
        kernel: &matrix_product::MULTIPLY,
        case: RAGGED,
        twin: |p, w, b| product(p, w, b, |p| p.inner_end -= 1),
    },
    Broken {
        what: "no bias",
        kernel: &matrix_product::MULTIPLY,
        case: RAGGED,
        twin: |p, w, b| product(p, w, b, |p| p.biased = 0),
    },
    Broken {
        what: "no sign",
        kernel: &matrix_product::MULTIPLY,
        case: RAGGED,
        twin: |p, w, b| product(p, w, b, |p| p.sign = 1.0),
    },
    Broken {
        what: "only the last pass counts",
        kernel: &matrix_product::MULTIPLY,
        case: "products, sums of 20000 terms",
        twin: |p, w, b| product(p, w, b, |p| p.accumulate = 0),
    },
    Broken {
        what: "the first row is lost",
        kernel: &column_sums::ADD,
        case: BENT,
        twin: |p, w, b| (column_sums::ADD.twin)(&with::<column_sums::Params>(p, |p| p.start += 1), w, b),
    },
    Broken {
        what: "sums begin anew",
        kernel: &column_sums::ADD,
        case: BENT,
        twin: |p, w, b| (column_sums::ADD.twin)(&with::<column_sums::Params>(p, |p| p.accumulate = 0), w, b),
    },
    Broken {
        what: "no epsilon",
        kernel: &layer_norm::NORMALIZE,
        case: "norm and gelu of 70 x 5, AllLengths",
        twin: |p, w, b| (layer_norm::NORMALIZE.twin)(&with::<layer_norm::Params>(p, |p| p.eps = 0.0), w, b),
    },
    Broken {
        what: "no bias",
        kernel: &layer_norm::NORMALIZE,
        case: BENT,
        twin: |p, w, b| {
            let bias = b[2].clone();
            b[2].f_mut().fill(0.0);
            (layer_norm::NORMALIZE.twin)(p, w, b);
            b[2] = bias;
        },
    },
    Broken {
        what: "the gradient is a thousandth too long",
        kernel: &layer_norm::BACKWARD,
        case: BENT,
        twin: |p, w, b| {
            let dx = b[3].f().to_vec();
            (layer_norm::BACKWARD.twin)(p, w, b);
            b[3].f_mut().iter_mut().zip(dx).for_each(|(new, old)| *new += (*new - old) * 1e-3);
        },
    },
    Broken {
        what: "dx begins anew",
        kernel: &layer_norm::BACKWARD,
        case: BENT,
        twin: |p, w, b| {
            b[3].f_mut().fill(0.0);
            (layer_norm::BACKWARD.twin)(p, w, b);
        },
    },
    Broken {
        what: "dy is left as it was",
        kernel: &layer_norm::BACKWARD,
        case: BENT,
        twin: |p, w, b| {
            let dy = b[2].clone();
            (layer_norm::BACKWARD.twin)(p, w, b);
            b[2] = dy;
        },
    },
    Broken {
        what: "another number is bent",
        kernel: &gelu::ACTIVATE,
        case: "norm and gelu of 2 x 3, Normal(1.0)",
        twin: |p, w, b| {
            b[0].f_mut().iter_mut().for_each(|x| *x *= 1.0001);
            (gelu::ACTIVATE.twin)(p, w, b);
        },
    },
    Broken {
        what: "the slope is gelu itself",
        kernel: &gelu::BACKWARD,
        case: BENT,
        twin: |p, w, b| {
            let gradient = b[1].f().to_vec();
            (gelu::BACKWARD.twin)(p, w, b);
            let bent = b[0].f().to_vec();
            b[1].f_mut().iter_mut().zip(gradient.iter().zip(bent)).for_each(|(new, (old, y))| *new = old * y);
        },
    },
    Broken {
        what: "another target",
        kernel: &cross_entropy::SECTION,
        case: LOSS,
        twin: |p, w, b| {
            let meant = b[1].clone();
            b[1].u_mut().iter_mut().for_each(|target| *target = (*target + 1) % 8);
            (cross_entropy::SECTION.twin)(p, w, b);
            b[1] = meant;
        },
    },
    Broken {
        what: "later sections begin at row 0",
        kernel: &cross_entropy::SECTION,
        case: "loss of 130 rows, 300 words",
        twin: |p, w, b| (cross_entropy::SECTION.twin)(&with::<cross_entropy::Params>(p, |p| p.row_start = 0), w, b),
    },
    Broken {
        what: "no factor",
        kernel: &scaled_copy::COPY,
        case: LOSS,
        twin: |p, w, b| (scaled_copy::COPY.twin)(&with::<scaled_copy::Params>(p, |p| p.factor = 1.0), w, b),
    },
];

fn product(params: &[u8], widths: Widths, buffers: &mut [Data], change: fn(&mut matrix_product::Params)) {
    (matrix_product::MULTIPLY.twin)(&with(params, change), widths, buffers);
}
