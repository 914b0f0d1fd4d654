//! Wrong twins of the kernels that fit E and F.

use super::Broken;
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
    misread!("rows of the target are padded", residual::RESIDUAL, "fit of the map, 130 keys into 129",
        p => p.columns -= 1),
    misread!("the last row is lost", residual::TOTAL, OUTPUT, p => p.rows -= 1),
    misread!("every loss is written to the first place", residual::TOTAL, OUTPUT, p => p.step = 0),
    misread!("no scale", softmax_backward::BACKWARD, OUTPUT, p => p.scale = 1.0),
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
    misread!("running means are not unbiased", adam::STEP, OUTPUT, p => p.unbias_first = 1.0),
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
