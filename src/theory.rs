//! What the papers and probability say beforehand: it stands beside measurements and never replaces
//! one.

use libm::{erf, exp, lgamma, log};
use std::f64::consts::{PI, SQRT_2};

/// Nodes of a quadrature; twice as many change no probability of these by more than 1e-4.
const NODES: usize = 48;
/// Where the standard normal density ends for a quadrature.
const FAR: f64 = 6.5;

/// The standard normal density.
fn density(x: f64) -> f64 {
    exp(-0.5 * x * x) / (2.0 * PI).sqrt()
}

/// The standard normal distribution function.
fn below(x: f64) -> f64 {
    0.5 * (1.0 + erf(x / SQRT_2))
}

/// Nodes and weights of Gauss and Legendre on `[-1, 1]`, by Newton's method.
struct Quadrature(Vec<(f64, f64)>);

impl Quadrature {
    fn new(nodes: usize) -> Self {
        let n = nodes as f64;
        let node = |at: usize| {
            let mut x = (PI * (at as f64 + 0.75) / (n + 0.5)).cos();
            let mut slope = 1.0;
            for _ in 0..8 {
                let (mut p, mut before) = (1.0, 0.0);
                for j in 0..nodes {
                    let j = j as f64;
                    (p, before) = (((2.0 * j + 1.0) * x * p - j * before) / (j + 1.0), p);
                }
                slope = n * (x * p - before) / (x * x - 1.0);
                x -= p / slope;
            }
            (x, 2.0 / ((1.0 - x * x) * slope * slope))
        };
        Self((0..nodes).map(node).collect())
    }

    fn integral(&self, [low, high]: [f64; 2], f: impl Fn(f64) -> f64) -> f64 {
        let half = (high - low) / 2.0;
        half * self.0.iter().map(|(x, weight)| weight * f(low + half * (1.0 + x))).sum::<f64>()
    }
}

/// The probability that a random rotation puts two vectors into one of `buckets` buckets, by their
/// angle in radians; any width d. Reformer section 2: `h(x) = argmax([xR; -xR])`.
///
/// The columns of R give pairs (u, v) of normal numbers whose correlation is the cosine. One bucket of
/// both is one column with both its numbers above 0 and above all others in size:
/// `b * E[P(|u'| < u, |v'| < v)^(b/2 - 1); u, v > 0]`. Two buckets give `1 - angle / pi`.
pub fn collision(buckets: u32, angle: f64) -> f64 {
    let (cosine, sine) = (angle.cos(), angle.sin());
    if buckets <= 2 || sine < 1e-6 {
        return if buckets <= 2 { 1.0 - angle / PI } else { f64::from(u8::from(cosine > 0.0)) };
    }
    let quadrature = Quadrature::new(NODES);
    let others = (buckets / 2 - 1) as i32;
    let smaller = |u: f64, v: f64| {
        quadrature
            .integral([-u, u], |t| density(t) * (below((v - cosine * t) / sine) - below((-v - cosine * t) / sine)))
    };
    let both = |u: f64| {
        let low = (-cosine * u / sine).max(-FAR);
        if low >= FAR {
            return 0.0;
        }
        quadrature.integral([low, FAR], |w| density(w) * smaller(u, cosine * u + sine * w).min(1.0).powi(others))
    };
    f64::from(buckets) * quadrature.integral([0.0, FAR], |u| density(u) * both(u))
}

/// The probability that at least one of `rounds` independent rounds finds what one finds with `once`.
pub fn recall(once: f64, rounds: u32) -> f64 {
    1.0 - (1.0 - once).powi(rounds as i32)
}

/// The probability that more than `most` of `n` tokens lie in a bucket that takes each with probability `p`.
fn more_than(most: u32, n: u32, p: f64) -> f64 {
    if most >= n || p <= 0.0 {
        return 0.0;
    }
    let (n, first) = (f64::from(n), f64::from(most + 1));
    let choose = lgamma(n + 1.0) - lgamma(first + 1.0) - lgamma(n - first + 1.0);
    let mut term = exp(choose + first * log(p) + (n - first) * log(1.0 - p));
    let (mut sum, mut count) = (0.0, first);
    while count <= n {
        sum += term;
        term *= (n - count) / (count + 1.0) * p / (1.0 - p);
        count += 1.0;
    }
    sum
}

/// The share of buckets with more than `most` of `n` isotropic tokens if all buckets were equally likely.
pub fn overfull_if_even(n: u32, buckets: u32, most: u32) -> f64 {
    more_than(most, n, 1.0 / f64::from(buckets))
}

/// The same, with the columns of R as long as they are: the square of a length is chi-square with `d` degrees
/// of freedom, and the longer a column, the fuller its two buckets. An approximation, since it takes the
/// other columns at their mean and at right angles.
pub fn overfull_by_length(n: u32, buckets: u32, most: u32, d: u32) -> f64 {
    let quadrature = Quadrature::new(NODES);
    let others = (buckets / 2 - 1) as i32;
    let taken = |length: f64| quadrature.integral([0.0, FAR], |u| density(u) * erf(length * u / SQRT_2).powi(others));
    let half = f64::from(d) / 2.0;
    let chi_square = |x: f64| exp((half - 1.0) * log(x) - x / 2.0 - half * log(2.0) - lgamma(half));
    let spread = 6.0 * (2.0 * f64::from(d)).sqrt();
    let range = [(f64::from(d) - spread).max(1e-9), f64::from(d) + spread];
    quadrature.integral(range, |x| chi_square(x) * more_than(most, n, taken((x / f64::from(d)).sqrt())))
}

/// What Linformer's theorems ask of the rows k: both are about the existence of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theorem {
    /// Theorem 1: `k = 5 ln n / (eps^2 - eps^3)`, for a matrix of rank k that acts on a vector like P.
    First,
    /// Theorem 2: `k = min(9 d ln d, 5 ln n) / eps^2`, for Linformer's own form. The orders of both terms
    /// hold up to constants that the paper does not tell: they are taken as 1.
    Second { d: u32 },
}

/// The most that `eps^2 - eps^3` can be, at eps = 2/3: below `5 ln n` divided by it theorem 1 has no eps.
pub const UNDEFINED_FROM: f64 = 4.0 / 27.0;

impl Theorem {
    /// Rows for n keys and an error eps, which is below 1.
    pub fn rows(self, n: f64, eps: f64) -> f64 {
        match self {
            Self::First => 5.0 * n.ln() / (eps * eps * (1.0 - eps)),
            Self::Second { d } => (9.0 * f64::from(d) * f64::from(d).ln()).min(5.0 * n.ln()) / (eps * eps),
        }
    }

    /// The least eps for which k rows suffice; `None` where no eps of at most 2/3 (1 in theorem 2) does.
    pub fn eps(self, n: f64, k: f64) -> Option<f64> {
        let most = if self == Self::First { 2.0 / 3.0 } else { 1.0 };
        if self.rows(n, most) > k {
            return None;
        }
        // Rows fall as eps grows.
        let (mut low, mut high) = (0.0, most);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if self.rows(n, middle) > k { low = middle } else { high = middle }
        }
        Some(high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_buckets_have_a_closed_form_and_the_integral_finds_it() {
        let quadrature = Quadrature::new(NODES);
        for degrees in [20.0f64, 60.0, 90.0, 130.0] {
            let (c, s) = (degrees.to_radians().cos(), degrees.to_radians().sin());
            let both = |u: f64| density(u) * (1.0 - below(-c * u / s));
            let integral = 2.0 * quadrature.integral([0.0, FAR], both);
            assert!((integral - (1.0 - degrees / 180.0)).abs() < 1e-5, "{degrees} degrees: {integral}");
        }
    }

    /// Equal chances at a right angle, certainty at 0, none at 180 degrees.
    #[test]
    fn collisions_at_special_angles() {
        for buckets in [4, 16, 64] {
            let at = |degrees: f64| collision(buckets, degrees.to_radians());
            assert!((at(90.0) - 1.0 / f64::from(buckets)).abs() < 1e-5, "{buckets}: {}", at(90.0));
            assert_eq!((at(0.0), at(180.0)), (1.0, 0.0));
            assert!(at(10.0) < 1.0 && at(10.0) > at(20.0) && at(170.0) < at(160.0) && at(170.0) > 0.0);
        }
    }

    #[test]
    fn tails_sum_to_one_and_fit_a_small_case() {
        // 3 tokens, p = 1/4: more than 1 with 3 (1/16)(3/4) + 1/64.
        assert!((more_than(1, 3, 0.25) - (9.0 / 64.0 + 1.0 / 64.0)).abs() < 1e-12);
        assert_eq!(more_than(3, 3, 0.25), 0.0);
        assert!((more_than(0, 1000, 0.01) - (1.0 - 0.99f64.powi(1000))).abs() < 1e-10);
        // Very wide vectors have columns of one length.
        let [even, wide] = [overfull_if_even(1024, 32, 40), overfull_by_length(1024, 32, 40, 1 << 20)];
        assert!((even / wide - 1.0).abs() < 0.01, "{even} {wide}");
    }

    #[test]
    fn the_theorems_at_a_few_places() {
        // By hand: 5 ln 4096 / (0.25 - 0.125) = 332.7, and 5 ln 4096 / 0.25 = 166.4.
        assert!((Theorem::First.rows(4096.0, 0.5) - 332.71).abs() < 0.01);
        assert!((Theorem::Second { d: 64 }.rows(4096.0, 0.5) - 166.36).abs() < 0.01);
        // With two numbers in a key 9 d ln d is the less.
        assert!((Theorem::Second { d: 2 }.rows(4096.0, 0.5) - 49.91).abs() < 0.01);
        for theorem in [Theorem::First, Theorem::Second { d: 64 }] {
            let eps = theorem.eps(4096.0, theorem.rows(4096.0, 0.25)).expect("in reach");
            assert!((eps - 0.25).abs() < 1e-9, "{eps}");
        }
        let least = 5.0 * 4096f64.ln() / UNDEFINED_FROM;
        assert_eq!(Theorem::First.eps(4096.0, least - 0.1), None);
        assert!(Theorem::First.eps(4096.0, least + 0.1).is_some());
    }

    #[test]
    fn rounds_add_up() {
        assert_eq!(recall(0.5, 1), 0.5);
        assert_eq!(recall(0.5, 3), 0.875);
    }
}
