//! A headless Chromium with WebGPU on a software adapter, driven through ChromeDriver, and the server that it visits.
//!
//! Only states are waited for, never times: a software adapter draws a few frames a second.

#![allow(dead_code, reason = "each test file uses its part")]

#[path = "../../xtask/src/server.rs"]
mod server;
mod webdriver;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use server::Server;
use webdriver::Session;

/// How long a state may take to come on a slow machine before the test gives up on it.
const PATIENCE: Duration = Duration::from_secs(600);

/// WebGPU on the software adapter that Chromium brings, with a canvas that shows in screenshots: all are needed.
const FLAGS: [&str; 10] = [
    "--headless=new",
    "--no-sandbox",
    "--enable-unsafe-webgpu",
    "--use-webgpu-adapter=swiftshader",
    "--enable-features=Vulkan",
    "--use-angle=vulkan",
    "--use-vulkan=swiftshader",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

/// One browser at a time: a software adapter takes every core.
static TURN: Mutex<()> = Mutex::new(());

/// A folder served on a free port of 127.0.0.1 for as long as this lives.
pub struct Site {
    server: Arc<Server>,
    thread: Option<JoinHandle<()>>,
}

impl Site {
    /// The page that `cargo xtask build` made.
    pub fn page() -> Self {
        let dist = repository().join("dist");
        assert!(dist.join("index.html").is_file(), "there is no page in dist/: run `cargo xtask build` first");
        Self::serve(dist)
    }

    pub fn serve(folder: PathBuf) -> Self {
        let server = Arc::new(Server::bind(0).expect("a free port"));
        let thread = std::thread::spawn({
            let server = server.clone();
            move || server.serve(&folder)
        });
        Self { server, thread: Some(thread) }
    }

    /// Its address, ending in a slash.
    pub fn address(&self) -> String {
        self.server.address()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.server.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A browser with one tab.
pub struct Browser {
    session: Session,
    _turn: MutexGuard<'static, ()>,
}

impl Browser {
    /// A browser at `address`, whose page is `width` x `height` CSS pixels.
    pub fn open(address: &str, width: u32, height: u32) -> Self {
        let browser = Self::start(width, height, &[]);
        browser.go(address);
        browser
    }

    /// A browser on an empty page, started with `flags` besides those for WebGPU.
    pub fn start(width: u32, height: u32, flags: &[&str]) -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let flags: Vec<&str> = FLAGS.iter().chain(flags).copied().collect();
        let browser = Self { session: Session::start(&flags), _turn: turn };
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        browser.session.devtools("Emulation.setDeviceMetricsOverride", size);
        browser
    }

    /// Shows pages to come as to a visitor who prefers `scheme`, "light" or "dark".
    pub fn prefer(&self, scheme: &str) {
        let feature = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.session.devtools("Emulation.setEmulatedMedia", feature);
    }

    /// Runs `script` in every page to come, before its own scripts.
    pub fn before_load(&self, script: &str) {
        self.session.devtools("Page.addScriptToEvaluateOnNewDocument", json!({ "source": script }));
    }

    pub fn go(&self, address: &str) {
        self.session.post("url", json!({ "url": address }));
    }

    /// The value that the function body `script` returns; a promise is awaited.
    pub fn eval(&self, script: &str) -> Value {
        self.session.post("execute/sync", json!({ "script": script, "args": [] }))
    }

    /// The text inside the element `id`, empty where there is none.
    pub fn text(&self, id: &str) -> String {
        let text = self.eval(&format!("return document.getElementById('{id}')?.textContent ?? ''"));
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Whether the element `id` takes any room on the screen.
    pub fn shows(&self, id: &str) -> bool {
        self.eval(&format!("return document.getElementById('{id}').checkVisibility()")) == json!(true)
    }

    /// Waits until the JavaScript expression `condition` is true.
    pub fn wait_for(&self, condition: &str) {
        let start = Instant::now();
        while self.eval(&format!("return Boolean({condition})")) != json!(true) {
            assert!(
                start.elapsed() < PATIENCE,
                "`{condition}` did not come true in {PATIENCE:?}; summary `{}`, status `{}`, problem `{}`, console {:#?}",
                self.text("summary"),
                self.text("status"),
                self.text("problem"),
                self.console_errors(),
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until the program runs: its summary is there and nothing covers the canvas.
    pub fn wait_until_running(&self) {
        self.wait_for("document.getElementById('summary')?.textContent && document.getElementById('cover').hidden");
    }

    /// Saves what the page looks like as `screenshots/NAME.png` in the target folder, and returns the PNG's bytes.
    pub fn screenshot(&self, name: &str) -> Vec<u8> {
        let encoded = self.session.get("screenshot");
        let png = BASE64_STANDARD.decode(encoded.as_str().expect("a screenshot")).expect("base64");
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder");
        let folder = target.join("screenshots");
        std::fs::create_dir_all(&folder).expect("a folder for screenshots");
        std::fs::write(folder.join(format!("{name}.png")), &png).expect("a screenshot is written");
        png
    }

    pub fn hover(&self, x: i32, y: i32) {
        self.mouse(&[go(x, y)]);
    }

    pub fn click(&self, x: i32, y: i32) {
        self.mouse(&[go(x, y), press(), release()]);
    }

    /// Presses the mouse at `from`, moves it to `to` and releases it.
    pub fn drag(&self, from: (i32, i32), to: (i32, i32)) {
        self.mouse(&[go(from.0, from.1), press(), go(to.0, to.1), release()]);
    }

    /// The browser answers each step before the next comes; no pauses, as a press of 0.8 s is no click to egui.
    fn mouse(&self, steps: &[Value]) {
        let mouse = json!({ "type": "pointer", "id": "mouse", "actions": steps });
        self.session.post("actions", json!({ "actions": [mouse] }));
    }

    /// Types `text` into whatever has the keyboard.
    pub fn type_text(&self, text: &str) {
        let key = |kind: &str, key: char| json!({ "type": kind, "value": key });
        let steps: Vec<Value> = text.chars().flat_map(|c| [key("keyDown", c), key("keyUp", c)]).collect();
        self.session.post("actions", json!({ "actions": [{ "type": "key", "id": "keys", "actions": steps }] }));
    }

    /// Every error that the page has written to the console since the last call.
    pub fn console_errors(&self) -> Vec<String> {
        let entries = self.session.log("browser");
        let severe = entries.iter().filter(|entry| entry["level"] == "SEVERE");
        severe.map(|entry| entry["message"].to_string()).collect()
    }

    /// The address of every request that the page has made since the last call.
    pub fn requests(&self) -> Vec<String> {
        let entries = self.session.log("performance");
        let messages =
            entries.iter().filter_map(|entry| serde_json::from_str::<Value>(entry["message"].as_str()?).ok());
        let sent = messages.filter(|event| event["message"]["method"] == "Network.requestWillBeSent");
        sent.filter_map(|event| Some(event["message"]["params"]["request"]["url"].as_str()?.to_owned())).collect()
    }
}

/// The mouse goes to a point of the page, in CSS pixels.
fn go(x: i32, y: i32) -> Value {
    json!({ "type": "pointerMove", "duration": 0, "x": x, "y": y })
}

fn press() -> Value {
    json!({ "type": "pointerDown", "button": 0 })
}

fn release() -> Value {
    json!({ "type": "pointerUp", "button": 0 })
}
