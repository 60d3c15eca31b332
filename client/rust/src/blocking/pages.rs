//! Listings for threads: iterators.

use std::iter::FusedIterator;

use crate::blocking::channel::Channel;
use crate::listing::{Listing, Place};
use crate::options::Request;
use crate::status::Error;

/// The pages of a listing. Each page is read by one call, when the iterator comes to it. An error
/// is the last item.
///
/// The options of the [`Request`], such as its timeout, apply to each call.
#[derive(Clone, Debug)]
pub struct Pages<Q> {
    channel: Channel,
    place: Place<Q>,
}

/// The items of a listing, over all its pages. An error is the last item.
#[derive(Debug)]
pub struct Items<Q: Listing> {
    pages: Pages<Q>,
    page: std::vec::IntoIter<Q::Item>,
}

impl<Q: Listing> Pages<Q> {
    pub(crate) fn new(channel: Channel, request: Request<Q>) -> Self {
        let place = Place::new(request);
        Self { channel, place }
    }

    /// Returns the items of all pages, one at a time.
    pub fn items(self) -> Items<Q> {
        let page = Vec::new().into_iter();
        Items { pages: self, page }
    }
}

impl<Q: Listing> Iterator for Pages<Q> {
    type Item = Result<Q::Page, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let result = self.channel.call(&Q::METHOD, self.place.request()?);
        self.place.turn(&result);
        Some(result)
    }
}

impl<Q: Listing> FusedIterator for Pages<Q> {}

impl<Q: Listing> Iterator for Items<Q> {
    type Item = Result<Q::Item, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.page.next() {
                return Some(Ok(item));
            }
            match self.pages.next()? {
                Ok(page) => self.page = Q::items(page).into_iter(),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl<Q: Listing> FusedIterator for Items<Q> {}
