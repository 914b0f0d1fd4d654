//! The little of the WebDriver protocol that the tests need: JSON over HTTP to a ChromeDriver of our own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// A running ChromeDriver with one open browser; both end with it.
pub struct Session {
    driver: Child,
    port: u16,
    /// `/session/ID`, once there is one.
    path: String,
}

impl Session {
    pub fn start(flags: &[&str]) -> Self {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            // The browser brings its own software adapter; the one for native tests is not for it.
            .env_remove("VK_ICD_FILENAMES")
            .env_remove("VK_DRIVER_FILES")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("ChromeDriver starts: `cargo xtask test` installs it");
        let mut output = BufReader::new(driver.stdout.take().expect("piped output"));
        let mut session = Self { driver, port: port(&mut output), path: "/session".to_owned() };
        // ChromeDriver must not stall on a full pipe.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));

        let capabilities = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": { "args": flags },
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
        }}});
        let answer = session.call("POST", "", Some(capabilities));
        let id = answer["sessionId"].as_str().expect("a session");
        session.path = format!("/session/{id}");
        session
    }

    pub fn get(&self, command: &str) -> Value {
        self.call("GET", &format!("/{command}"), None)
    }

    pub fn post(&self, command: &str, body: Value) -> Value {
        self.call("POST", &format!("/{command}"), Some(body))
    }

    /// A command of Chrome's own DevTools protocol.
    pub fn devtools(&self, command: &str, parameters: Value) -> Value {
        self.post("goog/cdp/execute", json!({ "cmd": command, "params": parameters }))
    }

    /// What has been logged of this `kind` since the last call.
    pub fn log(&self, kind: &str) -> Vec<Value> {
        let entries = self.post("se/log", json!({ "type": kind }));
        entries.as_array().cloned().unwrap_or_default()
    }

    fn call(&self, method: &str, command: &str, body: Option<Value>) -> Value {
        let path = format!("{}{command}", self.path);
        let answer = self.exchange(method, &path, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        let value = &answer["value"];
        assert!(value["error"].is_null(), "{method} {path}: {}: {}", value["error"], value["message"]);
        value.clone()
    }

    fn exchange(&self, method: &str, path: &str, body: Option<Value>) -> std::io::Result<Value> {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(300)))?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().map_err(std::io::Error::other)?;
            }
        }
        let mut answer = vec![0; length];
        reader.read_exact(&mut answer)?;
        serde_json::from_slice(&answer).map_err(std::io::Error::other)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.exchange("DELETE", &self.path, None);
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// The port that ChromeDriver says it has taken.
fn port(output: &mut impl std::io::BufRead) -> u16 {
    let mut said = String::new();
    loop {
        let mut line = String::new();
        let read = output.read_line(&mut line).expect("ChromeDriver's output");
        said += &line;
        assert!(read > 0, "ChromeDriver ended before it listened: {said}");
        let port = line.split_once("started successfully on port ").map(|(_, port)| port.trim().trim_end_matches('.'));
        if let Some(port) = port {
            return port.parse().expect("a port");
        }
    }
}
