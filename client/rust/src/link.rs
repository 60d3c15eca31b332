//! What a channel knows of its connections: the one there is, and when to make another. Without
//! system calls.

use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::status::Error;

pub(crate) const CONNECT_MAX: Duration = Duration::from_secs(5);
const BACKOFF_MIN: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// How long to wait after the `failures`-th failure in a row: 50 ms, 100 ms … 2 s, and up to a
/// quarter less, so that those who lost one server do not come back all at once.
pub(crate) fn backoff(failures: u32) -> Duration {
    if failures == 0 {
        return Duration::ZERO;
    }
    let whole = BACKOFF_MIN
        .saturating_mul(1 << (failures - 1).min(10))
        .min(BACKOFF_MAX);
    whole - whole.mul_f64(f64::from(random_u32() % 1024) / 4096.0)
}

pub(crate) fn random_u32() -> u32 {
    u32::from_ne_bytes(random())
}

/// From the kernel each time: two processes of one fork must not make the same.
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
    failures: u32,
    connect_after: Option<Instant>,
    why: String,
    waiters: Vec<Waker>,
}

/// What the caller that wants a connection does next.
#[derive(Debug)]
pub(crate) enum Step<C> {
    Use(Arc<C>),
    /// This caller connects, and then says [`Link::connected`].
    Connect,
    /// Until then, or until woken.
    Wait(Option<Instant>),
    /// Nobody is there, and why.
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
            failures: 0,
            connect_after: None,
            why: String::new(),
            waiters: Vec::new(),
        }
    }

    /// How many attempts there were; a caller gives [`step`](Self::step) the number it began with.
    pub fn attempts(&self) -> u64 {
        self.attempts
    }

    /// `patient_until`: until then a connection is waited for; `None`: it is tried for once.
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

    /// The attempt is over. `Err(None)`: its caller gave it up, which says nothing of the server.
    pub fn connected(&mut self, result: Result<Arc<C>, Option<String>>) {
        self.is_connecting = false;
        match result {
            Ok(connection) => {
                self.attempts += 1;
                if !self.is_closed {
                    self.connection = Some(connection);
                }
            }
            Err(Some(why)) => {
                self.attempts += 1;
                self.failed(why);
            }
            Err(None) => {}
        }
        self.waiters_wake();
    }

    /// A connection broke. One that never answered counts as a failed attempt: a server that
    /// accepts and hangs up is not to be connected to in a loop.
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
            self.failures = 0;
            self.connect_after = None;
        } else {
            self.failed(why.to_owned());
        }
    }

    /// Returns the connection, which the caller ends.
    pub fn close(&mut self) -> Option<Arc<C>> {
        self.is_closed = true;
        self.waiters_wake();
        self.connection.take()
    }

    fn failed(&mut self, why: String) {
        self.why = why;
        self.failures = self.failures.saturating_add(1);
        self.connect_after = Some(Instant::now() + backoff(self.failures));
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

    #[test]
    fn one_connects_and_the_others_wait() {
        let mut link = Link::new("x".into());
        assert!(matches!(step(&mut link, None, 0), Step::Connect));
        assert!(matches!(step(&mut link, None, 0), Step::Wait(None)));
        link.connected(Ok(Arc::new(())));
        assert!(matches!(step(&mut link, None, 0), Step::Use(_)));
    }

    #[test]
    fn a_failed_attempt_fails_those_that_waited_unless_they_are_patient() {
        let mut link = Link::new("x".into());
        let later = Instant::now() + Duration::from_secs(100);
        assert!(matches!(step(&mut link, None, 0), Step::Connect));
        link.connected(Err(Some("nobody".into())));
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
        link.connected(Err(None));
        assert!(matches!(step(&mut link, None, 0), Step::Connect));
    }

    #[test]
    fn a_connection_that_never_answered_makes_the_next_one_wait() {
        let mut link = Link::new("x".into());
        let connection = Arc::new(());
        step(&mut link, None, 0);
        link.connected(Ok(Arc::clone(&connection)));
        link.lost(&connection, false, "it hung up");
        let before = link.attempts();
        assert!(matches!(
            step(&mut link, None, before),
            Step::Unreachable(_)
        ));
    }

    #[test]
    fn a_closed_link_gives_none() {
        let mut link = Link::<()>::new("x".into());
        link.close();
        assert!(matches!(step(&mut link, None, 0), Step::Closed));
    }
}
