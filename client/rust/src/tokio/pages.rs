//! Listings for tokio: streams.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use crate::listing::{Listing, Place};
use crate::options::Request;
use crate::status::Error;
use crate::tokio::channel::Channel;

type Running<Q> =
    Pin<Box<dyn Future<Output = Result<<Q as Listing>::Page, Error>> + Send + 'static>>;

/// The pages of a listing. Each page is read by one call, when the stream comes to it. An error is
/// the last item.
///
/// The options of the [`Request`], such as its timeout, apply to each call.
pub struct Pages<Q: Listing> {
    channel: Channel,
    place: Place<Q>,
    running: Option<Running<Q>>,
}

/// The items of a listing, over all its pages. An error is the last item.
#[derive(Debug)]
pub struct Items<Q: Listing> {
    pages: Pages<Q>,
    page: std::vec::IntoIter<Q::Item>,
}

impl<Q: Listing> Pages<Q> {
    pub(crate) fn new(channel: Channel, request: Request<Q>) -> Self {
        Self {
            channel,
            place: Place::new(request),
            running: None,
        }
    }

    /// Returns the items of all pages, one at a time.
    pub fn items(self) -> Items<Q> {
        let page = Vec::new().into_iter();
        Items { pages: self, page }
    }

    /// Returns the next page, or `None` after the last one. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<Q::Page, Error>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    fn begin(&self, request: Request<Q>) -> Running<Q> {
        let channel = self.channel.clone();
        Box::pin(async move { channel.call(&Q::METHOD, request).await })
    }
}

impl<Q: Listing> Items<Q> {
    /// Returns the next item, or `None` after the last one. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<Q::Item, Error>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

// Neither pins its fields.
impl<Q: Listing> Unpin for Pages<Q> {}
impl<Q: Listing> Unpin for Items<Q> {}

impl<Q: Listing> Stream for Pages<Q> {
    type Item = Result<Q::Page, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut running = match (self.running.take(), self.place.request()) {
            (Some(running), _) => running,
            (None, Some(request)) => self.begin(request),
            (None, None) => return Poll::Ready(None),
        };
        let Poll::Ready(result) = running.as_mut().poll(cx) else {
            self.running = Some(running);
            return Poll::Pending;
        };
        self.place.turn(&result);
        Poll::Ready(Some(result))
    }
}

impl<Q: Listing> Stream for Items<Q> {
    type Item = Result<Q::Item, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(item) = self.page.next() {
                return Poll::Ready(Some(Ok(item)));
            }
            match ready!(Pin::new(&mut self.pages).poll_next(cx)) {
                Some(Ok(page)) => self.page = Q::items(page).into_iter(),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

impl<Q: Listing + fmt::Debug> fmt::Debug for Pages<Q> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Pages({:?})", self.place)
    }
}
