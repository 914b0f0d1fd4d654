//! Wrong twins of the gradients of attention.

use super::Broken;
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
    misread!("the self score that is a constant has a gradient", full_attention_backward::QUERIES,
        "full backward, self value among the scores", p => p.flags &= !flags::SELF_VALUE),
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
    misread!("only the last slice counts", full_attention_backward::QUERIES, "full backward, 2000 wide keys",
        p => p.add = 0),
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
    misread!("later queries do not count", full_attention_backward::KEYS, "full backward, causal", p => p.end -= 1),
    misread!("the self value has no weight", full_attention_backward::VALUES,
        "full backward, self value among the scores", p => p.flags |= flags::SELF_EXCLUDE),
    misread!("heads of one value do not add up", full_attention_backward::VALUES, "full backward, uneven",
        p => p.add = 0),
    misread!("the length counts too", key_norm_backward::KEY_NORM_BACKWARD, "full backward, causal", p => p.flags = 0),
    misread!("the least length is no bend", key_norm_backward::KEY_NORM_BACKWARD,
        "full backward, keys below the least length", p => p.eps = 0.0),
    misread!("the gradient as a query is lost", key_norm_backward::KEY_NORM_BACKWARD, "full backward, causal",
        p => p.add = 0),
    misread!("the chunk before is not seen", chunked_attention_backward::QUERIES, HEADS, p => p.lsh.before = 0),
    misread!("the self score that is a constant has a gradient", chunked_attention_backward::QUERIES, HEADS,
        p => p.lsh.flags &= !flags::SELF_VALUE),
    misread!("rounds do not add up", chunked_attention_backward::QUERIES, HEADS, p => p.add = 0),
    misread!("no ln N", chunked_attention_backward::KEYS, HEADS, p => p.lsh.flags &= !flags::PAIR_COUNT),
    misread!("a key walks what it would see as a query", chunked_attention_backward::KEYS,
        "lsh backward, met more than once, AcrossRounds", p => (p.lsh.before, p.lsh.after) = (p.lsh.after, p.lsh.before)),
    misread!("the last chunk is not seen by the first", chunked_attention_backward::KEYS,
        "lsh backward, InRound, 2 before, 0 after, rules 7", p => p.lsh.flags &= !flags::WRAP_IN_ROUND),
    misread!("keys of other buckets count", chunked_attention_backward::VALUES, HEADS,
        p => p.lsh.flags &= !flags::SAME_BUCKET),
    misread!("earlier queries count", chunked_attention_backward::VALUES, HEADS, p => p.lsh.flags &= !flags::CAUSAL),
    misread!("only the last part of the window counts", chunked_attention_backward::VALUES,
        "lsh backward, long chunks of wide rows", p => p.add = 0),
];
