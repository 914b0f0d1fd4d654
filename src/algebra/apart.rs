//! Linear algebra that takes seconds, off the thread that draws: on a thread natively, in a Web Worker
//! on the page. Dropping the future gives it up.

use super::{Matrix, Svd};

/// As [`super::svd`].
///
/// # Errors
/// A sentence when the matrix has no singular values, or nothing could compute them.
pub async fn svd(a: Matrix) -> Result<Svd, String> {
    imp::svd(a).await
}

/// As [`super::orthonormal`].
///
/// # Errors
/// A sentence when the matrix is none, or nothing could compute its basis.
pub async fn orthonormal(a: Matrix) -> Result<Matrix, String> {
    imp::orthonormal(a).await
}

#[cfg(not(target_arch = "wasm32"))]
mod imp {
    use super::{Matrix, Svd};
    use crate::algebra;
    use crate::text::{Text, fill};
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::sync::{Arc, Mutex, PoisonError};
    use std::task::Poll;
    use std::time::Duration;

    /// One at a time: what was given up before it began never takes the processor from what is wanted.
    static TURN: Mutex<()> = Mutex::new(());
    /// A poll waits so long for the thread, as it does for the device.
    const WAIT: Duration = Duration::from_millis(4);

    pub async fn svd(a: Matrix) -> Result<Svd, String> {
        on_thread(move || algebra::svd(&a)).await
    }

    pub async fn orthonormal(a: Matrix) -> Result<Matrix, String> {
        on_thread(move || algebra::orthonormal(&a)).await
    }

    async fn on_thread<T: Send + 'static>(
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let told = |why: &dyn ToString| fill(Text::NoThread, &[&why.to_string()]);
        let (sender, receiver) = channel();
        let wanted = Arc::new(());
        let still = Arc::downgrade(&wanted);
        let thread = std::thread::Builder::new().name("linear algebra".to_owned()).spawn(move || {
            let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
            if still.strong_count() > 0 {
                // Nobody listens to what is no longer wanted.
                let _ = sender.send(work());
            }
        });
        thread.map_err(|error| told(&error))?;
        let result = std::future::poll_fn(|context| match receiver.recv_timeout(WAIT) {
            Ok(result) => Poll::Ready(result),
            Err(RecvTimeoutError::Timeout) => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Err(error @ RecvTimeoutError::Disconnected) => Poll::Ready(Err(told(&error))),
        });
        let result = result.await;
        drop(wanted);
        result
    }
}

#[cfg(target_arch = "wasm32")]
mod imp {
    use super::{Matrix, Svd};
    use crate::algebra;
    use crate::text::{Text, fill};
    use js_sys::{Array, Float32Array, Object, Promise, Reflect};
    use std::cell::Cell;
    use wasm_bindgen::prelude::*;
    use wasm_bindgen_futures::JsFuture;
    use web_sys::{MessageEvent, Worker, WorkerOptions, WorkerType};

    thread_local! {
        /// The worker that has nothing to do: it has fetched and compiled the program already.
        static IDLE: Cell<Option<Worker>> = const { Cell::new(None) };
    }

    pub async fn svd(a: Matrix) -> Result<Svd, String> {
        let (rows, cols) = (a.rows, a.cols);
        let flat = ask("svd_of", &a).await?;
        let (values, vectors) = flat.split_at_checked(cols).ok_or_else(String::new)?;
        let (left, right) = vectors.split_at_checked(cols * rows).ok_or_else(String::new)?;
        Ok(Svd {
            values: values.to_vec(),
            left: Matrix { rows: cols, cols: rows, entries: left.to_vec() },
            right: Matrix { rows: cols, cols, entries: right.to_vec() },
        })
    }

    pub async fn orthonormal(a: Matrix) -> Result<Matrix, String> {
        Ok(Matrix { entries: ask("orthonormal_of", &a).await?, ..a })
    }

    /// A worker at work, which is ended when nobody waits for it any more.
    struct Busy(Option<Worker>);

    impl Drop for Busy {
        fn drop(&mut self) {
            if let Some(worker) = self.0.take() {
                worker.terminate();
            }
        }
    }

    /// That the worker itself failed; errors and their events have a message.
    fn told(why: JsValue) -> String {
        let message = Reflect::get(&why, &"message".into()).ok().and_then(|message| message.as_string());
        fill(Text::NoWorker, &[&message.unwrap_or_else(|| format!("{why:?}"))])
    }

    /// Has `web/worker.js` call a function of this program.
    async fn ask(function: &str, a: &Matrix) -> Result<Vec<f32>, String> {
        let worker = match IDLE.take() {
            Some(worker) => worker,
            None => {
                let options = WorkerOptions::new();
                options.set_type(WorkerType::Module);
                Worker::new_with_options("worker.js", &options).map_err(told)?
            }
        };
        let mut busy = Busy(Some(worker.clone()));
        let matrix = Float32Array::from(&a.entries[..]).buffer();
        let message = Object::new();
        for (name, value) in [
            ("call", JsValue::from(function)),
            ("matrix", matrix.clone().into()),
            ("rows", JsValue::from(a.rows as u32)),
            ("cols", JsValue::from(a.cols as u32)),
        ] {
            Reflect::set(&message, &name.into(), &value).map_err(told)?;
        }
        let answer = Promise::new(&mut |resolve, reject| {
            worker.set_onmessage(Some(&resolve));
            worker.set_onerror(Some(&reject));
        });
        worker.post_message_with_transfer(&message, &Array::of1(&matrix)).map_err(told)?;
        let event: MessageEvent = JsFuture::from(answer).await.map_err(told)?.unchecked_into();
        IDLE.set(busy.0.take());
        let data = event.data();
        // The sentence of the algebra is one already.
        data.as_string().map_or_else(|| Ok(Float32Array::new(&data).to_vec()), Err)
    }

    /// Values, left vectors and right vectors, one after the other; for `web/worker.js`.
    #[wasm_bindgen]
    pub fn svd_of(matrix: Vec<f32>, rows: usize, cols: usize) -> Result<Vec<f32>, String> {
        let svd = algebra::svd(&Matrix { rows, cols, entries: matrix })?;
        Ok([svd.values, svd.left.entries, svd.right.entries].concat())
    }

    /// For `web/worker.js`.
    #[wasm_bindgen]
    pub fn orthonormal_of(matrix: Vec<f32>, rows: usize, cols: usize) -> Result<Vec<f32>, String> {
        Ok(algebra::orthonormal(&Matrix { rows, cols, entries: matrix })?.entries)
    }
}
