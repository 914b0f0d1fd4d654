//! Experiments on points made for them, to be held against what theory says: they depend on the seed,
//! not on the input of the screen.

use super::LabError;
use crate::gpu::run::Progress;
use crate::gpu::workspace::Workspace;
use crate::gpu::{Gpu, yield_now};
use crate::methods::lsh::{self, Lsh};
use crate::problem::{Dims, Named, Problem, Projections, Rotations};
use crate::random::{Stream, below, normal};
use crate::semantics::Semantics;
use crate::steps::visibility::Lists;
use crate::theory;

/// Points of an experiment, and their width.
pub const POINTS: u32 = 1024;
pub const WIDTH: u32 = 64;
/// Rounds of the experiments that hash only.
pub const HASH_ROUNDS: u32 = 16;
/// Independent sets of points and rotations, where one run has few draws.
pub const SETS: u32 = 8;
/// Angles in degrees at which collisions are counted.
const ANGLES: [u32; 12] = [0, 10, 20, 30, 45, 60, 75, 90, 105, 120, 150, 180];
/// Buckets and chunk length of the experiment on rounds.
pub const RECALL_BUCKETS: u32 = 16;
pub const RECALL_CHUNK: u32 = 128;
pub const MOST_ROUNDS: u32 = 8;
/// Bucket counts at which overfull buckets are counted.
pub const BUCKET_COUNTS: [u32; 5] = [8, 16, 32, 64, 128];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Experiment {
    /// Share of pairs in one bucket, over their angle in degrees.
    Collisions { buckets: u32 },
    /// Share of pairs of which one sees the other, at a cosine in hundredths, over the number of rounds.
    Recall { cosine: u32 },
    /// Share of buckets of isotropic points that hold more than `m = 2 n / b`, over the bucket count b.
    Overfull,
}

/// A measured share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub x: f64,
    pub hits: u64,
    pub draws: u64,
}

impl Point {
    pub fn share(&self) -> f64 {
        self.hits as f64 / self.draws as f64
    }

    /// Of the share, as for independent draws; half a hit more and half a miss more, since none in so
    /// many draws is no proof of never.
    pub fn standard_error(&self) -> f64 {
        let draws = self.draws as f64 + 1.0;
        let share = (self.hits as f64 + 0.5) / draws;
        (share * (1.0 - share) / draws).sqrt()
    }
}

/// What an experiment measured, and what theory says about it: two things that never mix.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub measured: Vec<Point>,
    /// (x, share); for overfull buckets first with equally likely buckets, then with columns of R of
    /// different length.
    pub theory: Vec<Vec<[f64; 2]>>,
}

impl Experiment {
    /// # Errors
    /// When the device cannot hold it, or fails.
    pub async fn run(self, gpu: &Gpu, seed: u32, progress: &Progress) -> Result<Series, LabError> {
        match self {
            Self::Collisions { buckets } => collisions(gpu, seed, buckets, progress).await,
            Self::Recall { cosine } => recall(gpu, seed, f64::from(cosine) / 100.0, progress).await,
            Self::Overfull => overfull(gpu, seed, progress).await,
        }
    }
}

async fn collisions(gpu: &Gpu, seed: u32, buckets: u32, progress: &Progress) -> Result<Series, LabError> {
    let mut measured = Vec::new();
    for (angle, set) in ANGLES.into_iter().zip(0..) {
        let points = pairs(f64::from(angle).to_radians().cos(), draw(seed, set));
        let found = hash(gpu, points, buckets, draw(seed, set), progress).await?;
        let hits = found.chunks_exact(2).filter(|pair| pair[0] == pair[1]).count() as u64;
        measured.push(Point { x: f64::from(angle), hits, draws: u64::from(HASH_ROUNDS * POINTS / 2) });
    }
    let mut curve = Vec::new();
    for angle in (0..=180).step_by(5).map(f64::from) {
        curve.push([angle, theory::collision(buckets, angle.to_radians())]);
        yield_now().await;
    }
    Ok(Series { measured, theory: vec![curve] })
}

async fn recall(gpu: &Gpu, seed: u32, cosine: f64, progress: &Progress) -> Result<Series, LabError> {
    let n = POINTS;
    let lsh = paper(MOST_ROUNDS, RECALL_BUCKETS, RECALL_CHUNK);
    let mut hits = [0; MOST_ROUNDS as usize];
    for set in 0..SETS {
        let seed = draw(seed, set);
        let points = pairs(cosine, seed);
        // Partners must not stand side by side: the positions are shuffled.
        let mut place: Vec<u32> = (0..n).collect();
        for i in (1..n).rev() {
            place.swap(i as usize, below(seed, Stream::Noise, u64::from(i), i + 1) as usize);
        }
        let mut q = vec![0.0; points.len()];
        let width = WIDTH as usize;
        for (point, at) in points.chunks_exact(width).zip(&place) {
            q[*at as usize * width..][..width].copy_from_slice(point);
        }
        let problem = problem(q, seed);
        let plan = lsh::plan(&problem.dims, &lsh, gpu.limits)?;
        let mut workspace = Workspace::default();
        workspace.prepare(gpu, &plan, &problem).await?;
        gpu.run(&plan, &workspace, progress).await?;
        let (chunk_of, buckets) =
            (workspace.read_u32(gpu, "chunk of", 0).await?, workspace.read_u32(gpu, "buckets", 0).await?);
        for (rounds, hits) in (1..).zip(&mut hits) {
            // The first rounds of many are the rounds of a run with fewer.
            let geometry = paper(rounds, RECALL_BUCKETS, RECALL_CHUNK).geometry(n);
            let lists = Lists { geometry, chunk_of: &chunk_of, buckets: &buckets };
            let met = |pair: &&[u32]| lists.visible(pair[0], pair[1]) || lists.visible(pair[1], pair[0]);
            *hits += place.chunks_exact(2).filter(met).count() as u64;
        }
    }
    let draws = u64::from(SETS * n / 2);
    let once = theory::collision(RECALL_BUCKETS, cosine.acos());
    let curve = (1..=MOST_ROUNDS).map(|rounds| [f64::from(rounds), theory::recall(once, rounds)]);
    Ok(Series {
        measured: (1..).zip(hits).map(|(rounds, hits)| Point { x: f64::from(rounds), hits, draws }).collect(),
        theory: vec![curve.collect()],
    })
}

async fn overfull(gpu: &Gpu, seed: u32, progress: &Progress) -> Result<Series, LabError> {
    let mut measured = Vec::new();
    for buckets in BUCKET_COUNTS {
        let (mut hits, mut draws) = (0, 0);
        for set in 0..SETS {
            let seed = draw(seed, set);
            let points = (0..POINTS * WIDTH).map(|i| normal(seed, Stream::Points, u64::from(i))).collect();
            for round in hash(gpu, points, buckets, seed, progress).await?.chunks_exact(POINTS as usize) {
                let mut sizes = vec![0; buckets as usize];
                round.iter().for_each(|bucket| sizes[*bucket as usize] += 1);
                hits += sizes.iter().filter(|size| **size > 2 * POINTS / buckets).count() as u64;
                draws += sizes.len() as u64;
            }
        }
        measured.push(Point { x: f64::from(buckets), hits, draws });
    }
    let [mut even, mut by_length] = [Vec::new(), Vec::new()];
    for buckets in BUCKET_COUNTS {
        let most = 2 * POINTS / buckets;
        even.push([f64::from(buckets), theory::overfull_if_even(POINTS, buckets, most)]);
        by_length.push([f64::from(buckets), theory::overfull_by_length(POINTS, buckets, most, WIDTH)]);
        yield_now().await;
    }
    Ok(Series { measured, theory: vec![even, by_length] })
}

/// The seed of one of several independent sets.
fn draw(seed: u32, set: u32) -> u32 {
    seed.wrapping_mul(64).wrapping_add(set)
}

/// The buckets of every round and point, `[HASH_ROUNDS, POINTS]`.
async fn hash(gpu: &Gpu, q: Vec<f32>, buckets: u32, seed: u32, progress: &Progress) -> Result<Vec<u32>, LabError> {
    let problem = problem(q, seed);
    let plan = lsh::hash_plan(&problem.dims, &paper(HASH_ROUNDS, buckets, POINTS), gpu.limits)?;
    let mut workspace = Workspace::default();
    workspace.prepare(gpu, &plan, &problem).await?;
    gpu.run(&plan, &workspace, progress).await?;
    Ok(workspace.read_u32(gpu, "buckets", 0).await?)
}

/// Paper rules, the plain hash.
fn paper(rounds: u32, buckets: u32, chunk_len: u32) -> Lsh {
    let semantics = Semantics::PAPER;
    Lsh { rounds, factors: vec![buckets], chunk_len, rotation_heads: 1, semantics, keep_rounds: false }
}

/// One head of [`POINTS`] queries, and values that nobody looks at.
fn problem(q: Vec<f32>, seed: u32) -> Problem {
    let dims = Dims { n_q: POINTS, n_kv: POINTS, heads: 1, k_heads: 1, v_heads: 1, d: WIDTH, d_v: 4 };
    let v = vec![0.0; (POINTS * dims.d_v) as usize];
    Problem {
        dims,
        k: q.clone(),
        q,
        v,
        rotations: Rotations::Seeded(seed),
        projections: Projections::Mean,
        named: Named::new(),
    }
}

/// Unit vectors in pairs at a given cosine: point `2 p + 1` is the partner of `2 p`.
fn pairs(cosine: f64, seed: u32) -> Vec<f32> {
    let mut all = Vec::with_capacity((POINTS * WIDTH) as usize);
    for pair in 0..u64::from(POINTS / 2) {
        let vector = |tag: u64| -> Vec<f64> {
            (0..u64::from(WIDTH)).map(|c| f64::from(normal(seed, Stream::Points, (pair * 2 + tag) << 10 | c))).collect()
        };
        let unit = |x: Vec<f64>| {
            let length = x.iter().map(|x| x * x).sum::<f64>().sqrt();
            x.into_iter().map(|x| x / length).collect::<Vec<f64>>()
        };
        let a = unit(vector(0));
        let b = vector(1);
        let along: f64 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
        let across = unit(a.iter().zip(&b).map(|(a, b)| b - along * a).collect());
        let sine = (1.0 - cosine * cosine).max(0.0).sqrt();
        all.extend(a.iter().map(|x| *x as f32));
        all.extend(a.iter().zip(&across).map(|(a, c)| (cosine * a + sine * c) as f32));
    }
    all
}
