//! The client for threads.

mod channel;
mod feed;
mod park;
pub(crate) mod socket;
mod watch;

pub use channel::Channel;
pub use watch::Watch;
