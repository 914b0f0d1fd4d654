//! The settings and the open view in the page's address. The desktop app has none and starts with
//! the defaults.

use super::job::Exam;
use super::scene::View;
use crate::settings::Settings;
#[cfg(target_arch = "wasm32")]
use crate::{app::worded, semantics::Choice, text::Text};

/// What the address asks for.
pub struct Told {
    /// The defaults when it cannot be understood.
    pub settings: Settings,
    /// What was not understood.
    pub notice: Option<String>,
    pub view: View,
    /// The device is to be checked at once: `check` or `check=1` against the twins, `verify=FOLDER` against the
    /// stored outputs in a folder of the page's own origin.
    pub exam: Option<Exam>,
}

/// What stands in the address.
pub struct Address {
    #[cfg(target_arch = "wasm32")]
    held: (Settings, View),
}

impl Address {
    /// Reads the address; `n` where it says no length.
    pub fn read(n: u32) -> (Self, Told) {
        let default = Settings { n, ..Settings::default() };
        #[cfg(target_arch = "wasm32")]
        {
            let query = crate::web::query();
            let mut told = Told { settings: default, notice: None, view: View::Buckets, exam: None };
            let bad = |error| worded(Text::BadAddress, &error);
            // A length in the address stands behind this one and wins.
            let mut settings = format!("n={n}");
            for pair in query.split('&') {
                match pair.split_once('=').unwrap_or((pair, "")) {
                    ("check", "" | "1") => told.exam = Some(Exam::Twins),
                    ("verify", folder) => told.exam = Some(Exam::Published(folder.to_owned())),
                    ("view", name) => match View::parse(name) {
                        Some(view) => told.view = view,
                        None => told.notice = Some(bad(View::unknown(name))),
                    },
                    _ => settings = format!("{settings}&{pair}"),
                }
            }
            match Settings::from_query(&settings) {
                Ok(settings) => told.settings = settings,
                Err(error) => told.notice = Some(format!("{} {}", bad(error), Text::DefaultSettings.get())),
            }
            (Self { held: (told.settings.clone(), told.view) }, told)
        }
        #[cfg(not(target_arch = "wasm32"))]
        (Self {}, Told { settings: default, notice: None, view: View::Buckets, exam: None })
    }

    /// Follows the settings and the view, once no slider is being dragged. The length always stands in
    /// it, since the default depends on the adapter.
    #[cfg(target_arch = "wasm32")]
    pub fn write(&mut self, settings: &Settings, view: View, ctx: &egui::Context) {
        let changed = self.held.0 != *settings || self.held.1 != view;
        if changed && settings.validate().is_ok() && !ctx.input(|input| input.pointer.any_down()) {
            let others = Settings { n: Settings::default().n, ..settings.clone() }.to_query();
            let mut pairs = vec![format!("n={}", settings.n)];
            pairs.extend((!others.is_empty()).then_some(others));
            pairs.extend((view != View::Buckets).then(|| format!("view={}", view.spelling())));
            crate::web::replace_query(&pairs.join("&"));
            self.held = (settings.clone(), view);
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub fn write(&mut self, _settings: &Settings, _view: View, _ctx: &egui::Context) {}
}
