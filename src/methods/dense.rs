//! Passes of the dense layers: products, cut so that no loop grows too long, norms, gelu, loss.

use super::bytes_of;
use crate::plan::{Binding, Builder, Step};
use crate::steps::matrix_product::{self, MULTIPLY, SLICE};
use crate::steps::{Kernel, WORKGROUP, column_sums, cross_entropy, gelu, layer_norm, scaled_copy};
use std::sync::Arc;

/// A matrix as a product reads it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix {
    pub binding: Binding,
    /// Words from one row to the next, and from one column to the next.
    row: u32,
    column: u32,
}

impl Matrix {
    /// Rows of `width` floats, each padded to a multiple of four.
    pub fn rows(binding: Binding, width: u32) -> Self {
        Self { binding, row: width.next_multiple_of(4), column: 1 }
    }

    /// Rows of `width` floats, one right after the other.
    pub fn packed(binding: Binding, width: u32) -> Self {
        Self { binding, row: width, column: 1 }
    }

    pub fn transposed(self) -> Self {
        Self { binding: self.binding, row: self.column, column: self.row }
    }
}

/// `to = [to +] sign (a b [+ bias])` with a `[rows, inner]`, b `[inner, columns]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product {
    pub a: Matrix,
    pub b: Matrix,
    pub rows: u32,
    pub inner: u32,
    pub columns: u32,
    /// Added to every row of the product, before the sign.
    pub bias: Option<Binding>,
    pub sign: f32,
    /// Whether what `to` holds is gone on from.
    pub accumulate: bool,
    /// `[rows, columns]`, each row padded to a multiple of four floats.
    pub to: Binding,
}

impl Product {
    /// `to = a b`.
    pub fn new(a: Matrix, b: Matrix, [rows, inner, columns]: [u32; 3], to: Binding) -> Self {
        Self { a, b, rows, inner, columns, bias: None, sign: 1.0, accumulate: false, to }
    }
}

/// Adds the passes of a product.
pub(crate) fn product_passes(b: &mut Builder, step: Step, product: &Product) {
    let Product { a, b: right, rows, inner, columns, bias, sign, accumulate, to } = *product;
    // A binding that is not read still has to be one, and not the one that is written.
    let bindings: Arc<[Binding]> = Arc::new([a.binding, right.binding, bias.unwrap_or(right.binding), to]);
    let c_row = columns.next_multiple_of(4);
    for inner_start in (0..inner).step_by(SLICE as usize) {
        let inner_end = (inner_start + SLICE).min(inner);
        let first = inner_start == 0;
        let params = matrix_product::Params {
            first_group: 0,
            rows,
            columns,
            c_row,
            inner_start,
            inner_end,
            a_row: a.row,
            a_column: a.column,
            b_row: right.row,
            b_column: right.column,
            sign,
            accumulate: u32::from(accumulate || !first),
            biased: u32::from(bias.is_some() && first),
        };
        let terms = f64::from(inner_end - inner_start);
        let flops = 2.0 * f64::from(rows) * f64::from(columns) * terms;
        let cost = (flops, bytes_of(&bindings) * terms / f64::from(inner));
        b.pass(step, &MULTIPLY, &params, &bindings, matrix_product::groups(rows, c_row), cost);
    }
}

/// Threads that each take one number of a binding.
fn numbers(binding: Binding) -> u32 {
    (binding.bytes / 4) as u32
}

/// Layer norm of `[rows, width]`; bindings are x, gain, bias and what is written.
pub(crate) fn norm_pass(b: &mut Builder, step: Step, [rows, width]: [u32; 2], bindings: [Binding; 4]) {
    norm(b, step, &layer_norm::NORMALIZE, [rows, width], bindings, 8.0);
}

/// The gradient of layer norm, added to dx; bindings are x, gain, dy and dx. dy becomes what the
/// gradient of the gain is the column sums of.
pub(crate) fn norm_backward_pass(b: &mut Builder, step: Step, [rows, width]: [u32; 2], bindings: [Binding; 4]) {
    norm(b, step, &layer_norm::BACKWARD, [rows, width], bindings, 16.0);
}

fn norm(
    b: &mut Builder,
    step: Step,
    kernel: &'static Kernel,
    [rows, width]: [u32; 2],
    bindings: [Binding; 4],
    flops: f64,
) {
    let row = width.next_multiple_of(4);
    let params = layer_norm::Params { first_group: 0, rows, width, row, eps: layer_norm::EPS };
    let bindings: Arc<[Binding]> = Arc::new(bindings);
    let cost = (flops * f64::from(rows) * f64::from(width), bytes_of(&bindings));
    b.pass(step, kernel, &params, &bindings, rows.div_ceil(WORKGROUP), cost);
}

/// `sums = [sums +]` the columns of `[rows, width]`, added up.
pub(crate) fn column_sum_passes(
    b: &mut Builder,
    step: Step,
    [rows, width]: [u32; 2],
    x: Binding,
    sums: Binding,
    accumulate: bool,
) {
    let row = width.next_multiple_of(4);
    let bindings: Arc<[Binding]> = Arc::new([x, sums]);
    for start in (0..rows).step_by(column_sums::SLICE as usize) {
        let end = (start + column_sums::SLICE).min(rows);
        let accumulate = u32::from(accumulate || start > 0);
        let params = column_sums::Params { first_group: 0, row, start, end, accumulate };
        let count = f64::from(end - start) * f64::from(width);
        b.pass(step, &column_sums::ADD, &params, &bindings, row, (count, 4.0 * count));
    }
}

/// Every number of `hidden` becomes its gelu.
pub(crate) fn gelu_pass(b: &mut Builder, step: Step, hidden: Binding) {
    gelu_passes(b, step, &gelu::ACTIVATE, Arc::new([hidden]), 8.0);
}

/// As [`gelu_pass`], and the gradient by gelu becomes the gradient by `hidden`.
pub(crate) fn gelu_backward_pass(b: &mut Builder, step: Step, hidden: Binding, gradient: Binding) {
    gelu_passes(b, step, &gelu::BACKWARD, Arc::new([hidden, gradient]), 18.0);
}

fn gelu_passes(b: &mut Builder, step: Step, kernel: &'static Kernel, bindings: Arc<[Binding]>, flops: f64) {
    let count = numbers(bindings[0]);
    let params = gelu::Params { first_group: 0, count };
    let cost = (flops * f64::from(count), 2.0 * bytes_of(&bindings));
    b.pass(step, kernel, &params, &bindings, count.div_ceil(WORKGROUP), cost);
}

/// `to = factor from`.
pub(crate) fn copy_pass(b: &mut Builder, step: Step, factor: f32, from: Binding, to: Binding) {
    let count = numbers(to);
    let params = scaled_copy::Params { first_group: 0, count, factor };
    let bindings: Arc<[Binding]> = Arc::new([from, to]);
    let cost = (f64::from(count), bytes_of(&bindings));
    b.pass(step, &scaled_copy::COPY, &params, &bindings, count.div_ceil(WORKGROUP), cost);
}

/// Loss and gradient of `count` rows from `start` on; bindings are the logits of these rows, which
/// become the gradient, and the targets and losses of all rows.
pub(crate) fn cross_entropy_pass(
    b: &mut Builder,
    step: Step,
    [start, count, vocabulary]: [u32; 3],
    bindings: [Binding; 3],
) {
    let row = vocabulary.next_multiple_of(4);
    let params = cross_entropy::Params { first_group: 0, rows: count, row_start: start, vocabulary, row };
    let bindings: Arc<[Binding]> = Arc::new(bindings);
    let cost = (5.0 * f64::from(count) * f64::from(vocabulary), bytes_of(&bindings));
    b.pass(step, &cross_entropy::SECTION, &params, &bindings, count, cost);
}
