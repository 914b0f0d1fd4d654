//! Gradients of LSH attention, gathered from all rounds: dq by walking a query's window, those of keys
//! and values by walking the chunks that see a key's own. See [`super::pair_gradient`].
//!
//! Weights come from the stored log-sum-exp. A token that sees only itself has one near the self value,
//! and near -1e5 float32 keeps steps of 1/128: with several rounds its weight may be 0.8 % off.

use super::chunked_attention::{members, score};
use super::pair_gradient::{Gradient, Of, Pair, Rows};
use super::visibility::{self, Geometry, Lists};
use super::{Access, Data, Kernel, Widths, params, read_params};
use crate::semantics::flags;

params! {
    /// `groups = ceil(n / 64)`. A slot is one of the window's: of keys for the queries' gradient; for
    /// the others slot `step * chunk_len + e` is entry `e` of the chunk that sees the key's at this step.
    Params as "Params" {
        first_group: u32,
        round: u32,
        scale: f32,
        self_value: f32,
        lsh: Geometry,
        /// 1 adds to what the gradient holds.
        add: u32,
        pad_0: u32,
        pad_1: u32,
        pad_2: u32,
    }
}

const fn kernel(entry: &'static str, twin: fn(&[u8], Widths, &mut [Data])) -> Kernel {
    Kernel {
        stem: "chunked_attention_backward",
        entry,
        source: include_str!("../../shaders/chunked_attention_backward.wgsl"),
        params: &[Geometry::WGSL, Params::WGSL],
        include: visibility::WALK_WGSL,
        bindings: &[
            Access::Read,
            Access::Read,
            Access::Read,
            Access::Read,
            Access::Read,
            Access::Read,
            Access::Read,
            Access::ReadWrite,
        ],
        twin,
    }
}

/// dq from q, v, order, chunk of, buckets, dout, row terms.
pub static QUERIES: Kernel = kernel("queries", |p, w, b| twin(Of::Queries, p, w, b));
/// The gradient by `u(q)` from q, v, order, chunk of, buckets, dout, row terms.
pub static KEYS: Kernel = kernel("keys", |p, w, b| twin(Of::Keys, p, w, b));
/// dv from q, key scale, order, chunk of, buckets, dout, log-sum-exp.
pub static VALUES: Kernel = kernel("values", |p, w, b| twin(Of::Values, p, w, b));

/// The rows that a pass reads, by name.
pub(crate) fn rows<'a>(of: Of, p: &Params, widths: Widths, buffers: &'a [Data]) -> Rows<'a> {
    let values = of == Of::Values;
    let (q, second, dout, last) = (buffers[0].f(), buffers[1].f(), buffers[5].f(), buffers[6].f());
    let (lse, delta, key_scale) = if values { (last, &[][..], second) } else { Rows::terms(last) };
    let v = if values { &[] } else { second };
    Rows { widths, scale: p.scale.into(), q, k: q, v, dout, key_scale, lse, delta }
}

/// Every pair that a pass walks, with its score in float64. Built from what a query sees alone, for keys
/// and values too, and from the lists of each chunk's members.
pub(crate) fn walk(of: Of, p: &Params, rows: &Rows<'_>, buffers: &[Data], mut each: impl FnMut(&Lists<'_>, Pair)) {
    let g = p.lsh;
    let lists = Lists { geometry: g, chunk_of: buffers[3].u(), buckets: buffers[4].u() };
    let members = members(&g, buffers[2].u(), lists.chunk_of);
    let members = |round: u32, chunk: u32| &members[(round * g.chunks + chunk) as usize];
    for (round, chunk, step) in windows(&g) {
        let Some((other, seen)) = g.seen_chunk(round, chunk, step) else { continue };
        if (if of == Of::Queries { round } else { other }) != p.round {
            continue;
        }
        for (at, &query) in (0..).zip(members(round, chunk)) {
            for (entry, &key) in (0..).zip(members(other, seen)) {
                let walked = g.walks(step, if of == Of::Queries { entry } else { at });
                if !walked || !lists.allowed(query, key) || !lists.sees(query, key, round, step) {
                    continue;
                }
                let (is_self, scale) = (query == key, rows.key_scale[key as usize]);
                let score = score(rows.query(query), scale, rows.key(key), p.scale, is_self, p.self_value, g.flags);
                let fixed = is_self && g.flags & flags::SELF_VALUE != 0;
                each(&lists, Pair { query, key, score: score - lists.correction(query, key), fixed });
            }
        }
    }
}

/// Every step of every chunk's window: (round, chunk, step).
fn windows(g: &Geometry) -> impl Iterator<Item = (u32, u32, u32)> {
    let (rounds, chunks, steps) = (g.rounds, g.chunks, g.steps());
    (0..rounds)
        .flat_map(move |round| (0..chunks).flat_map(move |chunk| (0..steps).map(move |step| (round, chunk, step))))
}

fn twin(of: Of, params: &[u8], widths: Widths, buffers: &mut [Data]) {
    let p: Params = read_params(params);
    let rows = rows(of, &p, widths, buffers);
    let mut gradient = Gradient::new(&buffers[7], p.add);
    walk(of, &p, &rows, buffers, |_, pair| gradient.add(rows.addend(of, &pair)));
    gradient.store(&mut buffers[7]);
}
