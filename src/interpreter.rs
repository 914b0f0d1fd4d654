//! Runs a plan with the twins in float64: the oracle of the tests, and of the page's self-check.

use crate::plan::{Binding, BufferSpec, Kind, Pass, Plan};
use crate::problem::Problem;
use crate::steps::{Access, Data};
use std::collections::HashMap;
use std::ops::Range;

/// What stands in a buffer of integers until it is written, and the bits of the float that does:
/// not a number, so that nothing computed from it can pass for a result.
pub const POISON: u32 = 0x7fc0_dead;

/// Buffers by name, as the GPU's workspace holds them, padding included.
#[derive(Clone, Default)]
pub struct Workspace {
    buffers: HashMap<&'static str, (BufferSpec, Data)>,
}

impl Workspace {
    /// Creates and fills the plan's missing buffers and runs every pass.
    pub fn run(&mut self, plan: &Plan, problem: &Problem) {
        self.prepare(plan, problem);
        for pass in plan.in_order() {
            let pass = &*pass;
            let mut bound = self.bound(plan, pass);
            (pass.kernel.twin)(&pass.params, pass.widths, &mut bound);
            self.store(plan, pass, bound);
        }
    }

    /// Creates and fills the plan's missing buffers and clears what the plan wants cleared.
    pub fn prepare(&mut self, plan: &Plan, problem: &Problem) {
        for spec in &plan.buffers {
            if self.buffers.get(spec.name).is_none_or(|(held, _)| !held.lies_like(spec) || spec.zeroed) {
                self.buffers.insert(spec.name, (spec.clone(), filled(spec, problem)));
            }
        }
    }

    /// What the bindings of a pass show.
    pub fn bound(&self, plan: &Plan, pass: &Pass) -> Vec<Data> {
        let each = pass.bindings.iter().map(|binding| {
            let words = words(binding);
            match &self.buffers[plan.buffers[binding.buffer.0].name].1 {
                Data::F(values) => Data::F(values[words].to_vec()),
                Data::U(values) => Data::U(values[words].to_vec()),
            }
        });
        each.collect()
    }

    /// Writes what a pass made back through its writable bindings.
    pub fn store(&mut self, plan: &Plan, pass: &Pass, bound: Vec<Data>) {
        for ((binding, access), data) in pass.bindings.iter().zip(pass.kernel.bindings).zip(bound) {
            if *access == Access::Read {
                continue;
            }
            let held = self.buffers.get_mut(plan.buffers[binding.buffer.0].name).map(|(_, held)| held);
            match (held, data) {
                (Some(Data::F(held)), Data::F(new)) => held[words(binding)].copy_from_slice(&new),
                (Some(Data::U(held)), Data::U(new)) => held[words(binding)].copy_from_slice(&new),
                _ => {}
            }
        }
    }

    /// Replaces the first words of one range of integers; a buffer that the workspace lacks stays away.
    pub fn write_u32(&mut self, name: &str, range: u32, values: &[u32]) {
        if let Some((spec, Data::U(held))) = self.buffers.get_mut(name) {
            let start = (u64::from(range) * spec.stride() / 4) as usize;
            held[start..start + values.len()].copy_from_slice(values);
        }
    }

    /// Replaces the first words of one range of floats; a buffer that the workspace lacks stays away.
    pub fn write(&mut self, name: &str, range: u32, values: &[f64]) {
        if let Some((spec, Data::F(held))) = self.buffers.get_mut(name) {
            let start = (u64::from(range) * spec.stride() / 4) as usize;
            held[start..start + values.len()].copy_from_slice(values);
        }
    }

    /// The used words of one range.
    pub fn read(&self, name: &str, range: u32) -> Option<Data> {
        let (spec, data) = self.buffers.get(name)?;
        let start = (u64::from(range) * spec.stride() / 4) as usize;
        let words = start..start + spec.range_words as usize;
        Some(match data {
            Data::F(values) => Data::F(values[words].to_vec()),
            Data::U(values) => Data::U(values[words].to_vec()),
        })
    }
}

fn words(binding: &Binding) -> Range<usize> {
    let start = binding.offset as usize / 4;
    start..start + binding.bytes as usize / 4
}

fn filled(spec: &BufferSpec, problem: &Problem) -> Data {
    let words = (spec.bytes() / 4) as usize;
    if spec.kind == Kind::U32 {
        return Data::U(vec![if spec.zeroed { 0 } else { POISON }; words]);
    }
    let mut values = vec![if spec.zeroed { 0.0 } else { f64::NAN }; words];
    if let Some(fill) = spec.fill {
        for range in 0..spec.ranges {
            let (head, rows) = fill.range(range);
            let mut row = Vec::new();
            problem.rows(fill, head, rows, &mut row);
            let start = (u64::from(range) * spec.stride() / 4) as usize;
            for (held, new) in values[start..].iter_mut().zip(row) {
                *held = f64::from(new);
            }
        }
    }
    Data::F(values)
}
