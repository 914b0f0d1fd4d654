//! The page and the desktop app: `logic` works, `ui` shows, views return commands.

mod address;
mod background;
pub mod controls;
mod files;
pub mod scene;
pub mod session;
pub mod strip;
mod summary;
pub mod text;
pub mod views;

use crate::gpu::{Fault, Gpu};
use crate::inputs::Picture;
use crate::outcome::Outcome;
use crate::settings::{InputKind, KEYS, Method, Sample, Settings, SettingsError};
use address::Address;
use egui::{Align, Button, CentralPanel, Color32, Layout, Panel, ProgressBar, RichText, ScrollArea, Ui};
use scene::{Answer, Command, Missing, Question, Scene, View};
use session::{Again, Job, Session, Stands, family};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use text::{Text, fill};
use views::ticks::grouped;
use views::{attention, buckets, compare, format, memory, result};

/// Below this width the settings fold away above the view.
const NARROW: f32 = 700.0;
/// What runs for longer shows its progress.
const PROGRESS_AFTER: Duration = Duration::from_millis(200);
/// Size of notes; what egui calls small is too small for a lecture hall.
const SMALL: f32 = 11.0;
/// The length to start with on an adapter that computes on the CPU.
const SOFTWARE_N: u32 = 1024;

type Opening = Pin<Box<dyn Future<Output = Option<Result<Picture, String>>>>>;

/// The program on the page and in the window.
pub struct App {
    /// What the controls say, which may be something that cannot run.
    settings: Settings,
    invalid: Option<SettingsError>,
    /// In words, why there is no session: no device that computes.
    session: Result<Session, String>,
    render_state: Option<egui_wgpu::RenderState>,
    address: Address,
    view: View,
    /// The view to go back to from [`View::Compare`].
    detail: View,
    views: Views,
    hovered: Option<u32>,
    locked: Option<u32>,
    head: u32,
    round: u32,
    /// On a narrow screen, whether the settings are unfolded.
    unfolded: bool,
    /// A sentence that stays until it is closed.
    notice: Option<String>,
    opening: Option<Opening>,
    summary: String,
}

/// The state of each view.
#[derive(Default)]
struct Views {
    buckets: buckets::State,
    attention: attention::State,
    result: result::State,
    memory: memory::State,
    compare: compare::State,
}

impl App {
    /// Starts with the settings of the page's address, or with the defaults.
    pub fn new(cc: &eframe::CreationContext<'_>) -> Self {
        Self::with(cc, None, None)
    }

    /// Starts with these settings and, for [`Sample::Own`], this picture.
    pub fn with(cc: &eframe::CreationContext<'_>, settings: Option<Settings>, picture: Option<Picture>) -> Self {
        cc.egui_ctx.all_styles_mut(|style| {
            style.text_styles.insert(egui::TextStyle::Small, egui::FontId::proportional(SMALL));
        });
        let render_state = cc.wgpu_render_state.clone();
        let gpu = render_state.as_ref().map(open);
        let software = gpu.as_ref().is_some_and(Gpu::is_software);
        let n = if software { SOFTWARE_N } else { Settings::default().n };
        let (address, told, error) = Address::read(n);
        let notice = error.map(|error| worded(Text::BadAddress, &error));
        let settings = settings.unwrap_or(told);
        let session = gpu.ok_or_else(|| Text::NoDevice.get().to_owned()).map(|gpu| {
            let mut session = Session::new(gpu, settings.clone(), &cc.egui_ctx);
            if let Some(picture) = picture {
                session.open(picture);
            }
            session
        });
        Self {
            settings,
            invalid: None,
            session,
            render_state,
            address,
            view: View::Buckets,
            detail: View::Buckets,
            views: Views::default(),
            hovered: None,
            locked: None,
            head: 0,
            round: 0,
            unfolded: false,
            notice,
            opening: None,
            summary: String::new(),
        }
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The view that is open.
    pub fn view(&self) -> View {
        self.view
    }

    /// The current result in sentences.
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// True while something runs or waits to run.
    pub fn is_busy(&self) -> bool {
        self.session.as_ref().is_ok_and(Session::has_work)
    }

    /// Does what a view or a control asked for.
    pub fn obey(&mut self, command: Command) {
        match command {
            Command::Hover(token) => self.hovered = Some(token),
            Command::Click(token) => self.locked = (self.locked != Some(token)).then_some(token),
            Command::ShowHead(head) => self.head = head,
            Command::ShowRound(round) => self.round = round,
            Command::Open(view) => self.open(view),
            Command::Set(settings) => self.set(*settings),
            Command::RunNow(method) => self.with_session(|session| session.run_now(method)),
            Command::Cancel => self.with_session(Session::cancel),
            // Gathered for the whole frame.
            Command::Ask(_) => {}
        }
    }

    fn with_session(&mut self, work: impl FnOnce(&mut Session)) {
        if let Ok(session) = &mut self.session {
            work(session);
        }
    }

    fn open(&mut self, view: View) {
        self.view = view;
        if view != View::Compare {
            self.detail = view;
        }
    }

    /// Runs new settings, or says why they cannot run and keeps the last result.
    pub fn set(&mut self, settings: Settings) {
        if settings == self.settings {
            return;
        }
        self.settings = settings;
        self.invalid = self.settings.validate().err();
        if self.invalid.is_none() {
            let settings = self.settings.clone();
            self.with_session(|session| session.change(settings));
        }
    }

    /// What a view changed in the settings that it saw, done to those of now.
    fn set_from_view(&mut self, seen: &Settings, wanted: &Settings) {
        let mut settings = self.settings.clone();
        for key in KEYS {
            let value = (key.get)(wanted);
            if (key.get)(seen) != value {
                (key.set)(&mut settings, &value);
            }
        }
        self.set(settings);
    }

    fn take_pictures(&mut self, ctx: &egui::Context) {
        if let Some(file) = ctx.input(|input| input.raw.dropped_files.first().cloned()) {
            self.opening = Some(Box::pin(files::dropped(file)));
        }
        let Some(opening) = &mut self.opening else { return };
        match opening.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            // A dialog is open: the user is slower than this.
            Poll::Pending => ctx.request_repaint_after(Duration::from_millis(100)),
            Poll::Ready(opened) => {
                self.opening = None;
                match opened {
                    Some(Ok(picture)) => self.take_picture(picture),
                    Some(Err(why)) => self.notice = Some(why),
                    None => {}
                }
            }
        }
    }

    /// Makes a picture of the user's the input.
    pub fn take_picture(&mut self, picture: Picture) {
        self.with_session(|session| session.open(picture));
        self.set(Settings { input: InputKind::Picture, sample: Sample::Own, ..self.settings.clone() });
    }

    fn summarise(&mut self) {
        let mut said: Vec<String> = Vec::new();
        said.extend(self.notice.clone());
        said.extend(self.invalid.as_ref().map(|error| worded(Text::NotAllowed, error)));
        match &self.session {
            Err(why) => said.push(why.clone()),
            Ok(session) => {
                said.extend(session.fault().map(Fault::to_string));
                said.extend(session.failure().map(str::to_owned));
                let answer = |_| None;
                let scene = session.scene(&answer);
                match (session.stands(), &scene) {
                    (Stands::Running, Some(_)) => said.push(Text::SummaryOld.get().to_owned()),
                    (Stands::Running, None) => said.push(Text::SummaryFirst.get().to_owned()),
                    (Stands::Cancelled, _) => said.push(Text::CancelledNote.get().to_owned()),
                    (Stands::Done | Stands::Failed, _) => {}
                }
                said.extend(scene.map(|scene| summary::of_scene(&self.dressed(scene))));
            }
        }
        let summary = said.join(" ");
        if summary != self.summary {
            #[cfg(target_arch = "wasm32")]
            crate::web::mirror_summary(&summary);
            self.summary = summary;
        }
    }

    /// Adds to a scene what this screen looks at.
    fn dressed<'a>(&self, scene: Scene<'a>) -> Scene<'a> {
        let n = scene.settings.n;
        let there = |token: Option<u32>| token.filter(|token| *token < n);
        let locked = there(self.locked);
        Scene {
            token: locked.or(there(self.hovered)),
            locked: locked.is_some(),
            head: self.head.min(scene.settings.heads.saturating_sub(1)),
            round: self.round.min(scene.settings.rounds.saturating_sub(1)),
            ..scene
        }
    }
}

fn open(state: &egui_wgpu::RenderState) -> Gpu {
    Gpu::new(&state.adapter, state.device.clone(), state.queue.clone())
}

fn worded(text: Text, error: &SettingsError) -> String {
    fill(text, &[&error.key, &error.value, &error.allowed])
}

impl eframe::App for App {
    fn logic(&mut self, ctx: &egui::Context, _frame: &mut eframe::Frame) {
        self.take_pictures(ctx);
        if let Ok(session) = &mut self.session {
            let healthy = session.fault().is_none();
            match session.poll() {
                Again::Never => {}
                Again::NextFrame => ctx.request_repaint(),
                Again::After(wait) => ctx.request_repaint_after(wait),
            }
            if let Some(fault) = session.fault().filter(|_| healthy) {
                log::error!("{fault}");
                #[cfg(target_arch = "wasm32")]
                crate::web::problem(&fault.to_string());
            }
        }
        self.address.write(&self.settings, ctx);
        self.summarise();
    }

    fn ui(&mut self, ui: &mut Ui, _frame: &mut eframe::Frame) {
        let mut commands = Vec::new();
        if ui.available_width() < NARROW {
            Panel::top("head").show(ui, |ui| {
                ui.add_space(4.0);
                self.folding_controls(ui);
                ui.separator();
                self.head(ui, &mut commands);
            });
        } else {
            Panel::left("controls").default_size(280.0).size_range(240.0..=400.0).show(ui, |ui| {
                ui.add_space(6.0);
                ui.heading(Text::AppName.get());
                ui.add_space(4.0);
                self.controls(ui);
            });
            Panel::top("head").show(ui, |ui| {
                ui.add_space(6.0);
                self.head(ui, &mut commands);
            });
        }
        CentralPanel::default().show(ui, |ui| {
            self.messages(ui, &mut commands);
            self.central(ui, &mut commands);
        });
        self.drop_hint(ui);
        self.obey_all(ui.ctx(), commands);
    }

    #[cfg(target_arch = "wasm32")]
    fn as_any_mut(&mut self) -> Option<&mut dyn std::any::Any> {
        Some(self)
    }
}

/// The parts of the screen.
impl App {
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

    fn folding_controls(&mut self, ui: &mut Ui) {
        let folded = [
            grouped(self.settings.n.into()),
            self.settings.rounds.to_string(),
            grouped(self.settings.bucket_count().into()),
            grouped(self.settings.projected_len().into()),
        ];
        let folded: Vec<&str> = folded.iter().map(String::as_str).collect();
        ui.horizontal(|ui| {
            ui.toggle_value(&mut self.unfolded, Text::Sliders.get()).on_hover_text(Text::SlidersHelp.get());
            ui.label(RichText::new(fill(Text::SlidersFolded, &folded)).small());
        });
        if self.unfolded {
            let height = ui.ctx().content_rect().height() * 0.5;
            ScrollArea::vertical().id_salt("folding").max_height(height).show(ui, |ui| self.controls(ui));
        }
    }

    /// Tabs of methods and views, the strip of steps, and what runs.
    fn head(&mut self, ui: &mut Ui, commands: &mut Vec<Command>) {
        ui.horizontal_wrapped(|ui| {
            for (method, name, help) in [
                (Method::Full, Text::TabFull, Text::TabFullHelp),
                (Method::Lsh, Text::TabLsh, Text::TabLshHelp),
                (Method::Linformer, Text::TabLinformer, Text::TabLinformerHelp),
            ] {
                let on = self.view != View::Compare && family(self.settings.method) == method;
                if tab(ui, on, name, help) {
                    self.show_method(method);
                }
            }
            if tab(ui, self.view == View::Compare, Text::TabCompare, Text::TabCompareHelp) {
                self.open(View::Compare);
            }
            ui.separator();
            for (view, name, help) in [
                (View::Buckets, Text::ViewBuckets, Text::ViewBucketsHelp),
                (View::Attention, Text::ViewAttention, Text::ViewAttentionHelp),
                (View::Result, Text::ViewResult, Text::ViewResultHelp),
                (View::Memory, Text::ViewMemory, Text::ViewMemoryHelp),
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
                fade(ui, session.is_old());
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
                    ui.add(bar.desired_width(ui.available_width().min(420.0)));
                }
                None => {
                    if let Some(outcome) = outcome {
                        cost(ui, outcome, session.gpu().is_software());
                    }
                }
            },
        );
    }

    fn label(&self, job: Job, step: Option<crate::plan::Step>) -> String {
        match job {
            Job::Build => Text::Building.get().to_owned(),
            Job::Run(method) => {
                let step = step.map_or(Text::Starting, |step| strip::words(step).0);
                fill(Text::Running, &[summary::method_name(method).get(), step.get()])
            }
            Job::Ask(_) => fill(Text::Answering, &[summary::method_name(self.settings.method).get()]),
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
        let answer = |_| None;
        let shown = session.scene(&answer).map(|scene| (scene.settings.n, scene.current().err().cloned()));
        match (session.stands(), shown) {
            (Stands::Cancelled, shown) => {
                let old = shown.filter(|_| session.is_old()).map(|(n, _)| fill(Text::OldKept, &[&grouped(n.into())]));
                let note = format!("{} {}", Text::CancelledNote.get(), old.unwrap_or_default());
                if remark(ui, &note, Some((Text::RunAgain, Text::RunAgainHelp))) {
                    session.resume();
                }
            }
            (Stands::Running, Some((n, _))) => {
                remark(ui, &fill(Text::OldNote, &[&grouped(n.into())]), None);
            }
            (Stands::Running, None) => {
                ui.label(Text::SummaryFirst.get());
            }
            (Stands::Done, Some((_, Some(Missing::PutOff { seconds })))) => {
                let note = fill(Text::PutOffNote, &[&format::time(seconds * 1e3)]);
                if remark(ui, &note, Some((Text::RunNow, Text::RunNowHelp))) {
                    commands.push(Command::RunNow(Method::Full));
                }
            }
            (Stands::Done | Stands::Failed, _) => {}
        }
    }

    fn fault(&mut self, ui: &mut Ui) {
        let Some(fault) = self.session.as_ref().ok().and_then(Session::fault).cloned() else { return };
        let lost = matches!(fault, Fault::Lost(_) | Fault::NoAdapter(_));
        if lost {
            let advice = if cfg!(target_arch = "wasm32") { Text::Reload } else { Text::Restart };
            alarm(ui, &format!("{fault}. {}", advice.get()), None);
        } else if alarm(ui, &fault.to_string(), Some((Text::TryAgain, Text::TryAgainHelp)))
            && let Some(gpu) = self.render_state.as_ref().map(open)
        {
            self.with_session(|session| session.reopen(gpu));
        }
    }

    /// The view itself, with the selectors of head and round.
    fn central(&mut self, ui: &mut Ui, commands: &mut Vec<Command>) {
        let Ok(session) = &self.session else { return };
        let answer = |question: Question| -> Option<Answer> { session.answer(question) };
        let Some(scene) = session.scene(&answer).map(|scene| self.dressed(scene)) else { return };
        if self.view != View::Compare {
            ui.horizontal(|ui| {
                selector(ui, Text::Head, Text::HeadHelp, scene.head, scene.settings.heads, |head| {
                    commands.push(Command::ShowHead(head));
                });
                let rounds = if scene.method == Method::Lsh { scene.settings.rounds } else { 1 };
                selector(ui, Text::Round, Text::RoundHelp, scene.round, rounds, |round| {
                    commands.push(Command::ShowRound(round));
                });
            });
        }
        ScrollArea::vertical().id_salt(("view", self.view)).auto_shrink(false).show(ui, |ui| {
            fade(ui, session.is_old());
            match self.view {
                View::Buckets => buckets::show(ui, &scene, &mut self.views.buckets, commands),
                View::Attention => attention::show(ui, &scene, &mut self.views.attention, commands),
                View::Result => result::show(ui, &scene, &mut self.views.result, commands),
                View::Memory => memory::show(ui, &scene, &mut self.views.memory, commands),
                View::Compare => compare::show(ui, &scene, &mut self.views.compare, commands),
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

    fn obey_all(&mut self, ctx: &egui::Context, commands: Vec<Command>) {
        let asked: Vec<Question> = commands
            .iter()
            .filter_map(|c| if let Command::Ask(question) = c { Some(*question) } else { None })
            .collect();
        let hovered = self.hovered.take();
        let answer = |_| None;
        let scene = self.session.as_ref().ok().and_then(|session| session.scene(&answer));
        let seen = scene.map(|scene| scene.settings.clone());
        let mut acted = false;
        for command in commands {
            acted |= !matches!(command, Command::Ask(_) | Command::Hover(_));
            match (command, &seen) {
                (Command::Set(wanted), Some(seen)) => self.set_from_view(seen, &wanted),
                (command, _) => self.obey(command),
            }
        }
        let mut works = false;
        if let Ok(session) = &mut self.session {
            session.ask(&asked);
            works = session.has_work();
        }
        // What changed is seen in all views, and the worker goes on, in the next frame.
        if acted || works || hovered != self.hovered {
            ctx.request_repaint();
        }
    }
}

/// What is old is drawn fainter.
fn fade(ui: &mut Ui, old: bool) {
    if old {
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
        crate::gpu::run::Clock::Timestamps => Text::ClockTimestamps,
        crate::gpu::run::Clock::Wall => Text::ClockWall,
    };
    let adapter = if software { fill(Text::Software, &[&outcome.adapter]) } else { outcome.adapter.clone() };
    let total = fill(Text::Total, &[&format::time(outcome.ms), &adapter]);
    let help = fill(Text::TotalHelp, &[clock.get(), &format::bytes(outcome.peak_bytes)]);
    ui.add(egui::Label::new(RichText::new(total).small()).truncate()).on_hover_text(help);
}

/// Buttons 1, 2, 3, ... when there is more than one.
fn selector(ui: &mut Ui, name: Text, help: Text, shown: u32, count: u32, mut choose: impl FnMut(u32)) {
    if count < 2 {
        return;
    }
    let label = ui.label(name.get()).on_hover_text(help.get());
    let menu = egui::ComboBox::from_id_salt(name).selected_text(format!("{} / {count}", shown + 1)).width(64.0);
    let menu = menu.show_ui(ui, |ui| {
        for at in 0..count {
            if ui.selectable_label(at == shown, (at + 1).to_string()).clicked() {
                choose(at);
            }
        }
    });
    menu.response.labelled_by(label.id).on_hover_text(help.get());
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
