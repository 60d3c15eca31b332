//! A connection to the event bus, for a task.

use std::future::poll_fn;
use std::path::Path;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ::tokio::time::timeout;

use crate::sp::{self, FrameReader, HELLO_BYTES, Protocol, Transport};
use crate::tokio::stream::Stream;

const SUBSCRIBE_MAX: Duration = Duration::from_millis(100);

pub(crate) struct Feed {
    stream: Stream,
    hello: Vec<u8>,
    reader: FrameReader,
}

impl Feed {
    pub async fn open(path: &Path) -> Option<Self> {
        let stream = timeout(SUBSCRIBE_MAX, Stream::subscribe(path))
            .await
            .ok()?
            .ok()?;
        let reader = FrameReader::new(Transport::Ipc);
        Some(Self {
            stream,
            hello: Vec::new(),
            reader,
        })
    }

    /// Returns the next message, or `None` if the bus cannot be used any more. Cancel safe.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        loop {
            match self.reader.next_payload() {
                Ok(Some(message)) => return Poll::Ready(Some(message)),
                Ok(None) => {}
                Err(_) => return Poll::Ready(None),
            }
            if !ready!(self.poll_receive(cx)) {
                return Poll::Ready(None);
            }
        }
    }

    /// Receives what the socket has. Returns false if the other side hung up or is not PUB.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        let left = HELLO_BYTES - self.hello.len();
        let mut hello = [0; HELLO_BYTES];
        let room = if left > 0 {
            &mut hello[..left]
        } else {
            self.reader.room()
        };
        match ready!(self.stream.poll_receive(cx, room)) {
            Ok(0) | Err(_) => return Poll::Ready(false),
            Ok(count) if left > 0 => self.hello.extend_from_slice(&hello[..count]),
            Ok(count) => self.reader.took(count),
        }
        Poll::Ready(match self.hello.as_slice().try_into() {
            Ok(whole) => sp::hello_check(Protocol::Sub, whole).is_ok(),
            Err(_) => true,
        })
    }
}
