//! What the panel is made of: rows of a name and a control, menus, sections that fold.

use crate::app::views::ticks::written;
use crate::semantics::{Choice, KeyNorm, Wrap};
use crate::settings::{Arrangement, BucketRule, Hash, InputKind, Method, Projection, Sample, Sharing, Short};
use crate::text::Text;
use egui::emath::Numeric;
use egui::{Align, ComboBox, DragValue, Layout, Response, RichText, Ui};
use std::ops::RangeInclusive;

/// Controls that can be used, unless there is a sentence why they would change nothing.
pub(super) fn unless(ui: &mut Ui, why: Option<String>, controls: impl FnOnce(&mut Ui)) {
    let on = why.is_none();
    if let Some(why) = why {
        note(ui, &why);
    }
    ui.add_enabled_ui(on, controls);
}

pub(super) fn note(ui: &mut Ui, words: &str) {
    ui.label(RichText::new(words).small().weak());
}

pub(super) fn section(ui: &mut Ui, name: Text, help: Text, contents: impl FnOnce(&mut Ui)) {
    let section = egui::CollapsingHeader::new(name.get()).id_salt(name).show(ui, contents);
    section.header_response.on_hover_text(help.get());
}

/// A row of a name on the left and a control on the right.
pub(super) fn row(ui: &mut Ui, name: Text, help: Text, control: impl FnOnce(&mut Ui) -> Response) {
    ui.horizontal(|ui| {
        let label = ui.label(name.get()).on_hover_text(help.get());
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            control(ui).labelled_by(label.id).on_hover_text(help.get());
        });
    });
}

pub(super) fn number<N: Numeric>(
    ui: &mut Ui,
    name: Text,
    help: Text,
    value: &mut N,
    range: RangeInclusive<N>,
    speed: f64,
) {
    let control = DragValue::new(value).range(range).speed(speed).update_while_editing(false);
    let control =
        control.custom_formatter(|value, _| if value.fract() == 0.0 { value.to_string() } else { written(value) });
    row(ui, name, help, |ui| ui.add(control));
}

pub(super) fn switch(ui: &mut Ui, name: Text, help: Text, value: &mut bool) -> bool {
    ui.checkbox(value, name.get()).on_hover_text(help.get()).changed()
}

/// A menu of a [`Choice`] with the screen's names.
pub(super) fn choice<C: Choice + Named>(ui: &mut Ui, name: Text, help: Text, value: &mut C, all: &[(C, &str)]) {
    let named: Vec<(C, Text)> = all.iter().map(|(choice, _)| (*choice, choice.name())).collect();
    select(ui, name, help, value, &named);
}

pub(super) fn select<C: Copy + PartialEq>(ui: &mut Ui, name: Text, help: Text, value: &mut C, all: &[(C, Text)]) {
    row(ui, name, help, |ui| {
        let shown = all.iter().find(|(choice, _)| choice == value).map_or("", |(_, text)| text.get());
        let menu = ComboBox::from_id_salt(name).selected_text(shown).truncate();
        let menu = menu.show_ui(ui, |ui| {
            for (choice, text) in all {
                ui.selectable_value(value, *choice, text.get());
            }
        });
        menu.response
    });
}

/// The name of a choice on the screen.
pub(super) trait Named {
    fn name(self) -> Text;
}

macro_rules! named {
    ($($kind:ident { $($choice:ident => $text:ident),+ })+) => {
        $(impl Named for $kind {
            fn name(self) -> Text {
                match self { $(Self::$choice => Text::$text),+ }
            }
        })+
    };
}

named! {
    InputKind { Picture => InputPicture, Clusters => InputClusters, Duplication => InputDuplication }
    Sample { Astronaut => SampleAstronaut, Cat => SampleCat, Own => SampleOwn }
    Arrangement {
        Clusters => ArrangementClusters, Identical => ArrangementIdentical,
        Repeated => ArrangementRepeated, Isotropic => ArrangementIsotropic
    }
    Method {
        Full => FullOnline, FullRowwise => FullRowwise, FullMaterialized => FullMaterialized,
        Lsh => TabLsh, Linformer => TabLinformer
    }
    BucketRule { Paper => BucketRulePaper, Chunks => BucketRuleChunks, PowerOfTwo => BucketRulePowerOfTwo }
    Short { Lsh => ShortLsh, Full => ShortFull }
    Hash { Auto => HashAuto, Plain => HashPlain, Factorised => HashFactorised }
    Projection {
        Mean => ProjectionMean, Max => ProjectionMax, Gaussian => ProjectionGaussian,
        Convolution => ProjectionConvolution
    }
    Sharing {
        None => SharingNone, Headwise => SharingHeadwise, KeyValue => SharingKeyValue, Layerwise => SharingLayerwise
    }
    KeyNorm { None => KeyNormNone, L2Max => KeyNormMax, L2Rms => KeyNormRms }
    Wrap { None => WrapNone, InRound => WrapInRound, AcrossRounds => WrapAcross }
}
