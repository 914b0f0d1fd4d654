//! The settings in the page's address. The desktop app has none and starts with the defaults.

use crate::settings::{Settings, SettingsError};

/// The settings that stand in the address.
pub struct Address {
    #[cfg(target_arch = "wasm32")]
    held: Settings,
}

impl Address {
    /// What the address asks for, or the defaults; `n` where it says no length.
    ///
    /// With an address that cannot be understood come the defaults and the error.
    pub fn read(n: u32) -> (Self, Settings, Option<SettingsError>) {
        let default = Settings { n, ..Settings::default() };
        #[cfg(target_arch = "wasm32")]
        {
            // A length in the address stands behind this one and wins.
            let (settings, error) = match Settings::from_query(&format!("n={n}&{}", crate::web::query())) {
                Ok(settings) => (settings, None),
                Err(error) => (default, Some(error)),
            };
            (Self { held: settings.clone() }, settings, error)
        }
        #[cfg(not(target_arch = "wasm32"))]
        (Self {}, default, None)
    }

    /// Follows the settings, once no slider is being dragged. The length always stands in it, since
    /// the default depends on the adapter.
    #[cfg(target_arch = "wasm32")]
    pub fn write(&mut self, settings: &Settings, ctx: &egui::Context) {
        if self.held != *settings && settings.validate().is_ok() && !ctx.input(|input| input.pointer.any_down()) {
            let others = Settings { n: Settings::default().n, ..settings.clone() }.to_query();
            let separator = if others.is_empty() { "" } else { "&" };
            crate::web::replace_query(&format!("n={}{separator}{others}", settings.n));
            self.held = settings.clone();
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub fn write(&mut self, _settings: &Settings, _ctx: &egui::Context) {}
}
