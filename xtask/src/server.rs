//! A server of static files on 127.0.0.1: for `cargo xtask serve` and, included by path, for the browser tests.

use std::fs::File;
use std::path::{Path, PathBuf};

use tiny_http::{Header, Request, Response};

pub struct Server(tiny_http::Server);

impl Server {
    /// Listens on `port` of 127.0.0.1; 0 takes any free one.
    pub fn bind(port: u16) -> Result<Self, std::io::Error> {
        tiny_http::Server::http(("127.0.0.1", port)).map(Self).map_err(|error| {
            std::io::Error::other(format!("cannot serve on 127.0.0.1:{port} ({error}); choose another with --port"))
        })
    }

    /// With the port that was really taken.
    pub fn address(&self) -> String {
        format!("http://{}/", self.0.server_addr())
    }

    /// Answers with the files under `folder` until [`Server::stop`].
    pub fn serve(&self, folder: &Path) {
        for request in self.0.incoming_requests() {
            // A browser that hangs up half-way is no reason to stop serving.
            let _ = answer(request, folder);
        }
    }

    /// Ends [`Server::serve`].
    #[allow(dead_code, reason = "`cargo xtask serve` ends with Ctrl+C, the tests with this")]
    pub fn stop(&self) {
        self.0.unblock();
    }
}

fn answer(request: Request, folder: &Path) -> std::io::Result<()> {
    let Some((path, file)) =
        locate(request.url(), folder).and_then(|path| Some((path.clone(), File::open(path).ok()?)))
    else {
        return request.respond(Response::from_string("There is no such file here.").with_status_code(404));
    };
    // With a length, so that the page can show how much is still to come.
    let mut response = Response::from_file(file).with_chunked_threshold(usize::MAX);
    // A rebuilt page is shown at the next reload.
    for (field, value) in [("Content-Type", media_type(&path)), ("Cache-Control", "no-store")] {
        if let Ok(header) = Header::from_bytes(field, value) {
            response.add_header(header);
        }
    }
    request.respond(response)
}

/// The file that `url` names under `folder`: plain names only, so nothing outside can be reached.
fn locate(url: &str, folder: &Path) -> Option<PathBuf> {
    let path = url.split(['?', '#']).next()?.strip_prefix('/')?;
    let mut file = folder.to_owned();
    for name in path.split('/').filter(|name| !name.is_empty()) {
        if name.starts_with('.') || name.contains(['\\', ':', '%']) {
            return None;
        }
        file.push(name);
    }
    if file.is_dir() {
        file.push("index.html");
    }
    file.is_file().then_some(file)
}

/// Browsers compile wasm while it arrives, and run modules at all, only with the right type.
fn media_type(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("wasm") => "application/wasm",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("txt" | "md") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
