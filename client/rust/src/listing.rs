//! The position of a listing that is read page by page. Makes no system calls.

use prost::Message;

use crate::options::{Method, Request};
use crate::status::Error;

/// The request of a call that lists in pages: it has a `cursor`, and its reply a `next_cursor`.
/// Every such request of the contract implements this trait.
pub trait Listing: Message + Clone + 'static {
    /// The reply.
    type Page: Message + Default + 'static;
    /// What the call lists.
    type Item: Send + 'static;
    /// The call.
    const METHOD: Method<Self, Self::Page>;

    /// Sets the field `cursor`.
    fn set_cursor(&mut self, cursor: String);
    /// The cursor of the page after this one; empty after the last page.
    fn next_cursor(page: &Self::Page) -> &str;
    /// What a page lists, without the page's other fields.
    fn items(page: Self::Page) -> Vec<Self::Item>;
}

/// The position of a listing.
#[derive(Clone, Debug)]
pub(crate) struct Place<Q>(Option<Request<Q>>);

impl<Q: Listing> Place<Q> {
    pub fn new(request: Request<Q>) -> Self {
        Self(Some(request))
    }

    /// The request of the next page; `None` after the last page and after an error.
    pub fn request(&self) -> Option<Request<Q>> {
        self.0.clone()
    }

    /// Moves to the page after the one that was just read.
    pub fn turn(&mut self, result: &Result<Q::Page, Error>) {
        let cursor = result.as_ref().map_or("", |page| Q::next_cursor(page));
        match &mut self.0 {
            Some(request) if !cursor.is_empty() => request.message.set_cursor(cursor.to_owned()),
            request => *request = None,
        }
    }
}
