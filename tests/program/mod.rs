//! The built binary on a software adapter.

use std::process::{Command, Stdio};

const ICD_FOLDERS: [&str; 3] = ["/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d"];

/// The program on Mesa's software driver, unless the environment names another one.
pub fn program() -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_attention-lab"));
    program.env_remove("RUST_LOG").stdin(Stdio::null());
    if std::env::var_os("VK_ICD_FILENAMES").is_none() {
        let files = ICD_FOLDERS.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
        let lavapipe = files.map(|file| file.path()).find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("lvp_icd") && name.ends_with(".json")
        });
        let lavapipe = lavapipe.expect(
            "these tests need a software Vulkan driver: install mesa-vulkan-drivers or set VK_ICD_FILENAMES to its file",
        );
        program.env("VK_ICD_FILENAMES", lavapipe);
    }
    program
}
