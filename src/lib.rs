pub mod app;
pub mod gpu;
pub mod inputs;
pub mod interpreter;
pub mod lab;
pub mod memory;
pub mod methods;
pub mod outcome;
pub mod plan;
pub mod problem;
pub mod random;
pub mod semantics;
pub mod settings;
pub mod steps;
#[cfg(not(target_arch = "wasm32"))]
pub mod verify;
#[cfg(target_arch = "wasm32")]
mod web;
