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
