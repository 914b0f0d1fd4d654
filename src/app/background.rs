//! A future that goes on between frames: polled by the app natively, by the browser on a page, where
//! a frame of a software adapter takes longer than a slice of work.

use std::future::Future;
use std::pin::Pin;

type Boxed<T> = Pin<Box<dyn Future<Output = T>>>;

/// Dropping it drops the future, which cancels its work.
#[cfg(not(target_arch = "wasm32"))]
pub struct Background<T>(Boxed<T>);

#[cfg(not(target_arch = "wasm32"))]
impl<T: 'static> Background<T> {
    pub fn new(future: Boxed<T>, _ready: &egui::Context) -> Self {
        Self(future)
    }

    /// The result, once it is there.
    pub fn take(&mut self) -> Option<T> {
        use std::task::{Context, Poll, Waker};
        match self.0.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => Some(done),
            Poll::Pending => None,
        }
    }
}

#[cfg(target_arch = "wasm32")]
enum State<T> {
    Going(Boxed<T>),
    Done(T),
    Empty,
}

/// Dropping it drops the future, which cancels its work.
#[cfg(target_arch = "wasm32")]
pub struct Background<T>(std::rc::Rc<std::cell::RefCell<State<T>>>);

#[cfg(target_arch = "wasm32")]
impl<T: 'static> Background<T> {
    /// Starts the future; a frame is asked for when it is done.
    pub fn new(future: Boxed<T>, ready: &egui::Context) -> Self {
        use std::task::Poll;
        let state = std::rc::Rc::new(std::cell::RefCell::new(State::Going(future)));
        let (shared, ctx) = (state.clone(), ready.clone());
        wasm_bindgen_futures::spawn_local(std::future::poll_fn(move |context| {
            let mut state = shared.borrow_mut();
            let State::Going(future) = &mut *state else { return Poll::Ready(()) };
            let Poll::Ready(done) = future.as_mut().poll(context) else { return Poll::Pending };
            *state = State::Done(done);
            ctx.request_repaint();
            Poll::Ready(())
        }));
        Self(state)
    }

    /// The result, once it is there.
    pub fn take(&mut self) -> Option<T> {
        let mut state = self.0.borrow_mut();
        match std::mem::replace(&mut *state, State::Empty) {
            State::Done(done) => Some(done),
            other => {
                *state = other;
                None
            }
        }
    }
}

#[cfg(target_arch = "wasm32")]
impl<T> Drop for Background<T> {
    fn drop(&mut self) {
        self.0.replace(State::Empty);
    }
}
