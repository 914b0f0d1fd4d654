//! The view of layers on a software adapter, as pictures in `target/screenshots` and as assertions on
//! what it says.
#![cfg(not(target_arch = "wasm32"))]

mod window;

use attention_lab::app::App;
use attention_lab::gpu::run::Progress;
use attention_lab::gpu::{Gpu, block_on};
use attention_lab::inputs;
use attention_lab::lab::stack::{Stack, Way};
use attention_lab::settings::Settings;
use attention_lab::units::{bytes_in_words, grouped};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use std::collections::BTreeSet;
use window::{screenshot, sees, settle};

fn open(size: [f32; 2], theme: egui::Theme, query: &str) -> Harness<'static, App> {
    window::open(size, theme, Settings::from_query(query).expect(query))
}

const QUERY: &str = "input=clusters&method=reversible&n=256&d=16&rounds=2&layers=4";

/// The address of a reversible stack opens the view; the layers run when asked, and play.
#[test]
fn layers_run_play_and_are_measured() {
    for (size, theme, name) in
        [([1280.0, 800.0], egui::Theme::Dark, "wide"), ([390.0, 844.0], egui::Theme::Light, "phone")]
    {
        let mut app = open(size, theme, QUERY);
        sees(&app, "Reversible layers");
        // High, so that everything stands on the screen.
        app.set_size(egui::vec2(size[0], 3000.0));
        app.run();
        app.get_by_label("Run forward and backward").click();
        settle(&mut app);
        for words in ["reversible", "stored", "multiply-adds", "Error of the rebuilt inputs", "forward, layer 1"] {
            sees(&app, words);
        }
        app.get_by_label("Measure over depth and chunks").click();
        settle(&mut app);
        for words in ["Activations over depth", "Parameters in host memory save"] {
            sees(&app, words);
        }
        app.get_by_label("Play").click();
        app.run_steps(3);
        app.get_by_label("Pause").click();
        app.run();
        screenshot(&mut app, &format!("layers_{name}_all"));
        app.set_size(size.into());
        app.run();
        screenshot(&mut app, &format!("layers_{name}"));
    }
}

/// What the screen shows is what a stack of the very settings gives: none of them is lost on its way there.
#[test]
fn all_settings_of_the_stack_reach_it() {
    let gpu = pollster::block_on(Gpu::open(true)).expect("a software Vulkan driver");
    let mut seen = BTreeSet::new();
    for other in ["", "&vocabulary=2000", "&attention=full", "&d-ff=100", "&ff-chunks=1", "&loss-chunks=1"] {
        let query = format!("{QUERY}{other}");
        let settings = Settings::from_query(&query).expect("settings");
        let input = pollster::block_on(inputs::build(&settings, None)).expect("an input");
        let stack = pollster::block_on(Stack::new(&settings, &input.problem));
        let passage = block_on(&gpu, stack.run(&gpu, Way::default(), &Progress::default())).expect("a run");
        let adds = grouped((passage.forward.multiply_adds + passage.backward.multiply_adds) as u64);
        let bytes = [passage.activation_bytes(), passage.loss_bytes()].map(bytes_in_words);
        let mut app = open([1280.0, 2000.0], egui::Theme::Light, &query);
        app.get_by_label("Run forward and backward").click();
        settle(&mut app);
        for words in [&adds, &bytes[0], &bytes[1], &format!("Loss of {} words", grouped(settings.vocabulary.into()))] {
            sees(&app, words);
        }
        assert!(seen.insert((adds, passage.loss_bytes(), passage.activation_bytes())), "{other} changes nothing");
    }
}
