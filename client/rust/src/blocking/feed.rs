//! A connection to the event bus, for a thread.

use std::path::Path;

use rustix::event::PollFlags;

use crate::blocking::socket::{Socket, Wait};
use crate::sp::{self, FrameReader, HELLO_BYTES, Protocol, Transport};

pub(crate) struct Feed {
    socket: Socket,
    hello: Vec<u8>,
    reader: FrameReader,
}

pub(crate) enum News {
    Message(Vec<u8>),
    Silence,
    Broken,
}

impl Feed {
    pub fn open(path: &Path) -> Option<Self> {
        let socket = Socket::subscribe(path).ok()?;
        let reader = FrameReader::new(Transport::Ipc);
        Some(Self {
            socket,
            hello: Vec::new(),
            reader,
        })
    }

    pub fn next(&mut self, wait: &Wait<'_>) -> News {
        loop {
            match self.reader.next_payload() {
                Ok(Some(message)) => return News::Message(message),
                Ok(None) => {}
                Err(_) => return News::Broken,
            }
            if !self.socket.wait_for(PollFlags::IN, wait) {
                return News::Silence;
            }
            if !self.receive() {
                return News::Broken;
            }
        }
    }

    /// Receives what the socket has. Returns false if the other side hung up or is not PUB.
    fn receive(&mut self) -> bool {
        let left = HELLO_BYTES - self.hello.len();
        let mut hello = [0; HELLO_BYTES];
        let room = if left > 0 {
            &mut hello[..left]
        } else {
            self.reader.room()
        };
        match self.socket.receive_now(room) {
            Ok(0) => return false,
            Ok(count) if left > 0 => self.hello.extend_from_slice(&hello[..count]),
            Ok(count) => self.reader.took(count),
            Err(error) => return error.kind() == std::io::ErrorKind::WouldBlock,
        }
        match self.hello.as_slice().try_into() {
            Ok(whole) => sp::hello_check(Protocol::Sub, whole).is_ok(),
            Err(_) => true,
        }
    }
}
