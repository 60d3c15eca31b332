//! Wakers that unpark a thread.

use std::cell::OnceCell;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    static WAKER: OnceCell<Waker> = const { OnceCell::new() };
}

/// Calls `with` with the waker of this thread.
pub(crate) fn with_waker<T>(with: impl FnOnce(&Waker) -> T) -> T {
    let make = || Waker::from(Arc::new(Unpark(thread::current())));
    WAKER.with(|waker| with(waker.get_or_init(make)))
}

/// Sleeps until woken or until this time. May return early, so the caller must check again.
pub(crate) fn park_until(until: Option<Instant>) {
    match until {
        None => thread::park(),
        Some(until) => {
            let left = until.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                thread::park_timeout(left);
            }
        }
    }
}
