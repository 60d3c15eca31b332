//! SP, the protocol of nanomsg and NNG: hellos and frames. Makes no system calls.

/// The kind of connection. Frames on tcp have no leading 01.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A Unix socket.
    Ipc,
    /// TCP.
    Tcp,
}

/// The protocol of this side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Sends requests; the other side must be REP.
    Req,
    /// Receives events; the other side must be PUB.
    Sub,
}

pub const HELLO_BYTES: usize = 8;

/// The header of a frame on ipc, with the request id.
pub const HEADER_BYTES: usize = 13;
pub const ID_BYTES: usize = 4;

/// The highest bit of a request id. SP requires it to end the list of ids.
pub const ID_BIT: u32 = 1 << 31;

/// The longest payload: a reply of 16 MiB and its envelope.
pub const PAYLOAD_BYTES_MAX: u64 = (16 << 20) + (64 << 10);

const FRAME_TYPE: u8 = 1;
const INBOX_BYTES: usize = 64 << 10;
const BODY_STEP_BYTES: usize = 1 << 20;

pub fn hello(of: Protocol) -> [u8; HELLO_BYTES] {
    let protocol = match of {
        Protocol::Req => 0x30,
        Protocol::Sub => 0x21,
    };
    [0, b'S', b'P', 0, 0, protocol, 0, 0]
}

/// Checks that the hello of the other side has the protocol that this side needs.
pub fn hello_check(own: Protocol, got: &[u8; HELLO_BYTES]) -> Result<(), &'static str> {
    let (protocol, why) = match own {
        Protocol::Req => (0x31, "the listener is not a REP socket"),
        Protocol::Sub => (0x20, "the listener is not a PUB socket"),
    };
    if *got == [0, b'S', b'P', 0, 0, protocol, 0, 0] {
        Ok(())
    } else {
        Err(why)
    }
}

/// Writes the header of a frame into its first [`HEADER_BYTES`] bytes, which must be free. Returns
/// where the frame begins.
pub fn frame_finish(frame: &mut [u8], id: u32, transport: Transport) -> usize {
    let length = (frame.len() - HEADER_BYTES + ID_BYTES) as u64;
    frame[0] = FRAME_TYPE;
    frame[1..9].copy_from_slice(&length.to_be_bytes());
    frame[9..13].copy_from_slice(&id.to_be_bytes());
    match transport {
        Transport::Ipc => 0,
        Transport::Tcp => 1,
    }
}

/// Splits received bytes into payloads. Small frames go through the inbox, several at a time; the
/// rest of a large one is received directly into its own buffer.
#[derive(Debug)]
pub struct FrameReader {
    transport: Transport,
    inbox: Vec<u8>,
    begin: usize,
    end: usize,
    body: Option<Body>,
}

#[derive(Debug)]
struct Body {
    bytes: Vec<u8>,
    filled: usize,
    length: usize,
}

impl FrameReader {
    pub fn new(transport: Transport) -> Self {
        Self {
            transport,
            inbox: Vec::new(),
            begin: 0,
            end: 0,
            body: None,
        }
    }

    /// Returns the buffer for the next bytes, which is never empty. After receiving, call
    /// [`took`](Self::took).
    pub fn room(&mut self) -> &mut [u8] {
        if self.is_direct() {
            let body = self.body.as_mut().expect("is_direct");
            let step = (body.length - body.filled).min(BODY_STEP_BYTES);
            body.bytes.resize(body.filled + step, 0);
            return &mut body.bytes[body.filled..];
        }
        if self.inbox.is_empty() {
            self.inbox.resize(INBOX_BYTES, 0);
        }
        self.inbox.copy_within(self.begin..self.end, 0);
        self.end -= self.begin;
        self.begin = 0;
        &mut self.inbox[self.end..]
    }

    pub fn took(&mut self, count: usize) {
        if self.is_direct() {
            self.body.as_mut().expect("is_direct").filled += count;
        } else {
            self.end += count;
        }
    }

    /// Returns the next payload, or `None` if it is not complete yet. After an error the connection
    /// cannot be used.
    pub fn next_payload(&mut self) -> Result<Option<Vec<u8>>, &'static str> {
        if self.body.is_none() && !self.header_read()? {
            return Ok(None);
        }
        let body = self.body.as_mut().expect("the header was read");
        let inbox = &self.inbox[self.begin..self.end];
        let part = &inbox[..inbox.len().min(body.length - body.filled)];
        if !part.is_empty() {
            body.bytes.truncate(body.filled);
            body.bytes.extend_from_slice(part);
            body.filled += part.len();
            self.begin += part.len();
        }
        if body.filled < body.length {
            return Ok(None);
        }
        let mut body = self.body.take().expect("it is there");
        body.bytes.truncate(body.length);
        Ok(Some(body.bytes))
    }

    /// Whether all received bytes were returned as payloads.
    pub fn is_empty(&self) -> bool {
        self.body.is_none() && self.begin == self.end
    }

    fn is_direct(&self) -> bool {
        let left = self
            .body
            .as_ref()
            .map_or(0, |body| body.length - body.filled);
        self.begin == self.end && left > INBOX_BYTES / 2
    }

    fn header_read(&mut self) -> Result<bool, &'static str> {
        let bytes = &self.inbox[self.begin..self.end];
        let type_bytes = usize::from(self.transport == Transport::Ipc);
        if type_bytes > 0 && bytes.first().is_some_and(|first| *first != FRAME_TYPE) {
            return Err("it sent a frame that is not of SP");
        }
        let Some(length) = bytes.get(type_bytes..type_bytes + 8) else {
            return Ok(false);
        };
        let length = u64::from_be_bytes(length.try_into().expect("eight bytes"));
        if length > PAYLOAD_BYTES_MAX {
            return Err("it sent a reply that is too long");
        }
        self.begin += type_bytes + 8;
        let length = length as usize;
        // One allocation, of which only the received part is touched. Rounding up helps glibc: it
        // keeps freed memory of up to twice the largest freed block, and a reply is in memory twice
        // while it is decoded. With the exact length the pages of each reply are returned to the
        // kernel, and calls take 30 to 40 % longer.
        let bytes = Vec::with_capacity(length.next_power_of_two());
        self.body = Some(Body {
            bytes,
            filled: 0,
            length,
        });
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(length: u64) -> Vec<u8> {
        [&[FRAME_TYPE][..], &length.to_be_bytes()].concat()
    }

    fn put(reader: &mut FrameReader, bytes: &[u8]) {
        reader.room()[..bytes.len()].copy_from_slice(bytes);
        reader.took(bytes.len());
    }

    #[test]
    fn a_large_payload_is_received_into_one_allocation() {
        let length = (5 << 20) + 1;
        let mut reader = FrameReader::new(Transport::Ipc);
        put(&mut reader, &header(length as u64));
        assert_eq!(reader.next_payload(), Ok(None));
        let begin = reader.room().as_ptr();
        let payload = loop {
            let count = reader.room().len().min(100_000);
            put(&mut reader, &vec![7; count]);
            if let Some(payload) = reader.next_payload().unwrap() {
                break payload;
            }
        };
        assert_eq!((payload.as_ptr(), payload.len()), (begin, length));
        put(&mut reader, &header(PAYLOAD_BYTES_MAX + 1));
        assert!(reader.next_payload().is_err());
    }
}
