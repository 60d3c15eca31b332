//! The client for tokio. Dropping a call's future cancels the call, dropping a [`Watch`] ends it.

mod channel;
mod feed;
mod flight;
mod pages;
mod stream;
mod watch;

pub use channel::Channel;
pub use pages::{Items, Pages};
pub use watch::Watch;

use std::future::{Future, poll_fn};
use std::pin::pin;

use crate::cancel::CancelToken;
use crate::status::Error;

/// Returns the result of `future`, or an error if the token is cancelled first.
async fn until_cancelled<T>(
    token: &CancelToken,
    future: impl Future<Output = T>,
) -> Result<T, Error> {
    let mut future = pin!(future);
    let mut listening = None;
    poll_fn(|cx| {
        if let Some(why) = token.why() {
            return std::task::Poll::Ready(Err(Error::cancelled(why)));
        }
        listening.replace(token.listen(cx.waker()));
        future.as_mut().poll(cx).map(Ok)
    })
    .await
}
