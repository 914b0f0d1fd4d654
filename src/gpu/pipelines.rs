//! Pipelines, made when a plan first needs them and kept.

use super::{Fault, Gpu, fault_of};
use crate::plan::{Pass, Plan};
use crate::steps::{Access, Kernel, Widths};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Bytes of a uniform slot; a parameter struct is never larger.
pub(super) const SLOT: u64 = 256;

type Key = (&'static str, &'static str, Widths);

#[derive(Default)]
pub(super) struct Pipelines(RefCell<HashMap<Key, Rc<Compiled>>>);

pub(super) struct Compiled {
    pub pipeline: wgpu::ComputePipeline,
    pub layout: wgpu::BindGroupLayout,
}

fn key(pass: &Pass) -> Key {
    (pass.kernel.stem, pass.kernel.entry, pass.widths)
}

impl Gpu {
    pub(super) fn pipeline(&self, pass: &Pass) -> Option<Rc<Compiled>> {
        self.pipelines.0.borrow().get(&key(pass)).cloned()
    }

    /// Compiles what the plan needs, one pipeline a step, each inside an error scope: a page would
    /// otherwise skip a broken shader without a word. True when anything was new.
    ///
    /// # Errors
    /// The device's own words about the first shader that it rejects.
    pub async fn compile(&self, plan: &Plan) -> Result<bool, Fault> {
        let mut any = false;
        for pass in &plan.passes {
            if self.pipeline(pass).is_none() {
                any = true;
                let compiled = self.compile_kernel(pass.kernel, pass.widths).await?;
                self.pipelines.0.borrow_mut().insert(key(pass), Rc::new(compiled));
                super::yield_now().await;
            }
        }
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
            None => Ok(Compiled { pipeline, layout }),
        }
    }
}
