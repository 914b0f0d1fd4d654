#[cfg(not(target_arch = "wasm32"))]
fn main() -> std::process::ExitCode {
    attention_lab::cli::main()
}

/// The page is the library alone.
#[cfg(target_arch = "wasm32")]
fn main() {}
