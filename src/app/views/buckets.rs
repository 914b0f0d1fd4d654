//! Which tokens share a bucket, how large the buckets are, and how sorting brings them together.

mod histogram;
mod ribbons;

use super::colour;
use super::layout::column;
use super::tokens::{Canvas, Face, Tokens};
use super::{caption, format, method_name, missing, title};
use crate::app::scene::{Command, Scene};
use crate::lab;
use crate::methods::measure::Measured;
use crate::outcome::Outcome;
use crate::settings::Method;
use crate::steps::visibility::Geometry;
use crate::text::{Text, fill};
use egui::{Color32, Slider, Ui};
use std::rc::Rc;

/// Width from which the tokens and the histogram stand side by side.
const WIDE: f32 = 700.0;

pub struct State {
    /// Of the colours over the tokens.
    opacity: f32,
    canvas: Canvas,
    sorted: Option<Sorted>,
    overlay: Option<Overlay>,
}

impl Default for State {
    fn default() -> Self {
        Self { opacity: 0.6, canvas: Canvas::default(), sorted: None, overlay: None }
    }
}

/// The lists of one head and round, and what follows from them.
struct Sorted {
    outcome: Rc<Outcome>,
    head: u32,
    round: u32,
    /// Bucket of each token.
    buckets: Vec<u32>,
    /// Token at each sorted place, and the place of each token.
    order: Vec<u32>,
    place: Vec<u32>,
    sizes: Vec<u32>,
    lost: u64,
    geometry: Geometry,
}

struct Overlay {
    /// The bucket that is lit up, if any, and whether the page is dark.
    of: (Option<u32>, bool),
    colours: Rc<[Color32]>,
}

impl Sorted {
    /// `None` for an outcome without lists.
    fn new(outcome: &Rc<Outcome>, head: u32, round: u32) -> Option<Self> {
        let lists = outcome.lists.as_ref()?;
        let n = outcome.dims.n_q;
        let Measured::Lsh(lsh) = lab::measured(&outcome.settings, &outcome.dims) else { return None };
        let order = lists.of(&lists.order, n, head, round).to_vec();
        let mut place = vec![0; order.len()];
        order.iter().zip(0..).for_each(|(token, at)| place[*token as usize] = at);
        Some(Self {
            outcome: outcome.clone(),
            head,
            round,
            buckets: lists.of(&lists.buckets, n, head, round).to_vec(),
            order,
            place,
            sizes: lists.sizes(n, head, round),
            lost: lists.lost_pairs.get((head * lists.rounds + round) as usize).copied().unwrap_or_default(),
            geometry: lsh.geometry(n),
        })
    }

    fn is_of(&self, outcome: &Rc<Outcome>, head: u32, round: u32) -> bool {
        Rc::ptr_eq(&self.outcome, outcome) && (self.head, self.round) == (head, round)
    }

    fn n(&self) -> u32 {
        self.geometry.n
    }

    fn chunk_of(&self, token: u32) -> u32 {
        self.place[token as usize] / self.geometry.chunk_len
    }

    /// Allowed pairs of one bucket.
    fn bucket_pairs(&self) -> u64 {
        let causal = self.outcome.settings.semantics.causal;
        let pairs = |size: u64| if causal { size * (size + 1) / 2 } else { size * size };
        self.sizes.iter().map(|size| pairs(u64::from(*size))).sum()
    }

    /// Colours by bucket; all but the bucket in `focus` fade into the page.
    fn colours(&self, focus: Option<u32>, page: Color32) -> Rc<[Color32]> {
        let veil = page.gamma_multiply(0.9);
        let lit = |bucket: u32| focus.is_none_or(|focus| focus == bucket);
        self.buckets.iter().map(|bucket| if lit(*bucket) { colour::bucket(*bucket) } else { veil }).collect()
    }
}

pub fn show(ui: &mut Ui, scene: &Scene<'_>, state: &mut State, commands: &mut Vec<Command>) {
    // Inside a scroll area the height that is left has no end; what is seen of it has.
    let room = ui.clip_rect().height();
    title(ui, Text::BucketsTitle);
    let outcome = match scene.lsh {
        Ok(outcome) => outcome,
        Err(why) => return missing(ui, Method::Lsh, why, commands),
    };
    if outcome.is_short() {
        ui.label(fill(Text::ShortNote, &[&format::count(u64::from(outcome.dims.n_q))]));
        return;
    }
    let rounds = outcome.lists.as_ref().map_or(1, |lists| lists.rounds);
    let (head, round) = (scene.head.min(outcome.dims.heads - 1), scene.round.min(rounds - 1));
    let kept = state.sorted.take().filter(|sorted| sorted.is_of(outcome, head, round));
    if kept.is_none() {
        state.overlay = None;
    }
    let Some(sorted) = kept.or_else(|| Sorted::new(outcome, head, round)) else { return };
    let sorted = state.sorted.insert(sorted);
    if scene.method != Method::Lsh {
        ui.label(fill(Text::BucketsOfLsh, &[method_name(scene.method)]));
    }
    let token = scene.token.filter(|token| *token < sorted.n());
    ui.horizontal_wrapped(|ui| {
        select_round(ui, round, rounds, commands);
        let label = ui.label(Text::BucketsOpacity.get());
        let slider = ui.add(Slider::new(&mut state.opacity, 0.0..=1.0).show_value(false));
        slider.labelled_by(label.id).on_hover_text(Text::BucketsOpacityHelp.get());
    });
    ui.label(words_of_token(sorted, token));

    let focus = token.map(|token| sorted.buckets[token as usize]);
    let of = (focus, ui.visuals().dark_mode);
    let kept = state.overlay.take().filter(|overlay| overlay.of == of);
    let page = ui.visuals().panel_fill;
    let overlay = state.overlay.insert(kept.unwrap_or_else(|| Overlay { of, colours: sorted.colours(focus, page) }));
    let wide = ui.available_width() > WIDE;
    let tokens = Tokens {
        name: Text::BucketsTokens.get(),
        face: Face::Input,
        overlay: Some(&overlay.colours),
        // A lit bucket is seen whatever the slider says.
        opacity: if focus.is_some() { state.opacity.max(0.85) } else { state.opacity },
        max_height: if wide { (room * 0.5).clamp(160.0, 420.0) } else { 300.0 },
    };
    let canvas = &mut state.canvas;
    if wide {
        ui.columns_const(|[left, right]| {
            column(left, |ui| tokens.show(ui, scene, canvas).tell(commands));
            column(right, |ui| histogram::show(ui, sorted, focus, tokens.max_height));
        });
    } else {
        tokens.show(ui, scene, canvas).tell(commands);
        histogram::show(ui, sorted, focus, 240.0);
    }
    ui.add_space(6.0);
    ribbons::show(ui, sorted, token, commands);
    caption(ui, Text::BucketsCaption.get());
}

/// A button for each round.
pub(super) fn select_round(ui: &mut Ui, shown: u32, rounds: u32, commands: &mut Vec<Command>) {
    ui.label(Text::Round.get());
    for round in 0..rounds {
        let button = ui.selectable_label(round == shown, (round + 1).to_string());
        if button.on_hover_text(Text::BucketsRoundHelp.get()).clicked() {
            commands.push(Command::ShowRound(round));
        }
    }
}

/// The bucket of the token lit up in all views.
fn words_of_token(sorted: &Sorted, token: Option<u32>) -> String {
    let Some(token) = token else { return Text::BucketsNoToken.get().to_owned() };
    let bucket = sorted.buckets[token as usize];
    let others = u64::from(sorted.sizes[bucket as usize] - 1);
    let chunk = sorted.chunk_of(token) + 1;
    let words = [token, bucket].map(|number| number.to_string());
    let [chunk, chunks] = [chunk, sorted.geometry.chunks].map(|count| format::count(u64::from(count)));
    fill(Text::BucketsToken, &[&words[0], &words[1], &format::count(others), &chunk, &chunks])
}
