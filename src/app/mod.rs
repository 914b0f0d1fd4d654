//! The page and the desktop app: `logic` works, `ui` shows, views return commands.

mod address;
mod background;
pub mod controls;
mod files;
#[cfg(any(target_arch = "wasm32", test))]
mod fonts;
pub(crate) mod job;
pub mod scene;
mod screen;
pub mod session;
mod stage;
pub mod strip;
mod summary;
pub mod views;

use crate::gpu::Gpu;
use crate::inputs::Picture;
use crate::settings::{InputKind, KEYS, Sample, Settings, SettingsError};
use crate::text::{self, Text, fill};
use address::Address;
use job::Exam;
use scene::{Command, Question, Scene, View};
use session::{Again, Session, Stands};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use views::{attention, buckets, codes, layers, memory, projection, rank, result, tables, theory};

/// Size of notes; what egui calls small is too small for a lecture hall.
const SMALL: f32 = 11.0;
/// Width of a hover text, which a phone must hold.
const TOOLTIP: f32 = 340.0;
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
    codes: codes::State,
    projection: projection::State,
    theory: theory::State,
    rank: rank::State,
    tables: tables::State,
    layers: layers::State,
}

impl App {
    /// Starts with the settings of the page's address, or with the defaults.
    pub fn new(cc: &eframe::CreationContext<'_>) -> Self {
        Self::with(cc, None, None)
    }

    /// Starts with these settings and, for [`Sample::Own`], this picture.
    pub fn with(cc: &eframe::CreationContext<'_>, settings: Option<Settings>, picture: Option<Picture>) -> Self {
        #[cfg(target_arch = "wasm32")]
        cc.egui_ctx.set_fonts(fonts::fonts());
        cc.egui_ctx.all_styles_mut(|style| {
            style.text_styles.insert(egui::TextStyle::Small, egui::FontId::proportional(SMALL));
            style.spacing.tooltip_width = TOOLTIP;
            // Captions explain: they stand back, but must be readable from the last row.
            style.visuals.weak_text_alpha = 0.8;
        });
        let render_state = cc.wgpu_render_state.clone();
        let gpu = render_state.as_ref().map(open);
        let software = gpu.as_ref().is_some_and(Gpu::is_software);
        let n = if software { SOFTWARE_N } else { Settings::default().n };
        let (address, told) = Address::read(n);
        let settings = settings.unwrap_or(told.settings);
        // A stack of layers has a view of its own; its attention is the method.
        let view = if settings.reversible { View::Layers } else { told.view };
        let settings = Settings { reversible: false, ..settings };
        let session = gpu.ok_or_else(|| Text::NoDevice.get().to_owned()).map(|gpu| {
            let mut session = Session::new(gpu, settings.clone(), &cc.egui_ctx);
            if let Some(picture) = picture {
                session.open(picture);
            }
            if let Some(exam) = told.exam {
                session.check(exam);
            }
            session
        });
        Self {
            settings,
            invalid: None,
            session,
            render_state,
            address,
            view,
            detail: if view == View::Compare { View::Buckets } else { view },
            views: Views::default(),
            hovered: None,
            locked: None,
            head: 0,
            round: 0,
            unfolded: false,
            notice: told.notice,
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
            Command::Check => self.with_session(|session| session.check(Exam::Twins)),
            Command::Cancel => self.with_session(Session::cancel),
            Command::Resume => self.with_session(Session::resume),
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
            works = session.wants_frame();
        }
        // What changed is seen in all views, and the worker goes on, in the next frame.
        if acted || works || hovered != self.hovered {
            ctx.request_repaint();
        }
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
                said.extend(session.fault().map(text::sentence));
                said.extend(session.failure().map(str::to_owned));
                said.extend(session.checking().map(|exam| summary::of_exam(exam).get().to_owned()));
                said.extend(session.checked().map(summary::of_check));
                let answer = |question| session.answer(question);
                let scene = session.scene(&answer);
                match (session.stands(), &scene) {
                    (Stands::Running, Some(_)) => said.push(Text::SummaryOld.get().to_owned()),
                    (Stands::Running, None) => said.push(Text::SummaryFirst.get().to_owned()),
                    (Stands::Cancelled, _) => said.push(Text::CancelledNote.get().to_owned()),
                    (Stands::Done | Stands::Failed, _) => {}
                }
                if let Some(scene) = scene.map(|scene| self.dressed(scene)) {
                    said.push(summary::of_scene(&scene));
                    said.extend((self.view == View::Rank).then(|| summary::of_rank(&scene)).flatten());
                }
                said.push(fill(Text::SummaryView, &[summary::view_name(self.view).get()]));
            }
        }
        #[cfg(target_arch = "wasm32")]
        crate::web::mirror_busy(self.is_busy());
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
    let gpu = Gpu::new(&state.adapter, state.device.clone(), state.queue.clone());
    // Through wgpu a browser does not name it.
    #[cfg(target_arch = "wasm32")]
    let gpu = gpu.named(crate::web::adapter_name());
    gpu
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
                // The canvas may show nothing any more.
                #[cfg(target_arch = "wasm32")]
                if !matches!(fault, crate::gpu::Fault::OutOfMemory(_)) {
                    crate::web::problem(&text::sentence(fault));
                }
            }
        }
        self.address.write(&self.settings, self.view, ctx);
    }

    fn ui(&mut self, ui: &mut egui::Ui, _frame: &mut eframe::Frame) {
        let mut commands = Vec::new();
        self.screen(ui, &mut commands);
        self.obey_all(ui.ctx(), commands);
        // What the views ask now counts as work, too.
        self.summarise();
    }

    #[cfg(target_arch = "wasm32")]
    fn as_any_mut(&mut self) -> Option<&mut dyn std::any::Any> {
        Some(self)
    }
}
