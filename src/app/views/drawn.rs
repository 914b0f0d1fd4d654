//! Outputs of attention as something to look at.

use super::tokens::Face;
use crate::inputs::Shown;
use image::RgbaImage;
use std::rc::Rc;

/// An output in the form of the input.
pub enum Drawn {
    Picture(Rc<RgbaImage>),
    /// Where each point was moved to.
    Points(Rc<[[f32; 3]]>),
    /// The symbol that each row decodes to.
    Symbols(Rc<[u32]>),
}

impl Drawn {
    /// From rows `[n, width]`.
    pub fn new(shown: &Shown, rows: &[f32], width: usize) -> Self {
        match shown {
            Shown::Picture(picture) => Self::Picture(Rc::new(picture.assemble(rows))),
            Shown::Points(points) => Self::Points(rows.chunks_exact(width).map(|row| points.place(row)).collect()),
            Shown::Duplication(task) => Self::Symbols(rows.chunks_exact(width).map(|row| task.decode(row)).collect()),
        }
    }

    pub fn face(&self) -> Face<'_> {
        match self {
            Self::Picture(picture) => Face::Picture(picture),
            Self::Points(places) => Face::Points(places),
            Self::Symbols(symbols) => Face::Symbols(symbols),
        }
    }
}
