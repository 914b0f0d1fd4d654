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
    MissingSoon => "It is being computed.",
    MissingPutOff => "It would take about {0}, so it runs only when asked.",
    // --- memory view ---
    MemoryTitle => "Memory",
    MemoryCaption => "What attention holds on the device at this moment, buffer by buffer, and what it would hold at other lengths. Move the sequence length and watch the n × n matrix leave everything else behind.",
    MethodMatrix => "Full, matrix in memory",
    MethodRowwise => "Full, one query at a time",
    MethodOnline => "Full, online softmax",
    MethodLsh => "LSH attention (Reformer)",
    MethodLinformer => "Linformer",
    MemoryMeasured => "Measured: buffers of {0}",
    MemoryMeasuredHover => "Every buffer that was created on the device for this run, largest first. The lengths of the bars are in proportion.",
    MemoryNone => "Nothing is allocated: {0}",
    MemoryRoleTensor => "tensors {0}",
    MemoryRoleTensorHover => "q, k, v and the output: every method has them.",
    MemoryRoleMethod => "the method's own {0}",
    MemoryRoleMethodHover => "What this method needs beyond q, k, v and the output.",
    MemoryRoleInstrument => "instruments {0}",
    MemoryRoleInstrumentHover => "What the program itself needs to run and to time; not counted as the method's memory.",
    MemoryTotal => "Memory of the method: {0}. Peak while it ran, read from the ledger of allocations: {1}.",
    MemoryTotalHover => "The memory of the method is the sum of tensors and the method's own buffers. The ledger is written where buffers are created and destroyed; its peak also has the instruments.",
    MemoryCompared => "At n = {0}, method by method",
    MemoryFormula => "Formula: every array of the paper, held whole",
    MemoryFormulaHover => "Float32 bytes by the papers' formulae, heads included, padding left out: a calculation, not a measurement. This program streams scores and rounds, so what it holds can be less.",
    MemoryPlan => "Plan: what this program allocates",
    MemoryPlanHover => "Tensors and the method's own buffers, read off the plan that the program allocates from. For the method on the screen it is what was measured.",
    MemoryTermTensors => "q, k, v, output",
    MemoryTermMatrix => "scores, n × n a head",
    MemoryTermRow => "scores of one query",
    MemoryTermLists => "bucket and sorted place, n a round and head",
    MemoryTermChunkScores => "scores of {0} chunks, n × {0} m a round and head",
    MemoryTermRoundOutputs => "output and log-sum-exp, n × (d_v + 1) a round and head",
    MemoryTermRotations => "rotations R, d × b/2 a round",
    MemoryTermProjections => "E and F, k × n (one matrix when E = F)",
    MemoryTermProjected => "E K and F V, k rows a head",
    MemoryTermProjectedScores => "scores P-bar, n × k a head",
    MemoryLeadingMatrix => "tensors + 4 h n²",
    MemoryLeadingRow => "tensors + 4 n",
    MemoryLeadingLsh => "tensors + 4 h r n (2 m + d_v)",
    MemoryLeadingLinformer => "tensors + 4 (h + 1) n k",
    MemoryLimits => "dashed: limits of the device",
    MemoryTableMatrix => "Reformer, table 1: max(b h l d, b h l²); b is the batch, h the heads, l the sequence length n.",
    MemoryTableRowwise => "Reformer, section 2: one query at a time needs memory in proportion to n, at the price of no parallel work.",
    MemoryTableOnline => "Neither paper has it: the softmax is kept up to date over tiles of keys, so that no matrix is ever written. It saves memory and no time.",
    MemoryTableLsh => "Reformer, table 1: max(b h l d, b h l r (4 l / c)²), with r rounds and c chunks; an average, up to constants. Visits that are counted exactly: r (2 l m - m²) a head where the first chunk sees none before it.",
    MemoryTableLinformer => "Linformer, section 4: O(n k) instead of O(n²).",
    MemoryCurves => "Plans over the sequence length",
    MemoryCurvesHover => "Bytes that the plans would allocate at these settings, without limits. The chunk length stays, the bucket count follows, and k stays while it fits, as with the slider.",
    MemoryAxisN => "sequence length n (log)",
    MemoryAxisBytes => "bytes (log)",
    MemoryHere => "n = {0}",
    MemoryPaper => "the paper: 16 GiB at n = 65,536",
    MemoryStar => "star: the paper's example",
    MemoryPaperHover => "The Reformer paper's example: one head's 65,536 × 65,536 scores in float32 are 65,536 × 65,536 × 4 bytes = 16 GiB, before q, k, v and all other heads.",
    MemoryMeasuredWord => "measured",
    MemoryMeasuredPoint => "dots: measured",
    MemoryMeasuredPointHover => "Dots: the method's memory of the runs on this device.",
    MemoryRefused => "cross: refused from here on",
    MemoryRefusedHover => "Crosses: from here on this device refuses a buffer, and the line is thin.",
    MemoryLimitBuffer => "largest buffer {0}",
    MemoryLimitBinding => "largest binding {0}",
    MemoryLimitHover => "Limits of this device on a single buffer and on the part of it that a shader may see. The curves are sums over all buffers, so a curve may pass a limit before a buffer does.",
    MemoryPointHover => "{0}\nn = {1}\n{2}",
    MemoryRatioLess => "Here, at n = {0}, {1} holds {2}: {3} of the {4} of full attention with its matrix.",
    MemoryRatioMore => "Here, at n = {0}, {1} holds {2}, which is {3} times the {4} of full attention with its matrix: at this length the clever method costs memory.",
    MemoryCrossFrom => "{0} holds less than the matrix from n = {1} on, and more below.",
    MemoryCrossAlways => "{0} holds less than the matrix at every length shown.",
    MemoryCrossNever => "{0} holds more than the matrix at every length shown.",
    MemoryOnlineLess => "Full attention with an online softmax writes no matrix and holds less than LSH attention and Linformer at every length shown: what they save against it is work, not memory.",
    MemoryPaperPoint => "The star is the paper's example: at n = 65,536 the scores of one head alone are 16 GiB.",
    BufferQ => "Queries; with shared QK also the keys.",
    BufferK => "Keys.",
    BufferV => "Values.",
    BufferOut => "The output of attention.",
    BufferLse => "Log-sum-exp of every query's scores: the denominator of its softmax.",
    BufferKeyScale => "The factor that brings each key to unit length.",
    BufferScores => "Scores before, weights after the softmax.",
    BufferBuckets => "The bucket of every token in every round.",
    BufferOrder => "Positions, sorted by bucket and then by position, in every round.",
    BufferChunkOf => "The chunk in which every token lies in every round.",
    BufferRotations => "The random rotations R of the hash.",
    BufferSortTable => "Counts of the counting sort, tile by tile.",
    BufferSortList => "The list between two passes of the sort.",
    BufferRoundOutput => "The output of the round that is being attended; rounds are added up as they come.",
    BufferRoundLse => "Log-sum-exp of the round that is being attended.",
    BufferE => "The projection E, which mixes n keys into k; F, too, when both are one.",
    BufferF => "The projection F, which mixes n values into k.",
    BufferProjectedKeys => "E K: k mixed keys a head.",
    BufferProjectedValues => "F V: k mixed values a head.",
    BufferProjectedScale => "A factor of 1 for each mixed key.",
    BufferRest => "Parameters of the dispatches, and timestamps where the device has them.",
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
