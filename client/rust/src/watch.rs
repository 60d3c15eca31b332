//! Watching: the bus for speed, ListEvents for certainty. Without system calls.
//!
//! ListEvents misses nothing: sequences of one store have no gaps and never repeat, also over
//! restarts, and `instance_id` tells when it is another store. So where a watch stands is two
//! fields. The bus tells at once but may lose: a message, a connection, or what was sent before the
//! server knew of the subscriber. Hence the order: subscribe, then list, then take from the bus what
//! follows the position; drop what is not past it; and where it does not follow, list again. Until
//! the first message of a connection nobody knows whether the server counts the subscriber in, so
//! until then the watch lists now and again. Without a bus it lists, and waits at the server for
//! news. docs/wire.md has the whole of it.

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
const REPLY_MAX: Duration = Duration::from_secs(2); // beyond the wait, to connect and to answer
const PAGE_EVENTS_MAX: u32 = 1000;
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);
const START_ATTEMPTS_MAX: u32 = 5;
const FIRST_MESSAGE_MAX: Duration = Duration::from_millis(100); // then it begins without
const UNSURE_MIN: Duration = Duration::from_millis(5); // between listings until the first message …
const UNSURE_MAX: Duration = Duration::from_millis(160); // … twice as long each time
const SILENCE_MAX: Duration = Duration::from_secs(15); // three heartbeats
const SUBSCRIBE_MIN: Duration = Duration::from_millis(500); // until a bus is tried again …
const SUBSCRIBE_MAX: Duration = Duration::from_secs(30); // … twice as long each time

/// What the watch wants next. Its driver does it and says how it went.
#[derive(Debug)]
pub(crate) enum Step {
    /// For the caller.
    Give(Event),
    /// The position is known: what is committed from now on will be given out.
    Begun,
    /// Connect to the bus, then say [`WatchState::subscribed`].
    Subscribe,
    /// Take a message of the bus, and wait for it until then: [`WatchState::message`],
    /// [`WatchState::silence`] or [`WatchState::bus_broke`].
    Receive(Instant),
    /// Ask for Stats, then say [`WatchState::stats`].
    Stats,
    /// Ask for a page, with this timeout if there is one, then say [`WatchState::listed`].
    List(ListEventsRequest, Option<Duration>),
    /// Wait until then.
    Sleep(Instant),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Subscribing,
    /// The first message says that the server counts this subscriber in.
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
    /// What topics of the session begin with; empty: all are wanted.
    topic: String,
    instance_id: String,
    after: u64,
    page: VecDeque<Event>,
    page_end: u64,

    has_bus: bool,
    bus: Option<Bus>,
    bus_failures: u32,
    subscribe_after: Option<Instant>,
    /// There may be events that the bus did not or will not tell of.
    is_behind: bool,
    /// By the bus, when it told of a gap.
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

    /// The sequence of the last event that was given out or left out, and its store's id: what to
    /// begin another watch with.
    pub fn position(&self) -> (u64, &str) {
        (self.after, &self.instance_id)
    }

    /// Whether the driver is to keep its connection to the bus.
    pub fn has_bus(&self) -> bool {
        self.bus.is_some()
    }

    /// `until`: when the caller wants to have control again, event or not.
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

    /// Waits for news only where no bus would tell of them.
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
        // Until it has begun it is the caller who says how long to wait.
        let has_begun = self.phase != Phase::FirstPage;
        Step::List(request, has_begun.then_some(wait + REPLY_MAX))
    }

    pub fn subscribed(&mut self, is_subscribed: bool, now: Instant) {
        if is_subscribed {
            self.is_behind = true; // all must be listed once
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

    /// Nothing came until the time that was said.
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

    /// The connection to the bus ended.
    pub fn bus_broke(&mut self, now: Instant) {
        if matches!(self.phase, Phase::FirstMessage(_)) {
            self.after_first_message();
        }
        self.bus_drop(now);
    }

    /// There is no bus, or it is of no use: goes on without, and tries again later.
    fn bus_drop(&mut self, now: Instant) {
        self.bus = None;
        self.told_newest = 0;
        let factor = 1 << self.bus_failures.min(10);
        self.bus_failures = self.bus_failures.saturating_add(1);
        self.subscribe_after = Some(now + SUBSCRIBE_MIN.saturating_mul(factor).min(SUBSCRIBE_MAX));
    }

    /// A message of the bus. All are looked at: those of other sessions move the position too.
    pub fn message(&mut self, message: &[u8], now: Instant) {
        let Some(bus) = &mut self.bus else { return };
        if std::mem::replace(&mut bus.is_live, true) {
            self.bus_failures = 0; // one message may be all that it ever sends
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
            return; // listed already
        }
        if is_kept && !self.is_next(&event, is_mine) {
            if is_mine {
                self.fall_behind(event.sequence);
            }
            return;
        }
        if is_mine && event.r#type.starts_with(&self.type_prefix) {
            // The position moves when it is given out: the watch may end before that.
            self.page_end = event.sequence;
            self.page.push_back(event);
        } else if is_kept {
            self.after = event.sequence;
        }
    }

    /// Whether an event that has a sequence is the next one of the watch. One of a session says
    /// which one was the session's last: between that and the position there is none of it. What a
    /// purged session's watch gets, ListEvents says.
    fn is_next(&self, event: &Event, is_mine: bool) -> bool {
        let is_of_session = !self.topic.is_empty() && is_mine;
        if is_of_session && event.r#type == "session.purged" {
            return false;
        }
        let previous = event.previous_session_sequence;
        event.sequence == self.after + 1 || is_of_session && previous > 0 && previous <= self.after
    }

    /// A gap, up to the sequence that was told.
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

    /// `Err`: the end of the watch.
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
        // The bus told of events that the store does not have: it is another's.
        if self.bus.is_some() && page.newest_sequence < self.told_newest {
            self.bus_drop(now);
        }
        self.told_newest = 0;
        Ok(())
    }

    /// While the oldest event is being pruned it may be gone by the time it is asked for.
    fn first_page_failed(&mut self, error: Error) -> Result<(), Error> {
        self.start_attempts += 1;
        let may_repeat = error.code == Code::OutOfRange && self.start != WatchStart::After;
        if !may_repeat || self.start_attempts >= START_ATTEMPTS_MAX {
            return Err(error);
        }
        self.phase = Phase::Stats;
        Ok(())
    }

    /// A daemon that is restarted, or has too much to do, is waited for.
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
        self.bus_failures = 0; // whoever comes next may have a bus
        Ok(())
    }

    /// The next event of the page that is wanted.
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

    /// A watch that has begun behind 5, and listens.
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
        let mut state = listening(now); // its first page has no time of its own
        state.bus_broke(now);
        assert!(matches!(state.next(now, None), Step::List(_, Some(_))));
    }
}
