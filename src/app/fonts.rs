//! The fonts of the page: cut to what it can show, since a class downloads them.

use egui::{FontData, FontDefinitions, FontFamily};
use std::sync::Arc;

/// Ubuntu Light for words, Hack for columns of figures; each stands in for what the other lacks.
pub fn fonts() -> FontDefinitions {
    let mut fonts = FontDefinitions::empty();
    let [words, figures] = ["words", "figures"].map(str::to_owned);
    let data = |bytes| Arc::new(FontData::from_static(bytes));
    fonts.font_data.insert(words.clone(), data(include_bytes!("../../web/fonts/ubuntu-light.ttf")));
    fonts.font_data.insert(figures.clone(), data(include_bytes!("../../web/fonts/hack.ttf")));
    fonts.families.insert(FontFamily::Proportional, vec![words.clone(), figures.clone()]);
    fonts.families.insert(FontFamily::Monospace, vec![figures, words]);
    fonts
}

#[cfg(test)]
mod tests {
    use super::*;
    use egui::{Context, FontId, RawInput};

    #[test]
    fn every_character_of_the_texts_can_be_shown() {
        let ctx = Context::default();
        ctx.set_fonts(fonts());
        let mut missing: Vec<char> = Vec::new();
        let mut output = ctx.run_ui(RawInput::default(), |ui| {
            let texts = include_str!("../text.rs").chars().filter(|c| !c.is_control());
            ui.fonts_mut(|fonts| {
                let mut shown = |c: &char| {
                    fonts.has_glyph(&FontId::proportional(14.0), *c) && fonts.has_glyph(&FontId::monospace(14.0), *c)
                };
                missing.extend(texts.filter(|c| !shown(c)));
            });
        });
        // Nothing is drawn.
        output.textures_delta.clear();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
