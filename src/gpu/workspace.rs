//! The buffers of one request. Plans name them: a buffer that a plan shares with an earlier one is
//! found, not made again.

use super::ledger::Allocation;
use super::{Fault, Gpu, fault_of, yield_now};
use crate::plan::{BufferSpec, Kind, Plan};
use crate::problem::Problem;
use std::collections::HashMap;
use wgpu::BufferUsages as Usage;

/// Bytes that are uploaded or read back before others may work.
const PIECE: usize = 4 << 20;

/// Buffers by name, with what they hold.
#[derive(Default)]
pub struct Workspace {
    buffers: HashMap<&'static str, (BufferSpec, Allocation)>,
}

/// A buffer of the workspace as its words.
#[derive(Clone, Debug, PartialEq)]
pub enum Words {
    F32(Vec<f32>),
    U32(Vec<u32>),
}

impl Workspace {
    pub(super) fn buffer(&self, spec: &BufferSpec) -> Option<&wgpu::Buffer> {
        self.buffers.get(spec.name).map(|(_, allocation)| &**allocation)
    }

    /// The buffers held, in no order.
    pub fn specs(&self) -> impl Iterator<Item = &BufferSpec> {
        self.buffers.values().map(|(spec, _)| spec)
    }

    /// Bytes that a buffer was created with; 0 when there is none of this name.
    pub fn bytes(&self, name: &str) -> u64 {
        self.buffers.get(name).map_or(0, |(_, allocation)| allocation.size())
    }

    /// Bytes of all buffers held.
    pub fn held(&self) -> u64 {
        self.buffers.values().map(|(_, allocation)| allocation.size()).sum()
    }

    /// Hands buffers over to another workspace, those whose name is picked.
    pub fn hand_over(&mut self, to: &mut Self, picked: impl Fn(&str) -> bool) {
        to.buffers.extend(self.buffers.extract_if(|name, _| picked(name)));
    }

    /// Gives the instruments' buffers back.
    pub fn drop_instruments(&mut self) {
        self.buffers.retain(|_, (spec, _)| spec.role != crate::plan::Role::Instrument);
    }

    /// Creates the plan's missing buffers, fills them from the problem and clears what the plan
    /// wants cleared.
    ///
    /// # Errors
    /// When the device has no memory left or is lost.
    pub async fn prepare(&mut self, gpu: &Gpu, plan: &Plan, problem: &Problem) -> Result<(), Fault> {
        let mut made = Vec::new();
        for spec in &plan.buffers {
            // An instrument may be asked for again in another size, even one that is padded to the same bytes.
            let stale = self.buffers.get(spec.name).is_some_and(|(held, _)| !held.lies_like(spec));
            if stale {
                self.buffers.remove(spec.name);
            }
            if !self.buffers.contains_key(spec.name) {
                let scope = gpu.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
                let usage = Usage::STORAGE | Usage::COPY_SRC | Usage::COPY_DST;
                let allocation = gpu.ledger.create(&gpu.device, spec.name, spec.bytes(), usage);
                made.push((spec, allocation, scope.pop()));
            }
        }
        // All are made before the first answer is waited for: a page waits for a frame with each.
        for (spec, allocation, error) in made {
            if let Some(error) = error.await {
                return Err(fault_of(error, &format!("the buffer \"{}\" of {} bytes", spec.name, spec.bytes())));
            }
            gpu.check()?;
            if let Some(word) = gpu.poison.get() {
                let pattern = vec![word; (spec.bytes() / 4) as usize];
                gpu.queue.write_buffer(&allocation, 0, bytemuck::cast_slice(&pattern));
            }
            fill(gpu, spec, &allocation, problem).await?;
            self.buffers.insert(spec.name, (spec.clone(), allocation));
        }
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        for spec in plan.buffers.iter().filter(|spec| spec.zeroed) {
            if let Some(buffer) = self.buffer(spec) {
                encoder.clear_buffer(buffer, 0, None);
            }
        }
        gpu.queue.submit([encoder.finish()]);
        gpu.check()
    }

    /// Overwrites the beginning of a range of integers, in place of a step that would write it.
    pub fn write_u32(&self, gpu: &Gpu, name: &str, range: u32, words: &[u32]) {
        if let Some((spec, buffer)) = self.buffers.get(name) {
            gpu.queue.write_buffer(buffer, u64::from(range) * spec.stride(), bytemuck::cast_slice(words));
        }
    }

    /// Overwrites the beginning of a range of floats, in pieces between which others may work.
    ///
    /// # Errors
    /// When the device is lost.
    pub async fn write_f32(&self, gpu: &Gpu, name: &str, range: u32, values: &[f32]) -> Result<(), Fault> {
        let Some((spec, buffer)) = self.buffers.get(name) else { return Ok(()) };
        let mut at = u64::from(range) * spec.stride();
        for piece in values.chunks(PIECE / 4) {
            gpu.queue.write_buffer(buffer, at, bytemuck::cast_slice(piece));
            at += piece.len() as u64 * 4;
            // Staging memory comes back when its submission is done.
            gpu.queue.submit([]);
            yield_now().await;
        }
        gpu.check()
    }

    /// Reads `words` words of a range from word `start` on; `None` when there is no such buffer.
    ///
    /// # Errors
    /// When the device is lost.
    pub async fn read(
        &self,
        gpu: &Gpu,
        name: &str,
        range: u32,
        start: u64,
        words: u64,
    ) -> Result<Option<Words>, Fault> {
        let Some((spec, buffer)) = self.buffers.get(name) else { return Ok(None) };
        let words = words.min(spec.range_words.saturating_sub(start));
        let offset = u64::from(range) * spec.stride() + start * 4;
        let mut bytes = Vec::with_capacity(words as usize * 4);
        for piece in (0..words * 4).step_by(PIECE) {
            let here = (PIECE as u64).min(words * 4 - piece);
            bytes.extend(gpu.read(buffer, offset + piece, here).await?);
        }
        Ok(Some(match spec.kind {
            Kind::F32 => Words::F32(bytemuck::pod_collect_to_vec(&bytes)),
            Kind::U32 => Words::U32(bytemuck::pod_collect_to_vec(&bytes)),
        }))
    }

    /// The used words of one range; empty when there is no such buffer of floats.
    ///
    /// # Errors
    /// When the device is lost.
    pub async fn read_f32(&self, gpu: &Gpu, name: &str, range: u32) -> Result<Vec<f32>, Fault> {
        match self.read(gpu, name, range, 0, u64::MAX).await? {
            Some(Words::F32(values)) => Ok(values),
            _ => Ok(Vec::new()),
        }
    }

    /// The used words of one range; empty when there is no such buffer of integers.
    ///
    /// # Errors
    /// When the device is lost.
    pub async fn read_u32(&self, gpu: &Gpu, name: &str, range: u32) -> Result<Vec<u32>, Fault> {
        match self.read(gpu, name, range, 0, u64::MAX).await? {
            Some(Words::U32(values)) => Ok(values),
            _ => Ok(Vec::new()),
        }
    }
}

/// Uploads a buffer row by row.
async fn fill(gpu: &Gpu, spec: &BufferSpec, buffer: &wgpu::Buffer, problem: &Problem) -> Result<(), Fault> {
    let Some(fill) = spec.fill else { return Ok(()) };
    for range in 0..spec.ranges {
        let (head, rows) = fill.range(range);
        let row_bytes = (spec.range_words * 4 / u64::from(fill.range_rows)).max(1);
        let piece = ((PIECE as u64 / row_bytes) as u32).max(1);
        let mut at = u64::from(range) * spec.stride();
        for start in rows.clone().step_by(piece as usize) {
            let mut values = Vec::new();
            problem.rows(fill, head, start..(start + piece).min(rows.end), &mut values);
            let bytes: &[u8] = bytemuck::cast_slice(&values);
            gpu.queue.write_buffer(buffer, at, bytes);
            at += bytes.len() as u64;
            if bytes.len() * 2 > PIECE {
                // Staging memory comes back when its submission is done.
                gpu.queue.submit([]);
                yield_now().await;
            }
        }
    }
    gpu.check()
}
