//! The state of a channel's connection: the current one, and when to make the next. Makes no system
//! calls but for random numbers.

use std::io;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::status::{Code, Error};

pub(crate) const CONNECT_MAX: Duration = Duration::from_secs(5);
/// The longest wait for a daemon; longer ones are shortened to it.
pub(crate) const READY_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

const BACKOFF_MIN: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// The first pause while nobody listens on a Unix socket: tined answers some 4 ms after its start,
/// and an attempt costs one system call.
const BACKOFF_ABSENT_MIN: Duration = Duration::from_millis(1);

/// Returns the pause after the `failures`-th failure in a row: 50 ms, 100 ms … 2 s, with jitter.
pub(crate) fn backoff(failures: u32) -> Duration {
    if failures == 0 {
        return Duration::ZERO;
    }
    let factor = 1 << (failures - 1).min(10);
    jitter(BACKOFF_MIN.saturating_mul(factor).min(BACKOFF_MAX))
}

/// Shortens a pause by up to a quarter, so that clients that lost the same server do not all return
/// at the same time.
fn jitter(pause: Duration) -> Duration {
    pause - pause.mul_f64(f64::from(random_u32() % 1024) / 4096.0)
}

/// Why an attempt to connect failed.
#[derive(Debug)]
pub(crate) struct DialError {
    pub why: String,
    /// Nobody listens on the Unix socket: it does not exist, or refuses the connection.
    pub is_absent: bool,
    /// The client should have started a tined, but could not.
    pub cannot_start: bool,
}

impl DialError {
    /// Makes the error of a connect(2) to a Unix socket.
    pub fn of_unix(error: &io::Error) -> Self {
        use io::ErrorKind::{ConnectionRefused, NotFound};
        Self {
            why: why(error),
            is_absent: matches!(error.kind(), NotFound | ConnectionRefused),
            cannot_start: false,
        }
    }

    /// Makes the error of an attempt to start a tined.
    pub fn of_start(why: String) -> Self {
        Self {
            why,
            is_absent: false,
            cannot_start: true,
        }
    }
}

impl<T: Into<String>> From<T> for DialError {
    fn from(why: T) -> Self {
        Self {
            why: why.into(),
            is_absent: false,
            cannot_start: false,
        }
    }
}

/// Returns the text of a system error without its number.
pub(crate) fn why(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned()
}

pub(crate) fn random_u32() -> u32 {
    u32::from_ne_bytes(random())
}

/// Asks the kernel each time, so that a process and its fork never get the same bytes.
pub(crate) fn random<const COUNT: usize>() -> [u8; COUNT] {
    let mut bytes = [0; COUNT];
    let mut filled = 0;
    while filled < COUNT {
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("no random bytes from the kernel: {error}"),
        }
    }
    bytes
}

#[derive(Debug)]
pub(crate) struct Link<C> {
    name: String,
    connection: Option<Arc<C>>,
    is_connecting: bool,
    is_closed: bool,
    attempts: u64,
    /// The pause after the last failure, without jitter.
    pause: Duration,
    connect_after: Option<Instant>,
    /// Why the last attempt or connection failed.
    why: String,
    cannot_start: bool,
    waiters: Vec<Waker>,
}

/// What a caller that wants a connection must do next.
#[derive(Debug)]
pub(crate) enum Step<C> {
    Use(Arc<C>),
    /// Connect, then call [`Link::connected`].
    Connect,
    /// Wait until this time or until woken, then ask again.
    Wait(Option<Instant>),
    /// There is no daemon; the text says why.
    Unreachable(String),
    Closed,
}

impl<C> Link<C> {
    pub fn new(name: String) -> Self {
        Self {
            name,
            connection: None,
            is_connecting: false,
            is_closed: false,
            attempts: 0,
            pause: Duration::ZERO,
            connect_after: None,
            why: String::new(),
            cannot_start: false,
            waiters: Vec::new(),
        }
    }

    /// Returns how many attempts there were. A caller passes the number at its begin to
    /// [`step`](Self::step).
    pub fn attempts(&self) -> u64 {
        self.attempts
    }

    /// Waits for a connection until `patient_until`; `None` means a single attempt.
    pub fn step(
        &mut self,
        now: Instant,
        patient_until: Option<Instant>,
        attempts_before: u64,
        waker: &Waker,
    ) -> Step<C> {
        if self.is_closed {
            return Step::Closed;
        }
        if let Some(connection) = &self.connection {
            return Step::Use(Arc::clone(connection));
        }
        let is_patient = patient_until.is_some_and(|until| now < until);
        let early = self
            .connect_after
            .filter(|after| !self.is_connecting && now < *after);
        if !is_patient && (early.is_some() || self.attempts != attempts_before) {
            return Step::Unreachable(format!("no tined answers at {}: {}", self.name, self.why));
        }
        if !self.is_connecting && early.is_none() {
            self.is_connecting = true;
            return Step::Connect;
        }
        if !self.waiters.iter().any(|kept| kept.will_wake(waker)) {
            self.waiters.push(waker.clone());
        }
        let until = [early, patient_until.filter(|_| is_patient)];
        Step::Wait(until.into_iter().flatten().min())
    }

    /// Ends the attempt of a caller. `Err(None)`: the caller gave up, which says nothing about the
    /// server.
    pub fn connected(&mut self, result: Result<Arc<C>, Option<DialError>>, now: Instant) {
        self.is_connecting = false;
        match result {
            Ok(connection) => {
                self.attempts += 1;
                self.why.clear();
                self.cannot_start = false;
                if !self.is_closed {
                    self.connection = Some(connection);
                }
            }
            Err(Some(error)) => {
                self.attempts += 1;
                self.failed(error, now);
            }
            Err(None) => {}
        }
        self.waiters_wake();
    }

    /// Drops a connection that broke. One that never answered counts as a failed attempt, so that a
    /// server that accepts and hangs up is not connected to in a tight loop.
    pub fn lost(&mut self, connection: &Arc<C>, has_replied: bool, why: &str) {
        if !self
            .connection
            .as_ref()
            .is_some_and(|current| Arc::ptr_eq(current, connection))
        {
            return;
        }
        self.connection = None;
        if has_replied {
            self.pause = Duration::ZERO;
            self.connect_after = None;
            self.why = why.to_owned();
        } else {
            self.failed(why.into(), Instant::now());
        }
    }

    /// Returns when to call again, after a call of a caller that waits for the daemon until `until`
    /// failed. `Err`: the time is up, or waiting does not help.
    pub fn again(&self, error: Error, now: Instant, until: Instant) -> Result<Instant, Error> {
        match error.code {
            Code::DeadlineExceeded => {
                let why = match &*self.why {
                    "" => "it did not answer in time",
                    why => why,
                };
                let message = format!("no tined answers at {}: {why}", self.name);
                Err(Error::plain(Code::Unavailable, message))
            }
            Code::Unavailable if !self.cannot_start => {
                let after = self.connect_after.filter(|after| now < *after);
                Ok(after.unwrap_or(now + BACKOFF_MIN).min(until))
            }
            _ => Err(error),
        }
    }

    /// Closes the link. Returns the connection, which the caller must end.
    pub fn close(&mut self) -> Option<Arc<C>> {
        self.is_closed = true;
        self.waiters_wake();
        self.connection.take()
    }

    fn failed(&mut self, error: DialError, now: Instant) {
        let min = if error.is_absent {
            BACKOFF_ABSENT_MIN
        } else {
            BACKOFF_MIN
        };
        self.pause = (self.pause * 2).clamp(min, BACKOFF_MAX);
        self.connect_after = Some(now + jitter(self.pause));
        self.why = error.why;
        self.cannot_start = error.cannot_start;
    }

    fn waiters_wake(&mut self) {
        for waker in self.waiters.drain(..) {
            waker.wake();
        }
    }
}

pub(crate) const CLOSED: &str = "the client is closed";

pub(crate) fn closed() -> Error {
    Error::cancelled(CLOSED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(link: &mut Link<()>, patient_until: Option<Instant>, before: u64) -> Step<()> {
        link.step(Instant::now(), patient_until, before, Waker::noop())
    }

    #[test]
    fn backoff_doubles_from_50_ms_to_2_s() {
        assert_eq!(backoff(0), Duration::ZERO);
        for (failures, whole) in [(1, 50), (2, 100), (4, 400), (7, 2000), (u32::MAX, 2000)] {
            let wait = backoff(failures).as_millis();
            assert!(
                (whole * 3 / 4..=whole).contains(&wait),
                "{failures}: {wait}"
            );
        }
    }

    /// Returns when a patient caller connects, until an attempt at `ready` or later. Each attempt
    /// fails with `error`. The clock is simulated.
    fn attempts_until(ready: Duration, error: impl Fn() -> DialError) -> Vec<Duration> {
        let mut link = Link::<()>::new("x".into());
        let begin = Instant::now();
        let patient_until = Some(begin + Duration::from_secs(1000));
        let (mut now, mut found) = (begin, Vec::new());
        while found.last().is_none_or(|last| *last < ready) {
            match link.step(now, patient_until, 0, Waker::noop()) {
                Step::Connect => {
                    found.push(now - begin);
                    link.connected(Err(Some(error())), now);
                }
                Step::Wait(Some(until)) => now = until,
                other => panic!("{other:?}"),
            }
        }
        found
    }

    #[test]
    fn while_nobody_listens_the_pauses_double_from_1_ms_to_2_s() {
        for kind in [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused] {
            let absent = || DialError::of_unix(&kind.into());
            let found = attempts_until(Duration::from_millis(4), absent);
            assert!(
                *found.last().unwrap() <= Duration::from_millis(7),
                "{found:?}"
            );
            assert_eq!(found.len(), 4, "{found:?}");

            let found = attempts_until(Duration::from_secs(60), absent);
            let last = found[found.len() - 1] - found[found.len() - 2];
            assert!((1500..=2000).contains(&last.as_millis()), "{found:?}");
        }
    }

    #[test]
    fn after_other_failures_the_pauses_double_from_50_ms() {
        let found = attempts_until(Duration::from_millis(4), || "it hung up".into());
        assert_eq!(found.len(), 2);
        assert!((37..=50).contains(&found[1].as_millis()), "{found:?}");
        let denied = || DialError::of_unix(&io::ErrorKind::PermissionDenied.into());
        assert!(attempts_until(Duration::from_millis(4), denied)[1].as_millis() >= 37);
    }

    #[test]
    fn one_connects_and_the_others_wait() {
        let mut link = Link::new("x".into());
        assert!(matches!(step(&mut link, None, 0), Step::Connect));
        assert!(matches!(step(&mut link, None, 0), Step::Wait(None)));
        link.connected(Ok(Arc::new(())), Instant::now());
        assert!(matches!(step(&mut link, None, 0), Step::Use(_)));
    }

    #[test]
    fn a_failed_attempt_fails_those_that_waited_unless_they_are_patient() {
        let mut link = Link::new("x".into());
        let later = Instant::now() + Duration::from_secs(100);
        assert!(matches!(step(&mut link, None, 0), Step::Connect));
        link.connected(Err(Some("nobody".into())), Instant::now());
        let Step::Unreachable(why) = step(&mut link, None, 0) else {
            panic!()
        };
        assert!(why.contains("nobody"));
        assert!(
            matches!(step(&mut link, Some(later), 0), Step::Wait(Some(until)) if until < later)
        );
    }

    #[test]
    fn an_attempt_given_up_is_no_failure() {
        let mut link = Link::new("x".into());
        assert!(matches!(step(&mut link, None, 0), Step::Connect));
        link.connected(Err(None), Instant::now());
        assert!(matches!(step(&mut link, None, 0), Step::Connect));
    }

    #[test]
    fn a_connection_that_never_answered_makes_the_next_one_wait() {
        let mut link = Link::new("x".into());
        let connection = Arc::new(());
        step(&mut link, None, 0);
        link.connected(Ok(Arc::clone(&connection)), Instant::now());
        link.lost(&connection, false, "it hung up");
        let before = link.attempts();
        assert!(matches!(
            step(&mut link, None, before),
            Step::Unreachable(_)
        ));
    }

    #[test]
    fn who_waits_for_a_daemon_calls_again_until_the_time_is_up() {
        let mut link = Link::<()>::new("x".into());
        let now = Instant::now();
        let until = now + Duration::from_secs(100);
        let failed = |code| Error::plain(code, "it failed");
        let again = |link: &Link<()>, code, until| link.again(failed(code), now, until);
        link.connected(Err(Some("nobody".into())), now);
        let at = again(&link, Code::Unavailable, until).unwrap();
        assert!(now < at && at <= now + BACKOFF_MIN);
        assert_eq!(again(&link, Code::Unavailable, now), Ok(now));
        let error = again(&link, Code::DeadlineExceeded, until).unwrap_err();
        assert_eq!(
            error.to_string(),
            "UNAVAILABLE: no tined answers at x: nobody"
        );
        let refused = failed(Code::Unauthenticated);
        assert_eq!(link.again(refused.clone(), now, until), Err(refused));
        link.connected(Err(Some(DialError::of_start("no tined".into()))), now);
        let error = failed(Code::Unavailable);
        assert_eq!(link.again(error.clone(), now, until), Err(error));
    }

    #[test]
    fn a_closed_link_gives_none() {
        let mut link = Link::<()>::new("x".into());
        link.close();
        assert!(matches!(step(&mut link, None, 0), Step::Closed));
    }
}
