pub mod gpu;
pub mod interpreter;
pub mod lab;
pub mod methods;
pub mod outcome;
pub mod plan;
pub mod problem;
pub mod random;
pub mod semantics;
pub mod settings;
pub mod steps;
#[cfg(target_arch = "wasm32")]
mod web;
