//! Who moved my chunk: the earlier outputs that a change of the last token moves, and why.

use super::super::buckets::select_round;
use super::super::tokens::{Canvas, Face, Tokens};
use super::super::{caption, colour, format, waiting};
use super::wide;
use crate::app::scene::{Answer, Command, Question, Scene};
use crate::lab::Moved;
use crate::outcome::Lists;
use crate::text::{Text, fill};
use colour::Scale;
use egui::{Color32, Ui};
use std::rc::Rc;

/// Moved tokens in the table.
const LISTED: usize = 8;
/// Over tokens that stayed.
const VEIL: Color32 = Color32::from_black_alpha(170);

#[derive(Default)]
pub struct State {
    painted: Option<Painted>,
    canvas: Canvas,
}

/// Of one answer and head.
struct Painted {
    moved: Rc<Moved>,
    head: u32,
    earlier: Vec<u32>,
    scale: Scale,
    colours: Rc<[Color32]>,
}

impl Painted {
    fn new(moved: &Rc<Moved>, n: u32, head: u32) -> Self {
        let (distance, earlier) = (moved.of(n, head), moved.earlier(n, head));
        let largest = earlier.first().map_or(1.0, |token| distance[*token as usize]);
        let scale = Scale::linear(0.0, largest);
        let mut colours = vec![VEIL; distance.len()];
        for token in &earlier {
            colours[*token as usize] = colour::magnitude(scale.place(distance[*token as usize]));
        }
        // What was changed stands out by itself.
        colours[distance.len() - 1] = Color32::TRANSPARENT;
        Self { moved: moved.clone(), head, earlier, scale, colours: colours.into() }
    }
}

pub fn show(ui: &mut Ui, scene: &Scene<'_>, state: &mut State, commands: &mut Vec<Command>) {
    commands.push(Command::Ask(Question::LastToken));
    let moved = match (scene.answer)(Question::LastToken) {
        Some(Answer::LastToken(moved)) => moved,
        other => return waiting(ui, other),
    };
    let dims = &scene.input.problem.dims;
    let (n, head) = (dims.n_q, scene.head.min(dims.heads - 1));
    let kept = state.painted.take().filter(|kept| Rc::ptr_eq(&kept.moved, &moved) && kept.head == head);
    let painted = state.painted.insert(kept.unwrap_or_else(|| Painted::new(&moved, n, head)));
    if let Some([lists, _]) = &moved.lists {
        let round = scene.round.min(lists.rounds - 1);
        ui.horizontal_wrapped(|ui| select_round(ui, round, lists.rounds, commands));
    }
    let count = [painted.earlier.len() as u64, u64::from(n - 1)].map(format::count);
    ui.label(fill(Text::LastTokenMoved, &[&count[0], &count[1]]));
    match &moved.lists {
        None => drop(ui.label(Text::LastTokenShort.get())),
        Some([before, after]) => why(ui, [before, after], (n, head, scene.round.min(before.rounds - 1))),
    }
    if painted.earlier.is_empty() {
        if let Some([lists, _]) = &moved.lists {
            ui.label(why_none(n <= lists.chunk_len, scene.settings.semantics.same_bucket).get());
        }
    } else {
        let tokens = Tokens {
            name: Text::LastTokenPicture.get(),
            face: Face::Input,
            overlay: Some(&painted.colours),
            opacity: 1.0,
            max_height: 260.0,
        };
        tokens.show(ui, scene, &mut state.canvas).tell(commands);
        colour::bar(ui, colour::magnitude, painted.scale, Text::LastTokenBar.get());
        if let Some(lists) = &moved.lists {
            table(ui, painted, lists, n);
        }
    }
    caption(ui, Text::LastTokenCaption.get());
}

/// Where the last token went, and how many tokens stand in another chunk for it.
fn why(ui: &mut Ui, [before, after]: [&Lists; 2], (n, head, round): (u32, u32, u32)) {
    let bucket = |lists: &Lists| lists.of(&lists.buckets, n, head, round)[n as usize - 1].to_string();
    let chunks = [before, after].map(|lists| lists.chunk_of(n, head, round));
    let others = (0..n as usize - 1).filter(|at| chunks[0][*at] != chunks[1][*at]).count() as u64;
    let round = (round + 1).to_string();
    ui.label(fill(Text::LastTokenWhy, &[&round, &bucket(before), &bucket(after), &format::count(others)]));
}

/// Why no output moved, and what to try.
fn why_none(one_chunk: bool, same_bucket: bool) -> Text {
    match (one_chunk, same_bucket) {
        (true, _) => Text::LastTokenOneChunk,
        (false, true) => Text::LastTokenNone,
        (false, false) => Text::LastTokenNoneAny,
    }
}

/// The outputs that moved farthest: bucket and chunk in the first round in which the chunk changed.
fn table(ui: &mut Ui, painted: &Painted, [before, after]: &[Lists; 2], n: u32) {
    let head = painted.head;
    let rounds: Vec<[Vec<u32>; 2]> =
        (0..before.rounds).map(|round| [before, after].map(|lists| lists.chunk_of(n, head, round))).collect();
    wide(ui, "moved outputs", |ui| {
        for name in [
            Text::LastTokenToken,
            Text::LastTokenDistance,
            Text::LastTokenRound,
            Text::LastTokenBucket,
            Text::LastTokenChunk,
        ] {
            ui.strong(name.get());
        }
        ui.end_row();
        for token in painted.earlier.iter().take(LISTED) {
            let at = *token as usize;
            ui.label(token.to_string());
            ui.label(format::number(f64::from(painted.moved.of(n, head)[at])));
            match (0..).zip(&rounds).find(|(_, [before, after])| before[at] != after[at]) {
                Some((round, [from, to])) => {
                    let bucket = |lists: &Lists| lists.of(&lists.buckets, n, head, round)[at];
                    ui.label((round + 1).to_string());
                    ui.label(fill(Text::LastTokenFromTo, &[&bucket(before).to_string(), &bucket(after).to_string()]));
                    ui.label(fill(Text::LastTokenFromTo, &[&(from[at] + 1).to_string(), &(to[at] + 1).to_string()]));
                }
                // Its own chunk stays, but another token of its window left or came.
                None => drop(ui.label(Text::LastTokenWindow.get())),
            }
            ui.end_row();
        }
    });
}
