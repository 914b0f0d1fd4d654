//! Runs plans on a device: pipelines, buffers and their ledger, slices, readback, timing.
//!
//! Everything here is asynchronous and never blocks: a page polls the futures once a frame, the
//! command line blocks on them with [`block_on`].

pub mod device;
pub mod ledger;
mod pipelines;
pub mod run;
pub mod workspace;

use crate::plan::Limits;
use crate::text::{Text, fill};
use ledger::Ledger;
use pipelines::Pipelines;
use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, Mutex};

/// What can go wrong on a device, in words for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    NoAdapter(String),
    Lost(String),
    OutOfMemory(String),
    /// A shader or a command that the device rejected: a defect of this program.
    Rejected(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAdapter(why) => f.write_str(&fill(Text::FaultNoAdapter, &[why])),
            Self::Lost(why) => f.write_str(&fill(Text::FaultLost, &[why])),
            Self::OutOfMemory(what) => f.write_str(&fill(Text::FaultOutOfMemory, &[what])),
            Self::Rejected(why) => f.write_str(&fill(Text::FaultRejected, &[why])),
        }
    }
}

impl std::error::Error for Fault {}

#[derive(Default)]
struct Faults {
    first: Option<Fault>,
    /// Called at each.
    wake: Option<Box<dyn Fn() + Send>>,
}

/// The first fault stands, but a loss explains whatever else went wrong.
fn keep(faults: &Mutex<Faults>, new: Fault) {
    let Ok(mut faults) = faults.lock() else { return };
    let lost = matches!(faults.first, Some(Fault::Lost(_)));
    if faults.first.is_none() || !lost && matches!(new, Fault::Lost(_)) {
        faults.first = Some(new);
    }
    if let Some(wake) = &faults.wake {
        wake();
    }
}

/// An open device with everything that is kept between runs.
pub struct Gpu {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub info: wgpu::AdapterInfo,
    pub limits: Limits,
    pub ledger: Ledger,
    pipelines: Pipelines,
    /// Nanoseconds a tick when the device has timestamps.
    timestamp_period: Option<f32>,
    /// Operations and bytes a millisecond that the last slices reached.
    pace: Cell<f64>,
    faults: Arc<Mutex<Faults>>,
    /// Workgroups of one dispatch at most.
    dispatch: Cell<u32>,
    /// When set, new buffers are filled with this word, so that a test tells "not written" from 0.
    poison: Cell<Option<u32>>,
}

impl Gpu {
    /// Takes over an open device and installs the handlers of lost devices and uncaught errors.
    pub fn new(adapter: &wgpu::Adapter, device: wgpu::Device, queue: wgpu::Queue) -> Self {
        let faults = Arc::new(Mutex::new(Faults::default()));
        let slot = faults.clone();
        device.set_device_lost_callback(move |reason, message| {
            keep(&slot, Fault::Lost(if message.is_empty() { format!("{reason:?}") } else { message }));
        });
        let slot = faults.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| keep(&slot, fault_of(error, "a buffer"))));
        let limits = device.limits();
        let timestamps = device.features().contains(wgpu::Features::TIMESTAMP_QUERY);
        Self {
            info: adapter.get_info(),
            limits: Limits::new(limits.max_storage_buffer_binding_size, limits.max_buffer_size),
            ledger: Ledger::default(),
            pipelines: Pipelines::default(),
            timestamp_period: timestamps.then(|| queue.get_timestamp_period()),
            pace: Cell::new(1e5),
            faults,
            dispatch: Cell::new(run::DISPATCH_GROUPS),
            poison: Cell::new(None),
            device,
            queue,
        }
    }

    /// Opens a device without a window. `software` prefers a CPU adapter, as tests do, so that a
    /// developer's own GPU does not change what they see.
    ///
    /// # Errors
    /// When there is no adapter or it gives no device.
    pub async fn open(software: bool) -> Result<Self, Fault> {
        let adapter = device::adapter(software).await?;
        let (device, queue) = adapter
            .request_device(&device::descriptor(&adapter))
            .await
            .map_err(|error| Fault::NoAdapter(error.to_string()))?;
        Ok(Self::new(&adapter, device, queue))
    }

    /// With another name of the adapter.
    pub fn named(mut self, name: String) -> Self {
        self.info.name = name;
        self
    }

    /// True for an adapter that computes on the CPU.
    pub fn is_software(&self) -> bool {
        self.info.device_type == wgpu::DeviceType::Cpu || self.info.name.contains("SwiftShader")
    }

    pub fn has_timestamps(&self) -> bool {
        self.timestamp_period.is_some()
    }

    /// Has `wake` called when something goes wrong, so that an idle program says so.
    pub fn wake_on_fault(&self, wake: impl Fn() + Send + 'static) {
        if let Ok(mut faults) = self.faults.lock() {
            faults.wake = Some(Box::new(wake));
        }
    }

    /// The first thing that went wrong, if any; the device is of no further use after a loss.
    pub fn fault(&self) -> Option<Fault> {
        let held = || self.faults.lock().ok().and_then(|faults| faults.first.clone());
        let fault = held();
        #[cfg(not(target_arch = "wasm32"))]
        if matches!(fault, Some(Fault::Rejected(_))) {
            // A device that was destroyed rejects commands before it says that it is lost.
            let timeout = Some(std::time::Duration::from_secs(1));
            let _ = self.device.poll(wgpu::PollType::Wait { submission_index: None, timeout });
            return held();
        }
        fault
    }

    /// Goes on after memory ran out, which the device survives: what is asked for next may fit.
    pub fn forget_shortage(&self) {
        if let Ok(mut faults) = self.faults.lock() {
            faults.first.take_if(|fault| matches!(fault, Fault::OutOfMemory(_)));
        }
    }

    pub(crate) fn check(&self) -> Result<(), Fault> {
        self.fault().map_or(Ok(()), Err)
    }

    /// Cuts every dispatch into parts of at most so many workgroups, at most as many as every device
    /// allows: a test then sees kernels begin anywhere.
    pub fn widest_dispatch(&self, groups: u32) {
        self.dispatch.set(groups.clamp(1, run::DISPATCH_GROUPS));
    }

    /// New buffers hold this word until they are written.
    pub fn poison(&self, word: Option<u32>) {
        self.poison.set(word);
    }
}

pub(crate) fn fault_of(error: wgpu::Error, what: &str) -> Fault {
    match error {
        wgpu::Error::OutOfMemory { .. } => Fault::OutOfMemory(what.to_owned()),
        // On one line, which a report of several is not.
        other => Fault::Rejected(other.to_string().split_whitespace().collect::<Vec<_>>().join(" ")),
    }
}

/// Lets the browser draw and answer before going on.
#[cfg(target_arch = "wasm32")]
pub async fn yield_now() {
    let later = js_sys::Promise::new(&mut |resolve, _| {
        // Without a window there is nothing to draw, and nothing to wait for.
        let _ = web_sys::window().map(|window| window.set_timeout_with_callback(&resolve));
    });
    let _ = wasm_bindgen_futures::JsFuture::from(later).await;
}

/// Lets the caller do something else once.
#[cfg(not(target_arch = "wasm32"))]
pub async fn yield_now() {
    use std::task::Poll;
    let mut yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Runs a future to its end, driving the device natively. Not for a page.
#[cfg(not(target_arch = "wasm32"))]
pub fn block_on<F: Future>(gpu: &Gpu, future: F) -> F::Output {
    use std::task::{Context, Poll, Waker};
    let mut future = std::pin::pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        // A lost device answers with an error; the future then sees the fault.
        let _ = gpu.device.poll(wgpu::PollType::wait_indefinitely());
    }
}
