//! Passes of a matrix product, cut so that no loop grows too long.

use super::bytes_of;
use crate::plan::{Binding, Builder, Step};
use crate::steps::matrix_product::{self, MULTIPLY, SLICE};
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
