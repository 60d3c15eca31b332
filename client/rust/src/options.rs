//! What a caller may say of a connection and of a call.

use std::marker::PhantomData;
use std::time::Duration;

use crate::address::{Address, default_address};
use crate::cancel::CancelToken;
use crate::status::Error;

/// How to reach a daemon. [`Channel::open`](crate::Channel::open) and
/// [`tokio::Channel::open`](crate::tokio::Channel::open) take it.
#[derive(Clone, Debug, Default)]
pub struct Options {
    url: Option<String>,
    pub(crate) token: String,
    pub(crate) retry: Option<Duration>,
    pub(crate) start: bool,
    pub(crate) no_operation_ids: bool,
}

impl Options {
    /// The daemon of this user: `$TINE_URL`, `$TINE_SOCKET`, else where `tined` listens by itself.
    pub fn new() -> Self {
        Self::default()
    }

    /// The daemon at `ipc://PATH` or `tcp://HOST:PORT`. PATH has at most 107 bytes: a channel with a
    /// longer one is `INVALID_ARGUMENT` when it is opened.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// What a daemon on tcp asks for; sent with every call.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = token.into();
        self
    }

    /// Calls whose connection broke, and calls that were refused with `UNAVAILABLE`, are sent again
    /// for so long, a write under the same operation id: it happens once. Without this a call is
    /// never sent twice.
    pub fn retry(mut self, limit: Duration) -> Self {
        self.retry = Some(limit);
        self
    }

    /// Starts `tined` if nobody listens (`$TINED`, else the one in `$PATH`; on Linux, with an
    /// `ipc://` URL). It ends by itself half an hour after its last client.
    pub fn start(mut self, start: bool) -> Self {
        self.start = start;
        self
    }

    /// Whether writes get an operation id of their own; they do unless told otherwise.
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

/// A message, and how to send it. Every call takes either this or the message alone.
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
    /// With nothing said beyond the message.
    pub fn new(message: T) -> Self {
        Self {
            message,
            call: CallOptions::default(),
        }
    }

    /// After so long the call is `DEADLINE_EXCEEDED`, here and at the server.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.call.timeout = Some(timeout);
        self
    }

    /// The operation id of a write, in the place of one made for it; `""`: none.
    pub fn operation_id(mut self, id: impl Into<String>) -> Self {
        self.call.operation_id = Some(id.into());
        self
    }

    /// W3C trace context, for the server's log.
    pub fn traceparent(mut self, traceparent: impl Into<String>) -> Self {
        self.call.traceparent = traceparent.into();
        self
    }

    /// Another token than the connection's.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.call.token = Some(token.into());
        self
    }

    /// The answer waits until the write, and all that was committed before it, is on the disk,
    /// whatever the daemon's durability.
    pub fn sync(mut self) -> Self {
        self.call.sync = true;
        self
    }

    /// [`Options::retry`], of this call alone; zero: it is sent once.
    pub fn retry(mut self, limit: Duration) -> Self {
        self.call.retry = Some(limit);
        self
    }

    /// The call ends with `CANCELLED` as soon as this token is cancelled; its reply is dropped.
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

/// One method of a service: its path, and which messages it takes and returns.
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
    /// `path` as in gRPC; a read is what the contract marks with `NO_SIDE_EFFECTS`.
    pub const fn new(path: &'static str, is_read: bool) -> Self {
        Self {
            info: MethodInfo { path, is_read },
            messages: PhantomData,
        }
    }

    /// `/tine.v1.StoreService/GetSession`
    pub const fn path(&self) -> &'static str {
        self.info.path
    }

    /// Whether it changes nothing, so that it carries no operation id.
    pub const fn is_read(&self) -> bool {
        self.info.is_read
    }
}
