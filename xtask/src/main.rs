//! `cargo xtask`: builds, serves and tests the page.

mod page;
mod server;
mod test;
mod tools;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

const USAGE: &str = "\
usage: cargo xtask build                make the page in dist/
       cargo xtask serve [--port 8080]  make it and serve it on 127.0.0.1
       cargo xtask test                 set up what the tests need and run everything";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<()> {
    let root = root();
    match words {
        ["build"] => page::build(&root).map(drop),
        ["serve"] => serve(&root, 8080),
        ["serve", "--port", port] => {
            let port = port.parse().with_context(|| format!("--port {port}: expected a number from 0 to 65535"))?;
            serve(&root, port)
        }
        ["test"] => test::run(&root),
        [] => bail!("no task named\n{USAGE}"),
        _ => bail!("unknown task `{}`\n{USAGE}", words.join(" ")),
    }
}

fn serve(root: &Path, port: u16) -> Result<()> {
    let server = server::Server::bind(port)?;
    let dist = page::build(root)?;
    println!("The page is on {} (stop with Ctrl+C)", server.address());
    server.serve(&dist);
    Ok(())
}

/// The workspace, one folder above this package.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_owned()
}
