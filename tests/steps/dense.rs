//! Wrong twins of the dense layers' kernels.

use super::Broken;
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
            b[1].u_mut().iter_mut().for_each(|id| *id &= 3);
        },
    },
    misread!("a matrix that is not transposed", matrix_product::MULTIPLY, "products of 64 x 16, 32 x 16 and 32 x 128",
        p => (p.a_row, p.a_column) = (p.a_column, p.a_row)),
    misread!("the last term is lost", matrix_product::MULTIPLY, RAGGED, p => p.inner_end -= 1),
    misread!("no bias", matrix_product::MULTIPLY, RAGGED, p => p.biased = 0),
    misread!("no sign", matrix_product::MULTIPLY, RAGGED, p => p.sign = 1.0),
    misread!("only the last pass counts", matrix_product::MULTIPLY, "products, sums of 20000 terms",
        p => p.accumulate = 0),
    misread!("the first row is lost", column_sums::ADD, BENT, p => p.start += 1),
    misread!("sums begin anew", column_sums::ADD, BENT, p => p.accumulate = 0),
    misread!("no epsilon", layer_norm::NORMALIZE, "norm and gelu of 70 x 5, AllLengths", p => p.eps = 0.0),
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
    misread!("later sections begin at row 0", cross_entropy::SECTION, "loss of 130 rows, 300 words",
        p => p.row_start = 0),
    misread!("no factor", scaled_copy::COPY, LOSS, p => p.factor = 1.0),
];
