//! Runs a plan with the twins in float64: the oracle of the tests, and of the page's self-check.

use crate::plan::{BufferSpec, Kind, Plan};
use crate::problem::Problem;
use crate::steps::{Access, Data};
use std::collections::HashMap;

/// Buffers by name, as the GPU's workspace holds them, padding included.
#[derive(Default)]
pub struct Workspace {
    buffers: HashMap<&'static str, (BufferSpec, Data)>,
}

impl Workspace {
    /// Creates and fills the plan's missing buffers and runs every pass.
    pub fn run(&mut self, plan: &Plan, problem: &Problem) {
        for spec in &plan.buffers {
            if self.buffers.get(spec.name).is_none_or(|(held, _)| held.bytes() != spec.bytes() || spec.zeroed) {
                self.buffers.insert(spec.name, (spec.clone(), filled(spec, problem)));
            }
        }
        for pass in &plan.passes {
            let place = |at: usize| {
                let binding = pass.bindings[at];
                let start = binding.offset as usize / 4;
                (plan.buffers[binding.buffer.0].name, start..start + binding.bytes as usize / 4)
            };
            let mut bound: Vec<Data> = (0..pass.bindings.len())
                .map(|at| {
                    let (name, words) = place(at);
                    match &self.buffers[name].1 {
                        Data::F(values) => Data::F(values[words].to_vec()),
                        Data::U(values) => Data::U(values[words].to_vec()),
                    }
                })
                .collect();
            (pass.kernel.twin)(&pass.params, pass.widths, &mut bound);
            for (at, data) in bound.into_iter().enumerate() {
                if pass.kernel.bindings[at] == Access::Read {
                    continue;
                }
                let (name, words) = place(at);
                match (self.buffers.get_mut(name).map(|(_, held)| held), data) {
                    (Some(Data::F(held)), Data::F(new)) => held[words].copy_from_slice(&new),
                    (Some(Data::U(held)), Data::U(new)) => held[words].copy_from_slice(&new),
                    _ => {}
                }
            }
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

fn filled(spec: &BufferSpec, problem: &Problem) -> Data {
    let words = (spec.bytes() / 4) as usize;
    if spec.kind == Kind::U32 {
        return Data::U(vec![0; words]);
    }
    let mut values = vec![0.0; words];
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
