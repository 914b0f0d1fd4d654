//! Cases of the gradients of attention.

use super::lsh_attention::rule_of;
use super::{Cases, Vectors, paper, square};
use crate::methods::attention_backward;
use crate::methods::full::{self, Full, Way};
use crate::methods::lsh::{self, Lsh};
use crate::plan::Limits;
use crate::problem::Dims;
use crate::semantics::{KeyNorm, ScoreScale, SelfRule, Semantics, Wrap};

impl Cases {
    /// LSH attention with its gradients.
    fn lsh_backward(&mut self, name: impl Into<String>, dims: Dims, vectors: Vectors, lsh: &Lsh) {
        let forward = lsh::plan(&dims, lsh, Limits::WEBGPU);
        let backward = attention_backward::lsh_plan(&dims, lsh, Limits::WEBGPU);
        self.add(name, dims, vectors, forward.and_then(|forward| Ok(vec![forward, backward?])));
    }

    /// Exact attention with its gradients.
    fn full_backward(&mut self, name: impl Into<String>, dims: Dims, vectors: Vectors, rule: Semantics, shared: bool) {
        let full = Full { way: Way::Online, shared_qk: shared, semantics: rule };
        let forward = full::plan(&dims, &full, Limits::WEBGPU);
        let backward = attention_backward::full_plan(&dims, &full, Limits::WEBGPU);
        self.add(name, dims, vectors, forward.and_then(|forward| Ok(vec![forward, backward?])));
    }
}

pub(super) fn add(all: &mut Cases) {
    full(all);
    lsh(all);
}

fn full(all: &mut Cases) {
    let normal = Vectors::Normal(1.0);
    let causal = Semantics { causal: true, ..Semantics::PAPER };
    let alone = Semantics { self_rule: SelfRule::Exclude, key_norm: KeyNorm::L2Rms, key_norm_eps: 0.1, ..causal };
    let soon = Semantics { self_rule: SelfRule::Value(-1.0), score_scale: ScoreScale::One, ..Semantics::PAPER };
    let uneven = Dims { n_q: 65, n_kv: 100, heads: 4, k_heads: 2, v_heads: 1, d: 3, d_v: 14 };
    let more = Dims { n_q: 130, n_kv: 63, ..uneven };
    let normed = Semantics { key_norm: KeyNorm::L2Rms, key_norm_eps: 1e-3, ..Semantics::PLAIN };
    let shorter = Semantics { key_norm_eps: 1.5, ..Semantics::PAPER };
    all.full_backward("full backward, one token", square(1, 1, 1, 1), normal, causal, true);
    all.full_backward("full backward, two tokens", square(2, 16, 3, 1), normal, alone, true);
    all.full_backward("full backward, causal", square(65, 1, 30, 14), normal, causal, true);
    all.full_backward("full backward, sees nothing", square(65, 2, 3, 5), normal, alone, true);
    all.full_backward("full backward, self value among the scores", square(65, 1, 3, 5), normal, soon, true);
    all.full_backward("full backward, keys below the least length", square(65, 1, 3, 5), normal, shorter, true);
    all.full_backward("full backward, uneven", uneven, normal, normed, false);
    all.full_backward("full backward, more queries than keys", more, normal, Semantics::PLAIN, false);
    all.full_backward("full backward, separate and causal", square(70, 1, 14, 3), normal, causal, false);
    all.full_backward("full backward, wide", square(130, 1, 128, 128), normal, Semantics::PAPER, true);
    for (name, vectors) in
        [("zero", Vectors::Zero), ("repeated", Vectors::Repeated(5)), ("lengths to 10^4", Vectors::AllLengths)]
    {
        all.full_backward(format!("full backward, {name}"), square(100, 1, 3, 1), vectors, Semantics::PAPER, true);
    }
    let keys = Dims { n_kv: 2000, ..square(2, 1, 128, 128) };
    all.full_backward("full backward, 2000 wide keys", keys, normal, Semantics::PLAIN, false);
    let queries = Dims { n_kv: 2, ..square(2000, 1, 128, 128) };
    all.full_backward("full backward, 2000 wide queries", queries, normal, Semantics::PLAIN, false);
}

fn lsh(all: &mut Cases) {
    let normal = Vectors::Normal(1.0);
    for index in 0..27 {
        let semantics = rule_of(index);
        let Semantics { wrap, chunks_before, chunks_after, .. } = semantics;
        let name = format!("lsh backward, {wrap:?}, {chunks_before} before, {chunks_after} after, rules {index}");
        all.lsh_backward(name, square(65, 1, 3, 5), normal, &Lsh { semantics, ..paper(2, &[4], 9) });
    }
    let causal = Semantics { causal: true, ..Semantics::PAPER };
    let soon = Semantics { self_rule: SelfRule::Value(-1.0), ..causal };
    all.lsh_backward("lsh backward, one token", square(1, 1, 1, 1), normal, &paper(1, &[2], 64));
    all.lsh_backward("lsh backward, two tokens", square(2, 2, 3, 1), normal, &paper(2, &[4], 1));
    let heads = Dims { v_heads: 2, ..square(100, 4, 30, 14) };
    let lsh = Lsh { semantics: soon, ..paper(3, &[4, 2], 17) };
    all.lsh_backward("lsh backward, four heads, causal", heads, normal, &lsh);
    for wrap in [Wrap::InRound, Wrap::AcrossRounds] {
        // Two chunks a round and a window of five: a query meets a chunk more than once.
        let wrapped = Semantics { wrap, chunks_before: 3, chunks_after: 1, same_bucket: false, ..causal };
        let semantics = Semantics { pair_count_eps: 1e-9, ..wrapped };
        let name = format!("lsh backward, met more than once, {wrap:?}");
        all.lsh_backward(name, square(40, 1, 3, 5), normal, &Lsh { semantics, ..paper(2, &[4], 25) });
    }
    all.lsh_backward("lsh backward, wide", square(257, 1, 128, 128), normal, &paper(2, &[4], 64));
    // Passes over parts of the window.
    let across = Semantics { same_bucket: false, pair_count: false, ..causal };
    let lsh = Lsh { semantics: across, ..paper(1, &[2], 600) };
    all.lsh_backward("lsh backward, long chunks of wide rows", square(700, 1, 128, 128), normal, &lsh);
    for (name, vectors) in
        [("zero", Vectors::Zero), ("repeated", Vectors::Repeated(5)), ("lengths to 10^4", Vectors::AllLengths)]
    {
        all.lsh_backward(format!("lsh backward, {name}"), square(100, 1, 3, 1), vectors, &paper(2, &[8], 16));
    }
}
