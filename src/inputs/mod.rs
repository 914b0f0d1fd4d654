//! Where q, k and v come from: a picture, points on a sphere, or the duplication task.
//!
//! Every q has length [`Settings::sharpness`] and every k is the same direction at length 1, as
//! Reformer's shared QK has it, so that `softmax(q k^T / sqrt d)` and LSH attention see the same
//! logits, the self rule apart. A zero vector stays zero. All is seeded and made without the
//! platform's own sine, cosine and logarithm.

pub mod duplication;
pub mod picture;
pub mod points;
pub(crate) mod rows;

pub use duplication::DuplicationInput;
pub use picture::{Picture, PictureInput};
pub use points::PointsInput;

use crate::plan::Refusal;
use crate::problem::{Dims, Named, Problem, Rotations};
use crate::settings::{InputKind, Sample, Settings};
use crate::text::{Text, fill};
use rows::Rows;
use std::fmt;

/// What attention is computed on, and what the views need beyond q, k and v.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    pub problem: Problem,
    pub shown: Shown,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    Picture(PictureInput),
    Points(PointsInput),
    Duplication(DuplicationInput),
}

/// Makes the input that the settings ask for; `picture` is needed by [`InputKind::Picture`] alone.
///
/// Yields every few milliseconds, so that a page stays alive.
///
/// # Errors
/// When [`fits`] refuses, the picture is missing, or the sequence is too short for the duplication task.
pub async fn build(settings: &Settings, picture: Option<&Picture>) -> Result<Input, InputError> {
    fits(settings).map_err(InputError::Refused)?;
    match settings.input {
        InputKind::Picture => Ok(picture::build(settings, picture.ok_or(InputError::NoPicture)?).await),
        InputKind::Clusters => Ok(points::build(settings).await),
        InputKind::Duplication => duplication::build(settings).await,
    }
}

/// Whether host memory may hold the input that [`build`] makes, and the output of a method on it.
///
/// # Errors
/// When it may not; nothing is allocated.
pub fn fits(settings: &Settings) -> Result<(), Refusal> {
    let dims = dims(settings);
    Refusal::beyond_host("q, k and v", dims.bytes())?;
    Refusal::beyond_host("outputs", dims.out_bytes())
}

/// The sizes of the input that [`build`] makes, for plans that are made before it.
pub fn dims(settings: &Settings) -> Dims {
    let (k_heads, d_v) = match settings.input {
        InputKind::Picture => (settings.heads, settings.patch * settings.patch * 3),
        InputKind::Clusters => (1, settings.d),
        InputKind::Duplication => (settings.heads, duplication::CODE_WIDTH as u32),
    };
    Dims { n_q: settings.n, n_kv: settings.n, heads: settings.heads, k_heads, v_heads: 1, d: settings.d, d_v }
}

fn problem(settings: &Settings, rows: Rows, v: Vec<f32>) -> Problem {
    Problem {
        dims: dims(settings),
        q: rows.q,
        k: rows.k,
        v,
        rotations: Rotations::Seeded(settings.seed),
        projections: settings.projection.projections(settings.seed),
        named: Named::new(),
    }
}

/// `|out - exact|` of each row of two outputs `[n, d_v]`, for an error drawn as a picture.
pub fn row_errors(out: &[f32], exact: &[f32], d_v: usize) -> Vec<f32> {
    let row_error = |(a, b): (&[f32], &[f32])| a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f32>().sqrt();
    out.chunks_exact(d_v).zip(exact.chunks_exact(d_v)).map(row_error).collect()
}

/// Where a shipped photograph lies, relative to the page; `None` for the user's own.
pub fn sample_path(sample: Sample) -> Option<&'static str> {
    match sample {
        Sample::Astronaut => Some("samples/astronaut.jpg"),
        Sample::Cat => Some("samples/cat.jpg"),
        Sample::Own => None,
    }
}

/// The bytes of a shipped photograph; `None` for the user's own. The page fetches
/// [`sample_path`] instead.
#[cfg(not(target_arch = "wasm32"))]
pub fn sample_bytes(sample: Sample) -> Option<&'static [u8]> {
    match sample {
        Sample::Astronaut => Some(include_bytes!("../../web/samples/astronaut.jpg")),
        Sample::Cat => Some(include_bytes!("../../web/samples/cat.jpg")),
        Sample::Own => None,
    }
}

/// Why there is no input, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputError {
    Refused(Refusal),
    NoPicture,
    /// The bytes are neither PNG nor JPEG.
    NotAPicture,
    /// The file is damaged; the decoder's words.
    Damaged(String),
    TooLarge {
        width: u32,
        height: u32,
    },
    /// 0w0w needs four positions.
    TooShort(u32),
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::NoPicture => f.write_str(Text::InputNoPicture.get()),
            Self::NotAPicture => f.write_str(Text::InputNotAPicture.get()),
            Self::Damaged(why) => f.write_str(&fill(Text::InputDamaged, &[why])),
            Self::TooLarge { width, height } => {
                let millions = picture::MAX_PIXELS / 1_000_000;
                let numbers =
                    [width.to_string(), height.to_string(), millions.to_string(), picture::MAX_SIDE.to_string()];
                f.write_str(&fill(Text::InputTooLarge, &numbers.each_ref().map(String::as_str)))
            }
            Self::TooShort(n) => f.write_str(&fill(Text::InputTooShort, &[&n.to_string()])),
        }
    }
}

impl std::error::Error for InputError {}
