//! Fits E and F of one head to the input by gradient descent: the forward pass of Linformer, equation
//! (7), its gradients, and a step of Adam.
//!
//! With `S = Q (E K)^T / sqrt d`, `P = softmax(S)` and the loss `|O - O*|^2 / |O*|^2` of the output
//! `O = P F V`, the gradients are `dFV = P^T dO`, `dF^T = V dFV^T`, `dP = dO (F V)^T`,
//! `dEK = dS^T Q / sqrt d` and `dE^T = K dEK^T`. For the map `M = P F` they are `dF^T = dM^T P` and
//! `dP = dM F^T`; the rest is the same.

use super::dense::{Matrix, Product, product_passes};
use super::linformer::{self, Linformer};
use super::measure::PLAIN;
use super::{bytes_of, full, key_buffer, key_norm_pass, online_pass, query_buffer, value_buffer, words};
use crate::plan::{Binding, BufferId, Builder, Kind, Limits, Plan, Refusal, Role, Step};
use crate::problem::{Dims, Source};
use crate::steps::materialized_attention::{self, SCORES, SOFTMAX};
use crate::steps::{WORKGROUP, adam, residual, softmax_backward};
use std::sync::Arc;

/// What is held against exact attention, `softmax(Q K^T / sqrt d) V`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    /// The output.
    Output,
    /// The n x n matrix that the values are multiplied with, P-bar F.
    Map,
}

/// A descent on one head. E and F start as the problem has them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Descent {
    pub linformer: Linformer,
    pub loss: Loss,
    /// Learning rate of Adam.
    pub rate: f32,
}

/// Longest sequences that are fitted, and most projected rows: time and memory of a step grow with
/// `n k d`, and with `n^2 k` for the map.
pub const MOST_N: [(Loss, u32); 2] = [(Loss::Output, 4096), (Loss::Map, 2048)];
pub const MOST_K: u32 = 1024;

impl Loss {
    pub fn longest(self) -> u32 {
        MOST_N.iter().find(|(loss, _)| *loss == self).map_or(0, |(_, n)| *n)
    }
}

/// Plans what a fit is held against, `fit target`: exact outputs `[n, d_v]` in padded rows, or the exact
/// matrix `[n, n]`.
///
/// # Errors
/// The first buffer that the device cannot hold.
pub fn target(dims: &Dims, loss: Loss, limits: Limits) -> Result<Plan, Refusal> {
    let mut b = Builder::new(limits, dims.widths());
    let q = query_buffer(&mut b, dims);
    let (k, scale) = full::keys(&mut b, dims, &PLAIN, "key scale");
    let lse = words(&mut b, "lse", Kind::F32, Role::Method, 1, &[dims.n_q]);
    let width = if loss == Loss::Map { dims.n_kv } else { b.widths().dv_stride() as u32 };
    let target = instrument(&mut b, "fit target", &[dims.n_q, width]);
    let [q, k, scale, lse, target] = [q, k, scale, lse, target].map(|id| b.range(id, 0));
    key_norm_pass(&mut b, Step::Measure, dims.n_kv, dims.d, &PLAIN.semantics, k, scale);
    match loss {
        Loss::Output => {
            let v = value_buffer(&mut b, dims);
            let v = b.range(v, 0);
            online_pass(&mut b, Step::Measure, dims, dims.n_kv, &PLAIN.semantics, [q, k, v, scale, target, lse]);
        }
        Loss::Map => softmax_rows(&mut b, dims, dims.n_kv, [q, k, scale, target, lse]),
    }
    b.finish()
}

/// `softmax(q k^T / sqrt d)` of all queries and `keys` keys; bindings are q, k, key scale, weights, lse.
fn softmax_rows(b: &mut Builder, dims: &Dims, keys: u32, [q, k, scale, weights, lse]: [Binding; 5]) {
    let rows = full::Rows { start: 0, count: dims.n_q, base: 0, stride: 1, modulus: dims.n_q };
    let params = full::block_params(dims, keys, &PLAIN.semantics, rows);
    let groups = materialized_attention::groups(dims.n_q, keys, b.widths());
    let cells = f64::from(dims.n_q) * f64::from(keys);
    let scores: Arc<[Binding]> = Arc::new([q, k, scale, weights]);
    let cost = (2.0 * cells * f64::from(dims.d), bytes_of(&scores));
    b.pass(Step::Measure, &SCORES, &params, &scores, groups[0], cost);
    let softmax: Arc<[Binding]> = Arc::new([weights, lse]);
    b.pass(Step::Measure, &SOFTMAX, &params, &softmax, groups[1], (3.0 * cells, bytes_of(&softmax)));
}

fn instrument(b: &mut Builder, name: &'static str, shape: &[u32]) -> BufferId {
    words(b, name, Kind::F32, Role::Method, 1, shape)
}

/// A matrix to be fitted: its values, the gradient and Adam's running means, all `[n, k]` transposed.
#[derive(Clone, Copy)]
struct Fitted {
    value: Binding,
    slope: Binding,
    means: [Binding; 2],
}

impl Fitted {
    fn new(b: &mut Builder, dims: &Dims, linformer: &Linformer, source: Source, clear: bool) -> Self {
        let value = linformer::side_matrix(b, dims, linformer, source);
        let names =
            if source == Source::E { ["E slope", "E mean", "E square"] } else { ["F slope", "F mean", "F square"] };
        let [slope, mean, square] =
            names.map(|name| instrument(b, name, &[dims.n_kv, linformer.k.next_multiple_of(4)]));
        if clear {
            [mean, square].into_iter().for_each(|id| b.zeroed(id));
        }
        let [value, slope, mean, square] = [value, slope, mean, square].map(|id| b.range(id, 0));
        Self { value, slope, means: [mean, square] }
    }

    fn step(&self, b: &mut Builder, rate: f32, step: u32) {
        let count = (self.value.bytes / 4) as u32;
        let params = adam::Params::new(count, rate, step);
        let bindings: Arc<[Binding]> = Arc::new([self.slope, self.means[0], self.means[1], self.value]);
        let cost = (12.0 * f64::from(count), bytes_of(&bindings));
        b.pass(Step::Measure, &adam::STEP, &params, &bindings, count.div_ceil(WORKGROUP), cost);
    }
}

/// Plans `count` steps from step `first` on, on the buffers that [`target`] and earlier steps left.
/// `fit loss` takes the loss before each step. `length` is the sum of the squares of the target.
///
/// # Errors
/// The first buffer that the device cannot hold.
pub fn steps(
    dims: &Dims,
    descent: &Descent,
    length: f64,
    first: u32,
    count: u32,
    limits: Limits,
) -> Result<Plan, Refusal> {
    let mut b = Builder::new(limits, dims.widths());
    let work = Work::new(&mut b, dims, descent, count, first == 0);
    for step in 0..count {
        work.step(&mut b, length, first + step, step);
    }
    b.finish()
}

/// The buffers of a step.
struct Work<'a> {
    dims: &'a Dims,
    descent: &'a Descent,
    q: Binding,
    keys: Binding,
    values: Binding,
    e: Fitted,
    /// None where F is E.
    f: Option<Fitted>,
    ek: Binding,
    fv: Binding,
    scale: Binding,
    lse: Binding,
    weights: Binding,
    target: Binding,
    value: Binding,
    row_loss: Binding,
    loss: Binding,
    slope_ek: Binding,
    slope_fv: Binding,
    slope_weights: Binding,
}

impl<'a> Work<'a> {
    fn new(b: &mut Builder, dims: &'a Dims, descent: &'a Descent, count: u32, clear: bool) -> Self {
        let linformer = &descent.linformer;
        let (n, k, k4) = (dims.n_q, linformer.k, linformer.k.next_multiple_of(4));
        let [d, d_v] = [b.widths().d_stride() as u32, b.widths().dv_stride() as u32];
        let [width, target_row] = match descent.loss {
            Loss::Output => [d_v, d_v],
            Loss::Map => [dims.n_kv.next_multiple_of(4), dims.n_kv],
        };
        let shared = linformer::buffers(b, dims, linformer);
        let [keys, values] = [key_buffer, value_buffer].map(|make| make(b, dims));
        let fv = linformer::projected(b, "F V", 1, k, dims.d_v);
        let lse = words(b, "lse", Kind::F32, Role::Method, 1, &[n]);
        let ids = [shared.q, keys, values, shared.projected_keys, fv, shared.projected_scale, lse];
        let [q, keys, values, ek, fv, scale, lse] = ids.map(|id| b.range(id, 0));
        let mut own = |name, shape: &[u32]| {
            let id = instrument(b, name, shape);
            b.range(id, 0)
        };
        let weights = own("fit weights", &[n, k]);
        let target = own("fit target", &[n, target_row]);
        let value = own("fit value", &[n, width]);
        let (row_loss, loss) = (own("fit row loss", &[n]), own("fit loss", &[count]));
        let (slope_ek, slope_fv) = (own("E K slope", &[k, d]), own("F V slope", &[k, d_v]));
        let slope_weights = own("fit weights slope", &[n, k4]);
        let e = Fitted::new(b, dims, linformer, Source::E, clear);
        let f = (!linformer.shared_ef).then(|| Fitted::new(b, dims, linformer, Source::F, clear));
        Self {
            dims,
            descent,
            q,
            keys,
            values,
            e,
            f,
            ek,
            fv,
            scale,
            lse,
            weights,
            target,
            value,
            row_loss,
            loss,
            slope_ek,
            slope_fv,
            slope_weights,
        }
    }

    fn step(&self, b: &mut Builder, length: f64, step: u32, place: u32) {
        let Dims { n_q, n_kv, d, d_v, .. } = *self.dims;
        let k = self.descent.linformer.k;
        let f = self.f.unwrap_or(self.e);
        let (e_matrix, f_matrix) = (Matrix::rows(self.e.value, k), Matrix::rows(f.value, k));
        let (keys, values) = (Matrix::rows(self.keys, d), Matrix::rows(self.values, d_v));
        let weights = Matrix::packed(self.weights, k);
        let multiply = |b: &mut Builder, x: Matrix, y: Matrix, sizes: [u32; 3], to: Binding| {
            product_passes(b, Step::Measure, &Product::new(x, y, sizes, to));
        };

        multiply(b, e_matrix.transposed(), keys, [k, n_kv, d], self.ek);
        if place == 0 {
            key_norm_pass(b, Step::Measure, k, d, &PLAIN.semantics, self.ek, self.scale);
        }
        softmax_rows(b, self.dims, k, [self.q, self.ek, self.scale, self.weights, self.lse]);
        match self.descent.loss {
            Loss::Output => {
                let fv = Matrix::rows(self.fv, d_v);
                let (value, slope_fv) = (Matrix::rows(self.value, d_v), Matrix::rows(self.slope_fv, d_v));
                multiply(b, f_matrix.transposed(), values, [k, n_kv, d_v], self.fv);
                multiply(b, weights, fv, [n_q, k, d_v], self.value);
                self.compare(b, length, d_v, place);
                multiply(b, weights.transposed(), value, [k, n_q, d_v], self.slope_fv);
                multiply(b, values, slope_fv.transposed(), [n_kv, d_v, k], f.slope);
                multiply(b, value, fv.transposed(), [n_q, d_v, k], self.slope_weights);
            }
            Loss::Map => {
                let value = Matrix::rows(self.value, n_kv);
                multiply(b, weights, f_matrix.transposed(), [n_q, k, n_kv], self.value);
                self.compare(b, length, n_kv, place);
                multiply(b, value.transposed(), weights, [n_kv, n_q, k], f.slope);
                multiply(b, value, f_matrix, [n_q, n_kv, k], self.slope_weights);
            }
        }
        self.softmax_backward(b);
        let slope_weights = Matrix::rows(self.slope_weights, k);
        multiply(b, slope_weights.transposed(), Matrix::rows(self.q, d), [k, n_q, d], self.slope_ek);
        let slope_ek = Matrix::rows(self.slope_ek, d).transposed();
        let to_e = Product::new(keys, slope_ek, [n_kv, d, k], self.e.slope);
        // Where F is E, its part of the slope is there already.
        product_passes(b, Step::Measure, &Product { accumulate: self.f.is_none(), ..to_e });
        self.e.step(b, self.descent.rate, step);
        if let Some(f) = self.f {
            f.step(b, self.descent.rate, step);
        }
    }

    /// The loss, and its gradient in place of the value.
    fn compare(&self, b: &mut Builder, length: f64, columns: u32, place: u32) {
        let rows = self.dims.n_q;
        let padded = columns.next_multiple_of(4);
        let params = residual::Params {
            first_group: 0,
            rows,
            columns,
            value_row: padded,
            target_row: if self.descent.loss == Loss::Map { columns } else { padded },
            weight: (2.0 / length) as f32,
            step: place,
        };
        let bindings: Arc<[Binding]> = Arc::new([self.value, self.target, self.row_loss]);
        let cost = (4.0 * f64::from(rows) * f64::from(columns), bytes_of(&bindings));
        b.pass(Step::Measure, &residual::RESIDUAL, &params, &bindings, rows, cost);
        let bindings: Arc<[Binding]> = Arc::new([self.row_loss, self.loss]);
        b.pass(Step::Measure, &residual::TOTAL, &params, &bindings, 1, (f64::from(rows), bytes_of(&bindings)));
    }

    fn softmax_backward(&self, b: &mut Builder) {
        let k = self.descent.linformer.k;
        let params = softmax_backward::Params {
            first_group: 0,
            rows: self.dims.n_q,
            columns: k,
            gradient_row: k.next_multiple_of(4),
            scale: PLAIN.semantics.score_scale.factor(self.dims.d),
        };
        let bindings: Arc<[Binding]> = Arc::new([self.weights, self.slope_weights]);
        let cost = (5.0 * f64::from(self.dims.n_q) * f64::from(k), bytes_of(&bindings));
        b.pass(Step::Measure, &softmax_backward::BACKWARD, &params, &bindings, self.dims.n_q, cost);
    }
}
