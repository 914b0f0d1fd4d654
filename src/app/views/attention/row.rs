//! One query: its strongest keys under exact attention and under the method, on the input and in a
//! table.

use crate::app::scene::{Answer, Command, Question, Scene};
use crate::app::views::layout::{column, legend};
use crate::app::views::tokens::{self, Canvas, Face, Tokens};
use crate::app::views::{format, method_name, ticks};
use crate::lab;
use crate::methods::measure::Measured;
use crate::outcome::{Outcome, RowWeights};
use crate::settings::{Method, Projection};
use crate::steps::visibility::{Geometry, Lists};
use crate::text::{Text, fill};
use egui::{Color32, Grid, ScrollArea, Ui};
use std::collections::HashSet;
use std::rc::Rc;

/// Strongest keys that are lit.
const STRONGEST: usize = 32;
/// A strong key that the method uses, one that it misses, one that it adds. Told apart by people
/// with colour-blindness (after Okabe and Ito).
const FOUND: Color32 = Color32::from_rgb(0, 190, 140);
const LOST: Color32 = Color32::from_rgb(240, 110, 0);
const ADDED: Color32 = Color32::from_rgb(70, 150, 255);

#[derive(Default)]
pub struct Rows {
    sight: Option<Sight>,
    row: Option<Row>,
    canvases: [Canvas; 2],
}

/// Who sees whom in one head of LSH attention.
struct Sight {
    outcome: Rc<Outcome>,
    head: u32,
    geometry: Geometry,
    chunk_of: Vec<u32>,
    buckets: Vec<u32>,
}

impl Sight {
    /// `None` for an outcome without lists.
    fn new(outcome: &Rc<Outcome>, head: u32) -> Option<Self> {
        let lists = outcome.lists.as_ref()?;
        let Measured::Lsh(lsh) = lab::measured(&outcome.settings, &outcome.dims) else { return None };
        let n = outcome.dims.n_q;
        let geometry = lsh.geometry(n);
        let mut chunk_of = vec![0; (lists.rounds * n) as usize];
        let mut buckets = Vec::with_capacity(chunk_of.len());
        for round in 0..lists.rounds {
            for (at, token) in lists.of(&lists.order, n, head, round).iter().enumerate() {
                chunk_of[(round * n + token) as usize] = at as u32 / geometry.chunk_len;
            }
            buckets.extend_from_slice(lists.of(&lists.buckets, n, head, round));
        }
        Some(Self { outcome: outcome.clone(), head, geometry, chunk_of, buckets })
    }

    fn sees(&self, query: u32, key: u32) -> bool {
        Lists { geometry: self.geometry, chunk_of: &self.chunk_of, buckets: &self.buckets }.visible(query, key)
    }
}

/// A key among the strongest of a query.
struct Key {
    key: u32,
    exact: f32,
    method: f32,
    seen: bool,
}

/// One answer, and what is painted of it.
struct Row {
    weights: Rc<RowWeights>,
    page: Color32,
    keys: Vec<Key>,
    overlays: [Rc<[Color32]>; 2],
}

/// The keys of the largest weights, largest first; none of weight 0.
fn strongest(weights: &[f32], count: usize) -> Vec<u32> {
    let mut keys: Vec<u32> = (0..weights.len() as u32).filter(|key| weights[*key as usize] > 0.0).collect();
    let larger = |a: &u32, b: &u32| weights[*b as usize].total_cmp(&weights[*a as usize]);
    if keys.len() > count {
        keys.select_nth_unstable_by(count, larger);
        keys.truncate(count);
    }
    keys.sort_by(larger);
    keys
}

impl Row {
    fn new(weights: Rc<RowWeights>, sees: impl Fn(u32, u32) -> bool, page: Color32) -> Self {
        let exact = strongest(&weights.exact, STRONGEST);
        let method = strongest(&weights.method, STRONGEST);
        let wanted: HashSet<u32> = exact.iter().copied().collect();
        let key = |key: &u32| Key {
            key: *key,
            exact: weights.exact[*key as usize],
            method: weights.method.get(*key as usize).copied().unwrap_or_default(),
            seen: sees(weights.query, *key),
        };
        let keys: Vec<Key> = exact.iter().map(key).collect();
        let lit = |strong: &mut dyn Iterator<Item = (u32, f32, Color32)>| {
            let mut colours = vec![page.gamma_multiply(0.72); weights.exact.len()];
            let strong: Vec<_> = strong.collect();
            let most = strong.iter().fold(0.0f32, |most, (_, weight, _)| most.max(*weight));
            for (key, weight, colour) in strong {
                colours[key as usize] = colour.gamma_multiply(0.65 + 0.35 * (weight / most).sqrt());
            }
            Rc::from(colours)
        };
        let overlays = [
            lit(&mut keys.iter().map(|key| (key.key, key.exact, if key.seen { FOUND } else { LOST }))),
            lit(&mut method
                .iter()
                .map(|key| (*key, weights.method[*key as usize], if wanted.contains(key) { FOUND } else { ADDED }))),
        ];
        Self { weights, page, keys, overlays }
    }
}

impl Rows {
    pub fn show(&mut self, ui: &mut Ui, scene: &Scene<'_>, outcome: &Rc<Outcome>, commands: &mut Vec<Command>) {
        let Some(query) = scene.token.filter(|token| *token < outcome.dims.n_q) else {
            ui.label(Text::RowNone.get());
            return;
        };
        let question = Question::Row { head: scene.head, query };
        commands.push(Command::Ask(question));
        match (scene.answer)(question) {
            Some(Answer::Row(weights)) => self.take(weights, scene, outcome, ui.visuals().panel_fill),
            Some(Answer::Failed(why)) => {
                ui.colored_label(ui.visuals().error_fg_color, why);
                return;
            }
            _ => {}
        }
        let Some(row) = &self.row else {
            ui.label(Text::RowSoon.get());
            return;
        };
        let is_old = (row.weights.query, row.weights.head) != (query, scene.head);
        let shown = scene.input.problem.dims.n_q as usize == row.weights.exact.len();
        if !shown {
            ui.label(Text::RowSoon.get());
            return;
        }
        ui.scope(|ui| {
            if is_old {
                ui.multiply_opacity(0.5);
            }
            ui.label(words(row, scene));
            let canvases = &mut self.canvases;
            if !weighs_keys(scene) {
                picture(ui, scene, row, 0, &mut canvases[0], commands);
            } else {
                ui.columns_const(|[left, right]| {
                    column(left, |ui| picture(ui, scene, row, 0, &mut canvases[0], commands));
                    canvases[1].turn = canvases[0].turn;
                    column(right, |ui| picture(ui, scene, row, 1, &mut canvases[1], commands));
                    canvases[0].turn = canvases[1].turn;
                });
                legends(ui, scene.method);
            }
            table(ui, row, scene);
        });
    }

    fn take(&mut self, weights: Rc<RowWeights>, scene: &Scene<'_>, outcome: &Rc<Outcome>, page: Color32) {
        if self.row.as_ref().is_some_and(|row| Rc::ptr_eq(&row.weights, &weights) && row.page == page) {
            return;
        }
        let is_of = |sight: &Sight| Rc::ptr_eq(&sight.outcome, outcome) && sight.head == scene.head;
        self.sight = self.sight.take().filter(is_of).or_else(|| Sight::new(outcome, scene.head));
        let row = match &self.sight {
            Some(sight) => Row::new(weights, |query, key| sight.sees(query, key), page),
            None if scene.method == Method::Linformer => {
                let own: HashSet<u32> = strongest(&weights.method, STRONGEST).into_iter().collect();
                Row::new(weights, |_, key| own.contains(&key), page)
            }
            None => Row::new(weights, |_, _| true, page),
        };
        self.row = Some(row);
    }
}

/// The method gives keys weights of its own: full attention's are the exact ones, and max pooling has none.
fn weighs_keys(scene: &Scene<'_>) -> bool {
    match scene.method {
        Method::Linformer => scene.settings.projection != Projection::Max,
        method => method != Method::Full,
    }
}

fn picture(ui: &mut Ui, scene: &Scene<'_>, row: &Row, which: usize, canvas: &mut Canvas, commands: &mut Vec<Command>) {
    let name = if which == 0 { Text::RowExact.get() } else { method_name(scene.method) };
    ui.strong(name);
    let painting = fill(Text::RowPainting, &[name]);
    let tokens = Tokens {
        name: &painting,
        face: Face::Input,
        overlay: Some(&row.overlays[which]),
        opacity: 1.0,
        max_height: if weighs_keys(scene) { 240.0 } else { 300.0 },
    };
    tokens.show(ui, scene, canvas).tell(commands);
}

fn words(row: &Row, scene: &Scene<'_>) -> String {
    let token = tokens::describe(scene.input, row.weights.query);
    let held = |keys: &mut dyn Iterator<Item = &Key>| keys.map(|key| f64::from(key.exact)).sum::<f64>();
    let count = row.keys.len().to_string();
    let all = format::percent(held(&mut row.keys.iter()));
    let seen = row.keys.iter().filter(|key| key.seen).count().to_string();
    let mass = format::percent(held(&mut row.keys.iter().filter(|key| key.seen)));
    match scene.method {
        _ if row.keys.is_empty() => fill(Text::RowEmpty, &[&token]),
        Method::Lsh => fill(Text::RowLsh, &[&token, &count, &all, &seen, &mass]),
        Method::Linformer if !weighs_keys(scene) => fill(Text::RowPooled, &[&token, &count, &all]),
        Method::Linformer => fill(Text::RowLinformer, &[&token, &count, &all, &seen]),
        _ => fill(Text::RowFull, &[&token, &count, &all]),
    }
}

fn legends(ui: &mut Ui, method: Method) {
    let lost = if method == Method::Lsh { Text::LegendLost } else { Text::LegendMissed };
    ui.horizontal_wrapped(|ui| {
        legend(ui, FOUND, Text::LegendFound.get(), Text::LegendFoundHelp.get());
        legend(ui, LOST, lost.get(), Text::LegendLostHelp.get());
        legend(ui, ADDED, Text::LegendAdded.get(), Text::LegendAddedHelp.get());
    });
}

fn table(ui: &mut Ui, row: &Row, scene: &Scene<'_>) {
    let method = scene.method;
    ScrollArea::vertical().id_salt("keys").max_height(160.0).min_scrolled_height(160.0).show(ui, |ui| {
        Grid::new("strongest keys").striped(true).spacing([14.0, 2.0]).show(ui, |ui| {
            let own = weighs_keys(scene);
            let mut heads = vec![Text::RowKey.get().to_owned(), Text::RowExactWeight.get().to_owned()];
            if own {
                let (tab, seen) = if method == Method::Lsh {
                    (Text::TabLsh, Text::RowSeen)
                } else {
                    (Text::TabLinformer, Text::RowTop)
                };
                heads.extend([fill(Text::RowMethodWeight, &[tab.get()]), seen.get().to_owned()]);
            }
            heads.into_iter().for_each(|head| drop(ui.strong(head)));
            ui.end_row();
            for key in &row.keys {
                ui.label(key.key.to_string());
                ui.label(ticks::written(f64::from(key.exact)));
                if own {
                    ui.label(ticks::written(f64::from(key.method)));
                    let (words, colour) = match (key.seen, method) {
                        (true, Method::Lsh) => (Text::RowVisible, FOUND),
                        (false, Method::Lsh) => (Text::RowLost, LOST),
                        (true, _) => (Text::RowYes, FOUND),
                        (false, _) => (Text::RowNo, LOST),
                    };
                    legend(ui, colour, words.get(), Text::RowSeenHelp.get());
                }
                ui.end_row();
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_keys_stand_in_order() {
        let weights = [0.1, 0.0, 0.4, 0.3, 0.2, 0.0];
        assert_eq!(strongest(&weights, 3), [2, 3, 4]);
        assert_eq!(strongest(&weights, 32), [2, 3, 4, 0]);
        assert_eq!(strongest(&[1.0], 32), [0]);
        assert_eq!(strongest(&[], 32), [0u32; 0]);
    }

    #[test]
    fn what_is_lost_and_what_is_added_is_told_apart() {
        let weights =
            RowWeights { head: 0, query: 1, exact: vec![0.5, 0.3, 0.2, 0.0], method: vec![0.6, 0.0, 0.0, 0.4] };
        let row = Row::new(Rc::new(weights), |_, key| key == 0, Color32::BLACK);
        assert_eq!(
            row.keys.iter().map(|key| (key.key, key.seen)).collect::<Vec<_>>(),
            [(0, true), (1, false), (2, false)]
        );
        let [exact, method] = &row.overlays;
        assert!(exact[0].g() > exact[0].r() && exact[1].r() > exact[1].g(), "{exact:?}");
        assert!(method[0].g() > method[0].b() && method[3].b() > method[3].r(), "{method:?}");
        assert_eq!(exact[3], method[1]);
    }
}
