//! Gradients of exact attention, gathered row by row from the log-sum-exp of the forward pass: no
//! n x n matrix, and no two threads that add to one number. See [`super::pair_gradient`].

use super::chunked_attention::score;
use super::full_attention::allowed;
use super::pair_gradient::{Gradient, Of, Pair, Rows, vectors};
use super::{Access, Data, Kernel, LONGEST_LOOP, Widths, params, read_params};
use crate::semantics::flags;

/// Keys or queries of a slice, see [`LONGEST_LOOP`].
pub fn slice(widths: Widths) -> u32 {
    LONGEST_LOOP / (1 + vectors(widths))
}

params! {
    /// `groups = ceil(rows / 64)`, `rows` being `n_q` for the queries and `n_kv` for keys and values.
    Params as "Params" {
        first_group: u32,
        n_q: u32,
        n_kv: u32,
        /// The slice: of the keys for the queries' gradient, of the queries for the others.
        start: u32,
        end: u32,
        /// 1 adds to what the gradient holds.
        add: u32,
        flags: u32,
        scale: f32,
        self_value: f32,
    }
}

const fn kernel(entry: &'static str, twin: fn(&[u8], Widths, &mut [Data])) -> Kernel {
    Kernel {
        stem: "full_attention_backward",
        entry,
        source: include_str!("../../shaders/full_attention_backward.wgsl"),
        params: &[Params::WGSL],
        include: "",
        bindings: &[Access::Read, Access::Read, Access::Read, Access::Read, Access::Read, Access::ReadWrite],
        twin,
    }
}

/// dq from q, k, v, row terms, dout.
pub static QUERIES: Kernel = kernel("queries", |p, w, b| twin(Of::Queries, p, w, b));
/// The gradient by `u(k)` from q, k, v, row terms, dout.
pub static KEYS: Kernel = kernel("keys", |p, w, b| twin(Of::Keys, p, w, b));
/// `dv = P^T dout` from q, k, key scale, log-sum-exp, dout; any `[n_q, d_v]` may stand for dout.
pub static VALUES: Kernel = kernel("values", |p, w, b| twin(Of::Values, p, w, b));

/// The rows that a pass reads, by name.
pub(crate) fn rows<'a>(of: Of, p: &Params, widths: Widths, buffers: &'a [Data]) -> Rows<'a> {
    let (lse, delta, key_scale) = match of {
        Of::Values => (buffers[3].f(), &[][..], buffers[2].f()),
        _ => Rows::terms(buffers[3].f()),
    };
    let v = if of == Of::Values { &[] } else { buffers[2].f() };
    let (q, k, dout) = (buffers[0].f(), buffers[1].f(), buffers[4].f());
    Rows { widths, scale: p.scale.into(), q, k, v, dout, key_scale, lse, delta }
}

/// Every pair that a pass walks, with its score in float64.
pub(crate) fn walk(of: Of, p: &Params, rows: &Rows<'_>, mut each: impl FnMut(Pair)) {
    let slice = p.start..p.end;
    let (queries, keys) = if of == Of::Queries { (0..p.n_q, slice) } else { (slice, 0..p.n_kv) };
    for query in queries {
        for key in keys.clone().filter(|key| allowed(query, *key, p.flags)) {
            let (is_self, scale) = (query == key, rows.key_scale[key as usize]);
            let score = score(rows.query(query), scale, rows.key(key), p.scale, is_self, p.self_value, p.flags);
            each(Pair { query, key, score, fixed: is_self && p.flags & flags::SELF_VALUE != 0 });
        }
    }
}

fn twin(of: Of, params: &[u8], widths: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let rows = rows(of, &p, widths, buffers);
    let mut gradient = Gradient::new(&buffers[5], p.add);
    walk(of, &p, &rows, |pair| gradient.add(rows.addend(of, &pair)));
    gradient.store(&mut buffers[5]);
}
