//! The views of results, memory and comparison over runs on a software adapter, as pictures in
//! `target/screenshots` and as assertions on what they say.

use attention_lab::app::scene::{Command, Missing, Scene, View};
use attention_lab::app::views::memory;
use attention_lab::gpu::{Gpu, block_on, run::Progress};
use attention_lab::inputs::{self, Input, Picture, sample_bytes};
use attention_lab::lab::Run;
use attention_lab::outcome::Outcome;
use attention_lab::settings::{InputKind, Method, Sample, Settings};
use egui::{Theme, Ui, vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

/// What a scene borrows.
struct Stage {
    settings: Settings,
    input: Input,
    outcomes: [Result<Rc<Outcome>, Missing>; 3],
    gpu: Gpu,
}

impl Stage {
    /// Runs the three methods.
    fn new(settings: Settings) -> Self {
        let gpu = pollster::block_on(Gpu::open(true)).expect("a software adapter");
        let picture = Picture::decode(sample_bytes(Sample::Astronaut).expect("shipped")).expect("a photograph");
        let input = block_on(&gpu, inputs::build(&settings, Some(&picture))).expect("an input");
        let problem = Rc::new(input.problem.clone());
        let outcomes = [Method::Full, Method::Lsh, Method::Linformer].map(|method| {
            let settings = Settings { method, ..settings.clone() };
            let run = block_on(&gpu, Run::new(&gpu, &settings, &problem, &Progress::default()));
            Ok(run.expect("an outcome").outcome)
        });
        Self { settings, input, outcomes, gpu }
    }

    fn scene<'a>(&'a self, method: Method, token: Option<u32>, head: u32) -> Scene<'a> {
        let [full, lsh, linformer] = self.outcomes.each_ref().map(Result::as_ref);
        Scene {
            settings: &self.settings,
            input: &self.input,
            method,
            full,
            lsh,
            linformer,
            answer: &|_| None,
            limits: self.gpu.limits,
            token,
            locked: token.is_some(),
            head,
            round: 0,
            adapter: &self.gpu.info.name,
            software: true,
        }
    }
}

fn save(harness: &mut Harness<'_>, name: &str) {
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let folder = folder.join("screenshots");
    std::fs::create_dir_all(&folder).expect("a folder for pictures");
    harness.render().expect("a picture").save(folder.join(format!("{name}.png"))).expect("a file");
}

/// The four pages that every view must fit.
fn pages(name: &str, mut view: impl FnMut(&mut Ui)) {
    for (width, height) in [(1280.0, 800.0), (390.0, 844.0), (1000.0, 1100.0), (390.0,1800.0)] {
        for theme in [Theme::Dark, Theme::Light] {
            let mut harness = Harness::builder()
                .with_size(vec2(width, height))
                .with_theme(theme)
                .wgpu()
                .build_ui(&mut view);
            harness.run();
            save(&mut harness, &format!("{name}-{width}x{height}-{theme:?}").to_lowercase());
        }
    }
}

#[test]
fn a_picture() {
    let stage = Stage::new(Settings { n: 1024, ..Settings::default() });
    let commands = RefCell::new(Vec::<Command>::new());
    for method in [Method::Full, Method::Lsh, Method::Linformer] {
        let mut state = memory::State::default();
        pages(&format!("memory-{method:?}"), |ui| {
            memory::show(ui, &stage.scene(method, None, 0), &mut state, &mut commands.borrow_mut());
        });
    }
}
