//! Sets up what the tests need and runs all of them: on a software adapter, and in a browser.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::{page, tools};

/// A thing the tests cannot do without.
struct Need {
    what: &'static str,
    present: fn() -> bool,
    debian: &'static str,
    ubuntu: &'static str,
}

const NEEDS: [Need; 4] = [
    Need {
        what: "Chromium or Chrome",
        present: || ["chromium", "chromium-browser", "google-chrome"].into_iter().any(tools::on_path),
        debian: "chromium",
        ubuntu: "chromium-browser",
    },
    Need {
        what: "ChromeDriver",
        present: || tools::on_path("chromedriver"),
        debian: "chromium-driver",
        ubuntu: "chromium-chromedriver",
    },
    Need {
        what: "Mesa's software Vulkan driver (lavapipe)",
        present: || lavapipe().is_some(),
        debian: "mesa-vulkan-drivers",
        ubuntu: "mesa-vulkan-drivers",
    },
    Need {
        what: "the Vulkan loader",
        present: || library("libvulkan.so.1"),
        debian: "libvulkan1",
        ubuntu: "libvulkan1",
    },
];

pub fn run(root: &Path) -> Result<()> {
    set_up()?;
    let Some(lavapipe) = lavapipe() else {
        bail!("Mesa's software Vulkan driver has no lvp_icd*.json in the folders of the Vulkan loader");
    };
    check(root)?;
    page::build(root)?;
    // The tests run on the software adapter alone: a developer's own GPU must not change what they find.
    let mut tests = tools::cargo(root);
    tests.args(["test", "--locked"]).env("VK_ICD_FILENAMES", &lavapipe).env("VK_DRIVER_FILES", &lavapipe);
    tools::run(&mut tests)
}

/// Format and lints, where the toolchain has them.
fn check(root: &Path) -> Result<()> {
    if tools::answer(tools::cargo(root).args(["fmt", "--version"])).is_some() {
        tools::run(tools::cargo(root).args(["fmt", "--all", "--check"]))?;
    } else {
        println!("This toolchain has no rustfmt: the format is not checked.");
    }
    if tools::answer(tools::cargo(root).args(["clippy", "--version"])).is_some() {
        tools::run(tools::cargo(root).args([
            "clippy",
            "--locked",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ]))?;
    } else {
        println!("This toolchain has no clippy: the lints are not checked.");
    }
    Ok(())
}

/// Installs what is missing where that is possible, else names it.
fn set_up() -> Result<()> {
    let missing: Vec<&Need> = NEEDS.iter().filter(|need| !(need.present)()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if let Some(install) = installer(&missing) {
        for words in install {
            tools::run(Command::new(&words[0]).args(&words[1..]).env("DEBIAN_FRONTEND", "noninteractive"))?;
        }
    }
    let missing: Vec<&str> = missing.iter().filter(|need| !(need.present)()).map(|need| need.what).collect();
    if !missing.is_empty() {
        bail!("the tests need {}: install that and put it on the PATH", missing.join(", "));
    }
    Ok(())
}

/// The commands that install `missing` on Debian or Ubuntu, for one who may: root, or sudo without a password.
fn installer(missing: &[&Need]) -> Option<[Vec<String>; 2]> {
    let release = std::fs::read_to_string("/etc/os-release").ok()?;
    let is = |name: &str| release.lines().any(|line| line == format!("ID={name}"));
    let packages: Vec<&str> = if is("ubuntu") {
        missing.iter().map(|need| need.ubuntu).collect()
    } else if is("debian") {
        missing.iter().map(|need| need.debian).collect()
    } else {
        return None;
    };
    let as_root: &[&str] = if tools::answer(Command::new("id").arg("-u"))? == "0" {
        &[]
    } else {
        tools::answer(Command::new("sudo").args(["-n", "true"]))?;
        &["sudo", "-n"]
    };
    let words = |rest: &[&str]| [as_root, rest].concat().into_iter().map(str::to_owned).collect();
    let install = [&["apt-get", "install", "--yes", "--no-install-recommends"], packages.as_slice()].concat();
    Some([words(&["apt-get", "update"]), words(&install)])
}

/// The file that names Mesa's software driver to the Vulkan loader.
fn lavapipe() -> Option<PathBuf> {
    let folders = ["/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d"];
    let files = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    files.map(|file| file.path()).find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("lvp_icd") && name.ends_with(".json")
    })
}

fn library(name: &str) -> bool {
    tools::answer(Command::new("/sbin/ldconfig").arg("-p")).is_some_and(|list| list.contains(name))
}
