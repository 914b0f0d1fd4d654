//! Cases of the dense layers: products, norms, feed-forward, loss.

use super::{Cases, Vectors, square};
use crate::methods::product::{Matrix, Product, product_passes};
use crate::methods::{key_buffer, query_buffer, value_buffer};
use crate::plan::{BufferId, Builder, Kind, Limits, New, Plan, Refusal, Role, Step};
use crate::problem::Dims;

/// A buffer of rows that a pass writes.
fn written(b: &mut Builder, name: &'static str, rows: u32, width: u32) -> BufferId {
    let range_words = u64::from(rows) * u64::from(width.next_multiple_of(4));
    b.buffer(New { name, kind: Kind::F32, role: Role::Method, ranges: 1, range_words, shape: &[rows, width] })
}

/// `s = q k^T`, `t = -(s v + bias)`, `u = q^T t`, `w = s^T q` and `t = t + s v`: both matrices as they lie
/// and transposed, with and without what they go on from.
fn products(dims: Dims) -> Result<Plan, Refusal> {
    let mut b = Builder::new(Limits::WEBGPU, dims.widths());
    let Dims { n_q, n_kv, d, d_v, .. } = dims;
    let [q, k, v] = [query_buffer, key_buffer, value_buffer].map(|make| make(&mut b, &dims));
    let [q, k, v] = [q, k, v].map(|id| b.range(id, 0));
    let [s, t, u, w] = [("s", n_q, n_kv), ("t", n_q, d_v), ("u", d, d_v), ("w", n_kv, d)].map(|(name, rows, width)| {
        let id = written(&mut b, name, rows, width);
        b.range(id, 0)
    });
    let (sm, qm, vm) = (Matrix::rows(s, n_kv), Matrix::rows(q, d), Matrix::rows(v, d_v));
    let scores = Product::new(qm, Matrix::rows(k, d).transposed(), [n_q, d, n_kv], s);
    let sums = Product::new(sm, vm, [n_q, n_kv, d_v], t);
    let both = Product::new(qm.transposed(), Matrix::rows(t, d_v), [d, n_q, d_v], u);
    let turned = Product::new(sm.transposed(), qm, [n_kv, n_q, d], w);
    let products = [
        scores,
        // The first row of v serves as the bias.
        Product { bias: Some(v), sign: -1.0, ..sums },
        both,
        turned,
        Product { accumulate: true, ..sums },
    ];
    for product in &products {
        product_passes(&mut b, Step::Measure, product);
    }
    b.finish()
}

pub(super) fn add(all: &mut Cases) {
    let normal = Vectors::Normal(1.0);
    for (n_q, n_kv, d, d_v) in [(1, 1, 1, 1), (2, 2, 4, 3), (33, 65, 17, 5), (64, 32, 16, 128), (100, 37, 130, 14)] {
        let dims = Dims { n_q, n_kv, ..square(1, 1, d, d_v) };
        let name = format!("products of {n_q} x {d}, {n_kv} x {d} and {n_kv} x {d_v}");
        all.add(name, dims, normal, products(dims).map(|plan| vec![plan]));
    }
    // A sum in two passes.
    let long = Dims { n_q: 2, n_kv: 20_000, ..square(1, 1, 3, 5) };
    all.add("products, sums of 20000 terms", long, normal, products(long).map(|plan| vec![plan]));
}
