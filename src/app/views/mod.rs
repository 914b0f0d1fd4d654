//! One file a view: `show(ui, &Scene, &mut State, &mut Vec<Command>)`.
