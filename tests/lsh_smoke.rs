use attention_lab::gpu::{Gpu, block_on, run::Progress, workspace::Workspace};
use attention_lab::interpreter;
use attention_lab::methods::{full::*, linformer, linformer::Linformer, lsh, lsh::Lsh, measure::*};
use attention_lab::plan::{Limits, Plan};
use attention_lab::problem::*;
use attention_lab::random::*;
use attention_lab::semantics::*;

fn problem(dims: Dims) -> Problem {
    let make = |tag: u64, len: u32| {
        (0..len).map(|i| normal(3, Stream::Noise, tag << 32 | u64::from(i)) * 2.0).collect::<Vec<f32>>()
    };
    Problem {
        dims,
        q: make(1, dims.heads * dims.n_q * dims.d),
        k: make(2, dims.k_heads * dims.n_kv * dims.d),
        v: make(3, dims.v_heads * dims.n_kv * dims.d_v),
        rotations: Rotations::Seeded(5),
        projections: Projections::Gaussian(5),
    }
}

fn compare(gpu: &Gpu, plans: &[Plan], p: &Problem) {
    let mut ws = Workspace::default();
    let mut cpu = interpreter::Workspace::default();
    for plan in plans {
        block_on(gpu, async {
            ws.prepare(gpu, plan, p).await.unwrap();
            let t = gpu.run(plan, &ws, &Progress::default()).await.unwrap();
            println!("{t:?}");
        });
        cpu.run(plan, p);
        for spec in &plan.buffers {
            let mut worst = 0f64;
            for r in 0..spec.ranges {
                let want = cpu.read(spec.name, r).unwrap();
                match want {
                    attention_lab::steps::Data::F(w) => {
                        let got = block_on(gpu, ws.read_f32(gpu, spec.name, r)).unwrap();
                        for (a, b) in got.iter().zip(&w) {
                            worst = worst.max((f64::from(*a) - b).abs() / (1.0 + b.abs()));
                        }
                    }
                    attention_lab::steps::Data::U(w) => {
                        let got = block_on(gpu, ws.read_u32(gpu, spec.name, r)).unwrap();
                        worst = worst.max(got.iter().zip(&w).filter(|(a, b)| a != b).count() as f64);
                    }
                }
            }
            println!("{:24} {:?} {:e}", spec.name, spec.shape, worst);
        }
    }
}

#[test]
fn smoke() {
    let gpu = pollster::block_on(Gpu::open(true)).unwrap();
    println!("{:?} {:?}", gpu.info, gpu.limits);
    let limits = Limits { binding: 1 << 20, ..gpu.limits };
    let dims = Dims { n_q: 300, n_kv: 300, heads: 2, k_heads: 2, v_heads: 1, d: 30, d_v: 14 };
    let p = problem(dims);
    let lsh = Lsh {
        rounds: 3,
        factors: vec![8],
        chunk_len: 40,
        rotation_heads: 2,
        semantics: Semantics { causal: true, ..Semantics::PAPER },
    };
    let sample = Sample::golden(300, 100);
    let m = Measured::Lsh(lsh.clone());
    compare(
        &gpu,
        &[
            lsh::plan(&dims, &lsh, limits).unwrap(),
            figures(&dims, &m, sample, limits).unwrap(),
            pairs(&dims, &lsh, 1, Window { row_start: 10, row_count: 200, col_start: 5, col_count: 290 }, limits)
                .unwrap(),
            weights(&dims, &m, Weights::Method, 1, sample, Some((0, 300, 64)), limits).unwrap(),
            strongest(&dims, &m, 0, 32, limits).unwrap(),
        ],
        &p,
    );
    for way in [Way::Online, Way::Rowwise, Way::Materialized] {
        compare(
            &gpu,
            &[plan(&dims, &Full { way, shared_qk: false, semantics: Semantics::PLAIN }, limits).unwrap()],
            &p,
        );
    }
    let l = Linformer { k: 33, shared_ef: false, projection_heads: 1 };
    compare(
        &gpu,
        &[
            linformer::plan(&dims, &l, limits).unwrap(),
            figures(&dims, &Measured::Linformer(l), sample, limits).unwrap(),
        ],
        &p,
    );
}
