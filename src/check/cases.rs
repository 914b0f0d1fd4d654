//! The problems that a device is checked on: small enough for float64, odd enough to be wrong on.

mod backward;
mod dense;
mod extreme;
mod fit;
mod layers;
mod lsh_attention;

use crate::methods::full::{self, Full, Way};
use crate::methods::linformer::Linformer;
use crate::methods::lsh::{self, Lsh};
use crate::methods::measure::{self, Measured, Sample, Weights, Window};
use crate::plan::{Limits, Plan, Refusal, Step};
use crate::problem::{Dims, Fill, Named, Problem, Projections, Rotations, Source};
use crate::random::{Stream, below, normal, uniform};
use crate::semantics::{KeyNorm, ScoreScale, SelfRule, Semantics, Wrap};

/// A problem and the plans that run on it, one after the other on the same buffers.
#[derive(Clone)]
pub struct Case {
    pub name: String,
    pub dims: Dims,
    pub vectors: Vectors,
    pub projections: Projections,
    /// The first thing that the limits do not allow, should that happen.
    pub plans: Result<Vec<Plan>, Refusal>,
}

/// What q and k are made of; v is always normal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Vectors {
    /// Normal entries of this deviation.
    Normal(f32),
    Zero,
    Identical,
    /// So many different rows.
    Repeated(u32),
    /// Lengths spread evenly in their logarithm from 10^-3 to 10^4.
    AllLengths,
    /// Every row of this length.
    Length(f32),
    /// Rows of this length, in turn along one direction and against it.
    Opposite(f32),
}

impl Case {
    pub fn problem(&self) -> Problem {
        let Dims { n_q, n_kv, heads, k_heads, v_heads, d, d_v } = self.dims;
        Problem {
            dims: self.dims,
            q: self.rows(0, heads * n_q, d),
            k: self.rows(1, k_heads * n_kv, d),
            v: (0..v_heads * n_kv * d_v).map(|i| noise(2, i)).collect(),
            rotations: Rotations::Seeded(5),
            projections: self.projections.clone(),
            named: self.named(),
        }
    }

    /// Normal numbers in whatever else the plans start from.
    fn named(&self) -> Named {
        let buffers = self.plans.iter().flatten().flat_map(|plan| &plan.buffers);
        let named = buffers.enumerate().filter_map(|(at, spec)| match spec.fill {
            Some(Fill { source: Source::Named(name), rows, k, .. }) => {
                let tensor = 16 + at as u64;
                Some((name, (0..spec.ranges * rows * k).map(|i| noise(tensor, i)).collect()))
            }
            _ => None,
        });
        named.collect()
    }

    fn rows(&self, tensor: u64, rows: u32, d: u32) -> Vec<f32> {
        let entry = |row: u32, c: u32| match self.vectors {
            Vectors::Normal(deviation) => noise(tensor, row * d + c) * deviation,
            Vectors::Zero => 0.0,
            Vectors::Identical => noise(tensor, c),
            Vectors::Repeated(different) => noise(tensor, below(7, Stream::Points, row.into(), different) * d + c),
            Vectors::AllLengths => {
                let exponent = uniform(8, Stream::Points, row.into()) * 7.0 - 3.0;
                noise(tensor, row * d + c) / (d as f32).sqrt() * libm::pow(10.0, exponent) as f32
            }
            Vectors::Length(length) => direction(tensor, row * d, d, c) * length,
            Vectors::Opposite(length) => {
                let sign = if row.is_multiple_of(2) { 1.0 } else { -1.0 };
                direction(0, 0, d, c) * length * sign
            }
        };
        (0..rows).flat_map(|row| (0..d).map(move |c| (row, c))).map(|(row, c)| entry(row, c)).collect()
    }
}

/// One entry of a random row of length 1, whose numbers begin at `first`.
fn direction(tensor: u64, first: u32, d: u32, c: u32) -> f32 {
    let square = |c: u32| noise(tensor, first + c).powi(2);
    noise(tensor, first + c) / (0..d).map(square).sum::<f32>().sqrt()
}

fn noise(tensor: u64, index: u32) -> f32 {
    normal(3, Stream::Noise, (tensor << 32) | u64::from(index))
}

/// Sizes of a problem with as many keys as queries and heads of its own for k and v.
fn square(n: u32, heads: u32, d: u32, d_v: u32) -> Dims {
    Dims { n_q: n, n_kv: n, heads, k_heads: heads, v_heads: heads, d, d_v }
}

/// LSH attention with paper semantics.
fn paper(rounds: u32, factors: &[u32], chunk_len: u32) -> Lsh {
    let (factors, semantics) = (factors.to_vec(), Semantics::PAPER);
    Lsh { rounds, factors, chunk_len, rotation_heads: 1, semantics, keep_rounds: false }
}

fn linformer(k: u32) -> Linformer {
    Linformer {
        k,
        shared_ef: true,
        projection_heads: 1,
        max_pooling: false,
        biased: false,
        triangle: false,
        score_scale: crate::semantics::ScoreScale::InverseSqrtD,
    }
}

/// A window that begins and ends inside the matrix where it can.
fn window(rows: u32, cols: u32) -> Window {
    let inside = |n: u32| if n > 8 { (n / 7, n - n / 5) } else { (0, n) };
    let ((row_start, row_end), (col_start, col_end)) = (inside(rows), inside(cols));
    Window { row_start, row_count: row_end - row_start, col_start, col_count: col_end - col_start }
}

/// The plans of a method and of every instrument that looks at it.
fn measured(dims: Dims, method: &Measured, limits: Limits) -> Result<Vec<Plan>, Refusal> {
    let head = dims.heads - 1;
    let sample = Sample::golden(dims.n_q, 40);
    let of = window(dims.n_q, dims.n_kv);
    let columns = Some((of.col_start, of.col_count, of.col_count.div_ceil(3)));
    let mut plans = vec![crate::lab::plan(&dims, method, limits)?, measure::figures(&dims, method, sample, limits)?];
    if let Measured::Lsh(lsh) = method {
        plans.push(measure::pairs(&dims, lsh, 0..dims.heads, of, limits)?);
    }
    let rows = Sample::even(of.row_start, of.row_count);
    let shown: &[Weights] = match method {
        Measured::Linformer(linformer) if linformer.max_pooling => &[],
        Measured::Linformer(_) => &[Weights::Effective, Weights::SignedE, Weights::SignedF],
        Measured::Full(_) | Measured::Lsh(_) => &[Weights::Effective],
    };
    for which in shown {
        plans.push(measure::weights(&dims, method, *which, head, rows, columns, limits)?);
    }
    if let Measured::Linformer(linformer) = method {
        let columns = Some((0, linformer.k, linformer.k.div_ceil(2)));
        plans.push(measure::weights(&dims, method, Weights::Method, head, sample, columns, limits)?);
    }
    plans.push(measure::strongest(&dims, method, head, 32, limits)?);
    Ok(plans)
}

/// A method and the instruments that walk it in batches of rows, where the limits are narrow.
fn in_batches(dims: Dims, method: &Measured, limits: Limits) -> Result<Vec<Plan>, Refusal> {
    let sample = Sample::golden(dims.n_q, 40);
    let columns = Some((10, 200, 67));
    Ok(vec![
        crate::lab::plan(&dims, method, limits)?,
        measure::figures(&dims, method, sample, limits)?,
        measure::weights(&dims, method, Weights::Effective, 0, sample, columns, limits)?,
    ])
}

/// The plan without the passes after a step.
fn until(plan: Plan, last: Step) -> Plan {
    let end = plan.passes.iter().rposition(|pass| pass.step == last).map_or(0, |at| at + 1);
    let passes = plan.passes.into_iter().take(end).collect();
    Plan { passes, ..plan }
}

struct Cases(Vec<Case>);

impl Cases {
    fn add(&mut self, name: impl Into<String>, dims: Dims, vectors: Vectors, plans: Result<Vec<Plan>, Refusal>) {
        let projections = Projections::Gaussian(5);
        self.0.push(Case { name: name.into(), dims, vectors, projections, plans });
    }

    /// A method with all its instruments.
    fn measured(&mut self, name: &str, dims: Dims, vectors: Vectors, method: &Measured, limits: Limits) {
        self.add(name, dims, vectors, measured(dims, method, limits));
    }

    /// LSH attention alone.
    fn lsh(&mut self, name: impl Into<String>, dims: Dims, vectors: Vectors, lsh: &Lsh) {
        self.add(name, dims, vectors, lsh::plan(&dims, lsh, Limits::WEBGPU).map(|plan| vec![plan]));
    }

    /// Hash and sort alone.
    fn sort(&mut self, name: impl Into<String>, n: u32, vectors: Vectors, rounds: u32, factors: &[u32]) {
        let dims = square(n, 1, 16, 1);
        let plan = lsh::plan(&dims, &paper(rounds, factors, 64), Limits::WEBGPU);
        self.add(name, dims, vectors, plan.map(|plan| vec![until(plan, Step::Sort)]));
    }

    fn full(&mut self, name: impl Into<String>, dims: Dims, vectors: Vectors, full: Full, limits: Limits) {
        self.add(name, dims, vectors, full::plan(&dims, &full, limits).map(|plan| vec![plan]));
    }
}

/// Every case: each kernel at sizes 1, 2 and ragged, with uneven heads and widths, every rule, rows
/// that see nothing, degenerate vectors, slices and blocks, and grids above one dispatch.
pub fn cases() -> Vec<Case> {
    let mut all = Cases(Vec::new());
    lsh_attention::add(&mut all);
    full_cases(&mut all);
    linformer_cases(&mut all);
    backward::add(&mut all);
    // More workgroups than one dispatch may have: one a row of the softmax.
    let tall = Dims { n_q: 65_600, n_kv: 1, ..square(1, 1, 1, 1) };
    let rule = Full { way: Way::Materialized, shared_qk: false, semantics: Semantics::PLAIN };
    all.full("full, more workgroups than one dispatch has", tall, Vectors::Normal(1.0), rule, Limits::WEBGPU);
    long_cases(&mut all);
    dense::add(&mut all);
    extreme::add(&mut all);
    fit::add(&mut all);
    layers::add(&mut all);
    all.0
}

/// Many keys for few queries, and wide rows: some drivers end long loops early.
fn long_cases(all: &mut Cases) {
    let normal = Vectors::Normal(1.0);
    for (way, name) in [(Way::Online, "online"), (Way::Materialized, "in memory")] {
        let rule = Full { way, shared_qk: false, semantics: Semantics::PLAIN };
        let many = Dims { n_q: 2, n_kv: 65_536, ..square(1, 1, 16, 16) };
        all.full(format!("full {name}, 65536 keys"), many, normal, rule, Limits::WEBGPU);
        let wide = Dims { n_q: 2, n_kv: 4096, ..square(1, 1, 128, 128) };
        all.full(format!("full {name}, 4096 wide keys"), wide, normal, rule, Limits::WEBGPU);
    }
    let few = Full { way: Way::Online, shared_qk: false, semantics: Semantics { causal: true, ..Semantics::PLAIN } };
    let later = Dims { n_q: 5, n_kv: 20_000, ..square(1, 1, 3, 5) };
    all.full("full online, later slices of keys unseen", later, normal, few, Limits::WEBGPU);
    let dims = Dims { n_q: 2, n_kv: 65_536, ..square(1, 1, 3, 1) };
    let rule = Measured::Full(Full { way: Way::Online, shared_qk: false, semantics: Semantics::PLAIN });
    let strongest = measure::strongest(&dims, &rule, 0, 64, Limits::WEBGPU).map(|plan| vec![plan]);
    all.add("full, strongest of 65536 keys", dims, normal, strongest);
    all.lsh("lsh, long chunks of wide rows", square(1500, 1, 128, 128), normal, &paper(2, &[2], 1500));
    // Passes over parts of the window.
    let dims = square(300, 1, 3, 1);
    let rules = Semantics { wrap: Wrap::InRound, chunks_before: 8, chunks_after: 8, ..Semantics::PAPER };
    for (name, same_bucket, wrap) in
        [("of one bucket", true, Wrap::None), ("of all buckets", false, Wrap::AcrossRounds)]
    {
        let semantics = Semantics { same_bucket, wrap, pair_count_eps: 1e-9, ..rules };
        let lsh = Lsh { semantics, ..paper(8, &[2], 18) };
        let plans = lsh::plan(&dims, &lsh, Limits::WEBGPU).and_then(|plan| {
            let first = plan.passes.iter().position(|pass| pass.step == Step::Combine).map_or(0, |at| at + 1);
            let passes = plan.passes.iter().take(first).cloned().collect();
            Ok(vec![Plan { passes, ..plan }, measure::pairs(&dims, &lsh, 0..1, window(300, 300), Limits::WEBGPU)?])
        });
        all.add(format!("lsh, long windows {name}"), dims, normal, plans);
    }
    // One window longer than a loop may be, and windows on both sides of the cut.
    for k in [1, 7] {
        let dims = Dims { n_q: 2, n_kv: 70_001, ..square(1, 1, 3, 1) };
        let pooled = Linformer { max_pooling: true, ..linformer(k) };
        let plan = crate::lab::plan(&dims, &Measured::Linformer(pooled), Limits::WEBGPU);
        all.add(format!("linformer, {k} of 70001 keys by max pooling"), dims, normal, plan.map(|plan| vec![plan]));
    }
    let dims = square(65, 1, 128, 1);
    let plan = lsh::plan(&dims, &paper(2, &[8192], 64), Limits::WEBGPU);
    all.add("hash, wide rows into 8192 buckets", dims, normal, plan.map(|plan| vec![until(plan, Step::Hash)]));
}

fn full_cases(all: &mut Cases) {
    let rule = |way, shared_qk, semantics| Full { way, shared_qk, semantics };
    let alone = Semantics { causal: true, self_rule: SelfRule::Exclude, ..Semantics::PAPER };
    let reformer = Semantics { causal: true, ..Semantics::PAPER };
    for (way, name) in [(Way::Online, "online"), (Way::Rowwise, "row by row"), (Way::Materialized, "in memory")] {
        let small = if way == Way::Rowwise { 9 } else { 65 };
        let uneven = Dims { n_q: small, n_kv: 100, heads: 4, k_heads: 2, v_heads: 1, d: 3, d_v: 14 };
        let normal = Vectors::Normal(1.0);
        let limits = Limits::WEBGPU;
        all.full(format!("full {name}, one token"), square(1, 1, 1, 1), normal, rule(way, true, reformer), limits);
        all.full(format!("full {name}, two tokens"), square(2, 16, 3, 1), normal, rule(way, true, alone), limits);
        all.full(format!("full {name}, uneven"), uneven, normal, rule(way, false, Semantics::PLAIN), limits);
        let dims = square(small, 1, 30, 14);
        all.full(format!("full {name}, sees nothing"), dims, normal, rule(way, true, alone), limits);
        all.full(
            format!("full {name}, lengths to 10^4"),
            dims,
            Vectors::AllLengths,
            rule(way, true, Semantics::PAPER),
            limits,
        );
        let wide = Dims { n_kv: 257, ..square(small, 1, 128, 128) };
        all.full(format!("full {name}, wide"), wide, normal, rule(way, false, Semantics::PLAIN), limits);
    }
    let blocks = Limits { binding: 60 << 10, ..Limits::WEBGPU };
    let dims = square(200, 1, 3, 1);
    let memory = rule(Way::Materialized, true, reformer);
    all.full("full in memory, in blocks of rows", dims, Vectors::Normal(1.0), memory, blocks);
    let method = Measured::Full(rule(Way::Online, true, alone));
    let strongest = measure::strongest(&dims, &method, 0, 64, blocks).map(|plan| vec![plan]);
    all.add("full, strongest keys in batches of rows", dims, Vectors::Normal(1.0), strongest);
    all.measured("full, measured", square(100, 2, 3, 1), Vectors::Repeated(9), &method, Limits::WEBGPU);
}

fn linformer_cases(all: &mut Cases) {
    let normal = Vectors::Normal(1.0);
    let narrow = Limits { binding: 20 << 10, ..Limits::WEBGPU };
    let dims = square(300, 1, 3, 1);
    let sliced = Linformer { shared_ef: false, triangle: true, ..linformer(64) };
    let plans = in_batches(dims, &Measured::Linformer(sliced), narrow);
    all.add("linformer, in slices of columns", dims, normal, plans);
    let mut add = |name: &str, dims: Dims, linformer: Linformer, projections: Option<Projections>| {
        all.measured(&format!("linformer, {name}"), dims, normal, &Measured::Linformer(linformer), Limits::WEBGPU);
        if let (Some(projections), Some(case)) = (projections, all.0.last_mut()) {
            case.projections = projections;
        }
    };
    add("one token", square(1, 1, 1, 1), linformer(1), Some(Projections::Mean));
    add("two tokens", square(2, 2, 3, 1), linformer(2), Some(Projections::Mean));
    add("k does not divide n", square(65, 1, 30, 14), linformer(33), Some(Projections::Mean));
    let uneven = Dims { n_q: 63, n_kv: 257, heads: 4, k_heads: 2, v_heads: 1, d: 3, d_v: 14 };
    let own = Linformer { shared_ef: false, projection_heads: 4, ..linformer(10) };
    add("uneven, a matrix a head", uneven, own, None);
    let pooled = Linformer { max_pooling: true, ..linformer(33) };
    add("max pooling, k does not divide n", uneven, pooled, None);
    add("max pooling, one token", square(1, 1, 1, 1), Linformer { k: 1, ..pooled }, None);
    add("convolution, k does not divide n", uneven, Linformer { k: 33, ..own }, Some(Projections::Convolution(5)));
    add("wide", square(65, 1, 128, 128), linformer(64), None);
    let biased = Linformer { biased: true, ..linformer(3) };
    let values = |tensor: u64, len: u32| (0..len).map(|i| noise(tensor, i)).collect();
    let given = Projections::Given { e: values(4, 60), f: values(5, 60), e_bias: values(6, 3), f_bias: values(7, 3) };
    add("biased", square(20, 2, 3, 1), biased, Some(given));
}
