//! The client for threads.

mod channel;
mod feed;
mod pages;
mod park;
pub(crate) mod socket;
mod watch;

pub use channel::Channel;
pub use pages::{Items, Pages};
pub use watch::Watch;
