//! One call and its attempts: what is sent, and whether it is sent again. Makes no system calls.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use prost::Message;

use crate::cancel::CancelToken;
use crate::envelope::{self, RequestHead};
use crate::link::{self, backoff};
use crate::options::{CallOptions, Method, MethodInfo, Options, Request};
use crate::sp;
use crate::status::{Code, Error};
use crate::wire::Broken;

/// The server does not remember the operation ids of this method, because it stores nothing: a call
/// that is sent again runs twice.
const BROADCAST: &str = "/tine.v1.StoreService/BroadcastEvent";

#[derive(Debug)]
pub(crate) struct Exchange {
    method: MethodInfo,
    operation_id: String,
    traceparent: String,
    token: String,
    sync: bool,
    /// When the call must end; `None` means never.
    pub deadline: Option<Instant>,
    pub cancel: Option<CancelToken>,
    retry_until: Option<Instant>,
    failures: u32,
    /// An attempt was sent completely, so the server may have run the call.
    was_sent: AtomicBool,
}

/// How an attempt failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The call cannot be repeated.
    Final(Error),
    /// There is no connection.
    Unreachable(String),
    /// The connection broke after the call was sent.
    Broken(String),
    /// The connection broke before the call was sent: the server had closed it earlier.
    Stale(String),
    /// The server answered that it is not ready. It did nothing.
    Refused(Error),
}

impl Exchange {
    pub fn begin<Q, R>(options: &Options, method: &Method<Q, R>, request: Request<Q>) -> (Self, Q) {
        let Request { message, call } = request;
        let CallOptions {
            timeout,
            operation_id,
            traceparent,
            token,
            sync,
            retry,
            cancel,
        } = call;
        let now = Instant::now();
        let made = || {
            let wants_id = !method.info.is_read && !options.no_operation_ids;
            if wants_id {
                operation_id_make()
            } else {
                String::new()
            }
        };
        let deadline = timeout.and_then(|timeout| now.checked_add(timeout));
        let retry = retry.or(options.retry).filter(|limit| !limit.is_zero());
        let retry_until = retry.map(|limit| now.checked_add(limit).unwrap_or(now));
        let exchange = Self {
            method: method.info,
            operation_id: operation_id.unwrap_or_else(made),
            traceparent,
            token: token.unwrap_or_else(|| options.token.clone()),
            sync,
            deadline,
            cancel,
            retry_until: earlier(retry_until, deadline.filter(|_| retry_until.is_some())),
            failures: 0,
            was_sent: AtomicBool::new(false),
        };
        (exchange, message)
    }

    /// Returns the frame of the next attempt, with an empty header.
    pub fn frame(&self, message: &impl Message) -> Result<Vec<u8>, Error> {
        let now = Instant::now();
        let timeout_ms = match self.deadline {
            Some(deadline) if deadline <= now => return Err(self.deadline_exceeded()),
            Some(deadline) => timeout_ms(deadline - now),
            None => 0,
        };
        let head = RequestHead {
            method: self.method.path,
            operation_id: &self.operation_id,
            timeout_ms,
            traceparent: &self.traceparent,
            token: &self.token,
            sync: self.sync,
        };
        envelope::request_encode(&head, message, sp::HEADER_BYTES)
    }

    /// Returns how long to wait for a connection; `None` means a single attempt to connect.
    pub fn patient_until(&self) -> Option<Instant> {
        self.retry_until
    }

    /// Decodes the reply in a payload, which begins with the request id.
    pub fn reply<R: Message + Default>(&self, payload: &[u8]) -> Result<R, Error> {
        let body = envelope::response_decode(payload.get(sp::ID_BYTES..).unwrap_or_default())?;
        R::decode(body).map_err(|_| envelope::undecodable())
    }

    /// Returns when to make the next attempt after a failed one, or the error that ends the call.
    ///
    /// A call is repeated only if it cannot run twice: it was not sent, it is a read, or it carries
    /// an operation id that the server remembers.
    pub fn again(&mut self, failure: Failure) -> Result<Instant, Error> {
        let now = Instant::now();
        let mut is_repeatable = true;
        let error = match failure {
            Failure::Final(error) => return Err(error),
            Failure::Stale(_) if self.failures == 0 => {
                self.failures = 1; // retry at once, but only once
                return Ok(now);
            }
            Failure::Stale(why) | Failure::Unreachable(why) => self.unavailable(&why),
            Failure::Broken(why) => {
                self.note_sent();
                let remembers = !self.operation_id.is_empty() && self.method.path != BROADCAST;
                is_repeatable = self.method.is_read || remembers;
                self.unavailable(&why)
            }
            Failure::Refused(error) => {
                self.failures = self.failures.max(1); // gives it time to get ready
                error
            }
        };
        let at = now + backoff(self.failures);
        let is_in_time = self.retry_until.is_some_and(|until| at < until);
        if !is_repeatable || !is_in_time {
            return Err(error);
        }
        self.failures += 1;
        Ok(at)
    }

    /// The same for an error that the server replied: UNAVAILABLE means that nothing was done.
    pub fn again_after_reply(&mut self, error: Error) -> Result<Instant, Error> {
        match error.code {
            Code::Unavailable => self.again(Failure::Refused(error)),
            _ => Err(error),
        }
    }

    /// Notes that an attempt was sent completely.
    pub fn note_sent(&self) {
        self.was_sent.store(true, Ordering::Relaxed);
    }

    fn unavailable(&self, why: &str) -> Error {
        let was_sent = self.was_sent.load(Ordering::Relaxed);
        let ending = if was_sent {
            "whether the call was done is not known"
        } else {
            "nothing was done"
        };
        Error::plain(Code::Unavailable, format!("{why}; {ending}"))
    }

    /// Returns the error if the call must end now, without its reply.
    pub fn stop(&self) -> Option<Error> {
        if let Some(why) = self.cancel.as_ref().and_then(CancelToken::why) {
            return Some(Error::cancelled(why));
        }
        let is_late = self
            .deadline
            .is_some_and(|deadline| Instant::now() >= deadline);
        is_late.then(|| self.deadline_exceeded())
    }

    pub fn deadline_exceeded(&self) -> Error {
        Error::deadline(self.was_sent.load(Ordering::Relaxed))
    }
}

impl Failure {
    /// What a broken connection means for one of its calls.
    pub fn of(broken: &Broken, name: &str, was_sent: bool) -> Self {
        if broken.is_closed {
            return Self::Final(link::closed());
        }
        let why = format!(
            "the connection to {name} broke before the reply came: {}",
            broken.why
        );
        if was_sent {
            Self::Broken(why)
        } else {
            Self::Stale(why)
        }
    }
}

/// Returns the earlier of two optional times.
pub(crate) fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}

/// Rounds up to whole milliseconds, at least one: zero would mean no timeout.
pub(crate) fn timeout_ms(timeout: Duration) -> i64 {
    let ms = timeout.as_nanos().div_ceil(1_000_000).max(1);
    i64::try_from(ms).unwrap_or(i64::MAX)
}

fn operation_id_make() -> String {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let random: [u8; 26] = link::random();
    random
        .iter()
        .map(|byte| char::from(DIGITS[usize::from(byte % 32)]))
        .collect()
}
