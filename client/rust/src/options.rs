//! The options of a connection and of a call.

use std::marker::PhantomData;
use std::time::Duration;

use crate::address::{Address, default_address};
use crate::cancel::CancelToken;
use crate::status::Error;

/// How to reach a daemon, for [`Channel::open`](crate::Channel::open) and
/// [`tokio::Channel::open`](crate::tokio::Channel::open).
#[derive(Clone, Debug, Default)]
pub struct Options {
    url: Option<String>,
    pub(crate) token: String,
    pub(crate) retry: Option<Duration>,
    pub(crate) start: bool,
    pub(crate) no_operation_ids: bool,
}

impl Options {
    /// The daemon of this user: `$TINE_URL`, then `$TINE_SOCKET`, then the default socket of
    /// `tined`.
    pub fn new() -> Self {
        Self::default()
    }

    /// The daemon at `ipc://PATH` or `tcp://HOST:PORT`. PATH has at most 107 bytes; opening a
    /// channel with a longer one fails with `INVALID_ARGUMENT`.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// The token that a daemon on tcp requires. It is sent with every call.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = token.into();
        self
    }

    /// Repeats calls for up to `limit` if their connection broke or the server refused them with
    /// `UNAVAILABLE`. A write keeps its operation id, so it happens once. Without this option a
    /// call is never sent twice.
    pub fn retry(mut self, limit: Duration) -> Self {
        self.retry = Some(limit);
        self
    }

    /// Starts a `tined` if none listens: `$TINED`, or the one in `$PATH`. Needs Linux and an
    /// `ipc://` URL. That `tined` exits half an hour after its last client.
    pub fn start(mut self, start: bool) -> Self {
        self.start = start;
        self
    }

    /// Whether the client makes an operation id for each write. The default is yes.
    pub fn operation_ids(mut self, made: bool) -> Self {
        self.no_operation_ids = !made;
        self
    }

    pub(crate) fn address(&self) -> Result<Address, Error> {
        self.url
            .as_deref()
            .map_or_else(default_address, Address::parse)
    }
}

/// A message and the options of its call. Every call takes either this or the message alone.
#[derive(Clone, Debug)]
pub struct Request<T> {
    pub(crate) message: T,
    pub(crate) call: CallOptions,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct CallOptions {
    pub timeout: Option<Duration>,
    pub operation_id: Option<String>,
    pub traceparent: String,
    pub token: Option<String>,
    pub sync: bool,
    pub retry: Option<Duration>,
    pub cancel: Option<CancelToken>,
}

impl<T> Request<T> {
    /// A request with default options.
    pub fn new(message: T) -> Self {
        Self {
            message,
            call: CallOptions::default(),
        }
    }

    /// Ends the call with `DEADLINE_EXCEEDED` after this time, in the client and in the server.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.call.timeout = Some(timeout);
        self
    }

    /// The operation id of a write, instead of a generated one; `""` means none.
    pub fn operation_id(mut self, id: impl Into<String>) -> Self {
        self.call.operation_id = Some(id.into());
        self
    }

    /// W3C trace context, for the server's log.
    pub fn traceparent(mut self, traceparent: impl Into<String>) -> Self {
        self.call.traceparent = traceparent.into();
        self
    }

    /// A token for this call, instead of the connection's.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.call.token = Some(token.into());
        self
    }

    /// Delays the reply until the write, and everything committed before it, is on the disk,
    /// whatever the daemon's durability mode.
    pub fn sync(mut self) -> Self {
        self.call.sync = true;
        self
    }

    /// [`Options::retry`] for this call alone; zero means that it is sent once.
    pub fn retry(mut self, limit: Duration) -> Self {
        self.call.retry = Some(limit);
        self
    }

    /// Ends the call with `CANCELLED` when the token is cancelled; its reply is dropped.
    pub fn cancel(mut self, token: &CancelToken) -> Self {
        self.call.cancel = Some(token.clone());
        self
    }
}

impl<T> From<T> for Request<T> {
    fn from(message: T) -> Self {
        Self::new(message)
    }
}

/// A method of a service: its path and the types of its request and reply.
pub struct Method<Q, R> {
    pub(crate) info: MethodInfo,
    messages: PhantomData<fn(Q) -> R>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct MethodInfo {
    pub path: &'static str,
    pub is_read: bool,
}

impl<Q, R> Method<Q, R> {
    /// A method with gRPC's path, such as `/tine.v1.StoreService/GetSession`. Reads are the methods
    /// that the contract marks with `NO_SIDE_EFFECTS`.
    pub const fn new(path: &'static str, is_read: bool) -> Self {
        Self {
            info: MethodInfo { path, is_read },
            messages: PhantomData,
        }
    }

    /// The path: `/tine.v1.StoreService/GetSession`.
    pub const fn path(&self) -> &'static str {
        self.info.path
    }

    /// Whether the method changes nothing; its calls then carry no operation id.
    pub const fn is_read(&self) -> bool {
        self.info.is_read
    }
}
