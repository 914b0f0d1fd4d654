//! Where everything stands: settings on the left or folded away, methods, steps and what runs on
//! top, the view below.

use super::job::Job;
use super::scene::{Answer, Command, Missing, Question, Scene, View};
use super::session::{Session, Stands};
use super::stage::{FAMILIES, family};
use super::views::{
    attention, buckets, codes, compare, format, layers, memory, projection, rank, result, tables, theory,
};
use super::{App, controls, files, open, strip, summary, worded};
use crate::gpu::Fault;
use crate::gpu::run::Clock;
use crate::outcome::Outcome;
use crate::plan::Step;
use crate::settings::{Method, Settings};
use crate::text::{self, Text, fill};
use crate::units::grouped;
use egui::{Align, Button, CentralPanel, Color32, Layout, Panel, ProgressBar, RichText, ScrollArea, Ui};
use std::time::Duration;

/// Below this width the settings fold away above the view.
const NARROW: f32 = 700.0;
/// What runs for longer shows its progress.
const PROGRESS_AFTER: Duration = Duration::from_millis(200);

impl App {
    pub(super) fn screen(&mut self, ui: &mut Ui, commands: &mut Vec<Command>) {
        if ui.available_width() < NARROW {
            Panel::top("head").show(ui, |ui| {
                ui.add_space(4.0);
                self.folding_controls(ui, commands);
                ui.separator();
                self.head(ui, commands);
            });
        } else {
            Panel::left("controls").default_size(280.0).size_range(240.0..=400.0).show(ui, |ui| {
                let foot = Panel::bottom("check").frame(egui::Frame::NONE).show_separator_line(false);
                foot.show(ui, |ui| self.check_button(ui, commands));
                ui.add_space(6.0);
                ui.heading(Text::AppName.get());
                ui.add_space(4.0);
                self.controls(ui);
            });
            Panel::top("head").show(ui, |ui| {
                ui.add_space(6.0);
                self.head(ui, commands);
            });
        }
        CentralPanel::default().show(ui, |ui| {
            self.messages(ui, commands);
            self.central(ui, commands);
        });
        self.drop_hint(ui);
    }

    fn controls(&mut self, ui: &mut Ui) {
        let mut settings = self.settings.clone();
        controls::sliders(ui, &mut settings);
        ui.separator();
        let has_own = self.session.as_ref().is_ok_and(Session::has_own);
        let asked = ScrollArea::vertical()
            .id_salt("settings")
            .auto_shrink([false, true])
            .show(ui, |ui| controls::others(ui, &mut settings, has_own))
            .inner;
        if asked.open_picture {
            self.opening = Some(Box::pin(files::pick()));
        }
        self.set(settings);
    }

    fn check_button(&self, ui: &mut Ui, commands: &mut Vec<Command>) {
        let idle = self.session.as_ref().is_ok_and(|session| session.fault().is_none() && !session.is_checking());
        let button = ui.add_enabled(idle, Button::new(Text::Check.get()));
        if button.on_hover_text(Text::CheckHelp.get()).clicked() {
            commands.push(Command::Check);
        }
    }

    fn folding_controls(&mut self, ui: &mut Ui, commands: &mut Vec<Command>) {
        let folded = [
            grouped(self.settings.n.into()),
            self.settings.rounds.to_string(),
            grouped(self.settings.bucket_count().into()),
            grouped(self.settings.projected_len().into()),
        ];
        let folded: Vec<&str> = folded.iter().map(String::as_str).collect();
        ui.horizontal(|ui| {
            let button = Button::new(Text::Sliders.get()).selected(self.unfolded);
            if ui.add(button).on_hover_text(Text::SlidersHelp.get()).clicked() {
                self.unfolded = !self.unfolded;
            }
            ui.label(RichText::new(fill(Text::SlidersFolded, &folded)).small());
        });
        if self.unfolded {
            let height = ui.ctx().content_rect().height() * 0.5;
            ScrollArea::vertical().id_salt("folding").max_height(height).show(ui, |ui| {
                self.controls(ui);
                self.check_button(ui, commands);
            });
        }
    }

    /// Tabs of methods and views, the strip of steps, and what runs.
    fn head(&mut self, ui: &mut Ui, commands: &mut Vec<Command>) {
        let narrow = ui.ctx().content_rect().width() < NARROW;
        ui.horizontal_wrapped(|ui| {
            for method in FAMILIES {
                let (name, help) = summary::method_tab(method);
                let on = self.view != View::Compare && family(self.settings.method) == method;
                if tab(ui, on, name, help) {
                    self.show_method(method);
                }
            }
            if tab(ui, self.view == View::Compare, Text::TabCompare, Text::TabCompareHelp) {
                self.open(View::Compare);
            }
            if narrow {
                ui.end_row();
            } else {
                ui.separator();
            }
            for (view, name, help) in [
                (View::Buckets, Text::ViewBuckets, Text::ViewBucketsHelp),
                (View::Attention, Text::ViewAttention, Text::ViewAttentionHelp),
                (View::Result, Text::ViewResult, Text::ViewResultHelp),
                (View::Memory, Text::ViewMemory, Text::ViewMemoryHelp),
                (View::Codes, Text::ViewCodes, Text::ViewCodesHelp),
                (View::Projection, Text::ViewProjection, Text::ViewProjectionHelp),
                (View::Rank, Text::ViewRank, Text::ViewRankHelp),
                (View::Layers, Text::ViewLayers, Text::ViewLayersHelp),
                (View::Tables, Text::ViewTables, Text::ViewTablesHelp),
                (View::Theory, Text::ViewTheory, Text::ViewTheoryHelp),
            ] {
                if ui.selectable_label(self.view == view, name.get()).on_hover_text(help.get()).clicked() {
                    self.open(view);
                }
            }
        });
        let Ok(session) = &self.session else { return };
        let answer = |_| None;
        let outcome = session.scene(&answer).and_then(|scene| scene.current().ok().cloned());
        if let Some(outcome) = &outcome {
            ui.scope(|ui| {
                fade(ui, session);
                commands.extend(strip::show(ui, outcome).map(Command::Open));
            });
        }
        self.status(ui, outcome.as_deref(), commands);
        ui.add_space(4.0);
    }

    fn show_method(&mut self, method: Method) {
        self.view = self.detail;
        // The tab of full attention keeps its way.
        if family(self.settings.method) != method {
            let way = self.session.as_ref().map_or(Method::Full, Session::full_way);
            let method = if method == Method::Full { way } else { method };
            self.set(Settings { method, ..self.settings.clone() });
        }
    }

    /// One line: what runs with Cancel, or what the last run cost.
    fn status(&self, ui: &mut Ui, outcome: Option<&Outcome>, commands: &mut Vec<Command>) {
        let Ok(session) = &self.session else { return };
        // As high as a button, so that nothing jumps when a run begins.
        let height = ui.spacing().interact_size.y;
        ui.allocate_ui_with_layout(
            egui::vec2(ui.available_width(), height),
            Layout::left_to_right(Align::Center),
            |ui| match session.running().filter(|(_, _, since)| *since > PROGRESS_AFTER) {
                Some((job, progress, _)) => {
                    let cancel = ui.button(Text::Cancel.get()).on_hover_text(Text::CancelHelp.get());
                    if cancel.clicked() {
                        commands.push(Command::Cancel);
                    }
                    let bar = ProgressBar::new(progress.fraction()).text(self.label(job, progress.step.get()));
                    ui.add(bar.desired_width((ui.available_width() - 120.0).clamp(120.0, 360.0)));
                    if let Some(outcome) = outcome.filter(|_| session.is_old()) {
                        let note = fill(Text::OldNote, &[&grouped(outcome.dims.n_q.into())]);
                        let note = RichText::new(note).small().color(ui.visuals().warn_fg_color);
                        ui.add(egui::Label::new(note).truncate());
                    }
                }
                None => {
                    if let Some(outcome) = outcome {
                        cost(ui, outcome, session.gpu().is_software());
                    }
                }
            },
        );
    }

    fn label(&self, job: Job, step: Option<Step>) -> String {
        match job {
            Job::Build => Text::Building.get().to_owned(),
            Job::Run(method) => {
                let step = step.map_or(Text::Starting.get(), Step::name);
                fill(Text::Running, &[summary::method_name(method).get(), step])
            }
            Job::Ask(_) => fill(Text::Answering, &[summary::method_name(self.settings.method).get()]),
            Job::Check => {
                let exam = self.session.as_ref().ok().and_then(Session::checking);
                exam.map_or(Text::Checking, summary::of_exam).get().to_owned()
            }
        }
    }

    /// What went wrong or waits, each a sentence and what to do.
    fn messages(&mut self, ui: &mut Ui, commands: &mut Vec<Command>) {
        if let Err(why) = &self.session {
            alarm(ui, why, None);
            return;
        }
        if let Some(notice) = &self.notice
            && alarm(ui, notice, Some((Text::Close, Text::CloseHelp)))
        {
            self.notice = None;
        }
        if let Some(error) = &self.invalid {
            alarm(ui, &worded(Text::NotAllowed, error), None);
        }
        self.fault(ui);
        let Ok(session) = &mut self.session else { return };
        if let Some(why) = session.failure() {
            alarm(ui, why, None);
        }
        if let Some(checked) = session.checked() {
            let (words, close) = (summary::of_check(checked), Some((Text::Close, Text::CloseHelp)));
            let say = if checked.failures.is_empty() { remark } else { alarm };
            if say(ui, &words, close) {
                session.forget_check();
            }
        }
        let answer = |_| None;
        let shown =
            session.scene(&answer).map(|scene| (scene.settings.n, scene.current().err().cloned(), scene.method));
        match (session.stands(), shown) {
            (Stands::Cancelled, shown) => {
                let old = shown.filter(|_| session.is_old()).map(|(n, ..)| fill(Text::OldKept, &[&grouped(n.into())]));
                let note = format!("{} {}", Text::CancelledNote.get(), old.unwrap_or_default());
                if remark(ui, &note, Some((Text::RunAgain, Text::RunAgainHelp))) {
                    commands.push(Command::Resume);
                }
            }
            (Stands::Running, None) => {
                ui.label(Text::SummaryFirst.get());
            }
            (Stands::Done, Some((_, Some(Missing::PutOff { seconds }), method))) => {
                let note = fill(Text::PutOffNote, &[&format::time(seconds * 1e3)]);
                if remark(ui, &note, Some((Text::RunNow, Text::RunNowHelp))) {
                    commands.push(Command::RunNow(method));
                }
            }
            // That the screen shows an older result stands beside the progress.
            (Stands::Running | Stands::Done | Stands::Failed, _) => {}
        }
    }

    fn fault(&mut self, ui: &mut Ui) {
        let Some(fault) = self.session.as_ref().ok().and_then(Session::fault).cloned() else { return };
        let lost = matches!(fault, Fault::Lost(_) | Fault::NoAdapter(_));
        if lost {
            let advice = if cfg!(target_arch = "wasm32") { Text::Reload } else { Text::Restart };
            alarm(ui, &format!("{} {}", text::sentence(fault), advice.get()), None);
        } else if alarm(ui, &text::sentence(fault), Some((Text::TryAgain, Text::TryAgainHelp)))
            && let Some(gpu) = self.render_state.as_ref().map(open)
        {
            self.with_session(|session| session.reopen(gpu));
        }
    }

    /// The view itself.
    fn central(&mut self, ui: &mut Ui, commands: &mut Vec<Command>) {
        let Ok(session) = &self.session else { return };
        let answer = |question: Question| -> Option<Answer> { session.answer(question) };
        let Some(scene) = session.scene(&answer).map(|scene| self.dressed(scene)) else { return };
        // These views are about all heads together; the round belongs to the view of buckets.
        let whole = matches!(self.view, View::Memory | View::Theory | View::Layers | View::Tables | View::Compare);
        if scene.settings.heads > 1 && !whole {
            commands.extend(head_selector(ui, &scene).map(Command::ShowHead));
        }
        ScrollArea::vertical().id_salt(("view", self.view)).auto_shrink(false).show(ui, |ui| {
            fade(ui, session);
            match self.view {
                View::Buckets => buckets::show(ui, &scene, &mut self.views.buckets, commands),
                View::Attention => attention::show(ui, &scene, &mut self.views.attention, commands),
                View::Result => result::show(ui, &scene, &mut self.views.result, commands),
                View::Memory => memory::show(ui, &scene, &mut self.views.memory, commands),
                View::Codes => codes::show(ui, &scene, &mut self.views.codes, commands),
                View::Projection => projection::show(ui, &scene, &mut self.views.projection, commands),
                View::Theory => theory::show(ui, &scene, &mut self.views.theory, commands),
                View::Rank => rank::show(ui, &scene, &mut self.views.rank, commands),
                View::Tables => tables::show(ui, &scene, &mut self.views.tables, commands),
                View::Layers => layers::show(ui, &scene, &mut self.views.layers, commands),
                View::Compare => compare::show(ui, &scene, commands),
            }
        });
    }

    fn drop_hint(&self, ui: &Ui) {
        if ui.input(|input| input.raw.hovered_files.is_empty()) {
            return;
        }
        let painter =
            ui.ctx().layer_painter(egui::LayerId::new(egui::Order::Foreground, egui::Id::unique("drop hint")));
        let screen = ui.ctx().content_rect();
        painter.rect_filled(screen, 0.0, Color32::from_black_alpha(180));
        let font = egui::TextStyle::Heading.resolve(ui.style());
        painter.text(screen.center(), egui::Align2::CENTER_CENTER, Text::DropHere.get(), font, Color32::WHITE);
    }
}

/// What is old is drawn fainter, unless the new result is there at once.
fn fade(ui: &mut Ui, session: &Session) {
    let soon = session.running().is_none_or(|(_, _, since)| since < PROGRESS_AFTER);
    if session.is_old() && !(soon && session.stands() == Stands::Running) {
        ui.multiply_opacity(0.6);
    }
}

fn tab(ui: &mut Ui, on: bool, name: Text, help: Text) -> bool {
    let button = Button::selectable(on, RichText::new(name.get()).strong());
    ui.add(button).on_hover_text(help.get()).clicked()
}

/// Milliseconds, what measured them, and the adapter.
fn cost(ui: &mut Ui, outcome: &Outcome, software: bool) {
    let clock = match outcome.clock {
        Clock::Timestamps => Text::ClockTimestamps,
        Clock::Wall => Text::ClockWall,
    };
    let adapter = if software { fill(Text::Software, &[&outcome.adapter]) } else { outcome.adapter.clone() };
    let total = fill(Text::Total, &[&format::time(outcome.ms), &adapter]);
    let help = fill(Text::TotalHelp, &[clock.get(), &format::bytes(outcome.peak_bytes)]);
    ui.add(egui::Label::new(RichText::new(total).small()).truncate()).on_hover_text(help);
}

/// A menu of the heads, numbered from 1; the head that was chosen.
fn head_selector(ui: &mut Ui, scene: &Scene<'_>) -> Option<u32> {
    let mut chosen = None;
    ui.horizontal(|ui| {
        let label = ui.label(Text::Head.get()).on_hover_text(Text::HeadHelp.get());
        let shown = format!("{} / {}", scene.head + 1, scene.settings.heads);
        let menu = egui::ComboBox::from_id_salt(Text::Head).selected_text(shown).width(64.0);
        let menu = menu.show_ui(ui, |ui| {
            for head in 0..scene.settings.heads {
                if ui.selectable_label(head == scene.head, (head + 1).to_string()).clicked() {
                    chosen = Some(head);
                }
            }
        });
        menu.response.labelled_by(label.id).on_hover_text(Text::HeadHelp.get());
    });
    chosen
}

/// A sentence about something wrong; true when its button was clicked.
fn alarm(ui: &mut Ui, words: &str, button: Option<(Text, Text)>) -> bool {
    said(ui, words, ui.visuals().error_fg_color, button)
}

/// A sentence about how things stand; true when its button was clicked.
fn remark(ui: &mut Ui, words: &str, button: Option<(Text, Text)>) -> bool {
    said(ui, words, ui.visuals().warn_fg_color, button)
}

fn said(ui: &mut Ui, words: &str, colour: Color32, button: Option<(Text, Text)>) -> bool {
    let frame = egui::Frame::group(ui.style()).stroke(egui::Stroke::new(1.0, colour));
    let shown = frame.show(ui, |ui| {
        ui.horizontal_wrapped(|ui| {
            ui.label(words);
            button.is_some_and(|(name, help)| ui.button(name.get()).on_hover_text(help.get()).clicked())
        })
        .inner
    });
    shown.inner
}
