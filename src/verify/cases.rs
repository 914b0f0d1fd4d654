//! Runs one case of golden data through the plans and kernels of the screen.

use super::compare::Worst;
use super::manifest::{Case, Tensors};
use super::spectral;
use crate::gpu::run::Progress;
use crate::gpu::workspace::Workspace;
use crate::gpu::{Fault, Gpu};
use crate::lab::rank::Head;
use crate::methods::full::{self, Full, Way};
use crate::methods::linformer::{self, Linformer};
use crate::methods::lsh::{self, Lsh};
use crate::plan::{Plan, Step};
use crate::problem::{Dims, Named, Problem, Projections, Rotations};
use crate::semantics::{KeyNorm, ScoreScale, SelfRule, Semantics, Wrap};
use crate::settings::MAX_N;
use crate::steps::random_rotation_hash::MAX_FACTORS;
use serde_json::Value;

/// Heads, and rounds, that a case may have: more than the settings offer.
const MOST: u32 = 64;
/// Width of a row that a case may have: twice what the settings offer.
pub(super) const WIDEST: u32 = 256;

/// Runs a case of a group that is built.
///
/// # Errors
/// A sentence when the case does not make sense or the device fails.
pub async fn run(gpu: &Gpu, case: &Case, tensors: &Tensors) -> Result<Worst, String> {
    let worst = match case.group.as_str() {
        "lsh" => lsh_case(gpu, case, tensors).await,
        "full" => full_case(gpu, case, tensors).await,
        "linformer" => linformer_case(gpu, case, tensors).await,
        "real" => real_case(gpu, case, tensors).await,
        "reversible" => super::reversible::run(gpu, case, tensors).await,
        "spectrum" => spectral::case(gpu, case, tensors).await,
        other => Err(format!("the group \"{other}\" is not known")),
    }?;
    worst.uses_all_of(case)?;
    Ok(worst)
}

/// Scale, key norm, self rule and causal mask of a case.
pub(super) fn semantics(case: &Case) -> Result<Semantics, String> {
    let norm = case.word("key_norm")?;
    let eps = case.number("key_norm_eps")?;
    let key_norm = match norm {
        None => KeyNorm::None,
        Some("l2_max") => KeyNorm::L2Max,
        Some("l2_rms") => KeyNorm::L2Rms,
        Some(other) => return Err(format!("flags.key_norm is \"{other}\"; allowed is l2_max, l2_rms or null")),
    };
    if key_norm != KeyNorm::None && eps.is_none_or(|eps| eps <= 0.0) {
        return Err("flags.key_norm_eps must be a number above 0 with a key norm".to_owned());
    }
    let scale = case.number("score_scale")?.ok_or("the manifest gives no flags.score_scale")?;
    let self_value = case.number("self_value")?;
    if let (Some(masked), Some(own)) = (case.number("masked_value")?, self_value) {
        // A masked pair is skipped. That is the same thing only when its stored score leaves it no
        // weight beside a token's own.
        if masked > own - 200.0 {
            return Err(format!("flags.masked_value is {masked}; it must be at least 200 below self_value, {own}"));
        }
    }
    Ok(Semantics {
        score_scale: ScoreScale::Value(scale as f32),
        key_norm,
        key_norm_eps: eps.unwrap_or(0.0) as f32,
        self_rule: self_value.map_or(SelfRule::Include, |value| SelfRule::Value(value as f32)),
        causal: case.switch("causal")?,
        ..Semantics::PAPER
    })
}

async fn execute(gpu: &Gpu, plan: &Plan, problem: &Problem) -> Result<Workspace, String> {
    let mut workspace = Workspace::default();
    let words = |fault: Fault| fault.to_string();
    workspace.prepare(gpu, plan, problem).await.map_err(words)?;
    gpu.run(plan, &workspace, &Progress::default()).await.map_err(words)?;
    Ok(workspace)
}

/// All ranges of a buffer of rows, padding left out.
async fn rows(gpu: &Gpu, workspace: &Workspace, name: &str, ranges: u32, width: u32) -> Result<Vec<f32>, String> {
    let mut all = Vec::new();
    for range in 0..ranges {
        let padded = workspace.read_f32(gpu, name, range).await.map_err(|fault| fault.to_string())?;
        all.extend(crate::lab::unpadded(&padded, width));
    }
    Ok(all)
}

/// All ranges of a buffer of single floats.
async fn floats(gpu: &Gpu, workspace: &Workspace, name: &str, ranges: u32) -> Result<Vec<f32>, String> {
    let mut all = Vec::new();
    for range in 0..ranges {
        all.extend(workspace.read_f32(gpu, name, range).await.map_err(|fault| fault.to_string())?);
    }
    Ok(all)
}

async fn words(gpu: &Gpu, workspace: &Workspace, name: &str, heads: u32) -> Result<Vec<u32>, String> {
    let mut all = Vec::new();
    for head in 0..heads {
        all.extend(workspace.read_u32(gpu, name, head).await.map_err(|fault| fault.to_string())?);
    }
    Ok(all)
}

fn lsh_of(case: &Case, tensors: &Tensors, dims: &Dims, rounds: u32) -> Result<Lsh, String> {
    let factors = match case.params.get("bucket_factors") {
        Some(Value::Array(list)) => list
            .iter()
            .map(|factor| {
                factor.as_u64().and_then(|f| u32::try_from(f).ok()).filter(|f| *f >= 2 && f % 2 == 0 && *f <= 8192)
            })
            .collect::<Option<Vec<u32>>>()
            .filter(|factors| (1..=MAX_FACTORS).contains(&factors.len())),
        _ => None,
    }
    .ok_or("params.bucket_factors must be one to four even numbers up to 8192")?;
    let buckets = case.param("n_buckets", 2, 8192)?;
    if factors.iter().try_fold(1u32, |all, factor| all.checked_mul(*factor)) != Some(buckets) {
        return Err(format!("params.n_buckets is {buckets}, the product of bucket_factors is another"));
    }
    let rotation_heads = tensors.leading("rotations")?;
    if rotation_heads != 1 && rotation_heads != dims.heads {
        return Err(format!("\"rotations\" has {rotation_heads} sets; allowed is 1 or {}", dims.heads));
    }
    let wrap = match case.word("chunk_wrap")? {
        Some("global") => Wrap::AcrossRounds,
        Some("round") => Wrap::InRound,
        Some("none") => Wrap::None,
        other => return Err(format!("flags.chunk_wrap is {other:?}; allowed is global, round or none")),
    };
    let chunk_len = case.param("chunk_len", 1, dims.n_q)?;
    if wrap == Wrap::AcrossRounds && !dims.n_q.is_multiple_of(chunk_len) {
        let n = dims.n_q;
        return Err(format!("params.n is {n}, no multiple of chunk_len {chunk_len}: a chunk would hold two rounds"));
    }
    let neighbours = |name: &str| {
        let value = case.number(name)?.unwrap_or(0.0);
        if value.fract() == 0.0 && (0.0..=8.0).contains(&value) {
            Ok(value as u32)
        } else {
            Err(format!("flags.{name} is {value}; allowed is 0 to 8"))
        }
    };
    let (chunks_before, chunks_after) = (neighbours("chunks_before")?, neighbours("chunks_after")?);
    let pair_count = case.switch("pair_count_correction")?;
    if pair_count && (chunks_before, chunks_after) != (1, 0) {
        return Err(format!(
            "flags.pair_count_correction with chunks_before {chunks_before} and chunks_after {chunks_after}: the format \
             counts the own chunk and the one before, and this program all that are seen"
        ));
    }
    Ok(Lsh {
        rounds,
        factors,
        chunk_len,
        rotation_heads,
        semantics: Semantics {
            same_bucket: case.switch("within_bucket_only")?,
            chunks_before,
            chunks_after,
            wrap,
            pair_count,
            pair_count_eps: case.number("pair_count_eps")?.unwrap_or(0.0) as f32,
            ..semantics(case)?
        },
        keep_rounds: true,
    })
}

async fn lsh_case(gpu: &Gpu, case: &Case, tensors: &Tensors) -> Result<Worst, String> {
    let (n, heads) = (case.param("n", 1, MAX_N)?, case.param("heads", 1, MOST)?);
    let (d, d_v) = (case.param("d", 1, WIDEST)?, case.param("d_v", 1, WIDEST)?);
    let rounds = case.param("rounds", 1, MOST)?;
    let dims = Dims { n_q: n, n_kv: n, heads, k_heads: heads, v_heads: heads, d, d_v };
    let lsh = lsh_of(case, tensors, &dims, rounds)?;
    let qk = tensors.floats("qk", &[heads, n, d])?;
    let rotations = tensors.floats("rotations", &[lsh.rotation_heads, rounds, d, lsh.columns()])?;
    let problem = Problem {
        dims,
        q: qk.to_vec(),
        k: qk.to_vec(),
        v: tensors.floats("v", &[heads, n, d_v])?.to_vec(),
        rotations: Rotations::Given(rotations.to_vec()),
        projections: Projections::Mean,
        named: Named::new(),
    };
    for name in ["buckets", "order"] {
        case.exactly(name)?;
    }
    let lists = [heads, rounds, n];
    let buckets = tensors.integers("buckets", &lists, lsh.buckets())?;
    let plan = lsh::plan(&dims, &lsh, gpu.limits).map_err(|refusal| refusal.to_string())?;
    let mut worst = Worst::default();
    let mut workspace = execute(gpu, &plan, &problem).await?;
    let own = words(gpu, &workspace, "buckets", heads).await?;
    let per_head = (rounds * n) as usize;
    let zero = |at: usize| {
        let row = (at / per_head * n as usize + at % n as usize) * d as usize;
        qk[row..row + d as usize].iter().all(|x| *x == 0.0)
    };
    let ties = case.switch("hash_ties")?;
    worst.integers("buckets", &own, &buckets, &|at| ties && zero(at))?;
    if ties && own != buckets {
        // The later steps then start from the stored buckets.
        let later = Plan {
            buffers: plan.buffers.clone(),
            passes: plan.passes.iter().filter(|pass| pass.step != Step::Hash).cloned().collect(),
            ..Plan::default()
        };
        workspace = Workspace::default();
        workspace.prepare(gpu, &later, &problem).await.map_err(|fault| fault.to_string())?;
        for (head, stored) in buckets.chunks(per_head).enumerate() {
            workspace.write_u32(gpu, "buckets", head as u32, stored);
        }
        gpu.run(&later, &workspace, &Progress::default()).await.map_err(|fault| fault.to_string())?;
    }
    let order = words(gpu, &workspace, "order", heads).await?;
    worst.integers("order", &order, &tensors.integers("order", &lists, n)?, &|_| false)?;

    let lonely = match tensors.has("self_only") {
        true => tensors.integers("self_only", &[heads, n], 2)?,
        false => vec![0; (heads * n) as usize],
    };
    let by_row = |row: usize| lonely[row] == 1;
    let by_round = |row: usize| lonely[row / per_head * n as usize + row % n as usize] == 1;
    let (n_v, n_s) = ([heads, n, d_v], [heads, rounds, n, d_v]);
    let out = rows(gpu, &workspace, "out", heads, d_v).await?;
    let kept = rows(gpu, &workspace, "round output", heads * rounds, d_v).await?;
    let lse = floats(gpu, &workspace, "round lse", heads * rounds).await?;
    for (name, got, shape, width, self_only) in [
        ("out_f64", &out, &n_v[..], d_v, &by_row as &dyn Fn(usize) -> bool),
        ("out", &out, &n_v[..], d_v, &by_row),
        ("out_rounds_f64", &kept, &n_s[..], d_v, &by_round),
        ("lse_f64", &lse, &lists[..], 1, &by_round),
        ("lse", &lse, &lists[..], 1, &by_round),
    ] {
        if let Some(tolerance) = case.tolerance(name)? {
            worst.floats(name, got, tensors.floats(name, shape)?, tolerance, width as usize, self_only)?;
        }
    }
    Ok(worst)
}

/// Exact attention in all three ways: its output and log-sum-exp against what is stored.
async fn exact(
    gpu: &Gpu,
    problem: &Problem,
    shared_qk: bool,
    semantics: Semantics,
    mut compare: impl FnMut(&[f32], &[f32]) -> Result<(), String>,
) -> Result<(), String> {
    for way in [Way::Online, Way::Rowwise, Way::Materialized] {
        let full = Full { way, shared_qk, semantics };
        let plan = full::plan(&problem.dims, &full, gpu.limits).map_err(|refusal| refusal.to_string())?;
        let workspace = execute(gpu, &plan, problem).await?;
        let out = rows(gpu, &workspace, "out", problem.dims.heads, problem.dims.d_v).await?;
        compare(&out, &floats(gpu, &workspace, "lse", problem.dims.heads).await?)?;
    }
    Ok(())
}

async fn full_case(gpu: &Gpu, case: &Case, tensors: &Tensors) -> Result<Worst, String> {
    let (n, heads) = (case.param("n", 1, MAX_N)?, case.param("heads", 1, MOST)?);
    let (d, d_v) = (case.param("d", 1, WIDEST)?, case.param("d_v", 1, WIDEST)?);
    let dims = Dims { n_q: n, n_kv: n, heads, k_heads: heads, v_heads: heads, d, d_v };
    let shared_qk = case.switch("shared_qk")?;
    let (q, k) = if shared_qk { ("qk", "qk") } else { ("q", "k") };
    let problem = Problem {
        dims,
        q: tensors.floats(q, &[heads, n, d])?.to_vec(),
        k: tensors.floats(k, &[heads, n, d])?.to_vec(),
        v: tensors.floats("v", &[heads, n, d_v])?.to_vec(),
        rotations: Rotations::Seeded(0),
        projections: Projections::Mean,
        named: Named::new(),
    };
    let mut worst = Worst::default();
    exact(gpu, &problem, shared_qk, semantics(case)?, |out, lse| {
        for (name, got, shape) in [
            ("out_f64", out, &[heads, n, d_v][..]),
            ("out", out, &[heads, n, d_v]),
            ("lse_f64", lse, &[heads, n]),
            ("lse", lse, &[heads, n]),
        ] {
            if let Some(tolerance) = case.tolerance(name)? {
                worst.floats(name, got, tensors.floats(name, shape)?, tolerance, 1, &|_| false)?;
            }
        }
        Ok(())
    })
    .await?;
    Ok(worst)
}

async fn linformer_case(gpu: &Gpu, case: &Case, tensors: &Tensors) -> Result<Worst, String> {
    let (n_q, n_kv) = (case.param("n_q", 1, MAX_N)?, case.param("n_kv", 1, MAX_N)?);
    let (heads, d, k) = (case.param("heads", 1, MOST)?, case.param("d", 1, WIDEST)?, case.param("k", 1, MAX_N)?);
    let one_or_all = |name: &str| {
        let leading = tensors.leading(name)?;
        let allowed = leading == 1 || leading == heads;
        if allowed { Ok(leading) } else { Err(format!("\"{name}\" has {leading} heads; allowed is 1 or {heads}")) }
    };
    let (k_heads, v_heads) = (one_or_all("k")?, one_or_all("v")?);
    let dims = Dims { n_q, n_kv, heads, k_heads, v_heads, d, d_v: d };
    let biased = case.switch("bias")?;
    let of_projections = if biased { &["E", "F", "E_bias", "F_bias"][..] } else { &["E", "F"] };
    let each = of_projections.iter().map(|name| one_or_all(name)).collect::<Result<Vec<u32>, String>>()?;
    let projection_heads = each.into_iter().max().unwrap_or(1);
    // One that serves all heads stands beside others that do not.
    let for_each = |name: &str, rest: &[u32]| -> Result<Vec<f32>, String> {
        let leading = one_or_all(name)?;
        let shape: Vec<u32> = std::iter::once(leading).chain(rest.iter().copied()).collect();
        Ok(tensors.floats(name, &shape)?.repeat((projection_heads / leading) as usize))
    };
    let matrix = |name: &str| for_each(name, &[k, n_kv]);
    let bias = |name: &str| if biased { for_each(name, &[k]) } else { Ok(Vec::new()) };
    let problem = Problem {
        dims,
        q: tensors.floats("q", &[heads, n_q, d])?.to_vec(),
        k: tensors.floats("k", &[k_heads, n_kv, d])?.to_vec(),
        v: tensors.floats("v", &[v_heads, n_kv, d])?.to_vec(),
        rotations: Rotations::Seeded(0),
        projections: Projections::Given {
            e: matrix("E")?,
            f: matrix("F")?,
            e_bias: bias("E_bias")?,
            f_bias: bias("F_bias")?,
        },
        named: Named::new(),
    };
    let scale = case.number("score_scale")?.ok_or("the manifest gives no flags.score_scale")?;
    let linformer = Linformer {
        k,
        shared_ef: false,
        projection_heads,
        max_pooling: false,
        biased,
        triangle: case.switch("causal_like_mask")?,
        score_scale: ScoreScale::Value(scale as f32),
    };
    let plan = linformer::plan(&dims, &linformer, gpu.limits).map_err(|refusal| refusal.to_string())?;
    let workspace = execute(gpu, &plan, &problem).await?;
    let out = rows(gpu, &workspace, "out", heads, d).await?;
    let mut worst = Worst::default();
    for name in ["out_f64", "out"] {
        if let Some(tolerance) = case.tolerance(name)? {
            let want = tensors.floats(name, &[heads, n_q, d])?;
            worst.floats(name, &out, want, tolerance, d as usize, &|_| false)?;
        }
    }
    Ok(worst)
}

async fn real_case(gpu: &Gpu, case: &Case, tensors: &Tensors) -> Result<Worst, String> {
    let (n, heads, d) = (case.param("n", 1, MAX_N)?, case.param("heads", 1, MOST)?, case.param("d", 1, WIDEST)?);
    let shown: Vec<u32> = match case.params.get("spectrum_heads") {
        Some(Value::Array(list)) => list
            .iter()
            .map(|head| head.as_u64().and_then(|head| u32::try_from(head).ok()).filter(|head| *head < heads))
            .collect::<Option<_>>(),
        _ => None,
    }
    .ok_or_else(|| format!("params.spectrum_heads must be a list of heads below {heads}"))?;
    let dims = Dims { n_q: n, n_kv: n, heads, k_heads: heads, v_heads: heads, d, d_v: d };
    let array = |name: &str| tensors.floats(name, &[heads, n, d]).map(<[f32]>::to_vec);
    let problem = Problem {
        dims,
        q: array("q")?,
        k: array("k")?,
        v: array("v")?,
        rotations: Rotations::Seeded(0),
        projections: Projections::Mean,
        named: Named::new(),
    };
    let per_head = (n * d) as usize;
    let mut worst = Worst::default();
    if let Some(tolerance) = case.tolerance("out")? {
        let want = tensors.floats("out", &[shown.len() as u32, n, d])?;
        exact(gpu, &problem, false, semantics(case)?, |out, _| {
            let picked: Vec<f32> =
                shown.iter().flat_map(|head| &out[*head as usize * per_head..][..per_head]).copied().collect();
            worst.floats("out", &picked, want, tolerance, d as usize, &|_| false)
        })
        .await?;
    }
    let heads: Vec<Head> = shown.iter().map(|head| Head::of(&problem, *head)).collect();
    spectral::compare(gpu, case, tensors, &heads, &[shown.len() as u32, n], &mut worst).await?;
    Ok(worst)
}
