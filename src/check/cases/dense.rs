//! Cases of the dense layers: products, norms, feed-forward, loss.

use super::{Cases, Vectors, paper, square};
use crate::methods::dense::{self, Matrix, Product, product_passes};
use crate::methods::{key_buffer, lsh, query_buffer, row_vectors, value_buffer, words};
use crate::plan::{Binding, Builder, Kind, Limits, Plan, Refusal, Role, Step};
use crate::problem::Dims;

/// A buffer of rows that a pass writes.
fn written(b: &mut Builder, name: &'static str, rows: u32, width: u32) -> Binding {
    let id = row_vectors(b, name, Role::Method, 1, rows, width);
    b.range(id, 0)
}

/// `s = q k^T`, `t = -(s v + bias)`, `u = q^T t`, `w = s^T q` and `t = t + s v`: both matrices as they lie
/// and transposed, with and without what they go on from.
fn products(dims: Dims) -> Result<Plan, Refusal> {
    let mut b = Builder::new(Limits::WEBGPU, dims.widths());
    let Dims { n_q, n_kv, d, d_v, .. } = dims;
    let [q, k, v] = [query_buffer, key_buffer, value_buffer].map(|make| make(&mut b, &dims));
    let [q, k, v] = [q, k, v].map(|id| b.range(id, 0));
    let made = [("s", n_q, n_kv), ("t", n_q, d_v), ("u", d, d_v), ("w", n_kv, d)];
    let [s, t, u, w] = made.map(|(name, rows, width)| written(&mut b, name, rows, width));
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

/// Layer norm of the queries with the first key as the gain and the first value as the bias, its
/// gradient, both column sums, and gelu with its gradient.
fn bent(dims: Dims) -> Result<Plan, Refusal> {
    let mut b = Builder::new(Limits::WEBGPU, dims.widths());
    let Dims { n_q: n, d, .. } = dims;
    let [q, k, v] = [query_buffer, key_buffer, value_buffer].map(|make| make(&mut b, &dims));
    let [x, gain, bias] = [q, k, v].map(|id| b.range(id, 0));
    let [y, dx] = ["y", "dx"].map(|name| written(&mut b, name, n, d));
    let [sums, gains] = ["sums", "gains"].map(|name| written(&mut b, name, 1, d));
    let step = Step::Measure;
    dense::norm_pass(&mut b, step, [n, d], [x, gain, bias, y]);
    dense::copy_pass(&mut b, step, -0.3, x, dx);
    dense::column_sum_passes(&mut b, step, [n, d], y, sums, false);
    dense::norm_backward_pass(&mut b, step, [n, d], [x, gain, y, dx]);
    dense::column_sum_passes(&mut b, step, [n, d], y, gains, false);
    dense::column_sum_passes(&mut b, step, [n, d], y, sums, true);
    dense::gelu_backward_pass(&mut b, step, y, dx);
    dense::gelu_pass(&mut b, step, dx);
    b.finish()
}

/// Hash of the queries, then the loss of their bucket among `d` logits, in two sections of rows.
fn losses(dims: Dims, buckets: u32) -> Result<Vec<Plan>, Refusal> {
    let lsh = paper(1, &[buckets], 16);
    let mut b = Builder::new(Limits::WEBGPU, dims.widths());
    let q = query_buffer(&mut b, &dims);
    let targets = words(&mut b, "buckets", Kind::U32, Role::Method, 1, &[1, dims.n_q]);
    let loss = words(&mut b, "loss", Kind::F32, Role::Method, 1, &[dims.n_q]);
    let (targets, loss) = (b.range(targets, 0), b.range(loss, 0));
    let rows = dims.n_q.div_ceil(2).next_multiple_of(64).min(dims.n_q);
    for (name, start) in [("logits", 0), ("more logits", rows)] {
        let count = rows.min(dims.n_q - start);
        if count == 0 {
            continue;
        }
        let stride = u64::from(dims.d.next_multiple_of(4));
        let part = b.part(q, 0, u64::from(start) * stride, u64::from(count) * stride);
        let logits = written(&mut b, name, count, dims.d);
        dense::copy_pass(&mut b, Step::Measure, 3.0, part, logits);
        dense::cross_entropy_pass(&mut b, Step::Measure, [start, count, dims.d], [logits, targets, loss]);
    }
    Ok(vec![lsh::hash_plan(&dims, &lsh, Limits::WEBGPU)?, b.finish()?])
}

pub(super) fn add(all: &mut Cases) {
    let normal = Vectors::Normal(1.0);
    for (n_q, n_kv, d, d_v) in [(1, 1, 1, 1), (2, 2, 4, 3), (33, 65, 17, 5), (64, 32, 16, 128), (100, 37, 130, 14)] {
        let dims = Dims { n_q, n_kv, ..square(1, 1, d, d_v) };
        let name = format!("products of {n_q} x {d}, {n_kv} x {d} and {n_kv} x {d_v}");
        all.add(name, dims, normal, products(dims).map(|plan| vec![plan]));
    }
    for (n, d, vectors) in [
        (1, 1, normal),
        (2, 3, normal),
        (65, 17, Vectors::Normal(3.0)),
        (200, 130, normal),
        (70, 5, Vectors::AllLengths),
        (5, 7, Vectors::Zero),
    ] {
        let name = format!("norm and gelu of {n} x {d}, {vectors:?}");
        all.add(name, square(n, 1, d, d), vectors, bent(square(n, 1, d, d)).map(|plan| vec![plan]));
    }
    for (n, d, buckets) in [(1, 2, 2), (65, 9, 8), (130, 300, 256)] {
        let name = format!("loss of {n} rows, {d} words");
        all.add(name, square(n, 1, d, 1), normal, losses(square(n, 1, d, 1), buckets));
    }
    // A sum in two passes.
    let long = Dims { n_q: 2, n_kv: 20_000, ..square(1, 1, 3, 5) };
    all.add("products, sums of 20000 terms", long, normal, products(long).map(|plan| vec![plan]));
}
