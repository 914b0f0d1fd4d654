//! One file a view: `show(ui, &Scene, &mut State, &mut Vec<Command>)`.

pub mod colour;
pub mod contender;
pub mod format;
pub mod memory;
pub mod ticks;
