//! The errors of calls.

use std::fmt;

use crate::reason::Reason;

/// gRPC's status codes, with their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Code {
    Ok = 0,
    Cancelled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

const CODES: [(Code, &str); 17] = [
    (Code::Ok, "OK"),
    (Code::Cancelled, "CANCELLED"),
    (Code::Unknown, "UNKNOWN"),
    (Code::InvalidArgument, "INVALID_ARGUMENT"),
    (Code::DeadlineExceeded, "DEADLINE_EXCEEDED"),
    (Code::NotFound, "NOT_FOUND"),
    (Code::AlreadyExists, "ALREADY_EXISTS"),
    (Code::PermissionDenied, "PERMISSION_DENIED"),
    (Code::ResourceExhausted, "RESOURCE_EXHAUSTED"),
    (Code::FailedPrecondition, "FAILED_PRECONDITION"),
    (Code::Aborted, "ABORTED"),
    (Code::OutOfRange, "OUT_OF_RANGE"),
    (Code::Unimplemented, "UNIMPLEMENTED"),
    (Code::Internal, "INTERNAL"),
    (Code::Unavailable, "UNAVAILABLE"),
    (Code::DataLoss, "DATA_LOSS"),
    (Code::Unauthenticated, "UNAUTHENTICATED"),
];

impl Code {
    /// The name in gRPC: `NOT_FOUND`.
    pub fn name(self) -> &'static str {
        CODES[self as usize].1
    }
}

/// Unknown numbers become [`Code::Unknown`].
impl From<i32> for Code {
    fn from(number: i32) -> Self {
        let known = usize::try_from(number)
            .ok()
            .and_then(|index| CODES.get(index));
        known.map_or(Self::Unknown, |(code, _)| *code)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// Why a call failed: from the server, or from the client if it did not reach the server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// The kind of failure, for programs.
    pub code: Code,
    /// The name of a [`Reason`]: `SESSION_NOT_FOUND`; the code's own name if there is no more to
    /// say.
    pub reason: String,
    /// A message for people: which field is wrong, for example, and what to do.
    pub message: String,
}

/// What gRPC's libraries call an [`Error`].
pub type Status = Error;

impl Error {
    /// An error of the caller's own, for example in a test. `reason` is a [`Reason`] or a text.
    pub fn new(code: Code, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.into(),
            message: message.into(),
        }
    }

    /// Returns the reason as a type, to match on.
    pub fn reason(&self) -> Reason {
        Reason::from(&*self.reason)
    }

    /// Returns whether the call failed for this reason.
    pub fn is(&self, reason: Reason) -> bool {
        self.reason == reason.name()
    }

    /// Makes an error whose reason is the name of its code.
    pub(crate) fn plain(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, code.name(), message)
    }

    pub(crate) fn cancelled(why: &str) -> Self {
        Self::plain(Code::Cancelled, why)
    }

    pub(crate) fn deadline(was_sent: bool) -> Self {
        Self::plain(
            Code::DeadlineExceeded,
            if was_sent {
                "the time is up and there is no reply yet; whether the call was done is not known"
            } else {
                "the time is up before the call could be sent; nothing was done"
            },
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.reason.is_empty() || self.reason == self.code.name() {
            write!(out, "{}: {}", self.code, self.message)
        } else {
            write!(out, "{}, {}: {}", self.code, self.reason, self.message)
        }
    }
}

impl std::error::Error for Error {}
