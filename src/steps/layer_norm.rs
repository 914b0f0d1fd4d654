//! Layer norm inside the branches of a layer, `y = gain (x - mean) / sqrt(variance + eps) + bias`, and
//! its gradient.

use super::{Access, Data, Kernel, Widths, params, read_params};

/// Added to the variance, as everywhere.
pub const EPS: f32 = 1e-5;

params! {
    /// `groups = ceil(rows / 64)`; rows have `width` numbers in `row` words.
    Params as "Params" {
        first_group: u32,
        rows: u32,
        width: u32,
        row: u32,
        eps: f32,
    }
}

const fn kernel(entry: &'static str, bindings: &'static [Access], twin: fn(&[u8], Widths, &mut [Data])) -> Kernel {
    Kernel {
        stem: "layer_norm",
        entry,
        source: include_str!("../../shaders/layer_norm.wgsl"),
        params: &[Params::WGSL],
        include: "",
        bindings,
        twin,
    }
}

/// x, gain, bias, y.
pub static NORMALIZE: Kernel =
    kernel("normalize", &[Access::Read, Access::Read, Access::Read, Access::ReadWrite], normalize);

/// x, gain, dy, dx. The gradient is added to `dx`; `dy` becomes `dy x^`, whose column sums are the
/// gradient of the gain. That of the bias are the column sums of dy before.
pub static BACKWARD: Kernel =
    kernel("backward", &[Access::Read, Access::Read, Access::ReadWrite, Access::ReadWrite], backward);

/// The row at unit deviation, and `1 / sqrt(variance + eps)`.
pub(crate) fn unit(x: &[f64], eps: f32) -> (Vec<f64>, f64) {
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    let variance = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / x.len() as f64;
    let inverse = 1.0 / (variance + f64::from(eps)).sqrt();
    (x.iter().map(|x| (x - mean) * inverse).collect(), inverse)
}

fn normalize(params: &[u8], _: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let (width, stride) = (p.width as usize, p.row as usize);
    for i in 0..p.rows as usize {
        let (unit, _) = unit(&buffers[0].f()[i * stride..][..width], p.eps);
        let scaled = unit.iter().zip(buffers[1].f()).zip(buffers[2].f()).map(|((unit, gain), bias)| unit * gain + bias);
        let row: Vec<f64> = scaled.chain(std::iter::repeat(0.0)).take(stride).collect();
        buffers[3].f_mut()[i * stride..][..stride].copy_from_slice(&row);
    }
}

fn backward(params: &[u8], _: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let (width, stride) = (p.width as usize, p.row as usize);
    for i in 0..p.rows as usize {
        let row = i * stride..i * stride + width;
        let (unit, inverse) = unit(&buffers[0].f()[row.clone()], p.eps);
        let dy = buffers[2].f()[row.clone()].to_vec();
        let g: Vec<f64> = dy.iter().zip(buffers[1].f()).map(|(dy, gain)| dy * gain).collect();
        let level = g.iter().sum::<f64>() / width as f64;
        let slope = g.iter().zip(&unit).map(|(g, u)| g * u).sum::<f64>() / width as f64;
        for (c, at) in row.enumerate() {
            buffers[3].f_mut()[at] += inverse * (g[c] - level - unit[c] * slope);
            buffers[2].f_mut()[at] = dy[c] * unit[c];
        }
    }
}
