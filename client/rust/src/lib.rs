#![doc = include_str!("../README.md")]

mod address;
mod blocking;
mod cancel;
#[doc(hidden)]
#[allow(missing_docs)]
pub mod envelope;
mod exchange;
mod link;
mod listing;
mod options;
mod reason;
#[doc(hidden)]
#[allow(missing_docs)]
pub mod sp;
mod start;
mod status;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(feature = "tokio")]
pub mod tokio;
mod watch;
mod wire;

/// The generated code of the contract: messages and typed calls.
#[allow(missing_docs, clippy::all)]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/tine.v1.rs"));

    /// The contract as a `google.protobuf.FileDescriptorSet`, for reflection.
    pub const DESCRIPTOR_SET: &[u8] =
        include_bytes!(concat!(env!("OUT_DIR"), "/descriptor_set.bin"));
}

pub use blocking::{Channel, Items, Pages, Watch};
pub use cancel::CancelToken;
pub use listing::Listing;
pub use options::{Method, Options, Request};
pub use reason::Reason;
pub use status::{Code, Error, Status};
