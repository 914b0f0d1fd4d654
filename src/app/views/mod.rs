//! One file a view: `show(ui, &Scene, &mut State, &mut Vec<Command>)`.

pub mod attention;
pub mod buckets;
pub mod compare;
pub mod format;
pub mod memory;
pub mod result;
pub mod ticks;
