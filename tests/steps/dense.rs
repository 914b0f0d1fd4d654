//! Wrong twins of the dense layers' kernels.

use super::{Broken, with};
use attention_lab::steps::*;

const RAGGED: &str = "products of 33 x 17, 65 x 17 and 65 x 5";

pub const BROKEN: &[Broken] = &[
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
];

fn product(params: &[u8], widths: Widths, buffers: &mut [Data], change: fn(&mut matrix_product::Params)) {
    (matrix_product::MULTIPLY.twin)(&with(params, change), widths, buffers);
}
