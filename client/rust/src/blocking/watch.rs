//! WatchEvents for threads: an iterator.

use std::fmt;
use std::time::{Duration, Instant};

use crate::blocking::channel::Channel;
use crate::blocking::feed::{Feed, News};
use crate::blocking::park::{park_until, with_waker};
use crate::blocking::socket::Wait;
use crate::cancel::{CancelToken, Listening};
use crate::exchange::earlier;
use crate::options::Request;
use crate::status::{Code, Error};
use crate::v1::{StatsRequest, WatchEventsRequest, WatchEventsResponse, methods};
use crate::watch::{Step, WatchState};

/// Events as they happen: in order, without gaps or repetitions, through restarts of the daemon. An
/// error is the last item. Dropping it ends the watch.
///
/// It has a connection of its own, because a listing that waits would take one of the 64 slots.
pub struct Watch {
    state: WatchState,
    channel: Channel,
    feed: Option<Feed>,
    /// Cancelled by the caller's token and when the channel of the watch is closed.
    stop: CancelToken,
    deadline: Option<Instant>,
    is_over: bool,
    _listening: Vec<Listening>,
}

impl Watch {
    pub(crate) fn begin(
        channel: &Channel,
        request: Request<WatchEventsRequest>,
    ) -> Result<Self, Error> {
        let Request { message, call } = request;
        let (own, closing) = channel.sibling(call.token);
        let stop = CancelToken::new();
        let mut listening = vec![closing, own.closed().pass_on(&stop)];
        listening.extend(call.cancel.as_ref().map(|cancel| cancel.pass_on(&stop)));
        let mut watch = Self {
            state: WatchState::new(message, own.address().of_bus().is_some()),
            channel: own,
            feed: None,
            stop,
            deadline: call
                .timeout
                .and_then(|timeout| Instant::now().checked_add(timeout)),
            is_over: false,
            _listening: listening,
        };
        loop {
            match watch.step(None)? {
                Some(Found::Begun) => return Ok(watch),
                Some(Found::Event(_)) | None => {}
            }
        }
    }

    /// Returns the sequence of the last event and the id of its store. A watch with
    /// `WATCH_START_AFTER` and these values continues from here.
    pub fn position(&self) -> (u64, &str) {
        self.state.position()
    }

    /// Waits for the next event for `wait` at most. Returns `None` if there was none, or if the
    /// watch has ended.
    pub fn next_within(&mut self, wait: Duration) -> Option<Result<WatchEventsResponse, Error>> {
        let until = Instant::now().checked_add(wait);
        self.next_until(until)
    }

    fn next_until(&mut self, until: Option<Instant>) -> Option<Result<WatchEventsResponse, Error>> {
        let mut is_late = false;
        while !self.is_over {
            match self.step(until) {
                Ok(Some(Found::Event(event))) => return Some(Ok(*event)),
                Ok(_) if is_late => return None,
                // Tries once more: an event may have arrived already.
                Ok(_) => is_late = until.is_some_and(|until| Instant::now() >= until),
                Err(error) => {
                    self.is_over = true;
                    self.feed = None;
                    return Some(Err(error));
                }
            }
        }
        None
    }

    fn step(&mut self, until: Option<Instant>) -> Result<Option<Found>, Error> {
        let now = Instant::now();
        self.check(now)?;
        let until = earlier(until, self.deadline);
        match self.state.next(now, until) {
            Step::Give(event) => {
                let response = WatchEventsResponse { event: Some(event) };
                return Ok(Some(Found::Event(Box::new(response))));
            }
            Step::Begun => return Ok(Some(Found::Begun)),
            Step::Subscribe => {
                self.feed = self
                    .channel
                    .address()
                    .of_bus()
                    .and_then(|path| Feed::open(&path));
                self.state.subscribed(self.feed.is_some(), Instant::now());
            }
            Step::Receive(receive_until) => self.receive(receive_until, until),
            Step::Stats => {
                let request = self.request(StatsRequest {}, None);
                let result = self.channel.call(&methods::STATS, request);
                self.state
                    .stats(result)
                    .map_err(|error| self.whose(error))?;
            }
            Step::List(list, timeout) => {
                let request = self.request(list, timeout);
                let result = self.channel.call(&methods::LIST_EVENTS, request);
                let result = self.state.listed(result, Instant::now());
                result.map_err(|error| self.whose(error))?;
            }
            Step::Sleep(sleep_until) => {
                let _listening = with_waker(|waker| self.stop.listen(waker));
                if !self.stop.is_cancelled() {
                    park_until(earlier(Some(sleep_until), until));
                }
            }
        }
        if !self.state.has_bus() {
            self.feed = None;
        }
        Ok(None)
    }

    fn receive(&mut self, receive_until: Instant, until: Option<Instant>) {
        let cancel = self.stop.descriptor();
        let wait = Wait {
            until: earlier(Some(receive_until), until),
            cancel: cancel.as_ref(),
        };
        let news = self
            .feed
            .as_mut()
            .map_or(News::Broken, |feed| feed.next(&wait));
        let now = Instant::now();
        match news {
            News::Message(message) => self.state.message(&message, now),
            News::Silence if now >= receive_until => self.state.silence(now),
            News::Silence => {} // the caller's time is up, or the watch was cancelled
            News::Broken => self.state.bus_broke(now),
        }
    }

    fn request<T>(&self, message: T, timeout: Option<Duration>) -> Request<T> {
        let left = self
            .deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let mut request = Request::new(message).cancel(&self.stop);
        request.call.timeout = left.into_iter().chain(timeout).min();
        request
    }

    /// Returns the watch's own error if the end of the watch cut a call short.
    fn whose(&self, error: Error) -> Error {
        self.check(Instant::now()).err().unwrap_or(error)
    }

    fn check(&self, now: Instant) -> Result<(), Error> {
        if let Some(why) = self.stop.why() {
            return Err(Error::cancelled(why));
        }
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return Err(Error::plain(
                Code::DeadlineExceeded,
                "the time of the watch is up",
            ));
        }
        Ok(())
    }
}

enum Found {
    Begun,
    Event(Box<WatchEventsResponse>),
}

impl Iterator for Watch {
    type Item = Result<WatchEventsResponse, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_until(None)
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (after, instance_id) = self.position();
        write!(out, "Watch(after {after} of {instance_id})")
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.channel.close();
    }
}
