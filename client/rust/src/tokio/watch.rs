//! WatchEvents for tokio: a stream.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use ::tokio::time::{sleep_until, timeout_at};
use futures_core::Stream;

use crate::cancel::{CancelToken, Listening};
use crate::options::Request;
use crate::status::{Code, Error};
use crate::tokio::channel::Channel;
use crate::tokio::feed::Feed;
use crate::tokio::until_cancelled;
use crate::v1::{StatsRequest, WatchEventsRequest, WatchEventsResponse, methods};
use crate::watch::{Step, WatchState};

type Item = Result<WatchEventsResponse, Error>;
type Running = Pin<Box<dyn Future<Output = (Box<Watcher>, Item)> + Send>>;

/// Events as they happen: in order, without gaps or repetitions, through restarts of the daemon. An
/// error is the last item. Dropping it ends the watch.
///
/// It has a connection of its own, because a listing that waits would take one of the 64 slots.
pub struct Watch {
    phase: Phase,
    after: u64,
    instance_id: String,
}

enum Phase {
    Idle(Box<Watcher>),
    Running(Running),
    Over,
}

struct Watcher {
    state: WatchState,
    channel: Channel,
    feed: Option<Feed>,
    /// Cancelled by the caller's token and when the channel of the watch is closed.
    stop: CancelToken,
    deadline: Option<Instant>,
    _listening: Vec<Listening>,
}

impl Watch {
    pub(crate) async fn begin(
        channel: &Channel,
        request: Request<WatchEventsRequest>,
    ) -> Result<Self, Error> {
        let Request { message, call } = request;
        let (own, closing) = channel.sibling(call.token);
        let stop = CancelToken::new();
        let mut listening = vec![closing, own.closed().pass_on(&stop)];
        listening.extend(call.cancel.as_ref().map(|cancel| cancel.pass_on(&stop)));
        let mut watcher = Box::new(Watcher {
            state: WatchState::new(message, own.address().of_bus().is_some()),
            channel: own,
            feed: None,
            stop,
            deadline: call
                .timeout
                .and_then(|timeout| Instant::now().checked_add(timeout)),
            _listening: listening,
        });
        while !matches!(watcher.step_in_time().await?, Some(Found::Begun)) {}
        let (after, instance_id) = watcher.state.position();
        let instance_id = instance_id.to_owned();
        Ok(Self {
            phase: Phase::Idle(watcher),
            after,
            instance_id,
        })
    }

    /// Returns the sequence of the last event and the id of its store. A watch with
    /// `WATCH_START_AFTER` and these values continues from here.
    pub fn position(&self) -> (u64, &str) {
        (self.after, &self.instance_id)
    }

    /// Returns the next event, or `None` if the watch has ended. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<WatchEventsResponse, Error>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl Stream for Watch {
    type Item = Result<WatchEventsResponse, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut running = match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Idle(mut watcher) => Box::pin(async move {
                let item = watcher.next().await;
                (watcher, item)
            }),
            Phase::Running(running) => running,
            Phase::Over => return Poll::Ready(None),
        };
        let Poll::Ready((watcher, item)) = running.as_mut().poll(cx) else {
            self.phase = Phase::Running(running);
            return Poll::Pending;
        };
        if item.is_ok() {
            let (after, instance_id) = watcher.state.position();
            self.after = after;
            if self.instance_id != instance_id {
                self.instance_id = instance_id.to_owned();
            }
            self.phase = Phase::Idle(watcher);
        }
        Poll::Ready(Some(item))
    }
}

enum Found {
    Begun,
    Event(Box<WatchEventsResponse>),
}

impl Watcher {
    async fn next(&mut self) -> Item {
        loop {
            if let Some(Found::Event(event)) = self.step_in_time().await? {
                return Ok(*event);
            }
        }
    }

    async fn step_in_time(&mut self) -> Result<Option<Found>, Error> {
        let stop = self.stop.clone();
        let deadline = self.deadline;
        let step = until_cancelled(&stop, self.step());
        let result = match deadline {
            Some(deadline) => timeout_at(deadline.into(), step).await,
            None => Ok(step.await),
        };
        match result {
            Ok(Ok(stepped)) => stepped,
            Ok(Err(cancelled)) => Err(cancelled),
            Err(_) => Err(Error::plain(
                Code::DeadlineExceeded,
                "the time of the watch is up",
            )),
        }
    }

    async fn step(&mut self) -> Result<Option<Found>, Error> {
        match self.state.next(Instant::now(), None) {
            Step::Give(event) => {
                let response = WatchEventsResponse { event: Some(event) };
                return Ok(Some(Found::Event(Box::new(response))));
            }
            Step::Begun => return Ok(Some(Found::Begun)),
            Step::Subscribe => {
                self.feed = match self.channel.address().of_bus() {
                    Some(path) => Feed::open(&path).await,
                    None => None,
                };
                self.state.subscribed(self.feed.is_some(), Instant::now());
            }
            Step::Receive(until) => self.receive(until).await,
            Step::Stats => {
                let result = self
                    .channel
                    .call(&methods::STATS, StatsRequest {}.into())
                    .await;
                self.state.stats(result)?;
            }
            Step::List(list, timeout) => {
                let mut request = Request::new(list);
                request.call.timeout = timeout;
                let result = self.channel.call(&methods::LIST_EVENTS, request).await;
                self.state.listed(result, Instant::now())?;
            }
            Step::Sleep(until) => sleep_until(until.into()).await,
        }
        if !self.state.has_bus() {
            self.feed = None;
        }
        Ok(None)
    }

    async fn receive(&mut self, until: Instant) {
        let Some(feed) = &mut self.feed else {
            return self.state.bus_broke(Instant::now());
        };
        let news = timeout_at(until.into(), feed.next()).await;
        let now = Instant::now();
        match news {
            Ok(Some(message)) => self.state.message(&message, now),
            Ok(None) => self.state.bus_broke(now),
            Err(_) => self.state.silence(now),
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Watch(after {} of {})", self.after, self.instance_id)
    }
}
