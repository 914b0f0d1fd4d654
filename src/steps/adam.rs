//! One step of gradient descent by Adam (Kingma and Ba 2015, algorithm 1).

use super::{Access, Data, Kernel, Widths, params, read_params};

params! {
    /// `groups = ceil(count / 64)`.
    Params as "Params" {
        first_group: u32,
        count: u32,
        rate: f32,
        decay_first: f32,
        decay_second: f32,
        /// `1 / (1 - decay^t)` in step t, counted from 1.
        unbias_first: f32,
        unbias_second: f32,
        epsilon: f32,
    }
}

impl Params {
    /// The parameters of step `step`, counted from 0, with the decays of the paper. Gradients of a
    /// relative loss are small, so epsilon is, too.
    pub fn new(count: u32, rate: f32, step: u32) -> Self {
        let (first, second) = (0.9f32, 0.999f32);
        let unbias = |decay: f32| (1.0 / (1.0 - libm::pow(f64::from(decay), f64::from(step) + 1.0))) as f32;
        Self {
            first_group: 0,
            count,
            rate,
            decay_first: first,
            decay_second: second,
            unbias_first: unbias(first),
            unbias_second: unbias(second),
            epsilon: 1e-12,
        }
    }
}

pub static STEP: Kernel = Kernel {
    stem: "adam",
    entry: "adam",
    source: include_str!("../../shaders/adam.wgsl"),
    params: &[Params::WGSL],
    include: "",
    bindings: &[Access::Read, Access::ReadWrite, Access::ReadWrite, Access::ReadWrite],
    twin,
};

fn twin(params: &[u8], _: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let [first, second] = [p.decay_first, p.decay_second].map(f64::from);
    for at in 0..p.count as usize {
        let slope = buffers[0].f()[at];
        let mean = first * buffers[1].f()[at] + (1.0 - first) * slope;
        let square = second * buffers[2].f()[at] + (1.0 - second) * slope * slope;
        buffers[1].f_mut()[at] = mean;
        buffers[2].f_mut()[at] = square;
        let length = (square * f64::from(p.unbias_second)).sqrt() + f64::from(p.epsilon);
        buffers[3].f_mut()[at] -= f64::from(p.rate) * mean * f64::from(p.unbias_first) / length;
    }
}
