//! The state of a watch, which reads events from the bus and from ListEvents. Makes no system
//! calls.
//!
//! ListEvents misses nothing: the sequences of a store have no gaps and never repeat, even after a
//! restart, and `instance_id` changes with the store. So the position of a watch is these two
//! fields. The bus is fast, but it may lose messages, its connection, and everything sent before
//! the server registered the subscriber. Therefore the watch subscribes first, then lists, and then
//! takes those events from the bus that directly follow its position. It drops events at or before
//! the position, and lists again after a gap. Until the first message of a bus connection it is not
//! known whether the server has registered the subscriber, so until then the watch also lists at
//! intervals. Without a bus the watch calls ListEvents and lets it wait for news. docs/wire.md
//! describes the protocol.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::envelope::event_decode;
use crate::exchange::earlier;
use crate::link::backoff;
use crate::status::{Code, Error};
use crate::v1::{
    Event, ListEventsRequest, ListEventsResponse, StatsResponse, WatchEventsRequest, WatchStart,
};

const WAIT_AT_ONCE_MAX: Duration = Duration::from_secs(30);
const REPLY_MAX: Duration = Duration::from_secs(2); // to connect and to reply, on top of the wait
const PAGE_EVENTS_MAX: u32 = 1000;
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);
const START_ATTEMPTS_MAX: u32 = 5;
const FIRST_MESSAGE_MAX: Duration = Duration::from_millis(100); // then it begins anyway
const UNSURE_MIN: Duration = Duration::from_millis(5); // between listings until it came …
const UNSURE_MAX: Duration = Duration::from_millis(160); // … doubled each time
const SILENCE_MAX: Duration = Duration::from_secs(15); // three heartbeats
const SUBSCRIBE_MIN: Duration = Duration::from_millis(500); // before the bus is tried again …
const SUBSCRIBE_MAX: Duration = Duration::from_secs(30); // … doubled each time

/// What the driver of the watch must do next. It then reports the result.
#[derive(Debug)]
pub(crate) enum Step {
    /// Give this event to the caller.
    Give(Event),
    /// The watch has begun: it will return everything that is committed from now on.
    Begun,
    /// Connect to the bus, then call [`WatchState::subscribed`].
    Subscribe,
    /// Wait for a message of the bus until this time, then call [`WatchState::message`],
    /// [`WatchState::silence`] or [`WatchState::bus_broke`].
    Receive(Instant),
    /// Call Stats, then call [`WatchState::stats`].
    Stats,
    /// Call ListEvents with this timeout, if any, then call [`WatchState::listed`].
    List(ListEventsRequest, Option<Duration>),
    /// Sleep until this time.
    Sleep(Instant),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Subscribing,
    /// Waits for the first message, which shows that the server has registered this subscriber.
    FirstMessage(Instant),
    Stats,
    FirstPage,
    Begun,
    Running,
}

#[derive(Clone, Copy, Debug)]
struct Bus {
    is_live: bool,
    heard_at: Instant,
    unsure: Duration,
}

#[derive(Debug)]
pub(crate) struct WatchState {
    phase: Phase,
    start: WatchStart,
    start_attempts: u32,
    session_id: String,
    type_prefix: String,
    /// The prefix of the session's topics; empty if the watch is of all sessions.
    topic: String,
    instance_id: String,
    after: u64,
    page: VecDeque<Event>,
    page_end: u64,

    has_bus: bool,
    bus: Option<Bus>,
    bus_failures: u32,
    subscribe_after: Option<Instant>,
    /// There may be events that the bus does not deliver.
    is_behind: bool,
    /// The newest sequence that the bus named when there was a gap.
    told_newest: u64,

    asked_at: Instant,
    asked_wait: Duration,
    pause: Duration,
    sleep_until: Option<Instant>,
    list_failures: u32,
}

impl WatchState {
    pub fn new(request: WatchEventsRequest, has_bus: bool) -> Self {
        let start = match request.start() {
            WatchStart::Unspecified => WatchStart::New,
            start => start,
        };
        let topic = match &*request.session_id {
            "" => String::new(),
            id => format!("session/{id}/"),
        };
        let now = Instant::now();
        Self {
            phase: Phase::Subscribing,
            start,
            start_attempts: 0,
            session_id: request.session_id,
            type_prefix: request.type_prefix,
            topic,
            instance_id: request.instance_id,
            after: request.after_sequence,
            page: VecDeque::new(),
            page_end: 0,
            has_bus,
            bus: None,
            bus_failures: 0,
            subscribe_after: None,
            is_behind: true,
            told_newest: 0,
            asked_at: now,
            asked_wait: Duration::ZERO,
            pause: Duration::ZERO,
            sleep_until: None,
            list_failures: 0,
        }
    }

    /// Returns the sequence of the last event that was returned or skipped, and the id of its
    /// store: the start of a watch that continues this one.
    pub fn position(&self) -> (u64, &str) {
        (self.after, &self.instance_id)
    }

    /// Returns whether the driver must keep its connection to the bus.
    pub fn has_bus(&self) -> bool {
        self.bus.is_some()
    }

    /// Returns the next step. `until`: when the caller wants control back, even without an event.
    pub fn next(&mut self, now: Instant, until: Option<Instant>) -> Step {
        if self.phase == Phase::Begun {
            self.phase = Phase::Running;
            return Step::Begun;
        }
        if let Some(event) = self.page_take() {
            return Step::Give(event);
        }
        if let Some(at) = self.sleep_until.take_if(|at| now < *at) {
            self.sleep_until = Some(at);
            return Step::Sleep(at);
        }
        match self.phase {
            Phase::Subscribing if self.has_bus => Step::Subscribe,
            Phase::Subscribing => self.begin_without_bus(now),
            Phase::FirstMessage(until) => Step::Receive(until),
            Phase::Stats => Step::Stats,
            Phase::FirstPage => self.list(now, Some(now)),
            Phase::Begun | Phase::Running => self.run(now, until),
        }
    }

    fn begin_without_bus(&mut self, now: Instant) -> Step {
        self.after_first_message();
        self.next(now, None)
    }

    fn run(&mut self, now: Instant, until: Option<Instant>) -> Step {
        match self.bus {
            None if self.has_bus && self.subscribe_after.is_none_or(|at| at <= now) => {
                Step::Subscribe
            }
            Some(bus) if !self.is_behind => {
                let silent_at = bus.heard_at + SILENCE_MAX;
                let list_at = (!bus.is_live).then(|| now + bus.unsure);
                Step::Receive(list_at.map_or(silent_at, |list_at| silent_at.min(list_at)))
            }
            _ => self.list(now, until),
        }
    }

    /// Lets the server wait for news only if there is no bus.
    fn list(&mut self, now: Instant, until: Option<Instant>) -> Step {
        let wait_until = earlier(until, self.subscribe_after.filter(|_| self.has_bus));
        let wait = match wait_until {
            _ if self.bus.is_some() => Duration::ZERO,
            Some(until) => until.saturating_duration_since(now).min(WAIT_AT_ONCE_MAX),
            None => WAIT_AT_ONCE_MAX,
        };
        self.asked_at = now;
        self.asked_wait = wait;
        let request = ListEventsRequest {
            after_sequence: self.after,
            session_id: self.session_id.clone(),
            instance_id: self.instance_id.clone(),
            limit: PAGE_EVENTS_MAX,
            wait_ms: wait.as_millis() as u32,
            page_bytes: 0,
        };
        // Until the watch has begun, only the caller limits the time.
        let has_begun = self.phase != Phase::FirstPage;
        Step::List(request, has_begun.then_some(wait + REPLY_MAX))
    }

    pub fn subscribed(&mut self, is_subscribed: bool, now: Instant) {
        if is_subscribed {
            self.is_behind = true; // what was missed must be listed
            self.bus = Some(Bus {
                is_live: false,
                heard_at: now,
                unsure: UNSURE_MIN,
            });
        } else {
            self.bus_drop(now);
        }
        if self.phase == Phase::Subscribing {
            self.after_first_message();
            if is_subscribed {
                self.phase = Phase::FirstMessage(now + FIRST_MESSAGE_MAX);
            }
        }
    }

    fn after_first_message(&mut self) {
        self.phase = if self.start == WatchStart::After {
            Phase::FirstPage
        } else {
            Phase::Stats
        };
    }

    /// No message came until the time of the step.
    pub fn silence(&mut self, now: Instant) {
        if matches!(self.phase, Phase::FirstMessage(_)) {
            return self.after_first_message();
        }
        let Some(bus) = &mut self.bus else { return };
        if now >= bus.heard_at + SILENCE_MAX {
            self.bus_drop(now);
        } else if !bus.is_live {
            bus.unsure = (bus.unsure * 2).min(UNSURE_MAX);
            self.is_behind = true;
        }
    }

    /// The connection to the bus broke.
    pub fn bus_broke(&mut self, now: Instant) {
        if matches!(self.phase, Phase::FirstMessage(_)) {
            self.after_first_message();
        }
        self.bus_drop(now);
    }

    /// Continues without the bus, and tries it again later.
    fn bus_drop(&mut self, now: Instant) {
        self.bus = None;
        self.told_newest = 0;
        let factor = 1 << self.bus_failures.min(10);
        self.bus_failures = self.bus_failures.saturating_add(1);
        self.subscribe_after = Some(now + SUBSCRIBE_MIN.saturating_mul(factor).min(SUBSCRIBE_MAX));
    }

    /// Takes a message of the bus. Messages of other sessions move the position too.
    pub fn message(&mut self, message: &[u8], now: Instant) {
        let Some(bus) = &mut self.bus else { return };
        if std::mem::replace(&mut bus.is_live, true) {
            self.bus_failures = 0; // it works, even if it sends no second message
        }
        bus.heard_at = now;
        if matches!(self.phase, Phase::FirstMessage(_)) {
            return self.after_first_message(); // it was sent before the watch began
        }
        let Some((topic, event)) = event_decode(message) else {
            return self.bus_drop(now);
        };
        let is_heartbeat = topic == b"heartbeat";
        let is_mine = topic.starts_with(self.topic.as_bytes()) && !is_heartbeat;
        if event.instance_id != self.instance_id {
            return self.fall_behind(u64::MAX);
        }
        if is_heartbeat {
            if event.sequence > self.after {
                self.fall_behind(event.sequence);
            }
            return;
        }
        let is_kept = event.sequence > 0;
        if is_kept && event.sequence <= self.after {
            return; // already listed
        }
        if is_kept && !self.is_next(&event, is_mine) {
            if is_mine {
                self.fall_behind(event.sequence);
            }
            return;
        }
        if is_mine && event.r#type.starts_with(&self.type_prefix) {
            // The position moves when the event is returned: the watch may end before that.
            self.page_end = event.sequence;
            self.page.push_back(event);
        } else if is_kept {
            self.after = event.sequence;
        }
    }

    /// Returns whether an event with a sequence directly follows the position. An event of a
    /// session names the session's previous event; if that is at or before the position, nothing is
    /// missing in between. A purge counts as a gap, because ListEvents must report it.
    fn is_next(&self, event: &Event, is_mine: bool) -> bool {
        let is_of_session = !self.topic.is_empty() && is_mine;
        if is_of_session && event.r#type == "session.purged" {
            return false;
        }
        let previous = event.previous_session_sequence;
        event.sequence == self.after + 1 || is_of_session && previous > 0 && previous <= self.after
    }

    /// Notes a gap before the sequence that the bus named.
    fn fall_behind(&mut self, told_newest: u64) {
        self.is_behind = true;
        self.told_newest = told_newest;
    }

    pub fn stats(&mut self, result: Result<StatsResponse, Error>) -> Result<(), Error> {
        let stats = result?;
        self.after = stats.newest_event_sequence;
        if self.start == WatchStart::Oldest && stats.oldest_event_sequence > 0 {
            self.after = stats.oldest_event_sequence - 1;
        }
        self.phase = Phase::FirstPage;
        Ok(())
    }

    /// Takes a page of ListEvents. `Err` ends the watch.
    pub fn listed(
        &mut self,
        result: Result<ListEventsResponse, Error>,
        now: Instant,
    ) -> Result<(), Error> {
        let page = match result {
            Ok(page) => page,
            Err(error) if self.phase == Phase::FirstPage => return self.first_page_failed(error),
            Err(error) => return self.list_failed(error, now),
        };
        if self.phase == Phase::FirstPage {
            self.phase = Phase::Begun;
        }
        self.list_failures = 0;
        if self.instance_id.is_empty() {
            self.instance_id.clone_from(&page.instance_id);
        }
        let is_hurried = now - self.asked_at < self.asked_wait / 2;
        if page.events.is_empty() {
            self.after = page.next_after_sequence;
            if !page.more && is_hurried {
                self.pause = (self.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
                self.sleep_until = Some(now + self.pause);
            }
        } else {
            self.pause = Duration::ZERO;
        }
        self.page = page.events.into();
        self.page_end = page.next_after_sequence;
        if page.more {
            return Ok(());
        }
        self.is_behind = false;
        // The bus named events that the store does not have: it belongs to another store.
        if self.bus.is_some() && page.newest_sequence < self.told_newest {
            self.bus_drop(now);
        }
        self.told_newest = 0;
        Ok(())
    }

    /// Tries again from Stats: the oldest event may have been pruned since.
    fn first_page_failed(&mut self, error: Error) -> Result<(), Error> {
        self.start_attempts += 1;
        let may_repeat = error.code == Code::OutOfRange && self.start != WatchStart::After;
        if !may_repeat || self.start_attempts >= START_ATTEMPTS_MAX {
            return Err(error);
        }
        self.phase = Phase::Stats;
        Ok(())
    }

    /// Waits and tries again if the daemon is restarting or overloaded.
    fn list_failed(&mut self, error: Error, now: Instant) -> Result<(), Error> {
        use Code::{DeadlineExceeded, ResourceExhausted, Unavailable};
        if !matches!(
            error.code,
            Unavailable | DeadlineExceeded | ResourceExhausted
        ) {
            return Err(error);
        }
        self.list_failures = self.list_failures.saturating_add(1);
        self.sleep_until = Some(now + backoff(self.list_failures));
        self.bus_failures = 0; // the next daemon may have a bus
        Ok(())
    }

    /// Takes the next event of the page that matches the type prefix.
    fn page_take(&mut self) -> Option<Event> {
        while let Some(event) = self.page.pop_front() {
            if event.sequence > 0 {
                self.after = if self.page.is_empty() {
                    self.page_end
                } else {
                    event.sequence
                };
            }
            if event.r#type.starts_with(&self.type_prefix) {
                return Some(event);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(next_after_sequence: u64) -> ListEventsResponse {
        ListEventsResponse {
            instance_id: "store".into(),
            next_after_sequence,
            newest_sequence: next_after_sequence,
            ..Default::default()
        }
    }

    fn message(topic: &str, sequence: u64) -> Vec<u8> {
        let event = Event {
            sequence,
            instance_id: "store".into(),
            r#type: topic.into(),
            ..Default::default()
        };
        let encoded = prost::Message::encode_to_vec(&event);
        [topic.as_bytes(), &[0], &encoded].concat()
    }

    /// Returns a watch that has begun after sequence 5 and listens to the bus.
    fn listening(now: Instant) -> WatchState {
        let mut state = WatchState::new(WatchEventsRequest::default(), true);
        assert!(matches!(state.next(now, None), Step::Subscribe));
        state.subscribed(true, now);
        assert!(matches!(state.next(now, None), Step::Receive(_)));
        state.message(&message("heartbeat", 5), now);
        assert!(matches!(state.next(now, None), Step::Stats));
        state.stats(Ok(StatsResponse::default())).unwrap();
        assert!(matches!(state.next(now, None), Step::List(_, None)));
        state.listed(Ok(page(5)), now).unwrap();
        assert!(matches!(state.next(now, None), Step::Begun));
        assert!(matches!(state.next(now, None), Step::Receive(_)));
        state
    }

    #[test]
    fn the_position_is_that_of_the_last_event_given_out() {
        let now = Instant::now();
        let mut state = listening(now);
        for (sequence, position) in [(6, 6), (0, 6), (7, 7)] {
            let before = state.position().0;
            state.message(&message("global/x", sequence), now);
            assert_eq!(state.position(), (before, "store"));
            assert!(
                matches!(state.next(now, None), Step::Give(event) if event.sequence == sequence)
            );
            assert_eq!(state.position(), (position, "store"));
        }
    }

    #[test]
    fn the_caller_says_how_long_a_watch_may_take_to_begin() {
        let now = Instant::now();
        let mut state = listening(now); // its first page has no timeout
        state.bus_broke(now);
        assert!(matches!(state.next(now, None), Step::List(_, Some(_))));
    }
}
