//! Numbers at the ends of float32 that inputs can have: |q| of 10^4, scores down to -10^6, zero,
//! identical and subnormal vectors, for one token, two, and more tokens or fewer than buckets.

use super::*;

pub(super) fn add(all: &mut Cases) {
    let plain = Semantics { key_norm: KeyNorm::None, score_scale: ScoreScale::One, ..Semantics::PAPER };
    let causal = Semantics { causal: true, ..Semantics::PAPER };
    for (name, vectors, semantics) in [
        ("zero", Vectors::Zero, causal),
        ("identical", Vectors::Identical, causal),
        ("of length 10^4", Vectors::Length(1e4), causal),
        ("of length 10^4, scores to 10^8", Vectors::Length(1e4), plain),
        ("opposite, scores of 10^6 and -10^6", Vectors::Opposite(1e3), plain),
        ("subnormal", Vectors::Length(1e-40), causal),
        ("too short to square, without an epsilon", Vectors::Length(1e-30), Semantics { key_norm_eps: 0.0, ..causal }),
        ("subnormal, without an epsilon", Vectors::Length(1e-40), Semantics { key_norm_eps: 0.0, ..causal }),
    ] {
        for n in [1, 2, 65] {
            let dims = square(n, 1, 3, 1);
            let mut add = |method: &str, measured: Measured| {
                let plan = crate::lab::plan(&dims, &measured, Limits::WEBGPU);
                all.add(format!("extreme, {method}, {name}, {n} tokens"), dims, vectors, plan.map(|plan| vec![plan]));
            };
            for (way, method) in [(Way::Online, "full"), (Way::Rowwise, "row by row"), (Way::Materialized, "in memory")]
            {
                add(method, Measured::Full(Full { way, shared_qk: true, semantics }));
            }
            let across = Semantics { same_bucket: false, ..semantics };
            for (method, buckets, semantics) in [
                ("lsh", 2, semantics),
                ("lsh, more buckets than tokens", 256, semantics),
                ("lsh across buckets", 4, across),
            ] {
                add(method, Measured::Lsh(Lsh { semantics, ..paper(2, &[buckets], 16) }));
            }
            let score_scale = semantics.score_scale;
            add("linformer", Measured::Linformer(Linformer { score_scale, ..linformer(n.min(10)) }));
        }
    }
}
