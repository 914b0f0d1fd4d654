//! The page and the desktop app: `logic` works, `ui` shows, views return commands.

pub mod scene;
pub mod text;
pub mod views;
