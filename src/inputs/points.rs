//! Points on the sphere in d dimensions. All heads see the same points and differ in their
//! rotations alone; v are the points themselves, so that attention moves a point to the mean of
//! those it looks at.

use super::rows::{Rows, add_scaled, index, norm, normalise, normals, pause};
use super::{Input, Shown};
use crate::random::{Stream, below};
use crate::settings::{Arrangement, Settings};

const CENTRES: u64 = 0;
const MEMBERS: u64 = 1;
const SCATTER: u64 = 2;
const DISPLAY: u64 = 3;

/// What a view of the points needs.
#[derive(Clone, Debug, PartialEq)]
pub struct PointsInput {
    /// The cluster of each point; 0 when there is only one or none.
    pub cluster: Vec<u32>,
    /// Where each point is drawn, on the unit sphere.
    pub display: Vec<[f32; 3]>,
    /// `[3, d]`
    projection: Vec<f32>,
}

impl PointsInput {
    /// Where a vector of d coordinates is drawn: its seeded projection to three dimensions, at the
    /// vector's own length, so that points stay on the sphere and a mean of points lies inside.
    pub fn place(&self, x: &[f32]) -> [f32; 3] {
        let mut place = [0, 1, 2].map(|axis| dot(&self.projection[axis * x.len()..], x));
        normalise(&mut place);
        let length = norm(x);
        place.map(|x| x * length)
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `[3, d]`: normal entries, or the first axes when there are no more than three.
fn display_projection(seed: u32, d: usize) -> Vec<f32> {
    if d > 3 {
        return normals(seed, Stream::Points, index(DISPLAY, 0), 3 * d).collect();
    }
    (0..3 * d).map(|at| if at / d == at % d { 1.0 } else { 0.0 }).collect()
}

pub(super) async fn build(settings: &Settings) -> Input {
    let (n, d) = (settings.n, settings.d as usize);
    let unit = |block: u64, which: u32| {
        let mut x: Vec<f32> =
            normals(settings.seed, Stream::Points, index(block, u64::from(which) * d as u64), d).collect();
        normalise(&mut x);
        x
    };
    let count = match settings.arrangement {
        Arrangement::Clusters | Arrangement::Repeated => settings.clusters,
        Arrangement::Identical | Arrangement::Isotropic => 1,
    };
    let centres: Vec<Vec<f32>> = (0..count).map(|which| unit(CENTRES, which)).collect();
    let mut v = Vec::with_capacity(n as usize * d);
    let mut shown = PointsInput {
        cluster: Vec::with_capacity(n as usize),
        display: Vec::with_capacity(n as usize),
        projection: display_projection(settings.seed, d),
    };
    for i in 0..n {
        pause(i).await;
        let cluster = match settings.arrangement {
            Arrangement::Clusters => below(settings.seed, Stream::Points, index(MEMBERS, u64::from(i)), count),
            Arrangement::Repeated => i % count,
            Arrangement::Identical | Arrangement::Isotropic => 0,
        };
        let centre = &centres[cluster as usize];
        let point = match settings.arrangement {
            Arrangement::Clusters => {
                let mut point = unit(SCATTER, i);
                point.iter_mut().for_each(|x| *x *= 1.0 - settings.tightness);
                add_scaled(&mut point, settings.tightness, centre);
                normalise(&mut point);
                point
            }
            Arrangement::Repeated | Arrangement::Identical => centre.clone(),
            Arrangement::Isotropic => unit(SCATTER, i),
        };
        shown.cluster.push(cluster);
        shown.display.push(shown.place(&point));
        v.extend(point);
    }
    let mut rows = Rows::new(settings.sharpness, n as usize * d);
    v.chunks_exact(d).for_each(|point| rows.push(point));
    rows.q = rows.q.repeat(settings.heads as usize);
    Input { problem: super::problem(settings, rows, v), shown: Shown::Points(shown) }
}
