//! Cases of LSH attention: heads, factors, windows, wraps, every rule, degenerate vectors, and the sort alone.

use super::{Cases, Vectors, in_batches, paper, square, window};
use crate::methods::lsh::{self, Lsh};
use crate::methods::measure::{self, Measured, Sample, Weights};
use crate::plan::Limits;
use crate::problem::Dims;
use crate::semantics::{KeyNorm, ScoreScale, SelfRule, Semantics, Wrap};

pub(super) fn add(all: &mut Cases) {
    methods(all);
    rules(all);
    sorts(all);
}

fn methods(all: &mut Cases) {
    let normal = Vectors::Normal(2.0);
    let measured = |lsh: &Lsh| Measured::Lsh(lsh.clone());
    let causal = Semantics { causal: true, ..Semantics::PAPER };
    // Row 0 sees nothing.
    let alone = Semantics { self_rule: SelfRule::Exclude, key_norm: KeyNorm::L2Rms, key_norm_eps: 1e-6, ..causal };
    let across = Semantics { same_bucket: false, pair_count_eps: 1e-9, ..Semantics::PAPER };
    all.measured("lsh, one token", square(1, 1, 1, 1), normal, &measured(&paper(1, &[2], 64)), Limits::WEBGPU);
    all.measured("lsh, two tokens", square(2, 2, 3, 1), normal, &measured(&paper(2, &[4], 1)), Limits::WEBGPU);
    let shared = Dims { v_heads: 4, ..square(63, 16, 1, 14) };
    all.lsh("lsh, 16 heads, 63 tokens", shared, normal, &Lsh { rotation_heads: 16, ..paper(1, &[2], 16) });
    let kept = Lsh { semantics: causal, keep_rounds: true, ..paper(3, &[8], 16) };
    all.measured("lsh, causal, 65 tokens", square(65, 1, 3, 14), normal, &measured(&kept), Limits::WEBGPU);
    let two = Lsh { semantics: alone, rotation_heads: 3, ..paper(2, &[4, 6], 17) };
    let heads = Dims { v_heads: 1, ..square(100, 3, 30, 14) };
    all.measured("lsh, two factors, a row that sees nothing", heads, normal, &measured(&two), Limits::WEBGPU);
    let three = Lsh {
        semantics: Semantics { wrap: Wrap::InRound, chunks_before: 2, chunks_after: 1, ..across },
        ..paper(2, &[2, 4, 2], 32)
    };
    let wide = square(257, 1, 128, 128);
    all.measured(
        "lsh, three factors, wide rows, wrapped",
        wide,
        Vectors::Normal(1.0),
        &measured(&three),
        Limits::WEBGPU,
    );
    let four = Lsh { semantics: Semantics { wrap: Wrap::AcrossRounds, ..across }, ..paper(3, &[2, 2, 4, 2], 20) };
    all.measured("lsh, four factors, wrapped across", square(100, 1, 14, 3), normal, &measured(&four), Limits::WEBGPU);
    let uncounted = Lsh { semantics: Semantics { pair_count_eps: 0.0, ..four.semantics }, ..four };
    all.lsh("lsh, pairs that no round counts", square(100, 1, 3, 1), normal, &uncounted);
    let narrow = Limits { binding: 20 << 10, ..Limits::WEBGPU };
    let dims = square(300, 1, 3, 1);
    let batches = in_batches(dims, &measured(&paper(2, &[4], 40)), narrow);
    all.add("lsh, measured in batches of rows", dims, normal, batches);
    for (name, vectors) in [
        ("zero", Vectors::Zero),
        ("identical", Vectors::Identical),
        ("repeated", Vectors::Repeated(5)),
        ("lengths to 10^4", Vectors::AllLengths),
    ] {
        let lsh = measured(&Lsh { semantics: causal, ..paper(2, &[8], 16) });
        all.measured(&format!("lsh, {name}"), square(100, 1, 3, 1), vectors, &lsh, Limits::WEBGPU);
    }
    let bare = Semantics { key_norm_eps: 0.0, score_scale: ScoreScale::One, ..Semantics::PAPER };
    all.lsh(
        "lsh, zero without an epsilon",
        square(65, 1, 3, 1),
        Vectors::Zero,
        &Lsh { semantics: bare, ..paper(1, &[4], 16) },
    );
}

/// Every wrap with every window, and with them every value of every other rule; `index` is below 27.
pub(super) fn rule_of(index: usize) -> Semantics {
    let (wrap, before, after) = (index % 3, index / 3 % 3, index / 9);
    Semantics {
        wrap: [Wrap::None, Wrap::InRound, Wrap::AcrossRounds][wrap],
        chunks_before: before as u32,
        chunks_after: after as u32,
        same_bucket: (wrap + before + after) % 2 == 0,
        pair_count: index % 5 < 3,
        pair_count_eps: if wrap == 2 { 1e-9 } else { 0.0 },
        causal: index % 4 < 2,
        self_rule: [SelfRule::Include, SelfRule::Value(-1e5), SelfRule::Exclude][(index / 2) % 3],
        key_norm: [KeyNorm::L2Max, KeyNorm::L2Rms, KeyNorm::None][(index / 3 + index) % 3],
        key_norm_eps: 1e-3,
        score_scale: [ScoreScale::InverseSqrtD, ScoreScale::One][index / 5 % 2],
    }
}

fn rules(all: &mut Cases) {
    for index in 0..27 {
        let semantics = rule_of(index);
        let lsh = Lsh { semantics, ..paper(2, &[4], 9) };
        let dims = square(65, 1, 3, 1);
        let of = window(65, 65);
        let plans = || {
            let measured = Measured::Lsh(lsh.clone());
            let rows = Sample::golden(65, 20);
            Ok(vec![
                lsh::plan(&dims, &lsh, Limits::WEBGPU)?,
                measure::pairs(&dims, &lsh, 0..1, of, Limits::WEBGPU)?,
                measure::weights(&dims, &measured, Weights::Method, 0, rows, None, Limits::WEBGPU)?,
            ])
        };
        let Semantics { wrap, chunks_before, chunks_after, .. } = semantics;
        let name = format!("lsh, {wrap:?}, {chunks_before} before, {chunks_after} after, rules {index}");
        all.add(name, dims, Vectors::Normal(2.0), plans());
    }
}

fn sorts(all: &mut Cases) {
    let normal = Vectors::Normal(1.0);
    for (n, factors) in
        [(1, &[2][..]), (2, &[4]), (1025, &[2]), (1025, &[128]), (1024, &[130]), (1100, &[16, 16]), (5000, &[128, 64])]
    {
        let buckets: u32 = factors.iter().product();
        all.sort(format!("sort, {n} tokens into {buckets} buckets"), n, normal, 2, factors);
    }
    all.sort("sort, 5000 equal tokens into 8192 buckets", 5000, Vectors::Identical, 1, &[128, 64]);
    all.sort("sort, 65 tokens, plain hash into 8192 buckets", 65, normal, 1, &[8192]);
}
