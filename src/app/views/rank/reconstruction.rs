//! P beside the sum of its first r parts, and what the others hold.

use super::matrix::Picture;
use crate::app::views::colour::{self, Scale};
use crate::app::views::format;
use crate::app::views::layout::column;
use crate::lab::rank::LowRank;
use crate::spectrum::{Between, Way};
use crate::text::{Text, fill};
use egui::{RichText, Slider, Ui};
use std::rc::Rc;

/// Most width of a picture.
const SIDE: f32 = 300.0;
/// The darkest colour stands for this share of the brightest, or for more.
const DARKEST: f32 = 1e-4;

pub struct State {
    rank: u32,
    drawn: Option<Drawn>,
}

/// P, and its parts up to a rank.
struct Drawn {
    of: Rc<LowRank>,
    scale: Scale,
    whole: Picture,
    parts: Option<(u32, Picture)>,
}

impl Default for State {
    fn default() -> Self {
        Self { rank: 16, drawn: None }
    }
}

impl State {
    pub fn show(&mut self, ui: &mut Ui, own: &Rc<LowRank>) {
        ui.label(RichText::new(Text::RankReconstruction.get()).strong());
        let spectrum = &own.spectrum;
        self.rank = self.rank.clamp(1, spectrum.known());
        let slider = Slider::new(&mut self.rank, 1..=spectrum.known()).logarithmic(true).text(Text::RankSlider.get());
        ui.add(slider).on_hover_text(Text::RankSliderHelp.get());
        let rank = self.rank;
        let next = spectrum.svd.values.get(rank as usize).map_or(0.0, |value| f64::from(*value));
        let Between { low, high } = spectrum.least_error(rank);
        let words = [format::count(rank.into()), format::percent(high), format::number(next), format::percent(low)];
        let text = if spectrum.way == Way::Exact { Text::RankError } else { Text::RankErrorBetween };
        ui.label(fill(text, &words.each_ref().map(String::as_str)));
        if self.drawn.as_ref().is_none_or(|drawn| !Rc::ptr_eq(&drawn.of, own)) {
            let scale = scale(&own.picture);
            self.drawn =
                Some(Drawn { of: own.clone(), scale, whole: Picture::new(ui, &own.picture, scale), parts: None });
        }
        let Some(drawn) = &mut self.drawn else { return };
        if drawn.parts.as_ref().is_none_or(|(of, _)| *of != rank) {
            let pixels = own.picture.len().isqrt() as u32;
            drawn.parts = Some((rank, Picture::new(ui, &spectrum.reconstruction(rank, pixels), drawn.scale)));
        }
        let Some((_, parts)) = &drawn.parts else { return };
        ui.columns_const(|[left, right]| {
            for (ui, name, picture) in [
                (left, Text::RankWhole.get().to_owned(), &drawn.whole),
                (right, fill(Text::RankParts, &[&words[0]]), parts),
            ] {
                column(ui, |ui| {
                    ui.label(&name);
                    picture.show(ui, &name, spectrum.n, SIDE);
                });
            }
        });
        colour::bar(ui, colour::magnitude, drawn.scale, Text::RankPixel.get());
    }
}

/// From what nearly all pixels exceed to the brightest.
fn scale(picture: &[f32]) -> Scale {
    let mut sorted = picture.to_vec();
    sorted.sort_by(f32::total_cmp);
    let high = sorted.last().copied().unwrap_or(1.0);
    let low = sorted.get(sorted.len() / 50).copied().unwrap_or_default().max(high * DARKEST);
    if low > 0.0 && low < high * 0.99 { Scale::log(low, high) } else { Scale::linear(0.0, high) }
}
