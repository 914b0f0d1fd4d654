//! The steps of the algorithms: for each WGSL file one file here with what goes in and out, the
//! grid, and a twin in float64 that the shader is tested against.
//!
//! Nothing here knows a GPU: a [`Kernel`] is a name, a text and a list of bindings.

pub mod adam;
pub mod approximate_weights;
pub mod attention_map;
pub mod bucket_sort;
pub mod chunked_attention;
pub mod chunked_attention_backward;
pub mod column_sums;
pub mod combine_rounds;
pub mod coverage;
pub mod cross_entropy;
pub mod effective_weights;
pub mod full_attention;
pub mod full_attention_backward;
pub mod gelu;
pub mod key_norm;
pub mod key_norm_backward;
pub mod layer_norm;
pub mod linear_projection;
pub mod map_pixels;
pub mod materialized_attention;
pub mod matrix_product;
pub mod max_pooling;
pub mod packed_ids;
pub mod pair_gradient;
pub mod random_rotation_hash;
pub mod residual;
pub mod row_terms;
pub mod scaled_copy;
pub mod softmax_backward;
pub mod top_attention;
pub mod top_keys;
pub mod visibility;

use crate::semantics::flags;

/// Threads of a workgroup where a step does not say otherwise.
pub const WORKGROUP: u32 = 64;
/// Threads of a workgroup that reduces over a row.
pub const ROW_WORKGROUP: u32 = 128;
/// Iterations that a kernel's loop over keys may have; what is longer is cut into passes. Mesa's
/// llvmpipe ends every loop of an invocation after 65,535 iterations in all, without an error.
pub const LONGEST_LOOP: u32 = 32_768;
/// Log-sum-exp of a row without a single key, and score of a masked pair in a stored row: the
/// lowest finite float32, since WGSL may assume that there is no infinity.
pub const EMPTY: f32 = f32::MIN;
/// An index that stands for "no key".
pub const NO_KEY: u32 = u32::MAX;

/// Widths of the rows in vectors of four floats; they become constants of the shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Widths {
    /// `ceil(d / 4)`.
    pub d4: u32,
    /// `ceil(d_v / 4)`.
    pub dv4: u32,
}

impl Widths {
    pub fn new(d: u32, d_v: u32) -> Self {
        Self { d4: d.div_ceil(4), dv4: d_v.div_ceil(4) }
    }

    /// Floats from one row of q or k to the next; what `d` does not fill is 0.
    pub fn d_stride(self) -> usize {
        self.d4 as usize * 4
    }

    /// Floats from one row of v to the next.
    pub fn dv_stride(self) -> usize {
        self.dv4 as usize * 4
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    ReadWrite,
}

/// One entry point of a shader and its twin.
pub struct Kernel {
    /// File stem in `shaders/`.
    pub stem: &'static str,
    pub entry: &'static str,
    /// The WGSL file.
    pub source: &'static str,
    /// The WGSL text of the parameter structs, generated from their Rust definitions.
    pub params: &'static [&'static str],
    /// Further shared text, such as who sees whom.
    pub include: &'static str,
    /// Storage bindings 1, 2, ... of group 0; binding 0 is the uniform `p: Params`.
    pub bindings: &'static [Access],
    /// The same computation in float64 on whole buffers, all workgroups at once.
    pub twin: fn(&[u8], Widths, &mut [Data]),
}

impl Kernel {
    /// The widths that its text depends on, the others being 0: one pipeline serves all rows that differ only
    /// in those.
    pub fn widths(&self, widths: Widths) -> Widths {
        let names = |constant: &str, width: u32| {
            let named = [self.source, self.include].iter().any(|text| text.contains(constant));
            if named { width } else { 0 }
        };
        Widths { d4: names("D4", widths.d4), dv4: names("DV4", widths.dv4) }
    }

    /// The complete WGSL module for rows of these widths.
    pub fn wgsl(&self, widths: Widths) -> String {
        format!(
            "{}const D4: u32 = {}u;\nconst DV4: u32 = {}u;\n{}{}{}{}",
            constants(),
            widths.d4,
            widths.dv4,
            self.params.concat(),
            include_str!("../../shaders/common.wgsl"),
            self.include,
            self.source,
        )
    }
}

/// Every kernel, for the tests that compile and check each one.
pub const KERNELS: &[&Kernel] = &[
    &key_norm::KEY_NORM,
    &random_rotation_hash::HASH,
    &bucket_sort::COUNT,
    &bucket_sort::SCAN,
    &bucket_sort::SCATTER,
    &chunked_attention::ATTEND,
    &combine_rounds::COMBINE,
    &linear_projection::PROJECT,
    &max_pooling::POOL,
    &full_attention::ATTEND,
    &materialized_attention::SCORES,
    &materialized_attention::SOFTMAX,
    &materialized_attention::WEIGHTED_SUM,
    &attention_map::PAIRS,
    &map_pixels::PIXELS,
    &approximate_weights::WEIGHTS,
    &effective_weights::WEIGHTS,
    &top_keys::SELECT,
    &top_attention::ATTEND,
    &coverage::COVERAGE,
    &residual::RESIDUAL,
    &residual::TOTAL,
    &softmax_backward::BACKWARD,
    &adam::STEP,
    &row_terms::ROW_TERMS,
    &full_attention_backward::QUERIES,
    &full_attention_backward::KEYS,
    &full_attention_backward::VALUES,
    &chunked_attention_backward::QUERIES,
    &chunked_attention_backward::KEYS,
    &chunked_attention_backward::VALUES,
    &key_norm_backward::KEY_NORM_BACKWARD,
    &matrix_product::MULTIPLY,
    &column_sums::ADD,
    &layer_norm::NORMALIZE,
    &layer_norm::BACKWARD,
    &gelu::ACTIVATE,
    &gelu::BACKWARD,
    &cross_entropy::SECTION,
    &scaled_copy::COPY,
    &packed_ids::PACK,
    &packed_ids::UNPACK,
];

/// The numbers that Rust and WGSL share, written once.
fn constants() -> String {
    let words = [
        ("WORKGROUP", WORKGROUP),
        ("ROW_WORKGROUP", ROW_WORKGROUP),
        ("NO_KEY", NO_KEY),
        ("CAUSAL", flags::CAUSAL),
        ("SAME_BUCKET", flags::SAME_BUCKET),
        ("PAIR_COUNT", flags::PAIR_COUNT),
        ("SELF_VALUE", flags::SELF_VALUE),
        ("SELF_EXCLUDE", flags::SELF_EXCLUDE),
        ("WRAP_IN_ROUND", flags::WRAP_IN_ROUND),
        ("WRAP_ACROSS_ROUNDS", flags::WRAP_ACROSS_ROUNDS),
        ("KEY_NORM_MAX", flags::KEY_NORM_MAX),
        ("KEY_NORM_RMS", flags::KEY_NORM_RMS),
        ("SORT_TILE", bucket_sort::TILE),
        ("SORT_DIGITS", bucket_sort::DIGITS),
        ("KEY_TILE", full_attention::KEY_TILE),
        ("TOP", top_keys::TOP),
        ("PRODUCT_TILE", matrix_product::TILE),
        ("PRODUCT_DEPTH", matrix_product::DEPTH),
    ];
    // Hexadecimal, since Chrome rejects the decimal spelling of the lowest float32.
    let mut text = format!("const EMPTY: f32 = -0x1.fffffep+127f;\nconst SHORTEST: f32 = {:e};\n", key_norm::SHORTEST);
    for (name, value) in words {
        text += &format!("const {name}: u32 = {value}u;\n");
    }
    text
}

/// A buffer of the float64 interpreter.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    F(Vec<f64>),
    U(Vec<u32>),
}

impl Data {
    /// The floats; empty when the buffer holds integers, so that a wrong binding shows in a test.
    pub fn f(&self) -> &[f64] {
        if let Self::F(values) = self { values } else { &[] }
    }

    pub fn u(&self) -> &[u32] {
        if let Self::U(values) = self { values } else { &[] }
    }

    pub fn f_mut(&mut self) -> &mut [f64] {
        if let Self::F(values) = self { values } else { &mut [] }
    }

    pub fn u_mut(&mut self) -> &mut [u32] {
        if let Self::U(values) = self { values } else { &mut [] }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::F(values) => values.len(),
            Self::U(values) => values.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The parameters of a pass as they stand in its uniform slot.
pub(crate) fn read_params<P: bytemuck::Pod>(bytes: &[u8]) -> P {
    bytemuck::pod_read_unaligned(&bytes[..size_of::<P>()])
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Softmax-weighted sum over scores and rows of values: `(output, log-sum-exp)`.
/// Without any score the output is 0 and the log-sum-exp [`EMPTY`].
pub(crate) fn softmax_sum(terms: &[(f64, &[f64])], width: usize) -> (Vec<f64>, f64) {
    let mut out = vec![0.0; width];
    let top = terms.iter().map(|term| term.0).fold(f64::NEG_INFINITY, f64::max);
    if terms.is_empty() {
        return (out, f64::from(EMPTY));
    }
    let total: f64 = terms.iter().map(|term| (term.0 - top).exp()).sum();
    for (score, value) in terms {
        let weight = (score - top).exp() / total;
        for (o, x) in out.iter_mut().zip(*value) {
            *o += weight * x;
        }
    }
    (out, top + total.ln())
}

/// Defines a parameter struct once, for Rust and for WGSL.
macro_rules! params {
    ($(#[$meta:meta])* $name:ident as $wgsl:literal { $($(#[$doc:meta])* $field:ident : $kind:tt),+ $(,)? }) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
        pub struct $name { $($(#[$doc])* pub $field: $kind),+ }

        impl $name {
            /// The same struct in WGSL.
            pub const WGSL: &'static str =
                concat!("struct ", $wgsl, " {\n", $("  ", stringify!($field), ": ", stringify!($kind), ",\n"),+, "}\n");
        }
    };
}
pub(crate) use params;
