//! The calls in flight on one connection. Makes no system calls.
//!
//! A request's id names its slot. One of the waiting callers receives for all of them and passes
//! each reply to its owner. When its own reply has come it leaves and wakes another caller, which
//! continues. So there is no thread that only reads, and a single caller sends and receives without
//! a hand-over. What could not be sent at once is in the outbox; one caller at a time sends it.

use std::collections::VecDeque;
use std::task::Waker;

use crate::sp::{self, FrameReader, Transport};

/// The server refuses the 65th request of a connection.
pub(crate) const IN_FLIGHT_MAX: usize = 64;
const COUNTER_MASK: u32 = 0x1ff_ffff; // 25 bits; six bits are the slot, one is ID_BIT

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Waiting,
    Answered,
    /// Its caller has left. It counts as in flight until its reply comes.
    Abandoned,
}

#[derive(Debug)]
struct Slot {
    id: u32,
    state: State,
    was_sent: bool,
    reply: Vec<u8>,
    waker: Option<Waker>,
}

/// A frame that is not completely sent.
#[derive(Debug)]
struct Frame {
    slot: usize,
    bytes: Vec<u8>,
    sent_to: usize,
    has_begun: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seat {
    Taken(usize),
    /// There is no slot; the waker is in the queue.
    Wait,
    /// The callers of all 64 slots have given up; the connection must be closed.
    AllAbandoned,
}

/// Why a connection ended.
#[derive(Clone, Debug)]
pub(crate) struct Broken {
    pub why: String,
    /// The client closed it.
    pub is_closed: bool,
}

#[derive(Debug)]
pub(crate) struct Wire {
    transport: Transport,
    slots: Vec<Slot>,
    free: Vec<usize>,
    counter: u32,
    abandoned_count: usize,
    queue: VecDeque<(u64, Waker)>,
    last_ticket: u64,
    outbox: VecDeque<Frame>,
    /// `None` while a caller receives.
    pub reader: Option<FrameReader>,
    /// A caller is waiting to send the outbox.
    pub has_writer: bool,
    pub broken: Option<Broken>,
    pub has_replied: bool,
}

impl Wire {
    pub fn new(transport: Transport, seed: u32) -> Self {
        let slot = |_| Slot {
            id: 0,
            state: State::Free,
            was_sent: false,
            reply: Vec::new(),
            waker: None,
        };
        Self {
            transport,
            slots: (0..IN_FLIGHT_MAX).map(slot).collect(),
            free: (0..IN_FLIGHT_MAX).rev().collect(),
            counter: seed,
            abandoned_count: 0,
            queue: VecDeque::new(),
            last_ticket: 0,
            outbox: VecDeque::new(),
            reader: Some(FrameReader::new(transport)),
            has_writer: false,
            broken: None,
            has_replied: false,
        }
    }

    /// Takes a slot, or queues the caller: slots are given in the order of arrival. `ticket` is the
    /// caller's place in the queue.
    pub fn seat(&mut self, ticket: &mut Option<u64>, waker: &Waker) -> Seat {
        let is_next = match (*ticket, self.queue.front()) {
            (Some(own), Some((first, _))) => own == *first,
            (None, first) => first.is_none(),
            (Some(_), None) => true,
        };
        if is_next {
            if let Some(index) = self.free.pop() {
                if ticket.take().is_some() {
                    self.queue.pop_front();
                }
                self.queue_wake();
                self.take(index);
                return Seat::Taken(index);
            }
            if self.abandoned_count == IN_FLIGHT_MAX {
                return Seat::AllAbandoned;
            }
        }
        match ticket.and_then(|own| self.queue.iter_mut().find(|(place, _)| *place == own)) {
            Some((_, kept)) => kept.clone_from(waker),
            None => {
                self.last_ticket += 1;
                *ticket = Some(self.last_ticket);
                self.queue.push_back((self.last_ticket, waker.clone()));
            }
        }
        Seat::Wait
    }

    /// Removes a caller from the queue.
    pub fn seat_leave(&mut self, ticket: u64) {
        self.queue.retain(|(place, _)| *place != ticket);
        self.queue_wake();
    }

    fn queue_wake(&self) {
        let may_go = !self.free.is_empty() || self.broken.is_some();
        if let Some((_, waker)) = self.queue.front().filter(|_| may_go) {
            waker.wake_by_ref();
        }
    }

    fn take(&mut self, index: usize) {
        self.counter = self.counter.wrapping_add(1);
        let counter = (self.counter & COUNTER_MASK) * IN_FLIGHT_MAX as u32;
        let slot = &mut self.slots[index];
        slot.id = sp::ID_BIT | counter | index as u32;
        slot.state = State::Waiting;
        slot.was_sent = false;
    }

    /// Puts the frame of a slot into the outbox: free bytes for the header, then a Request.
    pub fn submit(&mut self, slot: usize, mut bytes: Vec<u8>) {
        let sent_to = sp::frame_finish(&mut bytes, self.slots[slot].id, self.transport);
        self.outbox.push_back(Frame {
            slot,
            bytes,
            sent_to,
            has_begun: false,
        });
    }

    /// The bytes to send next.
    pub fn outgoing(&self) -> Option<&[u8]> {
        self.outbox
            .front()
            .map(|frame| &frame.bytes[frame.sent_to..])
    }

    pub fn sent(&mut self, count: usize) {
        let Some(frame) = self.outbox.front_mut() else {
            return;
        };
        frame.sent_to += count;
        frame.has_begun |= count > 0;
        if frame.sent_to == frame.bytes.len() {
            self.slots[frame.slot].was_sent = true;
            self.outbox.pop_front();
        }
    }

    /// Whether the only call is one that was not sent yet, so that no bytes may arrive.
    pub fn is_idle(&self) -> bool {
        self.free.len() == IN_FLIGHT_MAX - 1 && self.outbox.is_empty()
    }

    pub fn was_sent(&self, slot: usize) -> bool {
        self.slots[slot].was_sent
    }

    /// Passes the payloads of `reader` to their owners. A reply that nobody waits for is dropped.
    pub fn deliver(&mut self, reader: &mut FrameReader) -> Result<(), &'static str> {
        while let Some(payload) = reader.next_payload()? {
            let Some((id, _)) = payload.split_first_chunk() else {
                return Err("it sent a frame that is not of SP");
            };
            let id = u32::from_be_bytes(*id);
            self.has_replied = true;
            let index = id as usize % IN_FLIGHT_MAX;
            let slot = &mut self.slots[index];
            if slot.id != id {
                continue;
            }
            match slot.state {
                State::Waiting => {
                    slot.reply = payload;
                    slot.state = State::Answered;
                    if let Some(waker) = slot.waker.take() {
                        waker.wake();
                    }
                }
                State::Abandoned => {
                    self.abandoned_count -= 1;
                    self.release(index);
                }
                State::Free | State::Answered => {}
            }
        }
        Ok(())
    }

    /// Takes the reply of a slot, which begins with its id, and frees the slot.
    pub fn reply_take(&mut self, slot: usize) -> Option<Vec<u8>> {
        if self.slots[slot].state != State::Answered {
            return None;
        }
        let reply = std::mem::take(&mut self.slots[slot].reply);
        self.release(slot);
        Some(reply)
    }

    /// Gives up the call of a slot: its caller leaves without a reply.
    pub fn give_up(&mut self, slot: usize) {
        self.slots[slot].waker = None;
        let unsent = |frame: &Frame| frame.slot == slot && !frame.has_begun;
        let is_unsent = self.outbox.iter().any(unsent);
        self.outbox.retain(|frame| !unsent(frame));
        if is_unsent || self.slots[slot].state == State::Answered || self.broken.is_some() {
            self.release(slot);
        } else {
            self.slots[slot].state = State::Abandoned;
            self.abandoned_count += 1;
            self.queue_wake(); // all slots may be abandoned now
        }
    }

    fn release(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        slot.id = 0;
        slot.state = State::Free;
        slot.reply = Vec::new();
        slot.waker = None;
        self.free.push(index);
        self.queue_wake();
    }

    /// Wakes `waker` when the slot is answered, or when its caller must receive or send.
    pub fn park(&mut self, slot: usize, waker: &Waker) {
        match &mut self.slots[slot].waker {
            Some(kept) => kept.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    pub fn unpark(&mut self, slot: usize) {
        self.slots[slot].waker = None;
    }

    /// Wakes another caller if nobody receives or sends after this one has left.
    pub fn leave(&mut self) {
        let has_work = !self.outbox.is_empty() && !self.has_writer;
        if self.reader.is_some() || has_work {
            self.hand_over();
        }
    }

    /// Wakes a caller that waits for its reply, to take over receiving or sending.
    pub fn hand_over(&mut self) {
        let waits = |slot: &&mut Slot| slot.state == State::Waiting && slot.waker.is_some();
        if let Some(waker) = self
            .slots
            .iter_mut()
            .find(waits)
            .and_then(|slot| slot.waker.take())
        {
            waker.wake();
        }
    }

    /// Ends all calls. Returns false if the connection was already broken.
    pub fn break_off(&mut self, why: &str, is_closed: bool) -> bool {
        if self.broken.is_some() {
            return false;
        }
        self.broken = Some(Broken {
            why: why.to_owned(),
            is_closed,
        });
        self.outbox.clear();
        for slot in &mut self.slots {
            if let Some(waker) = slot.waker.take() {
                waker.wake();
            }
        }
        for (_, waker) in self.queue.drain(..) {
            waker.wake();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire() -> Wire {
        Wire::new(Transport::Ipc, 7)
    }

    fn seat(wire: &mut Wire) -> usize {
        match wire.seat(&mut None, Waker::noop()) {
            Seat::Taken(slot) => slot,
            other => panic!("{other:?}"),
        }
    }

    fn send(wire: &mut Wire, slot: usize) -> u32 {
        wire.submit(slot, vec![0; sp::HEADER_BYTES]);
        let frame = wire.outgoing().unwrap();
        let id = u32::from_be_bytes(frame[9..13].try_into().unwrap());
        wire.sent(sp::HEADER_BYTES);
        id
    }

    fn answer(wire: &mut Wire, id: u32) {
        let mut frame = [1, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0];
        frame[9..].copy_from_slice(&id.to_be_bytes());
        let mut reader = FrameReader::new(Transport::Ipc);
        reader.room()[..13].copy_from_slice(&frame);
        reader.took(13);
        wire.deliver(&mut reader).unwrap();
    }

    #[test]
    fn the_65th_waits_for_its_turn_and_nobody_overtakes_it() {
        let mut wire = wire();
        let slots: Vec<usize> = (0..IN_FLIGHT_MAX).map(|_| seat(&mut wire)).collect();
        let ids: Vec<u32> = slots.iter().map(|slot| send(&mut wire, *slot)).collect();
        let (mut first, mut second) = (None, None);
        assert_eq!(wire.seat(&mut first, Waker::noop()), Seat::Wait);
        assert_eq!(wire.seat(&mut second, Waker::noop()), Seat::Wait);
        answer(&mut wire, ids[3]);
        assert!(wire.reply_take(slots[3]).is_some());
        assert_eq!(wire.seat(&mut None, Waker::noop()), Seat::Wait);
        assert_eq!(wire.seat(&mut second, Waker::noop()), Seat::Wait);
        assert_eq!(wire.seat(&mut first, Waker::noop()), Seat::Taken(slots[3]));
    }

    #[test]
    fn who_leaves_the_queue_lets_the_next_one_in() {
        let mut wire = wire();
        let slots: Vec<usize> = (0..IN_FLIGHT_MAX).map(|_| seat(&mut wire)).collect();
        let id = send(&mut wire, slots[0]);
        let (mut first, mut second) = (None, None);
        wire.seat(&mut first, Waker::noop());
        wire.seat(&mut second, Waker::noop());
        wire.seat_leave(first.unwrap());
        answer(&mut wire, id);
        wire.reply_take(slots[0]);
        assert_eq!(wire.seat(&mut second, Waker::noop()), Seat::Taken(slots[0]));
    }

    #[test]
    fn a_late_reply_frees_the_slot_of_a_call_that_was_given_up() {
        let mut wire = wire();
        let slot = seat(&mut wire);
        let id = send(&mut wire, slot);
        wire.give_up(slot);
        assert_eq!(wire.abandoned_count, 1);
        assert_eq!(wire.free.len(), IN_FLIGHT_MAX - 1);
        answer(&mut wire, id);
        assert_eq!(wire.free.len(), IN_FLIGHT_MAX);
        answer(&mut wire, id); // a second reply has no owner
        assert_eq!(wire.free.len(), IN_FLIGHT_MAX);
    }

    #[test]
    fn a_call_given_up_before_it_was_sent_never_is() {
        let mut wire = wire();
        let (first, second) = (seat(&mut wire), seat(&mut wire));
        wire.submit(first, vec![0; sp::HEADER_BYTES]);
        wire.submit(second, vec![0; sp::HEADER_BYTES]);
        wire.sent(1);
        wire.give_up(second);
        wire.give_up(first); // partly sent: the rest must follow
        assert_eq!(wire.outgoing().map(<[u8]>::len), Some(sp::HEADER_BYTES - 1));
        wire.sent(sp::HEADER_BYTES - 1);
        assert_eq!(wire.outgoing(), None);
        assert_eq!(
            (wire.free.len(), wire.abandoned_count),
            (IN_FLIGHT_MAX - 1, 1)
        );
    }

    #[test]
    fn a_connection_whose_calls_were_all_given_up_is_of_no_use() {
        let mut wire = wire();
        for _ in 0..IN_FLIGHT_MAX {
            let slot = seat(&mut wire);
            send(&mut wire, slot);
            wire.give_up(slot);
        }
        assert_eq!(wire.seat(&mut None, Waker::noop()), Seat::AllAbandoned);
    }

    #[test]
    fn ids_have_the_highest_bit_and_are_not_soon_used_again() {
        let mut wire = wire();
        let mut seen = std::collections::HashSet::new();
        for _ in 0..500 {
            let slot = seat(&mut wire);
            let id = send(&mut wire, slot);
            assert!(id & sp::ID_BIT != 0 && seen.insert(id));
            answer(&mut wire, id);
            wire.reply_take(slot).unwrap();
        }
    }
}
