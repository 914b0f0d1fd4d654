//! Pictures of what a test drew, to be looked at.

use egui_kittest::Harness;
use std::path::PathBuf;

/// Saves what the harness shows as `NAME.png` in the folder of screenshots.
pub fn save(harness: &mut Harness<'_>, name: &str) {
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let folder = folder.join("screenshots");
    std::fs::create_dir_all(&folder).expect("a folder for pictures");
    harness.render().expect("a picture").save(folder.join(format!("{name}.png"))).expect("a file");
}
