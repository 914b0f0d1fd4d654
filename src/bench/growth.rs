//! Memory at rest, read again and again, and whether it grew.

use crate::lab::turns::median;

/// Memory may differ by this share, or by so many bytes where that is more, from the first quarter to the last.
pub const MARGIN: f64 = 0.05;
pub const MARGIN_BYTES: u64 = 8 << 20;
/// Memory at rest, and what was done until then.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    pub seconds: f64,
    pub moves: u64,
    /// Moves whose result was waited for and came.
    pub results: u64,
    pub answers: u64,
    pub cancels: u64,
    pub shortages: u64,
    /// Bytes that are allocated on the heap by this program and its drivers, where the system tells them.
    pub heap: Option<u64>,
    /// Resident bytes of the process, where the system tells them: without what the heap keeps for later, where it
    /// can be told to give that back.
    pub resident: Option<u64>,
    /// Bytes in the ledger.
    pub ledger: u64,
    /// Bytes that the device's allocator says that it gave and that it holds, where it tells.
    pub allocated: Option<u64>,
    pub reserved: Option<u64>,
    pub pipelines: u64,
}

/// One quantity: medians over the first and the last quarter of the samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    pub name: &'static str,
    pub first: f64,
    pub last: f64,
}

impl Trend {
    /// What the last quarter may be beyond the first.
    pub fn margin(&self) -> f64 {
        (MARGIN * self.first).max(MARGIN_BYTES as f64)
    }

    pub fn grew(&self) -> bool {
        self.last - self.first > self.margin()
    }
}

/// A quantity of a sample, where it is told.
type Reading = fn(&Sample) -> Option<u64>;

/// Every quantity that was told throughout.
pub fn trends(samples: &[Sample]) -> Vec<Trend> {
    let quarter = samples.len() / 4;
    let trend = |(name, read): (&'static str, Reading)| {
        let of = |part: &[Sample]| {
            let read: Option<Vec<f64>> = part.iter().map(|sample| read(sample).map(|bytes| bytes as f64)).collect();
            median(read?)
        };
        let (first, last) = (of(&samples[..quarter])?, of(&samples[samples.len() - quarter..])?);
        Some(Trend { name, first, last })
    };
    let quantities: [(&str, Reading); 5] = [
        ("heap", |sample| sample.heap),
        ("resident", |sample| sample.resident),
        ("ledger", |sample| Some(sample.ledger)),
        ("allocated", |sample| sample.allocated),
        ("reserved", |sample| sample.reserved),
    ];
    quantities.into_iter().filter_map(trend).collect()
}

/// Gives what the heap keeps for later back to the system, so that the resident set is of what is held.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn give_back() {
    // SAFETY: it touches free blocks alone, under the allocator's own locks.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn give_back() {}

/// Bytes in blocks that were allocated and not freed, of all arenas and of blocks of their own; `None` where
/// the C library does not count them.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn heap() -> Option<u64> {
    // SAFETY: it has no arguments, and takes the allocator's own locks.
    let info = unsafe { libc::mallinfo2() };
    Some((info.uordblks + info.hblkhd) as u64)
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn heap() -> Option<u64> {
    None
}

/// Resident bytes of this process; `None` where the system has no `/proc/self/status`.
pub(super) fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(resident: impl Fn(u64) -> Option<u64>) -> Vec<Sample> {
        (0..40).map(|i| Sample { resident: resident(i), ledger: 1000, ..Sample::default() }).collect()
    }

    #[test]
    fn growth_is_caught() {
        let names = |samples: &[Sample]| -> Vec<&'static str> {
            trends(samples).into_iter().filter(Trend::grew).map(|trend| trend.name).collect()
        };
        let mib = |i: u64| i << 20;
        assert_eq!(names(&samples(|i| Some(mib(100 + i)))), ["resident"], "a mebibyte a sample");
        assert!(names(&samples(|i| Some(mib(100 + i % 30)))).is_empty(), "up and down");
        assert!(names(&samples(|i| Some(mib(200 - i)))).is_empty(), "less and less");
    }

    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn the_heap_is_what_is_allocated_and_not_freed() {
        // Never touched, and far more than tests beside this one hold.
        let before = heap().expect("counted");
        let large = vec![0u8; 1 << 30];
        let held = heap().expect("counted").abs_diff(before);
        assert!((896 << 20..1152 << 20).contains(&held), "{held}");
        drop(std::hint::black_box(large));
        assert!(heap().expect("counted").abs_diff(before) < 128 << 20, "given back");
    }

    #[test]
    fn what_is_not_told_is_not_judged() {
        let names = |samples: &[Sample]| trends(samples).into_iter().map(|trend| trend.name).collect::<Vec<_>>();
        assert_eq!(names(&samples(|_| None)), ["ledger"]);
        assert_eq!(names(&samples(Some)), ["resident", "ledger"]);
    }
}
