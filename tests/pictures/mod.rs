//! Pictures of what a test drew, to be looked at.

use egui_kittest::Harness;
use std::path::PathBuf;

/// Saves what is shown as `NAME.png` in the folder of screenshots.
pub fn screenshot<S>(harness: &mut Harness<'_, S>, name: &str) {
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let folder = folder.join("screenshots");
    std::fs::create_dir_all(&folder).expect("the folder of screenshots");
    harness.render().expect("a picture").save(folder.join(format!("{name}.png"))).expect("a file");
}
