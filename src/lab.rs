//! From settings and an input to an outcome, and the questions that views ask afterwards. The one
//! way to run anything, for the page, the desktop app and the command line.

mod by_rounds;
mod fit;
mod last_token;
mod projection;
pub mod rank;
mod separate_keys;
pub mod speed;
pub mod stack;
mod theorem;
pub mod theory;
pub mod turns;
mod weights;

use crate::gpu::run::{Progress, Timing};
use crate::gpu::workspace::Workspace;
use crate::gpu::{Fault, Gpu};
use crate::inputs::{Input, Shown};
use crate::methods::full::{self, Full, Way};
use crate::methods::linformer::{self, Linformer};
use crate::methods::lsh::{self, Lsh};
use crate::methods::measure::{self, Measured, RECALL_KEYS, Sample, Weights, Window};
use crate::outcome::{
    BufferReport, Distance, Figures, Lists, MapImage, Outcome, RowWeights, Sparsity, StepReport, lost_pairs,
    mean_of_heads,
};
use crate::plan::{BufferSpec, Limits, Pass, Plan, Refusal, Role};
use crate::presets::Preset;
use crate::problem::Dims;
use crate::semantics::{ScoreScale, SelfRule, Semantics};
use crate::settings::{InputKind, Method, Projection, Settings};
use crate::steps::NO_KEY;
use crate::steps::top_keys::TOP;
pub use by_rounds::ByRounds;
pub use fit::{Fit, Fitted, Start};
pub use last_token::Moved;
pub use projection::{Errors, Matrix, Untrained};
pub use separate_keys::SeparateKeys;
use std::collections::HashSet;
use std::fmt;
use std::rc::Rc;
pub use theorem::TheoremErrors;
pub use weights::WHOLE_WEIGHTS_UP_TO;

/// Why a run gave no outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabError {
    /// The device cannot hold it; nothing was allocated.
    Refused(Refusal),
    Fault(Fault),
    /// A computation beside the device; a sentence.
    Failed(String),
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Fault(fault) => fault.fmt(f),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for LabError {}

impl From<Refusal> for LabError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Fault> for LabError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// The method that settings ask for, as the plans know it.
pub fn measured(settings: &Settings, dims: &Dims) -> Measured {
    let full = |way| Measured::Full(Full { way, shared_qk: settings.shared_qk, semantics: full_semantics(settings) });
    match settings.method {
        Method::Lsh if settings.is_short() => {
            Measured::Full(Full { way: Way::Online, shared_qk: true, semantics: settings.effective_semantics() })
        }
        Method::Full => full(Way::Online),
        Method::FullRowwise => full(Way::Rowwise),
        Method::FullMaterialized => full(Way::Materialized),
        Method::Lsh => Measured::Lsh(Lsh {
            rounds: settings.rounds,
            factors: settings.bucket_factors(),
            chunk_len: settings.chunk_len(),
            rotation_heads: if settings.rotations_per_head { dims.heads } else { 1 },
            semantics: settings.effective_semantics(),
            keep_rounds: false,
        }),
        Method::Linformer => {
            let (shared_ef, projection_heads) = settings.projection_sharing();
            Measured::Linformer(Linformer {
                k: settings.projected_len(),
                max_pooling: settings.projection == Projection::Max,
                shared_ef,
                projection_heads,
                biased: false,
                triangle: false,
                score_scale: ScoreScale::InverseSqrtD,
            })
        }
    }
}

/// Separate keys know neither key norm nor self rule, but the duplication task never counts self.
fn full_semantics(settings: &Settings) -> Semantics {
    let rule = settings.effective_semantics();
    if settings.shared_qk {
        return rule;
    }
    let self_rule = match settings.input {
        InputKind::Duplication => SelfRule::Exclude,
        InputKind::Picture | InputKind::Clusters => SelfRule::Include,
    };
    Semantics { causal: rule.causal, self_rule, score_scale: rule.score_scale, ..Semantics::PLAIN }
}

/// The plan of a method.
///
/// # Errors
/// The first buffer that the limits do not allow.
pub fn plan(dims: &Dims, measured: &Measured, limits: Limits) -> Result<Plan, Refusal> {
    match measured {
        Measured::Full(full) => full::plan(dims, full, limits),
        Measured::Lsh(lsh) => lsh::plan(dims, lsh, limits),
        Measured::Linformer(linformer) => linformer::plan(dims, linformer, limits),
    }
}

/// A finished run with its buffers still on the device, so that views can ask.
pub struct Run {
    pub outcome: Rc<Outcome>,
    pub measured: Measured,
    input: Rc<Input>,
    workspace: Workspace,
}

impl Run {
    /// Runs the method of `settings` once warm, then measures it.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn new(gpu: &Gpu, settings: &Settings, input: &Rc<Input>, progress: &Progress) -> Result<Self, LabError> {
        let dims = input.problem.dims;
        let measured = measured(settings, &dims);
        let plan = plan(&dims, &measured, gpu.limits)?;
        let mut workspace = Workspace::default();
        let before = gpu.ledger.bytes();
        gpu.ledger.reset_peak();
        workspace.prepare(gpu, &plan, &input.problem).await?;
        if gpu.compile(&plan).await? {
            gpu.run(&warm_up(&plan), &workspace, &Progress::default()).await?;
        }
        let held = buffers(&plan, &workspace);
        let timing = gpu.run(&plan, &workspace, progress).await?;
        let peak_bytes = gpu.ledger.peak() - before;
        let mut run = Self {
            outcome: Rc::new(report(gpu, settings, &dims, &plan, timing, held, peak_bytes)),
            measured,
            input: input.clone(),
            workspace,
        };
        let mut outcome = (*run.outcome).clone();
        run.read_results(gpu, &mut outcome).await?;
        run.measure(gpu, &mut outcome, progress).await?;
        run.workspace.drop_instruments();
        run.outcome = Rc::new(outcome);
        Ok(run)
    }

    fn dims(&self) -> &Dims {
        &self.input.problem.dims
    }

    async fn ask(&mut self, gpu: &Gpu, plan: &Plan, progress: &Progress) -> Result<(), Fault> {
        self.workspace.prepare(gpu, plan, &self.input.problem).await?;
        gpu.run(plan, &self.workspace, progress).await?;
        Ok(())
    }

    async fn read_results(&self, gpu: &Gpu, outcome: &mut Outcome) -> Result<(), Fault> {
        let dims = self.dims();
        outcome.out = read_out(gpu, &self.workspace, dims).await?;
        for head in 0..dims.heads {
            outcome.lse.extend(self.workspace.read_f32(gpu, "lse", head).await?);
        }
        outcome.lists = read_lists(gpu, &self.workspace, dims, &self.measured).await?;
        outcome.figures.lost_pairs = outcome.lists.as_ref().map(|lists| lists.lost_pairs.iter().sum());
        Ok(())
    }

    /// Fills in the figures that need the instruments.
    async fn measure(&mut self, gpu: &Gpu, outcome: &mut Outcome, progress: &Progress) -> Result<(), LabError> {
        let dims = *self.dims();
        let sample = Sample::for_figures(dims.n_q);
        let figures = &mut outcome.figures;
        figures.sampled = (sample.count < dims.n_q).then_some(sample.count);
        self.count_pairs(gpu, figures, progress).await?;
        let plan = measure::figures(&dims, &self.measured, sample, gpu.limits)?;
        self.ask(gpu, &plan, progress).await?;
        let (mut exact, mut plain) = (Distance::default(), Distance::default());
        let (mut recall, mut mass) = (0.0, 0.0);
        for head in 0..dims.heads {
            let to_exact = unpadded(&self.workspace.read_f32(gpu, "exact out", head).await?, dims.d_v);
            let to_plain = unpadded(&self.workspace.read_f32(gpu, "plain out", head).await?, dims.d_v);
            let d_v = dims.d_v as usize;
            for row in 0..sample.count {
                let at = (head * dims.n_q + sample.query(row)) as usize * d_v;
                let out = &outcome.out[at..at + d_v];
                let here = row as usize * d_v..(row as usize + 1) * d_v;
                exact.add(out, &to_exact[here.clone()]);
                plain.add(out, &to_plain[here]);
            }
            let top = self.workspace.read_u32(gpu, "top index", head).await?;
            let seen = self.seen_keys(gpu, head, &top).await?;
            recall += seen.0;
            mass += seen.1;
        }
        let rows = f64::from(sample.count * dims.heads);
        figures.error = exact.relative();
        figures.error_plain = plain.relative();
        // Max pooling is no matrix, so no key of the input has a weight of its own.
        let pools = matches!(self.measured, Measured::Linformer(Linformer { max_pooling: true, .. }));
        figures.recall = (!pools).then_some(recall / rows);
        let projects = matches!(self.measured, Measured::Linformer(_));
        figures.mass = (!projects).then_some(mass / rows);
        // Linformer cannot leave a position itself out, and its value is the answer.
        if let Shown::Duplication(task) = &self.input.shown
            && !projects
        {
            outcome.figures.accuracy = Some(task.accuracy(&outcome.mean_of_heads(), None));
        }
        Ok(())
    }

    /// Sums over the sampled rows of one head of (recall, mass).
    async fn seen_keys(&self, gpu: &Gpu, head: u32, top: &[u32]) -> Result<(f64, f64), Fault> {
        let wanted: Vec<Vec<u32>> = top
            .chunks(TOP as usize)
            .map(|row| row.iter().copied().take(RECALL_KEYS as usize).filter(|key| *key != NO_KEY).collect())
            .collect();
        let share = |hits: f64, row: &[u32]| if row.is_empty() { 1.0 } else { hits / row.len() as f64 };
        Ok(match &self.measured {
            Measured::Full(_) => (wanted.len() as f64, wanted.len() as f64),
            Measured::Lsh(_) => {
                let covered = self.workspace.read_f32(gpu, "covered", head).await?;
                let rows = covered.chunks(2).zip(&wanted);
                rows.fold((0.0, 0.0), |(recall, mass), (pair, row)| {
                    // A row without a single allowed key has nothing to miss.
                    let here = if row.is_empty() { 1.0 } else { f64::from(pair[0]) };
                    (recall + share(f64::from(pair[1]), row), mass + here)
                })
            }
            Measured::Linformer(_) => {
                let effective = self.workspace.read_u32(gpu, "effective index", head).await?;
                let rows = effective.chunks(TOP as usize).zip(&wanted);
                let recall = rows.map(|(found, row)| {
                    let found: HashSet<u32> = found.iter().copied().take(row.len()).collect();
                    share(row.iter().filter(|key| found.contains(key)).count() as f64, row)
                });
                (recall.sum(), 0.0)
            }
        })
    }

    async fn count_pairs(&mut self, gpu: &Gpu, figures: &mut Figures, progress: &Progress) -> Result<(), LabError> {
        let dims = *self.dims();
        let (heads, n) = (u64::from(dims.heads), u64::from(dims.n_q));
        match self.measured.clone() {
            Measured::Full(full) => {
                let allowed: u64 = (0..dims.n_q).map(|i| u64::from(full.semantics.allowed(i, dims.n_kv))).sum();
                (figures.pairs, figures.visits) = (heads * allowed, heads * allowed);
            }
            Measured::Linformer(linformer) => {
                let products = heads * n * u64::from(linformer.k);
                (figures.pairs, figures.visits) = (products, products);
            }
            Measured::Lsh(lsh) => {
                let window = Window::whole(dims.n_q, dims.n_q);
                let plan = measure::pairs(&dims, &lsh, 0..dims.heads, window, gpu.limits)?;
                self.ask(gpu, &plan, progress).await?;
                for head in 0..dims.heads {
                    let sum = |rows: Vec<u32>| rows.into_iter().map(u64::from).sum::<u64>();
                    figures.pairs += sum(self.workspace.read_u32(gpu, "row pairs", head).await?);
                    figures.visits += sum(self.workspace.read_u32(gpu, "row visits", head).await?);
                }
            }
        }
        figures.share = figures.pairs as f64 / (heads as f64 * n as f64 * f64::from(dims.n_kv));
        Ok(())
    }

    /// Columns of the method's own matrix: n, or k for P-bar.
    pub fn columns(&self, which: Weights) -> u32 {
        match &self.measured {
            Measured::Linformer(linformer) if which == Weights::Method => linformer.k,
            _ => self.dims().n_kv,
        }
    }

    /// The map of computed pairs of one head over a window, from all pairs.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn pair_map(
        &mut self,
        gpu: &Gpu,
        head: u32,
        window: Window,
        progress: &Progress,
    ) -> Result<MapImage, LabError> {
        let (width, height) = window.pixels();
        let values = match self.measured.clone() {
            Measured::Lsh(lsh) => {
                let plan = measure::pairs(self.dims(), &lsh, head..head + 1, window, gpu.limits)?;
                self.ask(gpu, &plan, progress).await?;
                self.workspace.read_u32(gpu, "pair map", 0).await?.into_iter().map(|count| count as f32).collect()
            }
            Measured::Full(full) => window.counts(|i, j| full.semantics.sees(i, j)),
            Measured::Linformer(_) => window.counts(|_, _| true),
        };
        Ok(image(values, width, height, window, None))
    }

    /// A map of weights of one head over a window, from at most 512 sampled rows.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn weight_map(
        &mut self,
        gpu: &Gpu,
        which: Weights,
        head: u32,
        window: Window,
        progress: &Progress,
    ) -> Result<MapImage, LabError> {
        let sample = Sample::even(window.row_start, window.row_count);
        let width = window.pixels().0;
        let columns = Some((window.col_start, window.col_count, width));
        let plan = measure::weights(self.dims(), &self.measured, which, head, sample, columns, gpu.limits)?;
        self.ask(gpu, &plan, progress).await?;
        let values = self.workspace.read_f32(gpu, "weight pixels", 0).await?;
        let sampled = (sample.count < window.row_count).then_some(sample.count);
        Ok(image(values, width, sample.count, window, sampled))
    }

    /// The weights of one query on every key.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn row(&mut self, gpu: &Gpu, head: u32, query: u32, progress: &Progress) -> Result<RowWeights, LabError> {
        let sample = Sample::all(query, 1);
        let mut rows = Vec::new();
        let pools = matches!(self.measured, Measured::Linformer(Linformer { max_pooling: true, .. }));
        let shown: &[Weights] = if pools { &[Weights::Exact] } else { &[Weights::Exact, Weights::Effective] };
        for &which in shown {
            rows.push(self.rows(gpu, which, head, sample, progress).await?);
        }
        let mut rows = rows.into_iter();
        let exact = rows.next().unwrap_or_default();
        Ok(RowWeights { head, query, exact, method: rows.next().unwrap_or_default() })
    }

    /// How much of the exact mass the strongest 1, 2, 4, ... keys hold, over at most 64 queries.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn sparsity(&mut self, gpu: &Gpu, head: u32, progress: &Progress) -> Result<Sparsity, LabError> {
        let n = self.dims().n_kv;
        let sample = Sample::golden(self.dims().n_q, 64);
        let keys: Vec<u32> = (0..u32::BITS).map(|bit| 1 << bit).take_while(|key| *key < n).chain([n]).collect();
        let mut mass = vec![0.0; keys.len()];
        for row in 0..sample.count {
            let one = Sample::all(sample.query(row), 1);
            let mut weights = self.rows(gpu, Weights::Exact, head, one, progress).await?;
            weights.sort_unstable_by(|a, b| b.total_cmp(a));
            let mut held = 0.0;
            let mut taken = 0;
            for (at, key) in keys.iter().enumerate() {
                held += weights[taken as usize..*key as usize].iter().map(|w| f64::from(*w)).sum::<f64>();
                taken = *key;
                mass[at] += held / f64::from(sample.count);
            }
        }
        Ok(Sparsity { keys, mass, queries: sample.count })
    }

    /// The output `[n, d_v]` of one head when every query keeps only its `count` strongest keys.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn strongest(
        &mut self,
        gpu: &Gpu,
        head: u32,
        count: u32,
        progress: &Progress,
    ) -> Result<Vec<f32>, LabError> {
        let plan = measure::strongest(self.dims(), &self.measured, head, count, gpu.limits)?;
        self.ask(gpu, &plan, progress).await?;
        let out = self.workspace.read_f32(gpu, "top out", 0).await?;
        self.workspace.drop_instruments();
        Ok(unpadded(&out, self.dims().d_v))
    }

    /// Accuracy of LSH attention on the duplication task with another number of rounds, in buffers of
    /// its own; `None` for any other input.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn accuracy(&self, gpu: &Gpu, rounds: u32, progress: &Progress) -> Result<Option<f64>, LabError> {
        let Shown::Duplication(task) = &self.input.shown else { return Ok(None) };
        let dims = *self.dims();
        let settings = Settings { method: Method::Lsh, rounds, ..self.outcome.settings.clone() };
        let plan = plan(&dims, &measured(&settings, &dims), gpu.limits)?;
        let mut workspace = Workspace::default();
        workspace.prepare(gpu, &plan, &self.input.problem).await?;
        gpu.run(&plan, &workspace, progress).await?;
        let out = read_out(gpu, &workspace, &dims).await?;
        Ok(Some(task.accuracy(&mean_of_heads(&out, &dims), None)))
    }

    /// LSH attention on the same input under the rules of a preset, at the same chunk length, in buffers
    /// of its own.
    ///
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn under(&self, gpu: &Gpu, preset: &Preset, progress: &Progress) -> Result<Rc<Outcome>, LabError> {
        let mut settings = Settings { method: Method::Lsh, ..self.outcome.settings.clone() };
        preset.apply(&mut settings);
        if measured(&settings, self.dims()) == self.measured {
            return Ok(self.outcome.clone());
        }
        Ok(Self::new(gpu, &settings, &self.input, progress).await?.outcome)
    }
}

/// Output `[heads, n_q, d_v]` of a plan that has run.
async fn read_out(gpu: &Gpu, workspace: &Workspace, dims: &Dims) -> Result<Vec<f32>, Fault> {
    let mut out = Vec::new();
    for head in 0..dims.heads {
        out.extend(unpadded(&workspace.read_f32(gpu, "out", head).await?, dims.d_v));
    }
    Ok(out)
}

/// What LSH attention sorted, once its plan has run; `None` for the other methods.
async fn read_lists(
    gpu: &Gpu,
    workspace: &Workspace,
    dims: &Dims,
    measured: &Measured,
) -> Result<Option<Lists>, Fault> {
    let Measured::Lsh(lsh) = measured else { return Ok(None) };
    let geometry = lsh.geometry(dims.n_q);
    let mut lists = Lists {
        rounds: lsh.rounds,
        n_buckets: lsh.buckets(),
        chunk_len: geometry.chunk_len,
        buckets: Vec::new(),
        order: Vec::new(),
        lost_pairs: Vec::new(),
    };
    for head in 0..dims.heads {
        let buckets = workspace.read_u32(gpu, "buckets", head).await?;
        let order = workspace.read_u32(gpu, "order", head).await?;
        let n = dims.n_q as usize;
        for (buckets, order) in buckets.chunks(n).zip(order.chunks(n)) {
            let sorted: Vec<u32> = order.iter().map(|position| buckets[*position as usize]).collect();
            lists.lost_pairs.push(lost_pairs(&sorted, &geometry));
            crate::gpu::yield_now().await;
        }
        lists.buckets.extend(buckets);
        lists.order.extend(order);
    }
    Ok(Some(lists))
}

fn image(values: Vec<f32>, width: u32, height: u32, window: Window, sampled: Option<u32>) -> MapImage {
    let Window { row_start, row_count, col_start, col_count } = window;
    MapImage { values, width, height, row_start, row_count, col_start, col_count, sampled }
}

/// One workgroup of every kernel of the plan.
fn warm_up(plan: &Plan) -> Plan {
    let mut seen = HashSet::new();
    let passes = plan.passes.iter().filter(|pass| seen.insert((pass.kernel.stem, pass.kernel.entry)));
    let passes = passes.map(|pass| Pass { groups: 1, ..pass.clone() }).collect();
    Plan { buffers: plan.buffers.clone(), passes, ..Plan::default() }
}

/// The buffers of a plan, with the bytes that the device really gave.
fn buffers(plan: &Plan, workspace: &Workspace) -> Vec<BufferReport> {
    let report = |spec: &BufferSpec| {
        let (shape, bytes) = (spec.shape.clone(), workspace.bytes(spec.name));
        BufferReport { name: spec.name, shape, role: spec.role, bytes }
    };
    plan.buffers.iter().map(report).collect()
}

/// What a plan, its buffers and its timing say, before anything is read back.
fn report(
    gpu: &Gpu,
    settings: &Settings,
    dims: &Dims,
    plan: &Plan,
    timing: Timing,
    mut buffers: Vec<BufferReport>,
    peak_bytes: u64,
) -> Outcome {
    let steps = plan.steps().into_iter().map(|total| StepReport {
        step: total.step,
        ms: timing.steps.iter().find(|(step, _)| *step == total.step).map(|(_, ms)| *ms),
        bytes: total.bytes,
        flops: total.flops,
    });
    let rest = peak_bytes.saturating_sub(buffers.iter().map(|buffer| buffer.bytes).sum());
    buffers.push(BufferReport {
        name: "parameters and timestamps",
        shape: vec![rest],
        role: Role::Instrument,
        bytes: rest,
    });
    Outcome {
        settings: settings.clone(),
        dims: *dims,
        adapter: gpu.info.name.clone(),
        figures: Figures {
            pairs: 0,
            visits: 0,
            share: 0.0,
            error: 0.0,
            error_plain: 0.0,
            recall: None,
            mass: None,
            accuracy: None,
            lost_pairs: None,
            sampled: None,
        },
        ms: timing.ms,
        clock: timing.clock,
        steps: steps.collect(),
        buffers,
        peak_bytes,
        out: Vec::new(),
        lse: Vec::new(),
        lists: None,
    }
}

/// Rows without the floats that pad them to a multiple of four.
pub(crate) fn unpadded(rows: &[f32], width: u32) -> Vec<f32> {
    let width = width as usize;
    rows.chunks(width.next_multiple_of(4)).flat_map(|row| &row[..width]).copied().collect()
}
