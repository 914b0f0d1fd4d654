//! Makes the page in `dist/`: static files, the wasm module and the script that binds it.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::tools;

const TARGET: &str = "wasm32-unknown-unknown";
/// The most bytes of wasm, after brotli at quality 11, that a class on one Wi-Fi should wait for.
const WASM_LIMIT: usize = 1_500_000;
/// What lies beside the wasm: files and folders of the repository, and their names in `dist/`.
const STATIC: [(&str, &str); 6] = [
    ("index.html", "index.html"),
    ("web/boot.js", "boot.js"),
    ("web/worker.js", "worker.js"),
    ("web/style.css", "style.css"),
    ("web/icon.svg", "icon.svg"),
    ("web/samples", "samples"),
];

/// Builds the page and returns `dist/`; fails when the wasm outgrows its limit.
pub fn build(root: &Path) -> Result<PathBuf> {
    install_target()?;
    // With the other crate type, rlib, cargo would leave out link-time optimisation.
    tools::run(tools::cargo(root).args([
        "rustc",
        "--locked",
        "--lib",
        "--crate-type",
        "cdylib",
        "--profile",
        "page",
        "--target",
        TARGET,
    ]))?;

    let dist = root.join("dist");
    if dist.exists() {
        fs::remove_dir_all(&dist).with_context(|| format!("cannot empty {}", dist.display()))?;
    }
    for (from, to) in STATIC {
        copy(&root.join(from), &dist.join(to))?;
    }
    bind(&tools::target_dir(root).join(TARGET).join("page/attention_lab.wasm"), &dist)?;
    weigh(&dist)?;
    Ok(dist)
}

fn install_target() -> Result<()> {
    let libraries = tools::answer(Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]));
    if libraries.is_some_and(|folder| Path::new(&folder).is_dir()) {
        return Ok(());
    }
    tools::run(Command::new("rustup").args(["target", "add", TARGET]))
        .with_context(|| format!("the Rust target {TARGET} is missing; install it"))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let context = || format!("cannot copy {} to {}", from.display(), to.display());
    if from.is_dir() {
        fs::create_dir_all(to).with_context(context)?;
        for entry in fs::read_dir(from).with_context(context)? {
            let entry = entry.with_context(context)?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    } else {
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).with_context(context)?;
        }
        fs::copy(from, to).with_context(context)?;
    }
    Ok(())
}

/// What the wasm-bindgen command does, as a library: it cannot get out of step with Cargo.lock.
fn bind(wasm: &Path, dist: &Path) -> Result<()> {
    wasm_bindgen_cli_support::Bindgen::new()
        .input_path(wasm)
        .web(true)?
        .typescript(false)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate(dist)
        .with_context(|| format!("cannot bind {}", wasm.display()))
}

fn weigh(dist: &Path) -> Result<()> {
    println!("{:<24}{:>12}{:>12}", "bytes", "raw", "brotli");
    let weigh = |name: &str| -> Result<usize> {
        let path = dist.join(name);
        let raw = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let small = brotli(&raw).with_context(|| format!("cannot compress {name}"))?;
        println!("{name:<24}{:>12}{small:>12}", raw.len());
        Ok(small)
    };
    weigh("boot.js")?;
    weigh("attention_lab.js")?;
    let wasm = weigh("attention_lab_bg.wasm")?;
    if wasm > WASM_LIMIT {
        bail!("the wasm is {wasm} bytes as brotli, {WASM_LIMIT} are allowed: leave something out");
    }
    Ok(())
}

/// The length of `raw` after brotli at quality 11 with a window of 4 MiB.
fn brotli(raw: &[u8]) -> std::io::Result<usize> {
    let mut writer = brotli::CompressorWriter::new(Vec::new(), 1 << 16, 11, 22);
    writer.write_all(raw)?;
    Ok(writer.into_inner().len())
}
