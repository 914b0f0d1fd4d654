//! The gradients of attention: against finite differences of the forward pass in float64, with the
//! buckets held fast, and against what must hold whatever the numbers are. That the kernels compute what
//! their twins do is shown in tests/steps.rs.

use attention_lab::interpreter::Workspace;
use attention_lab::methods::attention_backward::{full_plan, lsh_plan};
use attention_lab::methods::full::{self, Full, Way};
use attention_lab::methods::lsh::{self, Lsh};
use attention_lab::plan::{Limits, Plan, Step};
use attention_lab::problem::{Dims, Named, Problem, Projections, Rotations};
use attention_lab::random::{Stream, normal};
use attention_lab::semantics::{KeyNorm, ScoreScale, SelfRule, Semantics, Wrap};

const LIMITS: Limits = Limits::WEBGPU;

fn dims(n: u32, heads: u32) -> Dims {
    Dims { n_q: n, n_kv: n, heads, k_heads: heads, v_heads: heads, d: 3, d_v: 2 }
}

fn problem(dims: Dims) -> Problem {
    let make = |tag: u64, len: u32| (0..len).map(|i| normal(11, Stream::Noise, (tag << 32) | u64::from(i))).collect();
    Problem {
        dims,
        q: make(1, dims.heads * dims.n_q * dims.d),
        k: make(2, dims.k_heads * dims.n_kv * dims.d),
        v: make(3, dims.v_heads * dims.n_kv * dims.d_v),
        rotations: Rotations::Seeded(9),
        projections: Projections::Mean,
        named: Named::new(),
    }
}

/// A forward pass and the gradients of `|out|^2 / 2`, in float64.
struct Passes {
    dims: Dims,
    held: Workspace,
    /// Without hash and sort.
    again: Plan,
}

impl Passes {
    fn new(dims: Dims, forward: &Plan, backward: &Plan) -> Self {
        let mut held = Workspace::default();
        held.run(forward, &problem(dims));
        held.run(backward, &problem(dims));
        let mut again = forward.clone();
        again.passes.retain(|pass| !matches!(pass.step, Step::Hash | Step::Sort));
        Self { dims, held, again }
    }

    fn lsh(dims: Dims, lsh: &Lsh) -> Self {
        Self::new(dims, &lsh::plan(&dims, lsh, LIMITS).expect("fits"), &lsh_plan(&dims, lsh, LIMITS).expect("fits"))
    }

    fn full(dims: Dims, full: &Full) -> Self {
        let (forward, backward) = (full::plan(&dims, full, LIMITS), full_plan(&dims, full, LIMITS));
        Self::new(dims, &forward.expect("fits"), &backward.expect("fits"))
    }

    fn read(&self, name: &str, range: u32) -> Vec<f64> {
        self.held.read(name, range).expect(name).f().to_vec()
    }

    /// The loss where one number of a buffer is moved.
    fn loss(&self, name: &str, range: u32, at: usize, by: f64) -> f64 {
        let mut values = self.read(name, range);
        values[at] += by;
        let mut moved = self.held.clone();
        moved.write(name, range, &values);
        moved.run(&self.again, &problem(self.dims));
        let squares = |head| moved.read("out", head).expect("out").f().iter().map(|x| x * x).sum::<f64>();
        (0..self.dims.heads).map(squares).sum::<f64>() / 2.0
    }

    /// The five-point stencil: with h = 10^-3 it leaves out h^4 / 30 of the fifth derivative, and
    /// float64 rounds off 10^-13.
    fn slope(&self, name: &str, range: u32, at: usize) -> f64 {
        let h = 1e-3;
        let apart = |by: f64| self.loss(name, range, at, by) - self.loss(name, range, at, -by);
        (8.0 * apart(h) - apart(2.0 * h)) / (12.0 * h)
    }

    /// Every number of a buffer of rows of `width`.
    fn check(&self, what: &str, name: &str, gradient: &str, ranges: u32, width: u32) {
        let stride = width.next_multiple_of(4) as usize;
        let mut largest = 0.0f64;
        for range in 0..ranges {
            let analytic = self.read(gradient, range);
            for (at, got) in analytic.iter().enumerate() {
                if at % stride >= width as usize {
                    assert_eq!(*got, 0.0, "{what}: padding of {gradient}");
                    continue;
                }
                largest = largest.max(got.abs());
                let want = self.slope(name, range, at);
                assert!((got - want).abs() < 1e-8 * (1.0 + want.abs()), "{what}: {gradient}[{at}] {got}, not {want}");
            }
        }
        assert!(largest > 1e-3, "{what}: {gradient} has something to compare");
    }
}

fn rules(index: usize) -> Semantics {
    let norm = [(KeyNorm::L2Max, 1.0), (KeyNorm::L2Rms, 0.3), (KeyNorm::None, 0.0), (KeyNorm::L2Max, 1e-12)];
    let (key_norm, key_norm_eps) = norm[index % 4];
    let self_rules = [SelfRule::Value(-1e5), SelfRule::Include, SelfRule::Exclude, SelfRule::Value(-0.5)];
    let (before, after) = [(1, 0), (0, 0), (2, 1), (0, 1), (3, 0)][index % 5];
    Semantics {
        wrap: [Wrap::None, Wrap::InRound, Wrap::AcrossRounds][index % 3],
        chunks_before: before,
        chunks_after: after,
        same_bucket: index % 8 < 3,
        pair_count: index % 7 < 4,
        pair_count_eps: if index % 3 == 2 { 1e-9 } else { 0.0 },
        causal: index % 2 == 1,
        self_rule: self_rules[index / 2 % 4],
        key_norm,
        key_norm_eps,
        score_scale: [ScoreScale::InverseSqrtD, ScoreScale::One, ScoreScale::Value(0.7)][index / 3 % 3],
    }
}

#[test]
fn lsh_gradients_are_the_slopes_of_the_forward_pass() {
    for index in 0..40 {
        let lsh = Lsh {
            rounds: 1 + index as u32 % 3,
            factors: vec![4],
            chunk_len: [5, 4, 9][index % 3],
            rotation_heads: 1,
            semantics: rules(index),
            keep_rounds: false,
        };
        // Two heads share their values in one case.
        let dims = if index == 0 { Dims { v_heads: 1, ..dims(17, 2) } } else { dims(17, 1) };
        let passes = Passes::lsh(dims, &lsh);
        let what = format!("{lsh:?}");
        passes.check(&what, "q", "dq", dims.heads, dims.d);
        passes.check(&what, "v", "dv", dims.v_heads, dims.d_v);
    }
}

#[test]
fn full_gradients_are_the_slopes_of_the_forward_pass() {
    for index in 0..16 {
        let (semantics, shared_qk) = (rules(index), index % 3 != 0);
        let dims = if shared_qk {
            dims(11, 1)
        } else {
            Dims { n_q: 9, n_kv: 11, heads: 2, k_heads: 1, v_heads: 1, ..dims(11, 1) }
        };
        let full = Full { way: Way::Online, shared_qk, semantics };
        let passes = Passes::full(dims, &full);
        let what = format!("{full:?}");
        passes.check(&what, "q", "dq", dims.heads, dims.d);
        if !shared_qk {
            passes.check(&what, "k", "dk", dims.k_heads, dims.d);
        }
        passes.check(&what, "v", "dv", dims.v_heads, dims.d_v);
    }
}

#[test]
fn one_chunk_of_all_buckets_has_the_gradients_of_full_attention() {
    for (causal, self_rule) in [(false, SelfRule::Value(-1e5)), (true, SelfRule::Exclude), (true, SelfRule::Include)] {
        let semantics = Semantics { causal, self_rule, same_bucket: false, chunks_before: 0, ..Semantics::PAPER };
        let dims = dims(33, 2);
        let full = Passes::full(dims, &Full { way: Way::Online, shared_qk: true, semantics });
        // Rounds that all see everything count each pair once.
        let lsh = Lsh { rounds: 3, factors: vec![4], chunk_len: 64, rotation_heads: 1, semantics, keep_rounds: false };
        let lsh = Passes::lsh(dims, &lsh);
        for name in ["dq", "dv"] {
            for head in 0..2 {
                for (a, b) in full.read(name, head).iter().zip(lsh.read(name, head)) {
                    assert!((a - b).abs() < 1e-12 * (1.0 + a.abs()), "{name}: {a} and {b}");
                }
            }
        }
    }
}

/// The sum of all rows.
fn column_sums(rows: &[f64], width: usize) -> Vec<f64> {
    rows.chunks(width).fold(vec![0.0; width], |sums, row| sums.iter().zip(row).map(|(a, b)| a + b).collect())
}

#[test]
fn gradients_keep_what_the_forward_pass_does_not_see() {
    let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
    // Weights of a row sum to 1: a step of all values is a step of every output.
    let paper = Lsh {
        rounds: 2,
        factors: vec![4],
        chunk_len: 6,
        rotation_heads: 1,
        // Far below every score, and yet not so large that the log-sum-exp of a lonely row is rounded off.
        semantics: Semantics { causal: true, self_rule: SelfRule::Value(-100.0), ..Semantics::PAPER },
        keep_rounds: false,
    };
    let lsh = Passes::lsh(dims(40, 1), &paper);
    assert!(near(&column_sums(&lsh.read("dv", 0), 4), &column_sums(&lsh.read("out", 0), 4)));
    // A step of all keys adds the same to every score of a row.
    let plain = Full { way: Way::Online, shared_qk: false, semantics: Semantics::PLAIN };
    let plain = Passes::full(dims(40, 1), &plain);
    assert!(near(&column_sums(&plain.read("dk", 0), 4), &[0.0; 4]));
    // A key at unit length does not feel its length.
    let normed = Semantics { key_norm: KeyNorm::L2Max, ..Semantics::PLAIN };
    let normed = Passes::full(dims(40, 1), &Full { way: Way::Online, shared_qk: false, semantics: normed });
    for (k, dk) in normed.read("k", 0).chunks(4).zip(normed.read("dk", 0).chunks(4)) {
        let along: f64 = k.iter().zip(dk).map(|(k, dk)| k * dk).sum();
        assert!(along.abs() < 1e-12, "{along}");
    }
}

#[test]
fn a_row_that_sees_nothing_has_no_gradient() {
    let semantics = Semantics { causal: true, self_rule: SelfRule::Exclude, ..Semantics::PAPER };
    let passes = Passes::full(dims(1, 1), &Full { way: Way::Online, shared_qk: true, semantics });
    assert_eq!(passes.read("dq", 0), vec![0.0; 4]);
    assert_eq!(passes.read("dv", 0), vec![0.0; 4]);
}
