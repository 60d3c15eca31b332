//! Tokens that cancel calls.

use std::fmt;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

const CANCELLED: &str = "the caller cancelled the call";

/// Cancels the calls that it was given to, from any thread. Clones are the same token. It cannot be
/// reset.
#[derive(Clone, Default)]
pub struct CancelToken(Arc<Inner>);

#[derive(Default)]
struct Inner {
    is_cancelled: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    why: Option<&'static str>,
    last_key: u64,
    listeners: Vec<(u64, Listener)>,
    /// For threads that sleep in poll(2): the second socket reads as closed after the cancellation.
    ends: Option<Arc<(UnixStream, UnixStream)>>,
}

enum Listener {
    Waker(Waker),
    Child(CancelToken),
}

impl CancelToken {
    /// Returns a token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels every call that has this token, including calls that begin later.
    pub fn cancel(&self) {
        self.cancel_because(CANCELLED);
    }

    /// Returns whether the token was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Acquire)
    }

    pub(crate) fn cancel_because(&self, why: &'static str) {
        let listeners = {
            let mut state = self.state();
            if state.why.is_some() {
                return;
            }
            state.why = Some(why);
            self.0.is_cancelled.store(true, Ordering::Release);
            if let Some(ends) = &state.ends {
                let _ = ends.0.shutdown(Shutdown::Both);
            }
            std::mem::take(&mut state.listeners)
        };
        for (_, listener) in listeners {
            match listener {
                Listener::Waker(waker) => waker.wake(),
                Listener::Child(token) => token.cancel_because(why),
            }
        }
    }

    /// Returns why the token was cancelled, or `None` if it was not.
    pub(crate) fn why(&self) -> Option<&'static str> {
        if self.is_cancelled() {
            self.state().why
        } else {
            None
        }
    }

    /// Wakes `waker` when the token is cancelled, or at once if it already is. Ends when the result
    /// is dropped.
    pub(crate) fn listen(&self, waker: &Waker) -> Listening {
        self.add(Listener::Waker(waker.clone()))
    }

    /// Cancels `child` together with this token. Ends when the result is dropped.
    pub(crate) fn pass_on(&self, child: &CancelToken) -> Listening {
        self.add(Listener::Child(child.clone()))
    }

    fn add(&self, listener: Listener) -> Listening {
        let mut state = self.state();
        if let Some(why) = state.why {
            drop(state);
            match listener {
                Listener::Waker(waker) => waker.wake(),
                Listener::Child(token) => token.cancel_because(why),
            }
            return Listening {
                token: self.clone(),
                key: 0,
            };
        }
        state.last_key += 1;
        let key = state.last_key;
        state.listeners.push((key, listener));
        Listening {
            token: self.clone(),
            key,
        }
    }

    /// Returns a descriptor that becomes readable when the token is cancelled, or `None` if the
    /// process has no free descriptors.
    pub(crate) fn descriptor(&self) -> Option<Descriptor> {
        let mut state = self.state();
        if state.ends.is_none() {
            let ends = UnixStream::pair().ok()?;
            if state.why.is_some() {
                let _ = ends.0.shutdown(Shutdown::Both);
            }
            state.ends = Some(Arc::new(ends));
        }
        state.ends.clone().map(Descriptor)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "CancelToken(cancelled: {})", self.is_cancelled())
    }
}

pub(crate) struct Descriptor(Arc<(UnixStream, UnixStream)>);

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.1.as_fd()
    }
}

pub(crate) struct Listening {
    token: CancelToken,
    key: u64,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.token
            .state()
            .listeners
            .retain(|(key, _)| *key != self.key);
    }
}
