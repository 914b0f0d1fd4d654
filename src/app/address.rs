//! The settings in the page's address. The desktop app has none and starts with the defaults.

use crate::settings::{Settings, SettingsError};

/// What the address asks for.
pub struct Told {
    /// The defaults when it cannot be understood.
    pub settings: Settings,
    pub error: Option<SettingsError>,
    /// `check` or `check=1`: the device is to be checked at once.
    pub check: bool,
}

/// The settings that stand in the address.
pub struct Address {
    #[cfg(target_arch = "wasm32")]
    held: Settings,
}

impl Address {
    /// Reads the address; `n` where it says no length.
    pub fn read(n: u32) -> (Self, Told) {
        let default = Settings { n, ..Settings::default() };
        #[cfg(target_arch = "wasm32")]
        {
            let query = crate::web::query();
            let (checks, others): (Vec<&str>, Vec<&str>) =
                query.split('&').partition(|pair| matches!(*pair, "check" | "check=1"));
            // A length in the address stands behind this one and wins.
            let (settings, error) = match Settings::from_query(&format!("n={n}&{}", others.join("&"))) {
                Ok(settings) => (settings, None),
                Err(error) => (default, Some(error)),
            };
            (Self { held: settings.clone() }, Told { settings, error, check: !checks.is_empty() })
        }
        #[cfg(not(target_arch = "wasm32"))]
        (Self {}, Told { settings: default, error: None, check: false })
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
