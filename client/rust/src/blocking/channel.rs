//! The channel for threads. Its state is in `Link`, `Wire` and `Exchange`; this module makes the
//! system calls and waits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use prost::Message;
use rustix::event::PollFlags;

use crate::address::Address;
use crate::blocking::pages::Pages;
use crate::blocking::park::{park_until, with_waker};
use crate::blocking::socket::{Socket, Wait};
use crate::cancel::{CancelToken, Descriptor, Listening};
use crate::exchange::{Exchange, Failure, earlier};
use crate::link::{self, CONNECT_MAX, DialError, Link, READY_MAX, Step, why};
use crate::listing::Listing;
use crate::options::{Method, Options, Request};
use crate::start;
use crate::status::Error;
use crate::v1::{HealthRequest, methods};
use crate::wire::{Seat, Wire};

/// How often a thread that waits only to send checks whether it must also receive, and vice versa.
const ROLE_LOOKS: Duration = Duration::from_millis(50);

/// A connection to a daemon, for threads. Clones share it, and any number of threads may call at
/// once. It connects with the first call, and again after the connection was lost.
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

#[derive(Debug)]
struct Connection {
    socket: Socket,
    wire: Mutex<Wire>,
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
            connection.socket.shut_down();
        }
    }

    /// Waits until the daemon answers, for `timeout` at most. With [`Options::start`] it starts one
    /// if none listens. When the time is up it returns `UNAVAILABLE` with the last failure. It
    /// returns an error at once if waiting does not help: tined cannot be started, or refuses the
    /// token.
    pub fn ready(&self, timeout: Duration) -> Result<(), Error> {
        let until = Instant::now() + timeout.min(READY_MAX);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let request = Request::new(HealthRequest {}).timeout(left);
            let Err(error) = self.call(&methods::HEALTH, request) else {
                return Ok(());
            };
            let at = self.link().again(error, Instant::now(), until)?;
            let _closing = with_waker(|waker| self.0.closed.listen(waker));
            while Instant::now() < at && !self.0.closed.is_cancelled() {
                park_until(Some(at));
            }
        }
    }

    /// Makes one call. The generated clients have a function for each method, which uses this.
    pub fn call<Q: Message, R: Message + Default>(
        &self,
        method: &Method<Q, R>,
        request: Request<Q>,
    ) -> Result<R, Error> {
        let (mut exchange, message) = Exchange::begin(&self.0.options, method, request);
        loop {
            let next = match self.attempt(&exchange, &message) {
                Ok(payload) => match exchange.reply(&payload) {
                    Err(error) => exchange.again_after_reply(error),
                    done => return done,
                },
                Err(failure) => exchange.again(failure),
            };
            self.wait_until(&exchange, next?)?;
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

    pub(crate) fn address(&self) -> &Address {
        &self.0.address
    }

    fn link(&self) -> MutexGuard<'_, Link<Connection>> {
        self.0.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits before the next attempt.
    fn wait_until(&self, exchange: &Exchange, until: Instant) -> Result<(), Error> {
        let _listening = listen(exchange.cancel.as_ref());
        let _closing = with_waker(|waker| self.0.closed.listen(waker));
        while Instant::now() < until {
            if self.0.closed.is_cancelled() {
                return Err(link::closed());
            }
            if let Some(error) = exchange.stop() {
                return Err(error);
            }
            park_until(Some(until));
        }
        Ok(())
    }

    fn attempt(&self, exchange: &Exchange, message: &impl Message) -> Result<Vec<u8>, Failure> {
        let _listening = listen(exchange.cancel.as_ref());
        let cancel = exchange.cancel.as_ref().and_then(CancelToken::descriptor);
        let frame = exchange.frame(message).map_err(Failure::Final)?;
        let connection = self.connection(exchange)?;
        let slot = self.seat(&connection, exchange)?;
        Flight {
            channel: self,
            connection: &connection,
            exchange,
            cancel,
            slot,
        }
        .run(frame)
    }

    fn connection(&self, exchange: &Exchange) -> Result<Arc<Connection>, Failure> {
        let attempts_before = self.link().attempts();
        loop {
            if let Some(error) = exchange.stop() {
                return Err(Failure::Final(error));
            }
            let patient = exchange.patient_until();
            let now = Instant::now();
            let step = with_waker(|waker| self.link().step(now, patient, attempts_before, waker));
            match step {
                Step::Use(connection) => return Ok(connection),
                Step::Unreachable(why) => return Err(Failure::Unreachable(why)),
                Step::Closed => return Err(Failure::Final(link::closed())),
                Step::Wait(until) => park_until(earlier(until, exchange.deadline)),
                Step::Connect => {
                    let result = match self.dial(exchange) {
                        // A caller's own deadline must not delay the attempts of others.
                        Err(_) if exchange.stop().is_some() => Err(None),
                        Err(error) => Err(Some(error)),
                        Ok(socket) => Ok(Arc::new(Connection::new(socket))),
                    };
                    self.link().connected(result, Instant::now());
                }
            }
        }
    }

    fn dial(&self, exchange: &Exchange) -> Result<Socket, DialError> {
        let Inner {
            options,
            address,
            closed,
            ..
        } = &*self.0;
        let stop = CancelToken::new();
        let _closing = closed.pass_on(&stop);
        let _cancelling = exchange.cancel.as_ref().map(|cancel| cancel.pass_on(&stop));
        let cancel = stop.descriptor();
        let dial = || {
            let until = earlier(Some(Instant::now() + CONNECT_MAX), exchange.deadline);
            Socket::dial(
                address,
                &Wait {
                    until,
                    cancel: cancel.as_ref(),
                },
            )
        };
        match (address, dial()) {
            (Address::Ipc(path), Err(_)) if options.start && !start::is_listening(path) => {
                start::start(path, exchange.deadline, &stop).map_err(DialError::of_start)?;
                dial()
            }
            (_, dialled) => dialled,
        }
    }

    /// Waits for a free slot.
    fn seat(&self, connection: &Arc<Connection>, exchange: &Exchange) -> Result<usize, Failure> {
        let mut ticket = None;
        let mut wire = connection.lock();
        loop {
            if let Some(broken) = &wire.broken {
                return Err(Failure::of(broken, &self.0.name, false));
            }
            match with_waker(|waker| wire.seat(&mut ticket, waker)) {
                Seat::Taken(slot) => return Ok(slot),
                Seat::AllAbandoned => {
                    self.broke(
                        connection,
                        &mut wire,
                        "it answered none of its calls in time",
                    );
                }
                Seat::Wait => {
                    drop(wire);
                    park_until(exchange.deadline);
                    wire = connection.lock();
                    if let (Some(error), Some(own)) = (exchange.stop(), ticket) {
                        wire.seat_leave(own);
                        return Err(Failure::Final(error));
                    }
                }
            }
        }
    }

    fn broke(&self, connection: &Arc<Connection>, wire: &mut Wire, why: &str) {
        if wire.break_off(why, false) {
            connection.socket.shut_down();
            self.link().lost(connection, wire.has_replied, why);
        }
    }
}

fn listen(cancel: Option<&CancelToken>) -> Option<Listening> {
    cancel.map(|cancel| with_waker(|waker| cancel.listen(waker)))
}

impl Connection {
    fn new(socket: Socket) -> Self {
        let wire = Mutex::new(Wire::new(socket.transport(), link::random_u32()));
        Self { socket, wire }
    }

    fn lock(&self) -> MutexGuard<'_, Wire> {
        self.wire.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One attempt of a call on its connection.
struct Flight<'a> {
    channel: &'a Channel,
    connection: &'a Arc<Connection>,
    exchange: &'a Exchange,
    cancel: Option<Descriptor>,
    slot: usize,
}

impl<'a> Flight<'a> {
    /// Sends the frame and returns the payload of its reply.
    fn run(&self, frame: Vec<u8>) -> Result<Vec<u8>, Failure> {
        let mut wire = self.connection.lock();
        if wire.is_idle() && self.connection.socket.is_stale() {
            self.channel.broke(self.connection, &mut wire, "it hung up");
        }
        if wire.broken.is_none() {
            wire.submit(self.slot, frame);
            self.flush(&mut wire);
        }
        loop {
            if let Some(reply) = wire.reply_take(self.slot) {
                wire.leave();
                return Ok(reply);
            }
            let was_sent = wire.was_sent(self.slot);
            if was_sent {
                self.exchange.note_sent();
            }
            let failure = match &wire.broken {
                Some(broken) => Some(Failure::of(broken, &self.channel.0.name, was_sent)),
                None => self.exchange.stop().map(Failure::Final),
            };
            if let Some(failure) = failure {
                wire.give_up(self.slot);
                wire.leave();
                return Err(failure);
            }
            wire = self.wait(wire);
        }
    }

    /// Receives for all callers, or sends for all, or sleeps until it is woken.
    fn wait(&self, mut wire: MutexGuard<'a, Wire>) -> MutexGuard<'a, Wire> {
        let is_writer = wire.outgoing().is_some() && !wire.has_writer;
        if wire.reader.is_some() {
            return self.receive(wire, is_writer);
        }
        if !is_writer {
            with_waker(|waker| wire.park(self.slot, waker));
            drop(wire);
            park_until(self.exchange.deadline);
            let mut wire = self.connection.lock();
            wire.unpark(self.slot);
            return wire;
        }
        wire.has_writer = true;
        drop(wire);
        let until = earlier(Some(Instant::now() + ROLE_LOOKS), self.exchange.deadline);
        let wait = Wait {
            until,
            cancel: self.cancel.as_ref(),
        };
        self.connection.socket.wait_for(PollFlags::OUT, &wait);
        let mut wire = self.connection.lock();
        wire.has_writer = false;
        self.flush(&mut wire);
        wire
    }

    /// Receives once for all callers, without the lock while it waits. It waits for room to send at
    /// the same time, because a server may stop reading until its replies are read.
    fn receive(&self, mut wire: MutexGuard<'a, Wire>, is_writer: bool) -> MutexGuard<'a, Wire> {
        let Some(mut reader) = wire.reader.take() else {
            return wire;
        };
        wire.has_writer |= is_writer;
        // Another thread sends, and may leave with its own reply before all is sent.
        let looks_again = !is_writer && wire.outgoing().is_some();
        let until = looks_again.then(|| Instant::now() + ROLE_LOOKS);
        let until = earlier(until, self.exchange.deadline);
        drop(wire);

        let socket = &self.connection.socket;
        let received = if is_writer || until.is_some() || self.cancel.is_some() {
            let wait = Wait {
                until,
                cancel: self.cancel.as_ref(),
            };
            let flags = if is_writer {
                PollFlags::IN | PollFlags::OUT
            } else {
                PollFlags::IN
            };
            socket.wait_for(flags, &wait);
            socket.receive_now(reader.room())
        } else {
            socket.receive(reader.room())
        };

        let mut wire = self.connection.lock();
        let ended = match received {
            Ok(0) => Err("it hung up".to_owned()),
            Ok(count) => {
                reader.took(count);
                wire.deliver(&mut reader).map_err(str::to_owned)
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(why(&error)),
        };
        wire.reader = Some(reader);
        if let Err(why) = ended {
            self.channel.broke(self.connection, &mut wire, &why);
        }
        if is_writer {
            wire.has_writer = false;
            self.flush(&mut wire);
        }
        wire
    }

    /// Sends as much as the socket takes.
    fn flush(&self, wire: &mut Wire) {
        while let Some(bytes) = wire.outgoing().filter(|_| !wire.has_writer) {
            match self.connection.socket.send(bytes) {
                Ok(count) => wire.sent(count),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(error) => return self.channel.broke(self.connection, wire, &why(&error)),
            }
        }
    }
}
