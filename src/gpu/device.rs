//! Which adapter and which limits.

use super::Fault;

/// What we ask of a device: as much memory a binding and a buffer as the adapter has, timestamps
/// when there are any, and the defaults of WebGPU for everything else.
pub fn descriptor(adapter: &wgpu::Adapter) -> wgpu::DeviceDescriptor<'static> {
    let has = adapter.limits();
    wgpu::DeviceDescriptor {
        label: Some("attention-lab"),
        required_features: adapter.features() & wgpu::Features::TIMESTAMP_QUERY,
        required_limits: wgpu::Limits {
            max_storage_buffer_binding_size: has.max_storage_buffer_binding_size,
            max_buffer_size: has.max_buffer_size,
            ..wgpu::Limits::default()
        }
        .or_worse_values_from(&has),
        ..Default::default()
    }
}

/// The instance that every front end uses; no display is needed.
pub fn instance() -> wgpu::Instance {
    wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: wgpu::Backends::PRIMARY,
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    })
}

/// The fastest adapter, or with `software` the first that computes on the CPU if there is one.
///
/// # Errors
/// When there is no adapter.
pub async fn adapter(software: bool) -> Result<wgpu::Adapter, Fault> {
    let instance = instance();
    #[cfg(not(target_arch = "wasm32"))]
    if software {
        let adapters = instance.enumerate_adapters(wgpu::Backends::PRIMARY).await;
        if let Some(cpu) = adapters.into_iter().find(|a| a.get_info().device_type == wgpu::DeviceType::Cpu) {
            return Ok(cpu);
        }
    }
    let options = wgpu::RequestAdapterOptions {
        power_preference: wgpu::PowerPreference::HighPerformance,
        force_fallback_adapter: software && cfg!(target_arch = "wasm32"),
        ..Default::default()
    };
    instance.request_adapter(&options).await.map_err(|error| Fault::NoAdapter(error.to_string()))
}
