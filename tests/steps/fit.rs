//! Wrong twins of the kernels that fit E and F.

use super::{Broken, with};
use attention_lab::steps::*;

const OUTPUT: &str = "fit of the output, 65 keys into 7";
const MAP: &str = "fit of the map, 65 keys into 7";

pub const BROKEN: &[Broken] = &[
    Broken {
        what: "the target counts half",
        kernel: &residual::RESIDUAL,
        case: MAP,
        twin: |p, w, b| {
            let wanted = b[1].clone();
            b[1].f_mut().iter_mut().for_each(|x| *x *= 0.5);
            (residual::RESIDUAL.twin)(p, w, b);
            b[1] = wanted;
        },
    },
    Broken {
        what: "rows of the target are padded",
        kernel: &residual::RESIDUAL,
        case: "fit of the map, 130 keys into 129",
        twin: |p, w, b| {
            let fewer = with::<residual::Params>(p, |p| p.columns -= 1);
            (residual::RESIDUAL.twin)(&fewer, w, b);
        },
    },
    Broken {
        what: "the last row is lost",
        kernel: &residual::TOTAL,
        case: OUTPUT,
        twin: |p, w, b| (residual::TOTAL.twin)(&with::<residual::Params>(p, |p| p.rows -= 1), w, b),
    },
    Broken {
        what: "every loss is written to the first place",
        kernel: &residual::TOTAL,
        case: OUTPUT,
        twin: |p, w, b| (residual::TOTAL.twin)(&with::<residual::Params>(p, |p| p.step = 0), w, b),
    },
    Broken {
        what: "no scale",
        kernel: &softmax_backward::BACKWARD,
        case: OUTPUT,
        twin: |p, w, b| {
            (softmax_backward::BACKWARD.twin)(&with::<softmax_backward::Params>(p, |p| p.scale = 1.0), w, b)
        },
    },
    Broken {
        what: "the mean slope is kept",
        kernel: &softmax_backward::BACKWARD,
        case: MAP,
        twin: |p, w, b| {
            let before = b[1].f().to_vec();
            (softmax_backward::BACKWARD.twin)(p, w, b);
            b[1].f_mut()[0] = b[0].f()[0] * before[0] / 17f64.sqrt();
        },
    },
    Broken {
        what: "running means are not unbiased",
        kernel: &adam::STEP,
        case: OUTPUT,
        twin: |p, w, b| (adam::STEP.twin)(&with::<adam::Params>(p, |p| p.unbias_first = 1.0), w, b),
    },
    Broken {
        what: "the running mean is forgotten",
        kernel: &adam::STEP,
        case: MAP,
        twin: |p, w, b| {
            b[1].f_mut().fill(0.0);
            (adam::STEP.twin)(p, w, b);
        },
    },
];
