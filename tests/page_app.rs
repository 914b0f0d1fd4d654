//! The program in a browser, as a lecturer uses it: sliders, methods, views, tokens, addresses, and a device that fails.
//!
//! The canvas tells nothing about what stands where. The same app in a window of the same size does,
//! and says what the page must say.

#![cfg(not(target_arch = "wasm32"))]

mod browser;

use attention_lab::app::App;
use attention_lab::app::scene::{Command, View};
use attention_lab::check;
use attention_lab::gpu::device;
use attention_lab::inputs::{self, Picture};
use attention_lab::problem::{Fill, Source};
use attention_lab::settings::Settings;
use attention_lab::verify::manifest;
use browser::{Browser, Site};
use egui::Pos2;
use egui::accesskit::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use std::path::Path;
use std::sync::Arc;

const WIDE: (u32, u32) = (1280, 800);
const NARROW: (u32, u32) = (390, 844);
/// The key, in WebDriver's code.
const ENTER: &str = "\u{E007}";
const VIEWS: [&str; 11] = [
    "Buckets",
    "Attention",
    "Result",
    "Memory",
    "Codes",
    "Projection",
    "Rank",
    "Layers",
    "Tables",
    "Theory",
    "Compare",
];
const PHOTOGRAPH: &str = "The input, coloured by bucket";

/// Nothing runs, and the summary says all of these.
fn settled(browser: &Browser, sentences: &[&str]) {
    let idle = "document.getElementById('canvas').ariaBusy === 'false'".to_owned();
    let all: Vec<String> = std::iter::once(idle).chain(sentences.iter().map(|sentence| said(sentence))).collect();
    browser.wait_for(&all.join(" && "));
}

fn said(sentence: &str) -> String {
    format!("document.getElementById('summary').textContent.includes({sentence:?})")
}

fn query(browser: &Browser) -> String {
    browser.eval("return location.search").as_str().unwrap_or_default().to_owned()
}

/// The sentence of a summary that begins like this.
fn sentence(summary: &str, beginning: &str) -> String {
    let at = summary.find(beginning).unwrap_or_else(|| panic!("no `{beginning}` in `{summary}`"));
    summary[at..].split_inclusive(". ").next().unwrap_or_default().trim().to_owned()
}

/// The same app in a window: what stands where, and what it says.
struct Window(Harness<'static, App>);

impl Window {
    fn open((width, height): (u32, u32), settings: Option<Settings>) -> Self {
        let mut setup = egui_kittest::wgpu::default_wgpu_setup();
        if let eframe::egui_wgpu::WgpuSetup::CreateNew(new) = &mut setup {
            new.device_descriptor = Arc::new(device::descriptor);
        }
        let harness = Harness::builder().with_size([width as f32, height as f32]).wgpu_setup(setup);
        let mut window = Self(harness.build_eframe(move |cc| App::with(cc, settings, None)));
        window.settle();
        window
    }

    /// Steps until nothing runs and nothing waits to run.
    fn settle(&mut self) {
        self.0.step();
        while self.0.state().is_busy() {
            self.0.step();
        }
        self.0.run();
    }

    fn says(&self) -> &str {
        self.0.state().summary()
    }

    fn centre(&self, role: Role, name: &str) -> (i32, i32) {
        self.at(role, name, 0.5, 0.5)
    }

    /// A point of a control, in shares of its width and height.
    fn at(&self, role: Role, name: &str, x: f32, y: f32) -> (i32, i32) {
        let rect = self.0.get_by_role_and_label(role, name).rect();
        let point = rect.min + rect.size() * egui::vec2(x, y);
        (point.x as i32, point.y as i32)
    }

    fn drag(&mut self, from: (i32, i32), to: (i32, i32)) {
        self.0.drag_at(pos(from));
        self.0.step();
        self.0.hover_at(pos(to));
        self.0.step();
        self.0.drop_at(pos(to));
        self.settle();
    }

    fn click(&mut self, at: (i32, i32)) {
        self.drag(at, at);
    }
}

fn pos((x, y): (i32, i32)) -> Pos2 {
    Pos2::new(x as f32, y as f32)
}

/// Clicks on a button of the page that stands where it stands in the window.
fn press(browser: &Browser, window: &mut Window, name: &str) {
    let at = window.centre(Role::Button, name);
    browser.click(at.0, at.1);
    window.click(at);
}

/// Opens a view of the page, waits for all that it asks for, and keeps a picture.
fn open_view(browser: &Browser, window: &mut Window, view: &str, picture: &str) {
    press(browser, window, view);
    settled(browser, &[&format!("The view {view} is open.")]);
    browser.screenshot(picture);
}

#[test]
fn a_lecture() {
    let site = Site::page();
    let mut window = Window::open(WIDE, None);
    let browser = Browser::open(&site.address(), WIDE.0, WIDE.1);
    browser.wait_for(&said("Reformer on Picture: n = 1,024"));
    browser.screenshot("browser_first");

    // The slider of the length: the newest settings win, while the other methods still run.
    let from = window.at(Role::Slider, "Sequence length n", 0.4, 0.5);
    let to = window.at(Role::Slider, "Sequence length n", 0.25, 0.5);
    window.drag(from, to);
    let n = window.0.state().settings().n;
    assert!(n < 1024, "{n}");
    browser.drag(from, to);
    settled(&browser, &[&format!("Reformer on Picture: n = {n}")]);
    browser.wait_for(&format!("location.search.split(/[?&]/).includes('n={n}')"));

    for view in VIEWS {
        open_view(&browser, &mut window, view, &format!("browser_wide_{}", view.to_lowercase()));
    }
    for (method, words) in
        [("Full", "Full on Picture"), ("Linformer", "Linformer on Picture"), ("Reformer", "Reformer on Picture")]
    {
        press(&browser, &mut window, method);
        settled(&browser, &[words]);
        for view in ["Attention", "Result"] {
            let picture = format!("browser_wide_{}_{}", method.to_lowercase(), view.to_lowercase());
            open_view(&browser, &mut window, view, &picture);
        }
    }

    // A token of the photograph.
    press(&browser, &mut window, "Buckets");
    let token = window.at(Role::Image, PHOTOGRAPH, 0.45, 0.3);
    window.click(token);
    let locked = sentence(window.says(), "Token ");
    browser.click(token.0, token.1);
    settled(&browser, &[&locked]);
    for view in ["Buckets", "Attention", "Result"] {
        open_view(&browser, &mut window, view, &format!("browser_locked_{}", view.to_lowercase()));
    }
    press(&browser, &mut window, "Buckets");
    settled(&browser, &["The view Buckets is open."]);
    browser.click(token.0, token.1);
    browser.wait_for(&format!("!{}", said("is locked.")));
    window.click(token);

    // The number beside the slider's name.
    let field = window.centre(Role::SpinButton, "Sequence length n");
    browser.click(field.0, field.1);
    browser.type_text(&format!("500{ENTER}"));
    browser.wait_for(&said("Reformer on Picture: n = 500"));
    browser.wait_for("location.search.split(/[?&]/).includes('n=500')");
    same_as_in_a_window(&browser, &Settings::from_query(&query(&browser)).expect("an address"));
    assert_eq!(browser.console_errors(), Vec::<String>::new());
}

#[test]
fn an_address_is_a_result() {
    let site = Site::page();
    let browser = Browser::start(WIDE.0, WIDE.1, &[]);
    for (name, address, sentences) in [
        (
            "clusters",
            "n=256&input=clusters&heads=2&d=32&seed=4&k=64",
            ["Points on a sphere: n = 256, heads = 2", "Checksum"],
        ),
        ("duplication", "n=256&input=duplication&d=32&rounds=8&k=64", ["Duplication task: n = 256", "Accuracy "]),
        ("cat", "n=300&sample=cat&method=linformer&k=20", ["Linformer on Picture: n = 300", "k = 20."]),
    ] {
        let settings = Settings::from_query(address).expect("an address");
        let mut window = Window::open(WIDE, Some(settings));
        browser.go(&format!("{}?{address}", site.address()));
        settled(&browser, &sentences);
        if name == "clusters" {
            same_as_in_a_window(&browser, window.0.state().settings());
        }
        for view in ["Buckets", "Result"] {
            open_view(&browser, &mut window, view, &format!("browser_{name}_{}", view.to_lowercase()));
        }
        // Another seed and back: the address is again the one that was asked for, and gives the same.
        assert_eq!(query(&browser), format!("?{address}&view=result"));
        let field = window.centre(Role::SpinButton, "Rounds");
        browser.click(field.0, field.1);
        browser.type_text(&format!("3{ENTER}"));
        browser.wait_for("location.search.includes('rounds=3')");
        let shared = query(&browser);
        browser.wait_for(&format!("!{}", said("A new result is being computed.")));
        let summary = browser.text("summary");
        browser.go(&format!("{}{shared}", site.address()));
        browser.wait_for(&said(&sentence(&summary, if name == "cat" { "k = " } else { "Checksum" })));
        browser.wait_for(&said("The view Result is open."));
        assert_eq!(query(&browser), shared);
    }
    assert_eq!(browser.console_errors(), Vec::<String>::new());

    browser.go(&format!("{}?n=banana", site.address()));
    for words in
        ["The address of the page was not understood: n = banana, allowed is", "Reformer on Picture: n = 1,024"]
    {
        browser.wait_for(&said(words));
    }
    browser.screenshot("browser_bad_address");

    // A view that is not known leaves the settings as they are.
    browser.go(&format!("{}?n=256&view=nowhere", site.address()));
    for words in ["not understood: view = nowhere, allowed is", "Reformer on Picture: n = 256"] {
        browser.wait_for(&said(words));
    }
    assert!(!browser.text("summary").contains("default settings"), "{}", browser.text("summary"));
    browser.go(&format!("{}?colour=red", site.address()));
    browser.wait_for(&said("setting = colour, allowed is the name of a setting"));
    browser.wait_for(&said("These are the default settings."));
}

#[test]
fn singular_values_come_from_a_worker_of_the_same_origin() {
    Site::page();
    let site = Site::serve(browser::repository().to_owned());
    let address = format!("{}dist/", site.address());
    let query = "n=200&d=16";
    let mut window = Window::open(WIDE, Settings::from_query(query).ok());
    window.0.state_mut().obey(Command::Open(View::Rank));
    window.settle();
    let browser = Browser::open(&format!("{address}?{query}&view=rank"), WIDE.0, WIDE.1);
    settled(&browser, &["n = 200", &sentence(window.says(), "Rank for 90 %")]);
    browser.screenshot("browser_rank");
    let requests = browser.requests();
    assert!(requests.contains(&format!("{address}worker.js")), "{requests:?}");
    assert!(requests.iter().all(|request| request.starts_with(&address)), "{requests:?}");
    assert_eq!(browser.console_errors(), Vec::<String>::new());
}

/// What the algebra says is the answer of the worker, as it is; a worker that breaks off has no words but an error's.
#[test]
fn a_sentence_of_the_worker_is_its_answer_and_a_breakdown_its_error() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("worker");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::copy(browser::repository().join("web/worker.js"), folder.join("worker.js")).expect("the worker");
    let program = r#"
        export default async function() {}
        export function svd_of() { throw "no singular values"; }
        export function orthonormal_of() { throw new WebAssembly.RuntimeError("unreachable"); }
    "#;
    for (name, text) in [("attention_lab.js", program), ("index.html", "<title>worker</title>")] {
        std::fs::write(folder.join(name), text).expect(name);
    }
    let site = Site::serve(folder);
    let browser = Browser::open(&site.address(), WIDE.0, WIDE.1);
    let asked = |call: &str| {
        let script = r#"return new Promise(told => {
            const worker = new Worker("worker.js", { type: "module" });
            worker.onmessage = ({ data }) => told(`message: ${data}`);
            worker.onerror = ({ message }) => told(`error: ${message}`);
            worker.postMessage({ call: CALL, matrix: new ArrayBuffer(4), rows: 1, cols: 1 });
        })"#;
        let told = browser.eval(&script.replace("CALL", &format!("{call:?}")));
        told.as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(asked("svd_of"), "message: no singular values");
    let broken = asked("orthonormal_of");
    assert!(broken.starts_with("error: ") && broken.ends_with("unreachable"), "{broken}");
}

#[test]
fn usable_on_a_phone() {
    let site = Site::page();
    let address = "n=200";
    let mut window = Window::open(NARROW, Settings::from_query(address).ok());
    let browser = Browser::open(&format!("{}?{address}", site.address()), NARROW.0, NARROW.1);
    settled(&browser, &["n = 200"]);
    for view in VIEWS {
        open_view(&browser, &mut window, view, &format!("browser_narrow_{}", view.to_lowercase()));
    }
    press(&browser, &mut window, "Settings");
    let from = window.at(Role::Slider, "Rounds", 0.2, 0.5);
    let to = window.at(Role::Slider, "Rounds", 0.5, 0.5);
    window.drag(from, to);
    browser.drag(from, to);
    settled(&browser, &[&sentence(window.says(), "rounds = ")]);
    browser.screenshot("browser_narrow_settings");
    assert_eq!(browser.console_errors(), Vec::<String>::new());
}

/// Keeps the page's device within reach, and makes it fail on demand.
const FAILURES: &str = "
    window.failing = {};
    const request = GPUAdapter.prototype.requestDevice;
    GPUAdapter.prototype.requestDevice = async function (...wanted) {
        return (window.failing.device = await request.apply(this, wanted));
    };
    const [push, pop] = [GPUDevice.prototype.pushErrorScope, GPUDevice.prototype.popErrorScope];
    const filters = [];
    GPUDevice.prototype.pushErrorScope = function (filter) {
        filters.push(filter);
        return push.call(this, filter);
    };
    GPUDevice.prototype.popErrorScope = async function () {
        const short = filters.pop() === 'out-of-memory' && window.failing.memory;
        const error = await pop.call(this);
        return short ? new GPUOutOfMemoryError('no memory') : error;
    };
    const module = GPUDevice.prototype.createShaderModule;
    GPUDevice.prototype.createShaderModule = function (described) {
        const broken = described.label === 'bucket_sort' && location.search.includes('seed=13');
        return module.call(this, broken ? { ...described, code: described.code + 'nonsense' } : described);
    };";

#[test]
fn a_device_that_fails_is_told_and_the_settings_are_kept() {
    let site = Site::page();
    let address = "n=300&rounds=2&k=40";
    let window = Window::open(WIDE, Settings::from_query(address).ok());
    let field = window.centre(Role::SpinButton, "Sequence length n");
    let browser = Browser::start(WIDE.0, WIDE.1, &[]);
    browser.before_load(FAILURES);
    browser.go(&format!("{}?{address}", site.address()));
    settled(&browser, &["n = 300"]);

    // No memory, and a shorter sequence goes on.
    browser.eval("window.failing.memory = true");
    browser.click(field.0, field.1);
    browser.type_text(&format!("500{ENTER}"));
    browser.wait_for(&said("The graphics device has no memory left"));
    assert!(browser.text("summary").contains("choose a shorter sequence or fewer heads"));
    browser.screenshot("browser_out_of_memory");
    browser.eval("window.failing.memory = false");
    browser.click(field.0, field.1);
    browser.type_text(&format!("200{ENTER}"));
    settled(&browser, &["n = 200"]);
    assert!(!browser.text("summary").contains("no memory"));

    // A lost device, while nothing runs and nobody touches the page.
    browser.eval("window.failing.device.destroy()");
    browser.wait_for("document.getElementById('problem').checkVisibility()");
    assert!(browser.text("problem").contains("The graphics device was lost"), "{}", browser.text("problem"));
    assert!(browser.text("summary").contains("The graphics device was lost"));
    browser.screenshot("browser_lost");
    assert!(!browser.shows("cover"));
    let kept = query(&browser);
    assert!(kept.contains("n=200") && kept.contains("rounds=2") && kept.contains("k=40"), "{kept}");
    browser.eval("document.getElementById('reload').click()");
    settled(&browser, &["n = 200", "rounds = 2"]);
    assert!(!browser.shows("banner"));

    // A shader that the browser rejects.
    browser.go(&format!("{}?{address}&seed=13", site.address()));
    browser.wait_for(&said("The graphics device rejected a command"));
    assert!(browser.text("problem").contains("please report this"));
    browser.screenshot("browser_broken_shader");
}

/// Compiles every shader in the browser and compares every step with its twin.
#[test]
fn every_step_agrees_with_its_twin_in_the_browser() {
    let site = Site::page();
    let address = format!("{}?check&n=64&input=clusters&d=8", site.address());
    let browser = Browser::open(&address, NARROW.0, NARROW.1);
    browser.wait_for(&said("Checking this device."));
    browser.screenshot("browser_checking");
    settled(&browser, &["Check of this device: "]);
    browser.screenshot("browser_checked");
    let summary = browser.text("summary");
    let wanted = format!("Check of this device: {} passed, 0 failed.", check::cases().len());
    assert!(summary.contains(&wanted), "no `{wanted}` in `{summary}`");
}

/// The same seed hashes into the same buckets on the page and in a window, where no two choices of
/// any hash are so close that the rule would let them differ.
fn same_as_in_a_window(browser: &Browser, settings: &Settings) {
    let gap = smallest_gap(settings);
    assert!(gap > check::TIE, "choose another seed: some choices are only {gap:e} apart");
    let window = Window::open(WIDE, Some(settings.clone()));
    let summary = browser.text("summary");
    for figures in ["Checksum", "rounds = ", "Recall "] {
        assert_eq!(sentence(&summary, figures), sentence(window.says(), figures));
    }
}

/// The smallest distance between the best two choices of any hash, as float64 sees it, in units of
/// |x| times the rms column norm of R. For a plain hash.
fn smallest_gap(settings: &Settings) -> f64 {
    let picture = Picture::decode(inputs::sample_bytes(settings.sample).expect("a sample")).expect("a picture");
    let problem = pollster::block_on(inputs::build(settings, Some(&picture))).expect("an input").problem;
    let (rounds, columns, d) = (settings.rounds, settings.bucket_count() / 2, settings.d as usize);
    let fill = Fill { rounds, columns, ..Fill::whole(Source::Rotations, rounds * columns) };
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let mut smallest = f64::INFINITY;
    for (head, q) in (0..settings.heads).zip(problem.q.chunks_exact(settings.n as usize * d)) {
        let mut rotations = Vec::new();
        problem.rows(fill, head, 0..rounds * columns, &mut rotations);
        for r in rotations.chunks_exact(columns as usize * d) {
            let rms = (dot(r, r) / f64::from(columns)).sqrt();
            for x in q.chunks_exact(d) {
                let mut sizes: Vec<f64> = r.chunks_exact(d).map(|column| dot(x, column).abs()).collect();
                sizes.sort_by(f64::total_cmp);
                if let [.., second, first] = sizes[..] {
                    smallest = smallest.min((first - second) / (dot(x, x).sqrt() * rms));
                }
            }
        }
    }
    smallest
}

/// The sentence that a page says about the stored outputs in a folder of its own origin.
fn verified(browser: &Browser, site: &Site, page: &str, folder: &str) -> String {
    browser.go(&format!("{}{page}?n=64&verify={folder}", site.address()));
    browser.wait_for(&said(VERIFIED));
    browser.text("summary")
}

const VERIFIED: &str = "Stored outputs of published implementations: ";

#[test]
fn stored_outputs_of_published_implementations_agree_in_the_browser() {
    Site::page();
    let site = Site::serve(browser::repository().to_owned());
    let browser = Browser::open("about:blank", WIDE.0, WIDE.1);
    let summary = verified(&browser, &site, "dist/", "../tests/golden/");
    let counts = summary.split(VERIFIED).nth(1).and_then(|rest| rest.split('.').next()).unwrap_or_default();
    println!("in the browser: {counts}");
    let text = std::fs::read_to_string(browser::repository().join("tests/golden/manifest.json")).expect("manifest");
    let cases = manifest::parse(&text).expect("a manifest").cases;
    assert_eq!(counts, format!("{} passed, 0 failed", cases.len()), "{summary}");
}

/// One case whose file ends early, and one whose stored output is another.
#[test]
fn damaged_stored_outputs_fail_in_words_in_the_browser() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("damaged");
    let golden = browser::repository().join("tests/golden");
    std::fs::create_dir_all(&folder).expect("a folder");
    let text = std::fs::read_to_string(golden.join("manifest.json")).expect("manifest");
    let mut manifest: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let names = ["full_std_gauss_n64_d16_h2_n", "full_rawqk_gauss_n64_d32_h1_c", "lin_lucid_n64_k16_h2_d16"];
    manifest["cases"].as_array_mut().expect("cases").retain(|case| names.iter().any(|name| case["name"] == *name));
    std::fs::write(folder.join("manifest.json"), manifest.to_string()).expect("written");
    for name in names {
        let file = format!("{name}.safetensors");
        let mut bytes = std::fs::read(golden.join(&file)).expect("a case");
        match name {
            "full_std_gauss_n64_d16_h2_n" => bytes.truncate(bytes.len() - 1),
            // Some value of each array is another.
            "full_rawqk_gauss_n64_d32_h1_c" => bytes.iter_mut().rev().step_by(509).for_each(|byte| *byte ^= 0x40),
            _ => {}
        }
        std::fs::write(folder.join(&file), bytes).expect("written");
    }
    let page = folder.join("page");
    let _ = std::fs::remove_dir_all(&page);
    copy(&browser::repository().join("dist"), &page);
    let site = Site::serve(folder);
    let browser = Browser::open("about:blank", WIDE.0, WIDE.1);
    let summary = verified(&browser, &site, "page/", "../");
    assert!(summary.contains("1 passed, 2 failed"), "{summary}");
    assert!(summary.contains("full_std_gauss_n64_d16_h2_n.safetensors cannot be read"), "{summary}");
    assert!(summary.contains("FAIL") && summary.contains("full_rawqk_gauss_n64_d32_h1_c"), "{summary}");
    let summary = verified(&browser, &site, "page/", "nowhere");
    assert!(summary.contains("nowhere/manifest.json cannot be read: the server answered 404"), "{summary}");
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder").flatten() {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to)
        } else {
            std::fs::copy(entry.path(), to).map(drop).expect("copied")
        }
    }
}
