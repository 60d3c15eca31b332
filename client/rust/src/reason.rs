//! The reasons of errors as an enum.

use std::fmt;

macro_rules! reasons {
    ($($variant:ident $name:literal,)*) => {
        /// Why a call failed: `enum Reason` of `store.proto`. The comments of each call there list
        /// the reasons that it may return.
        ///
        /// [`Error::reason`](crate::Error::reason()) returns it, [`Error::is`](crate::Error::is)
        /// compares it.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Reason {
            $(
                #[doc = concat!("`", $name, "`")]
                $variant,
            )*
            /// Any other text: a reason that this client does not know yet, or the name of a code.
            Other(String),
        }

        impl Reason {
            /// Returns the name in the contract: `SESSION_NOT_FOUND`.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Other(name) => name,
                }
            }
        }

        impl From<&str> for Reason {
            fn from(name: &str) -> Self {
                match name {
                    $($name => Self::$variant,)*
                    _ => Self::Other(name.to_owned()),
                }
            }
        }

        #[cfg(test)]
        const NAMES: &[&str] = &[$($name,)*];
    };
}

reasons! {
    SessionNotFound "SESSION_NOT_FOUND",
    MessageNotFound "MESSAGE_NOT_FOUND",
    MemoryNotFound "MEMORY_NOT_FOUND",
    CallNotFound "CALL_NOT_FOUND",
    SessionDeleted "SESSION_DELETED",
    SessionArchived "SESSION_ARCHIVED",
    MessageSealed "MESSAGE_SEALED",
    ForksExist "FORKS_EXIST",
    ForkChainTooDeep "FORK_CHAIN_TOO_DEEP",
    SlugTaken "SLUG_TAKEN",
    ExternalTaken "EXTERNAL_TAKEN",
    HeadMoved "HEAD_MOVED",
    OperationIdReused "OPERATION_ID_REUSED",
    HistoryDiverged "HISTORY_DIVERGED",
    InvalidArgument "INVALID_ARGUMENT",
    InvalidPart "INVALID_PART",
    UnknownPartKind "UNKNOWN_PART_KIND",
    NotInTree "NOT_IN_TREE",
    InvalidUtf8 "INVALID_UTF8",
    InvalidJson "INVALID_JSON",
    TooLong "TOO_LONG",
    StoreFull "STORE_FULL",
    TooManyInFlight "TOO_MANY_IN_FLIGHT",
    QueueFull "QUEUE_FULL",
    ResourceExhausted "RESOURCE_EXHAUSTED",
    EventsGone "EVENTS_GONE",
    StoreChanged "STORE_CHANGED",
    Unauthenticated "UNAUTHENTICATED",
    Unimplemented "UNIMPLEMENTED",
    DeadlineExceeded "DEADLINE_EXCEEDED",
    Unavailable "UNAVAILABLE",
    DataLoss "DATA_LOSS",
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl From<Reason> for String {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Other(name) => name,
            known => known.name().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Code, Error, v1};

    #[test]
    fn there_is_a_reason_for_each_of_the_contract() {
        let contract: Vec<&str> = (1..10_000)
            .filter_map(|number| v1::Reason::try_from(number).ok())
            .map(|reason| reason.as_str_name().strip_prefix("REASON_").unwrap())
            .collect();
        assert_eq!(NAMES, contract, "in the order of store.proto");
        for name in NAMES {
            let reason = Reason::from(*name);
            assert_eq!(reason.name(), *name);
            assert!(!matches!(reason, Reason::Other(_)), "{name}");
            let variant = name.replace('_', "").to_lowercase();
            assert_eq!(format!("{reason:?}").to_lowercase(), variant);
        }
    }

    #[test]
    fn an_unknown_reason_keeps_its_text() {
        let error = Error::new(Code::Aborted, "NEWER_THAN_THIS", "message");
        assert_eq!(error.reason(), Reason::Other("NEWER_THAN_THIS".into()));
        assert!(error.is(Reason::Other("NEWER_THAN_THIS".into())));
        assert!(!error.is(Reason::HeadMoved));
        assert_eq!(error.to_string(), "ABORTED, NEWER_THAN_THIS: message");
    }

    #[test]
    fn an_error_shows_and_compares_its_reason() {
        let error = Error::new(Code::NotFound, Reason::SessionNotFound, "no session");
        assert_eq!(error.reason(), Reason::SessionNotFound);
        assert!(error.is(Reason::SessionNotFound) && !error.is(Reason::MessageNotFound));
        assert_eq!(
            error.to_string(),
            "NOT_FOUND, SESSION_NOT_FOUND: no session"
        );
    }
}
