//! Every visible word, by key. A second language is a second column.

/// Keys of the texts. `{}`-style holes are filled by [`fill`].
macro_rules! texts {
    ($($key:ident => $english:literal),+ $(,)?) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Text { $($key),+ }

        impl Text {
            pub fn get(self) -> &'static str {
                match self { $(Self::$key => $english),+ }
            }
        }
    };
}

texts! {
    // --- shell: title, panels, controls, strip, errors ---
    AppName => "Attention Lab",
    // --- what views share ---
    MethodFull => "Full attention",
    MethodLsh => "Reformer (LSH attention)",
    MethodLinformer => "Linformer",
    MissingSoon => "{0} is being computed.",
    MissingPutOff => "{0} would take about {1} s at this length and waits until you ask for it.",
    MissingRun => "Run {0} now",
    MissingRunHint => "Runs {0} on the GPU, for about {1} seconds; you can cancel it.",
    MissingFailed => "{0} has no result: {1}",
    TokenPatch => "token {0}: patch in row {1}, column {2}",
    TokenPoint => "token {0}: point of cluster {1}",
    TokenSymbol => "token {0}: symbol {1}",
    // --- buckets view ---
    BucketsTitle => "Buckets",
    // --- attention view ---
    AttentionTitle => "Attention",
    // --- result view ---
    ResultTitle => "Result",
    // --- memory view ---
    MemoryTitle => "Memory",
    // --- compare view ---
    CompareTitle => "Compare",
}

/// Replaces the holes `{0}`, `{1}`, ... of a text.
pub fn fill(text: Text, values: &[&str]) -> String {
    let mut filled = text.get().to_owned();
    for (at, value) in values.iter().enumerate() {
        filled = filled.replace(&format!("{{{at}}}"), value);
    }
    filled
}
