//! Cases of fitting E and F.

use super::{Cases, Vectors, linformer, square};
use crate::methods::fit::{self, Descent, Loss};
use crate::methods::linformer::Linformer;
use crate::plan::{Limits, Plan, Refusal};
use crate::problem::{Dims, Projections};

/// Two steps, and two more that go on from them.
fn plans(dims: &Dims, descent: &Descent) -> Result<Vec<Plan>, Refusal> {
    let limits = Limits::WEBGPU;
    let steps = |first, count| fit::steps(dims, descent, 7.0, first, count, limits);
    Ok(vec![fit::target(dims, descent.loss, limits)?, steps(0, 2)?, steps(2, 2)?])
}

pub(super) fn add(all: &mut Cases) {
    for (loss, name) in [(Loss::Output, "output"), (Loss::Map, "map")] {
        for (n, k, d, d_v, shared_ef) in [(1, 1, 1, 1, false), (65, 7, 17, 5, false), (130, 129, 3, 14, true)] {
            let linformer = Linformer { shared_ef, ..linformer(k) };
            let dims = square(n, 1, d, d_v);
            let plans = plans(&dims, &Descent { linformer, loss, rate: 0.01 });
            all.add(format!("fit of the {name}, {n} keys into {k}"), dims, Vectors::Normal(1.0), plans);
        }
        let dims = square(40, 1, 8, 4);
        let pooled = plans(&dims, &Descent { linformer: linformer(10), loss, rate: 0.1 });
        all.add(format!("fit of the {name}, from mean pooling"), dims, Vectors::Normal(2.0), pooled);
        if let Some(case) = all.0.last_mut() {
            case.projections = Projections::Mean;
        }
    }
}
