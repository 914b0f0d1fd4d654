//! The ledger of bytes: written where buffers are created and destroyed, nowhere else.

use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;

#[derive(Default)]
struct Book {
    live: Vec<(u64, &'static str, u64)>,
    next: u64,
    bytes: u64,
    peak: u64,
}

/// Every buffer that this program holds on the device, and the most there ever were.
#[derive(Clone, Default)]
pub struct Ledger(Rc<RefCell<Book>>);

impl Ledger {
    /// Creates a buffer and enters it; dropping the [`Allocation`] strikes it out.
    pub fn create(
        &self,
        device: &wgpu::Device,
        name: &'static str,
        bytes: u64,
        usage: wgpu::BufferUsages,
    ) -> Allocation {
        let descriptor = wgpu::BufferDescriptor { label: Some(name), size: bytes, usage, mapped_at_creation: false };
        let buffer = device.create_buffer(&descriptor);
        let mut book = self.0.borrow_mut();
        let entry = book.next;
        book.next += 1;
        book.live.push((entry, name, bytes));
        book.bytes += bytes;
        book.peak = book.peak.max(book.bytes);
        Allocation { buffer, entry, ledger: self.clone() }
    }

    /// Bytes held now.
    pub fn bytes(&self) -> u64 {
        self.0.borrow().bytes
    }

    /// Most bytes held at once since the last [`Ledger::reset_peak`].
    pub fn peak(&self) -> u64 {
        self.0.borrow().peak
    }

    pub fn reset_peak(&self) {
        let mut book = self.0.borrow_mut();
        book.peak = book.bytes;
    }

    /// Name and bytes of every buffer held now, oldest first.
    pub fn entries(&self) -> Vec<(&'static str, u64)> {
        self.0.borrow().live.iter().map(|(_, name, bytes)| (*name, *bytes)).collect()
    }
}

/// A buffer that stands in the ledger as long as it lives.
pub struct Allocation {
    buffer: wgpu::Buffer,
    entry: u64,
    ledger: Ledger,
}

impl Deref for Allocation {
    type Target = wgpu::Buffer;

    fn deref(&self) -> &wgpu::Buffer {
        &self.buffer
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // The bytes go back at once, not when the last handle is collected.
        self.buffer.destroy();
        let mut book = self.ledger.0.borrow_mut();
        if let Some(at) = book.live.iter().position(|(entry, _, _)| *entry == self.entry) {
            let (_, _, bytes) = book.live.remove(at);
            book.bytes -= bytes;
        }
    }
}
