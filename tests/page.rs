//! The built page in a browser: it starts, keeps to its own origin, and says in words what stands in its way.

#![cfg(not(target_arch = "wasm32"))]

mod browser;

use browser::{Browser, Site, repository};

const WIDE: (u32, u32) = (1280, 800);
const NARROW: (u32, u32) = (390, 844);
/// The key, in WebDriver's code.
const ENTER: &str = "\u{E007}";

#[test]
fn starts_at_both_sizes_in_light_and_dark() {
    let site = Site::page();
    for (name, (width, height)) in [("wide", WIDE), ("narrow", NARROW)] {
        for scheme in ["light", "dark"] {
            let browser = Browser::start(width, height, &[]);
            browser.prefer(scheme);
            browser.go(&site.address());
            browser.wait_until_running();
            let name = format!("page_{name}_{scheme}");
            let picture = image::load_from_memory(&browser.screenshot(&name)).expect("a picture").to_rgb8();
            assert_eq!(picture.dimensions(), (width, height));
            assert!(colours(&picture) > 2, "{name}: the canvas is blank");
            let corner = picture.get_pixel(width - 1, height - 1).0;
            assert_eq!(corner[0] > 127, scheme == "light", "{name}: corner {corner:?}");
            assert_fits(&browser);
            assert_eq!(browser.console_errors(), Vec::<String>::new());
        }
    }
}

#[test]
fn works_under_a_sub_path_and_asks_only_its_own_origin() {
    Site::page();
    let site = Site::serve(repository().to_owned());
    let address = format!("{}dist/", site.address());
    let browser = Browser::open(&address, WIDE.0, WIDE.1);
    browser.wait_until_running();
    let requests = browser.requests();
    let foreign: Vec<&String> = requests.iter().filter(|request| !request.starts_with(&address)).collect();
    assert!(foreign.is_empty(), "requests outside {address}: {foreign:?}");
    for file in ["boot.js", "attention_lab.js", "attention_lab_bg.wasm", "style.css"] {
        assert!(requests.contains(&format!("{address}{file}")), "{file} is not among {requests:?}");
    }
    assert_eq!(browser.console_errors(), Vec::<String>::new());
}

#[test]
fn the_content_security_policy_is_enforced() {
    let site = Site::page();
    let browser = Browser::open(&site.address(), WIDE.0, WIDE.1);
    let elsewhere = browser.eval("return fetch('http://localhost:9/').then(() => 'sent', error => error.message)");
    assert_eq!(elsewhere, "Failed to fetch");
    let errors = browser.console_errors();
    assert!(errors.iter().any(|error| error.contains("Content Security Policy")), "{errors:?}");
}

/// Every obstacle is met on the page itself, in a sentence that names a way out, before the program is fetched.
#[test]
fn says_what_a_browser_lacks() {
    let site = Site::page();
    let secure = site.address();
    // The browser takes this name for 127.0.0.1, but not for a secure origin.
    let insecure = secure.replace("127.0.0.1", "lab.test");
    let no_web_gpu = "delete Navigator.prototype.gpu";
    let no_adapter = "GPU.prototype.requestAdapter = async () => null";
    let throws = "GPU.prototype.requestAdapter = async () => { throw new Error('no') }";
    for (name, address, script, sentence) in [
        ("insecure", &insecure, "", "https://"),
        ("no_webgpu", &secure, no_web_gpu, "does not offer WebGPU"),
        ("no_adapter", &secure, no_adapter, "no graphics adapter"),
        ("adapter_throws", &secure, throws, "no graphics adapter"),
    ] {
        let (width, height) = NARROW;
        let browser = Browser::start(width, height, &["--host-resolver-rules=MAP lab.test 127.0.0.1"]);
        browser.before_load(script);
        browser.go(address);
        expect_end(&browser, name, sentence);
        let requests = browser.requests();
        assert!(!requests.iter().any(|request| request.ends_with(".wasm")), "{name}: {requests:?}");
    }
}

#[test]
fn says_why_it_could_not_start() {
    let site = Site::page();
    let no_file = "window.fetch = async () => new Response('', { status: 503 })";
    let no_device = "GPUAdapter.prototype.requestDevice = async () => { throw new Error('no device today') }";
    for (name, script, sentence) in
        [("no_file", no_file, "(attention_lab_bg.wasm: 503)"), ("no_device", no_device, "(Error: no device today)")]
    {
        let browser = Browser::start(WIDE.0, WIDE.1, &[]);
        browser.before_load(script);
        browser.go(&site.address());
        expect_end(&browser, name, sentence);
    }
}

#[test]
fn a_panic_ends_in_words_and_a_way_out() {
    let site = Site::page();
    let browser = Browser::open(&site.address(), WIDE.0, WIDE.1);
    browser.wait_until_running();
    // The program's clock: without it, the next frame panics.
    browser.eval("Object.defineProperty(window, 'performance', { value: undefined, configurable: true })");
    browser.hover(200, 200);
    expect_end(&browser, "panic", "(should have a Performance)");

    // The button has the keyboard already.
    browser.type_text(ENTER);
    browser.wait_until_running();
}

/// A stack that runs over, or memory that runs out, ends a program without a panic.
#[test]
fn a_trap_ends_in_words() {
    let site = Site::page();
    let browser = Browser::open(&site.address(), NARROW.0, NARROW.1);
    browser.wait_until_running();
    // The smallest module with a function that traps: magic, version, type, function, start and code section.
    browser.eval(
        "const trap = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 8, 1, 0, 10, 5, 1, 3, 0, 0, 11]);
         setTimeout(() => new WebAssembly.Instance(new WebAssembly.Module(trap)))",
    );
    expect_end(&browser, "trap", "(unreachable)");
}

#[test]
fn a_problem_is_told_over_the_running_program() {
    let site = Site::page();
    let browser = Browser::open(&site.address(), NARROW.0, NARROW.1);
    browser.wait_until_running();
    browser.eval("window.attentionLab.problem('The graphics device was lost: something else took it.')");
    assert!(browser.shows("banner") && !browser.shows("cover"));
    browser.screenshot("page_problem");
    assert_fits(&browser);
    browser.eval("document.getElementById('dismiss').click()");
    assert!(!browser.shows("banner"));
}

/// The cover shows `sentence` as an alert, with a button that reloads the page.
fn expect_end(browser: &Browser, name: &str, sentence: &str) {
    browser.wait_for("document.getElementById('status')?.getAttribute('role') === 'alert'");
    browser.screenshot(&format!("page_{name}"));
    let said = browser.text("status");
    assert!(said.contains(sentence), "{name}: `{said}` does not say `{sentence}`");
    assert!(browser.shows("status") && browser.shows("restart"), "{name}");
    assert_fits(browser);
}

/// Nothing can be scrolled, as nothing is cut off.
fn assert_fits(browser: &Browser) {
    let beyond = browser.eval(
        "const all = [document.documentElement, ...document.querySelectorAll('main, #cover, #banner')];
         return all.filter(e => e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight).map(e => e.id || e.tagName)",
    );
    assert_eq!(beyond, serde_json::json!([]), "elements larger than their room");
}

/// How many different colours there are.
fn colours(picture: &image::RgbImage) -> usize {
    picture.pixels().map(|pixel| pixel.0).collect::<std::collections::HashSet<_>>().len()
}
