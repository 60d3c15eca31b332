//! One attempt of a call on a connection, for tokio.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::exchange::{Exchange, Failure};
use crate::tokio::channel::{Channel, Connection};
use crate::wire::Seat;

/// One attempt of a call on its connection. Dropping it gives up the call.
pub(super) struct Flight<'a> {
    channel: &'a Channel,
    connection: &'a Arc<Connection>,
    exchange: &'a Exchange,
    slot: usize,
    is_over: bool,
}

impl<'a> Flight<'a> {
    /// Takes a slot of the connection, and waits for a free one.
    pub async fn begin(
        channel: &'a Channel,
        connection: &'a Arc<Connection>,
        exchange: &'a Exchange,
    ) -> Result<Self, Failure> {
        let mut queued = Queued {
            channel,
            connection,
            ticket: None,
        };
        let slot = poll_fn(|cx| queued.poll(cx)).await?;
        Ok(Self {
            channel,
            connection,
            exchange,
            slot,
            is_over: false,
        })
    }

    /// Sends as much as the socket takes; the driver sends the rest.
    pub fn submit(&self, frame: Vec<u8>) {
        let mut state = self.connection.lock();
        if state.wire.is_idle() && state.stream.is_stale() {
            self.channel
                .broke(self.connection, &mut state, "it hung up");
        }
        if state.wire.broken.is_some() {
            return;
        }
        state.wire.submit(self.slot, frame);
        if let Err(why) = state.send_now() {
            self.channel.broke(self.connection, &mut state, &why);
        }
    }

    /// Returns the payload of the reply.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Vec<u8>, Failure>> {
        let mut state = self.connection.lock();
        if let Some(reply) = state.wire.reply_take(self.slot) {
            self.is_over = true;
            return Poll::Ready(Ok(reply));
        }
        let was_sent = state.wire.was_sent(self.slot);
        if was_sent {
            self.exchange.note_sent();
        }
        match &state.wire.broken {
            // Dropping the flight gives up the slot.
            Some(broken) => Poll::Ready(Err(Failure::of(broken, self.channel.name(), was_sent))),
            None => {
                state.wire.park(self.slot, cx.waker());
                Poll::Pending
            }
        }
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let mut state = self.connection.lock();
            if state.wire.was_sent(self.slot) {
                self.exchange.note_sent();
            }
            state.wire.give_up(self.slot);
        }
    }
}

/// The place of a call in the queue for a slot. Dropping it leaves the queue.
struct Queued<'a> {
    channel: &'a Channel,
    connection: &'a Arc<Connection>,
    ticket: Option<u64>,
}

impl Queued<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, Failure>> {
        let mut state = self.connection.lock();
        loop {
            if let Some(broken) = &state.wire.broken {
                return Poll::Ready(Err(Failure::of(broken, self.channel.name(), false)));
            }
            match state.wire.seat(&mut self.ticket, cx.waker()) {
                Seat::Taken(slot) => return Poll::Ready(Ok(slot)),
                Seat::Wait => return Poll::Pending,
                Seat::AllAbandoned => {
                    let why = "it answered none of its calls in time";
                    self.channel.broke(self.connection, &mut state, why);
                }
            }
        }
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.connection.lock().wire.seat_leave(ticket);
        }
    }
}
