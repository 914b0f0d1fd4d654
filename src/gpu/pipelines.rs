//! Pipelines, made when a plan first needs them and kept as long as they are among the last used.

use super::{Fault, Gpu, fault_of};
use crate::plan::{Pass, Plan};
use crate::steps::{Access, Kernel, Widths};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

/// Bytes of a uniform slot; a parameter struct is never larger.
pub(super) const SLOT: u64 = 256;

/// Pipelines kept at most, unless one plan needs more. Every width of rows has pipelines of its own, which
/// would add up as the settings change: this many serve all methods and instruments at tens of widths.
const KEPT: usize = 512;

type Key = (&'static str, &'static str, Widths);

#[derive(Default)]
pub(super) struct Pipelines {
    made: RefCell<HashMap<Key, Rc<Compiled>>>,
    /// Counts the plans that were compiled.
    plans: Cell<u64>,
}

pub(super) struct Compiled {
    pub pipeline: wgpu::ComputePipeline,
    pub layout: wgpu::BindGroupLayout,
    /// The last plan that needed it.
    used: Cell<u64>,
}

impl Pipelines {
    /// Forgets the pipelines that were not used for longest; those of the last plan stay.
    fn tidy(&self) {
        let mut made = self.made.borrow_mut();
        if made.len() > KEPT {
            let mut uses: Vec<u64> = made.values().map(|compiled| compiled.used.get()).collect();
            uses.sort_unstable_by(|a, b| b.cmp(a));
            let oldest = uses[KEPT - 1].min(self.plans.get().saturating_sub(1));
            made.retain(|_, compiled| compiled.used.get() > oldest);
        }
    }
}

fn key(pass: &Pass) -> Key {
    (pass.kernel.stem, pass.kernel.entry, pass.kernel.widths(pass.widths))
}

impl Gpu {
    pub(super) fn pipeline(&self, pass: &Pass) -> Option<Rc<Compiled>> {
        self.pipelines.made.borrow().get(&key(pass)).cloned()
    }

    /// Pipelines held now.
    pub fn pipelines_held(&self) -> usize {
        self.pipelines.made.borrow().len()
    }

    /// Compiles what the plan needs, one pipeline a step, each inside an error scope: a page would
    /// otherwise skip a broken shader without a word. True when anything was new.
    ///
    /// # Errors
    /// The device's own words about the first shader that it rejects.
    pub async fn compile(&self, plan: &Plan) -> Result<bool, Fault> {
        let mut any = false;
        let number = self.pipelines.plans.get() + 1;
        self.pipelines.plans.set(number);
        for pass in &plan.passes {
            if let Some(compiled) = self.pipeline(pass) {
                compiled.used.set(number);
                continue;
            }
            any = true;
            let compiled = self.compile_kernel(pass.kernel, pass.widths).await?;
            compiled.used.set(number);
            self.pipelines.made.borrow_mut().insert(key(pass), Rc::new(compiled));
            super::yield_now().await;
        }
        self.pipelines.tidy();
        Ok(any)
    }

    async fn compile_kernel(&self, kernel: &Kernel, widths: Widths) -> Result<Compiled, Fault> {
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let label = Some(kernel.entry);
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(kernel.stem),
            source: wgpu::ShaderSource::Wgsl(kernel.wgsl(widths).into()),
        });
        let storage = |access: &Access| wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Storage { read_only: *access == Access::Read },
            has_dynamic_offset: false,
            min_binding_size: None,
        };
        let uniform = wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Uniform,
            has_dynamic_offset: true,
            min_binding_size: None,
        };
        let entries: Vec<_> = std::iter::once(uniform)
            .chain(kernel.bindings.iter().map(storage))
            .zip(0..)
            .map(|(ty, binding)| wgpu::BindGroupLayoutEntry {
                binding,
                visibility: wgpu::ShaderStages::COMPUTE,
                ty,
                count: None,
            })
            .collect();
        let layout =
            self.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label, entries: &entries });
        let pipeline_layout = self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label,
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label,
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: label,
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        match scope.pop().await {
            Some(error) => Err(fault_of(error, kernel.entry)),
            None => Ok(Compiled { pipeline, layout, used: Cell::new(0) }),
        }
    }
}
