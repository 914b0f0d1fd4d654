//! What a device, or this program, does not hold.

use crate::text::{Text, fill};
use crate::units::bytes_in_words;
use std::fmt;

/// Bytes of one kind that are kept in host memory at most: a page has 4 GiB in all.
const HOST_BYTES: u64 = 1 << 30;

/// What cannot be held; both numbers in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub buffer: &'static str,
    pub needed: u64,
    pub allowed: u64,
    pub limit: Limit,
}

/// What a refused buffer is too large for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The device, as a whole.
    Buffer,
    /// A range of it, to be bound.
    Binding,
    /// What this program keeps in host memory.
    Host,
}

impl Refusal {
    /// Whether host memory may hold what `buffer` names.
    ///
    /// # Errors
    /// When it takes more than [`HOST_BYTES`].
    pub fn beyond_host(buffer: &'static str, needed: u64) -> Result<(), Self> {
        let refusal = Self { buffer, needed, allowed: HOST_BYTES, limit: Limit::Host };
        if needed > HOST_BYTES { Err(refusal) } else { Ok(()) }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.limit {
            Limit::Buffer => Text::RefusedBuffer,
            Limit::Binding => Text::RefusedBinding,
            Limit::Host => Text::RefusedHost,
        };
        let (needed, allowed) = (self.needed.to_string(), self.allowed.to_string());
        let remedy = match self.buffer {
            "all parameters" => Text::RefusedSwap,
            "q, k and v" | "outputs" => Text::RefusedInput,
            "logits" => Text::RefusedLogits,
            "hidden" | "hidden gradient" => Text::RefusedHidden,
            _ => Text::RefusedShorter,
        };
        let [need, allow] = [self.needed, self.allowed].map(bytes_in_words);
        let values = [self.buffer, &need, &needed, &allow, &allowed, remedy.get()];
        f.write_str(&fill(text, &values))
    }
}

impl std::error::Error for Refusal {}
