//! The channel for tokio. Its state is in `Link`, `Wire` and `Exchange`; this module makes the
//! system calls and waits.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use ::tokio::task::{spawn, spawn_blocking};
use ::tokio::time::{Sleep, sleep_until, timeout, timeout_at};
use prost::Message;

use crate::address::Address;
use crate::cancel::{CancelToken, Listening};
use crate::exchange::{Exchange, Failure};
use crate::link::{self, CONNECT_MAX, DialError, Link, READY_MAX, Step, why};
use crate::listing::Listing;
use crate::options::{Method, Options, Request};
use crate::start;
use crate::status::Error;
use crate::tokio::flight::Flight;
use crate::tokio::pages::Pages;
use crate::tokio::stream::Stream;
use crate::tokio::until_cancelled;
use crate::v1::{HealthRequest, methods};
use crate::wire::Wire;

/// A connection to a daemon, for the tasks of one tokio runtime. Clones share it, and any number of
/// tasks may call at once. It connects with the first call, and again after the connection was
/// lost. Dropping a call's future cancels the call.
#[derive(Clone, Debug)]
pub struct Channel(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: Options,
    address: Address,
    name: String,
    link: Mutex<Link<Connection>>,
    closed: CancelToken,
}

/// A call's future may not be polled for a long time, so calls do not receive for each other: the
/// connection has a task for that, the driver.
#[derive(Debug)]
pub(super) struct Connection(Mutex<State>);

#[derive(Debug)]
pub(super) struct State {
    pub wire: Wire,
    pub stream: Stream,
    /// The waker of the driver.
    driver: Option<Waker>,
}

impl Channel {
    /// Returns a channel to the daemon at `url`: `ipc://PATH` or `tcp://HOST:PORT`.
    pub fn connect(url: &str) -> Result<Self, Error> {
        Self::open(Options::new().url(url))
    }

    /// Returns a channel with these options.
    pub fn open(options: Options) -> Result<Self, Error> {
        Ok(Self::at(options.address()?, options))
    }

    fn at(address: Address, options: Options) -> Self {
        let name = address.name();
        let link = Mutex::new(Link::new(name.clone()));
        let closed = CancelToken::new();
        Self(Arc::new(Inner {
            options,
            address,
            name,
            link,
            closed,
        }))
    }

    /// Ends the calls in flight, the watches and all later calls with `CANCELLED`.
    pub fn close(&self) {
        self.0.closed.cancel_because(link::CLOSED);
        let connection = self.link().close();
        if let Some(connection) = connection {
            connection.lock().break_off(link::CLOSED, true);
        }
    }

    /// Waits until the daemon answers, for `timeout` at most. With [`Options::start`] it starts one
    /// if none listens. When the time is up it returns `UNAVAILABLE` with the last failure. It
    /// returns an error at once if waiting does not help: tined cannot be started, or refuses the
    /// token.
    pub async fn ready(&self, timeout: Duration) -> Result<(), Error> {
        let until = Instant::now() + timeout.min(READY_MAX);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let request = Request::new(HealthRequest {}).timeout(left);
            let Err(error) = self.call(&methods::HEALTH, request).await else {
                return Ok(());
            };
            let at = self.link().again(error, Instant::now(), until)?;
            until_cancelled(&self.0.closed, sleep_until(at.into())).await?;
        }
    }

    /// Makes one call. The generated clients have a function for each method, which uses this.
    pub async fn call<Q: Message, R: Message + Default>(
        &self,
        method: &Method<Q, R>,
        request: Request<Q>,
    ) -> Result<R, Error> {
        let (mut exchange, message) = Exchange::begin(&self.0.options, method, request);
        let deadline = exchange.deadline;
        let cancel = exchange.cancel.clone();
        let attempts = async {
            let attempts = self.attempts(&mut exchange, &message);
            match cancel {
                Some(cancel) => until_cancelled(&cancel, attempts)
                    .await
                    .and_then(|done| done),
                None => attempts.await,
            }
        };
        let result = match deadline {
            Some(deadline) => timeout_at(deadline.into(), attempts).await.ok(),
            None => Some(attempts.await),
        };
        result.unwrap_or_else(|| Err(exchange.deadline_exceeded()))
    }

    async fn attempts<R: Message + Default>(
        &self,
        exchange: &mut Exchange,
        message: &impl Message,
    ) -> Result<R, Error> {
        loop {
            let next = match self.attempt(exchange, message).await {
                Ok(payload) => match exchange.reply(&payload) {
                    Err(error) => exchange.again_after_reply(error),
                    done => return done,
                },
                Err(failure) => exchange.again(failure),
            };
            let until = next?;
            if until > Instant::now() {
                until_cancelled(&self.0.closed, sleep_until(until.into())).await?;
            }
        }
    }

    /// Returns the pages of a listing. The generated clients have a function for each listing,
    /// which uses this.
    pub fn pages<Q: Listing>(&self, request: Request<Q>) -> Pages<Q> {
        Pages::new(self.clone(), request)
    }

    /// Returns a channel with a connection of its own, which closes together with this one.
    pub(crate) fn sibling(&self, token: Option<String>) -> (Self, Listening) {
        let Inner {
            options, address, ..
        } = &*self.0;
        let mut options = options.clone();
        options.token = token.unwrap_or(options.token);
        let other = Self::at(address.clone(), options);
        let closing = self.0.closed.pass_on(&other.0.closed);
        (other, closing)
    }

    pub(crate) fn closed(&self) -> &CancelToken {
        &self.0.closed
    }

    pub(super) fn name(&self) -> &str {
        &self.0.name
    }

    pub(crate) fn address(&self) -> &Address {
        &self.0.address
    }

    fn link(&self) -> MutexGuard<'_, Link<Connection>> {
        self.0.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn attempt(
        &self,
        exchange: &Exchange,
        message: &impl Message,
    ) -> Result<Vec<u8>, Failure> {
        let frame = exchange.frame(message).map_err(Failure::Final)?;
        let connection = self.connection(exchange).await?;
        let mut flight = Flight::begin(self, &connection, exchange).await?;
        flight.submit(frame);
        poll_fn(|cx| flight.poll(cx)).await
    }

    async fn connection(&self, exchange: &Exchange) -> Result<Arc<Connection>, Failure> {
        let attempts_before = self.link().attempts();
        loop {
            // The runtime's timer for the deadline may be late.
            if let Some(error) = exchange.stop() {
                return Err(Failure::Final(error));
            }
            match self.step(exchange.patient_until(), attempts_before).await {
                Step::Use(connection) => return Ok(connection),
                Step::Unreachable(why) => return Err(Failure::Unreachable(why)),
                Step::Closed => return Err(Failure::Final(link::closed())),
                Step::Wait(_) => {}
                Step::Connect => {
                    let dialler = Dialler {
                        channel: self.clone(),
                        is_over: false,
                    };
                    spawn(dialler.dial(exchange.deadline));
                }
            }
        }
    }

    /// Returns the next step, after any waiting.
    async fn step(&self, patient_until: Option<Instant>, before: u64) -> Step<Connection> {
        let mut sleep: Option<Pin<Box<Sleep>>> = None;
        poll_fn(|cx| {
            loop {
                let now = Instant::now();
                match self.link().step(now, patient_until, before, cx.waker()) {
                    Step::Wait(None) => return Poll::Pending,
                    Step::Wait(Some(until)) => {
                        let sleep = sleep.insert(Box::pin(sleep_until(until.into())));
                        ready!(sleep.as_mut().poll(cx));
                    }
                    step => return Poll::Ready(step),
                }
            }
        })
        .await
    }

    async fn dial(&self, deadline: Option<Instant>) -> Result<Stream, DialError> {
        let Inner {
            options, address, ..
        } = &*self.0;
        let dial = || async {
            let dialled = timeout(CONNECT_MAX, Stream::dial(address)).await;
            dialled.unwrap_or_else(|_| Err("it accepted, but did not say hello".into()))
        };
        match (address, dial().await) {
            (Address::Ipc(path), Err(_)) if options.start && !start::is_listening(path) => {
                let path = path.clone();
                let left = EndWhenLeft(CancelToken::new());
                let stop = left.0.clone();
                let started = spawn_blocking(move || start::start(&path, deadline, &stop)).await;
                started
                    .map_err(|error| error.to_string())?
                    .map_err(DialError::of_start)?;
                dial().await
            }
            (_, dialled) => dialled,
        }
    }

    pub(super) fn broke(&self, connection: &Arc<Connection>, state: &mut State, why: &str) {
        if state.break_off(why, false) {
            self.link().lost(connection, state.wire.has_replied, why);
        }
    }
}

impl Connection {
    fn new(stream: Stream) -> Self {
        let wire = Wire::new(stream.transport(), link::random_u32());
        Self(Mutex::new(State {
            wire,
            stream,
            driver: None,
        }))
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.lock().driver_wake(); // the driver then ends
    }
}

/// Cancels the work on a blocking thread when the future that waits for it is dropped, because the
/// end of a runtime waits for its threads.
struct EndWhenLeft(CancelToken);

impl Drop for EndWhenLeft {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Connects in a task of its own, because the call that asked for it may be dropped.
struct Dialler {
    channel: Channel,
    is_over: bool,
}

impl Dialler {
    async fn dial(mut self, deadline: Option<Instant>) {
        let channel = self.channel.clone();
        let dialled = until_cancelled(&channel.0.closed, channel.dial(deadline)).await;
        let result = match dialled {
            Ok(Ok(stream)) => {
                let connection = Arc::new(Connection::new(stream));
                let driver = Driver {
                    channel: Arc::downgrade(&channel.0),
                    connection: Arc::downgrade(&connection),
                };
                spawn(driver);
                Ok(connection)
            }
            // A caller's own deadline must not delay the attempts of others.
            Ok(Err(_)) if deadline.is_some_and(|deadline| Instant::now() >= deadline) => Err(None),
            Ok(Err(error)) => Err(Some(error)),
            Err(_) => Err(None), // closed
        };
        self.is_over = true;
        channel.link().connected(result, Instant::now());
    }
}

impl Drop for Dialler {
    fn drop(&mut self) {
        if !self.is_over {
            // The runtime has ended.
            self.channel.link().connected(Err(None), Instant::now());
        }
    }
}

/// The task of a connection: receives for all its calls, and sends what a call could not send at
/// once. Ends with the connection.
struct Driver {
    channel: Weak<Inner>,
    connection: Weak<Connection>,
}

impl Driver {
    fn broke(&self, connection: &Arc<Connection>, state: &mut State, why: &str) {
        match self.channel.upgrade() {
            Some(channel) => Channel(channel).broke(connection, state, why),
            None => {
                state.break_off(why, false);
            }
        }
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(connection) = self.connection.upgrade() else {
            return Poll::Ready(());
        };
        let mut state = connection.lock();
        if !state
            .driver
            .as_ref()
            .is_some_and(|driver| driver.will_wake(cx.waker()))
        {
            state.driver = Some(cx.waker().clone());
        }
        while state.wire.broken.is_none() {
            let moved = match state.poll_send(cx) {
                Poll::Pending => state.poll_receive(cx),
                moved => moved,
            };
            match moved {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(why)) => self.broke(&connection, &mut state, &why),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.upgrade() {
            let mut state = connection.lock();
            self.broke(
                &connection,
                &mut state,
                "the runtime that it was made on has ended",
            );
        }
    }
}

impl State {
    pub fn send_now(&mut self) -> Result<(), String> {
        while let Some(bytes) = self.wire.outgoing() {
            match self.stream.send_now(bytes) {
                Ok(count) => self.wire.sent(count),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    self.driver_wake();
                    return Ok(());
                }
                Err(error) => return Err(why(&error)),
            }
        }
        Ok(())
    }

    /// `Pending`: there is nothing to send, or the socket is full.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), String>> {
        let Some(bytes) = self.wire.outgoing() else {
            return Poll::Pending;
        };
        let sent = ready!(self.stream.poll_send(cx, bytes));
        self.wire.sent(sent.map_err(|error| why(&error))?);
        Poll::Ready(Ok(()))
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), String>> {
        let Some(mut reader) = self.wire.reader.take() else {
            return Poll::Pending;
        };
        let received = self
            .stream
            .poll_receive(cx, reader.room())
            .map(|received| match received {
                Ok(0) => Err("it hung up".to_owned()),
                Ok(count) => {
                    reader.took(count);
                    self.wire.deliver(&mut reader).map_err(str::to_owned)
                }
                Err(error) => Err(why(&error)),
            });
        self.wire.reader = Some(reader);
        received
    }

    fn break_off(&mut self, why: &str, is_closed: bool) -> bool {
        self.driver_wake();
        self.wire.break_off(why, is_closed)
    }

    fn driver_wake(&self) {
        if let Some(driver) = &self.driver {
            driver.wake_by_ref();
        }
    }
}
