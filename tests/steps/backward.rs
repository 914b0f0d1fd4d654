//! Wrong twins of the gradients of attention.

use super::{Broken, with};
use attention_lab::semantics::flags;
use attention_lab::steps::*;

const HEADS: &str = "lsh backward, four heads, causal";

pub const BROKEN: &[Broken] = &[
    Broken {
        what: "dout . out of the row before",
        kernel: &row_terms::ROW_TERMS,
        case: "full backward, causal",
        twin: |p, w, b| {
            b[1].f_mut().rotate_right(w.dv_stride());
            (row_terms::ROW_TERMS.twin)(p, w, b);
        },
    },
    Broken {
        what: "keys' scales begin where those of the queries end",
        kernel: &row_terms::ROW_TERMS,
        case: "full backward, uneven",
        twin: |p, w, b| {
            (row_terms::ROW_TERMS.twin)(p, w, b);
            b[4].f_mut()[130..].rotate_right(65);
        },
    },
    Broken {
        what: "the self score that is a constant has a gradient",
        kernel: &full_attention_backward::QUERIES,
        case: "full backward, self value among the scores",
        twin: |p, w, b| full_backward(&full_attention_backward::QUERIES, p, w, b, |p| p.flags &= !flags::SELF_VALUE),
    },
    Broken {
        what: "keys keep their length",
        kernel: &full_attention_backward::QUERIES,
        case: "full backward, causal",
        twin: |p, w, b| {
            let scales = b[3].len() / 3 * 2;
            b[3].f_mut()[scales..].fill(1.0);
            (full_attention_backward::QUERIES.twin)(p, w, b);
        },
    },
    Broken {
        what: "only the last slice counts",
        kernel: &full_attention_backward::QUERIES,
        case: "full backward, 2000 wide keys",
        twin: |p, w, b| full_backward(&full_attention_backward::QUERIES, p, w, b, |p| p.add = 0),
    },
    Broken {
        what: "dout . out is not taken off",
        kernel: &full_attention_backward::KEYS,
        case: "full backward, causal",
        twin: |p, w, b| {
            let rows = b[3].len() / 3;
            b[3].f_mut()[rows..2 * rows].fill(0.0);
            (full_attention_backward::KEYS.twin)(p, w, b);
        },
    },
    Broken {
        what: "later queries do not count",
        kernel: &full_attention_backward::KEYS,
        case: "full backward, causal",
        twin: |p, w, b| full_backward(&full_attention_backward::KEYS, p, w, b, |p| p.end -= 1),
    },
    Broken {
        what: "the self value has no weight",
        kernel: &full_attention_backward::VALUES,
        case: "full backward, self value among the scores",
        twin: |p, w, b| full_backward(&full_attention_backward::VALUES, p, w, b, |p| p.flags |= flags::SELF_EXCLUDE),
    },
    Broken {
        what: "heads of one value do not add up",
        kernel: &full_attention_backward::VALUES,
        case: "full backward, uneven",
        twin: |p, w, b| full_backward(&full_attention_backward::VALUES, p, w, b, |p| p.add = 0),
    },
    Broken {
        what: "the length counts too",
        kernel: &key_norm_backward::KEY_NORM_BACKWARD,
        case: "full backward, causal",
        twin: |p, w, b| key_norm(p, w, b, |p| p.flags = 0),
    },
    Broken {
        what: "the least length is no bend",
        kernel: &key_norm_backward::KEY_NORM_BACKWARD,
        case: "full backward, keys below the least length",
        twin: |p, w, b| key_norm(p, w, b, |p| p.eps = 0.0),
    },
    Broken {
        what: "the gradient as a query is lost",
        kernel: &key_norm_backward::KEY_NORM_BACKWARD,
        case: "full backward, causal",
        twin: |p, w, b| key_norm(p, w, b, |p| p.add = 0),
    },
    Broken {
        what: "the chunk before is not seen",
        kernel: &chunked_attention_backward::QUERIES,
        case: HEADS,
        twin: |p, w, b| chunked(&chunked_attention_backward::QUERIES, p, w, b, |p| p.lsh.before = 0),
    },
    Broken {
        what: "the self score that is a constant has a gradient",
        kernel: &chunked_attention_backward::QUERIES,
        case: HEADS,
        twin: |p, w, b| chunked(&chunked_attention_backward::QUERIES, p, w, b, |p| p.lsh.flags &= !flags::SELF_VALUE),
    },
    Broken {
        what: "rounds do not add up",
        kernel: &chunked_attention_backward::QUERIES,
        case: HEADS,
        twin: |p, w, b| chunked(&chunked_attention_backward::QUERIES, p, w, b, |p| p.add = 0),
    },
    Broken {
        what: "no ln N",
        kernel: &chunked_attention_backward::KEYS,
        case: HEADS,
        twin: |p, w, b| chunked(&chunked_attention_backward::KEYS, p, w, b, |p| p.lsh.flags &= !flags::PAIR_COUNT),
    },
    Broken {
        what: "a key walks what it would see as a query",
        kernel: &chunked_attention_backward::KEYS,
        case: "lsh backward, met more than once, AcrossRounds",
        twin: |p, w, b| {
            chunked(&chunked_attention_backward::KEYS, p, w, b, |p| {
                (p.lsh.before, p.lsh.after) = (p.lsh.after, p.lsh.before);
            });
        },
    },
    Broken {
        what: "the last chunk is not seen by the first",
        kernel: &chunked_attention_backward::KEYS,
        case: "lsh backward, InRound, 2 before, 0 after, rules 7",
        twin: |p, w, b| chunked(&chunked_attention_backward::KEYS, p, w, b, |p| p.lsh.flags &= !flags::WRAP_IN_ROUND),
    },
    Broken {
        what: "keys of other buckets count",
        kernel: &chunked_attention_backward::VALUES,
        case: HEADS,
        twin: |p, w, b| chunked(&chunked_attention_backward::VALUES, p, w, b, |p| p.lsh.flags &= !flags::SAME_BUCKET),
    },
    Broken {
        what: "earlier queries count",
        kernel: &chunked_attention_backward::VALUES,
        case: HEADS,
        twin: |p, w, b| chunked(&chunked_attention_backward::VALUES, p, w, b, |p| p.lsh.flags &= !flags::CAUSAL),
    },
    Broken {
        what: "only the last part of the window counts",
        kernel: &chunked_attention_backward::VALUES,
        case: "lsh backward, long chunks of wide rows",
        twin: |p, w, b| chunked(&chunked_attention_backward::VALUES, p, w, b, |p| p.add = 0),
    },
];

fn chunked(
    kernel: &Kernel,
    params: &[u8],
    widths: Widths,
    buffers: &mut [Data],
    change: fn(&mut chunked_attention_backward::Params),
) {
    (kernel.twin)(&with(params, change), widths, buffers);
}

fn full_backward(
    kernel: &Kernel,
    params: &[u8],
    widths: Widths,
    buffers: &mut [Data],
    change: fn(&mut full_attention_backward::Params),
) {
    (kernel.twin)(&with(params, change), widths, buffers);
}

fn key_norm(params: &[u8], widths: Widths, buffers: &mut [Data], change: fn(&mut key_norm_backward::Params)) {
    (key_norm_backward::KEY_NORM_BACKWARD.twin)(&with(params, change), widths, buffers);
}
