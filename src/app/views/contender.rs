//! Name and colour of each method, the same wherever methods are compared.

use crate::settings::Method;
use crate::text::Text;
use egui::Color32;

/// As the curves of memory name it, which tell the three ways of exact attention apart.
pub fn name(method: Method) -> &'static str {
    match method {
        Method::FullMaterialized => Text::MethodMatrix,
        Method::FullRowwise => Text::MethodRowwise,
        Method::Full => Text::MethodOnline,
        Method::Lsh => Text::MethodLsh,
        Method::Linformer => Text::MethodLinformer,
    }
    .get()
}

/// Told apart by people with colour-blindness (after Okabe and Ito), on a dark and a light page.
pub fn colour(method: Method) -> Color32 {
    match method {
        Method::FullMaterialized => Color32::from_rgb(64, 120, 220),
        Method::FullRowwise => Color32::from_rgb(138, 128, 196),
        Method::Full => Color32::from_rgb(60, 170, 215),
        Method::Lsh => Color32::from_rgb(222, 110, 30),
        Method::Linformer => Color32::from_rgb(20, 160, 110),
    }
}
