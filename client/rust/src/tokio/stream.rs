//! Sockets for tokio.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ::tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use ::tokio::net::{TcpStream, UnixStream};

use crate::address::Address;
use crate::blocking::socket::has_ended;
use crate::link::{DialError, why};
use crate::sp::{self, HELLO_BYTES, Protocol, Transport};

/// The pause before a connect(2) to a full backlog is repeated.
const CONNECT_PAUSE: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    /// Connects and exchanges hellos.
    pub async fn dial(address: &Address) -> Result<Self, DialError> {
        address.check()?;
        let mut stream = Self::connect(address)
            .await
            .map_err(|error| match address {
                Address::Ipc(_) => DialError::of_unix(&error),
                Address::Tcp(_) => why(&error).into(),
            })?;
        stream
            .send(&sp::hello(Protocol::Req))
            .await
            .map_err(|error| why(&error))?;
        let mut hello = [0; HELLO_BYTES];
        let mut got = 0;
        while got < HELLO_BYTES {
            let room = &mut hello[got..];
            match std::future::poll_fn(|cx| stream.poll_receive(cx, room)).await {
                Ok(0) => return Err("it hung up before it said hello".into()),
                Ok(count) => got += count,
                Err(error) => return Err(why(&error).into()),
            }
        }
        sp::hello_check(Protocol::Req, &hello)?;
        Ok(stream)
    }

    async fn connect(address: &Address) -> io::Result<Self> {
        match address {
            Address::Ipc(path) => loop {
                match UnixStream::connect(path).await {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        ::tokio::time::sleep(CONNECT_PAUSE).await;
                    }
                    result => return result.map(Self::Unix),
                }
            },
            Address::Tcp(place) => {
                let stream = TcpStream::connect(place).await?;
                stream.set_nodelay(true)?;
                Ok(Self::Tcp(stream))
            }
        }
    }

    /// Connects to the bus and sends the hello. The hello of the bus is read with its first
    /// message.
    pub async fn subscribe(path: &Path) -> io::Result<Self> {
        let mut stream = Self::Unix(UnixStream::connect(path).await?);
        stream.send(&sp::hello(Protocol::Sub)).await?;
        Ok(stream)
    }

    async fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = std::future::poll_fn(|cx| self.poll_send(cx, bytes)).await?;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    pub fn transport(&self) -> Transport {
        match self {
            Self::Unix(_) => Transport::Ipc,
            Self::Tcp(_) => Transport::Tcp,
        }
    }

    /// Returns whether the other side has closed the connection, before anything is sent. Needed on
    /// tcp only: there a first send to a closed connection succeeds, on a Unix socket it fails.
    pub fn is_stale(&self) -> bool {
        matches!(self, Self::Tcp(stream) if has_ended(stream))
    }

    /// Sends as much as the socket takes.
    pub fn send_now(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.try_write(bytes),
            Self::Tcp(stream) => stream.try_write(bytes),
        }
    }

    pub fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    pub fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        room: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut room = ReadBuf::new(room);
        ready!(match self {
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, &mut room),
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, &mut room),
        })?;
        Poll::Ready(Ok(room.filled().len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tokio::net::UnixListener;

    #[tokio::test]
    async fn a_dial_tells_whether_nobody_listens() {
        let path = std::env::temp_dir().join(format!("tine-rs-dial-{}", crate::link::random_u32()));
        let address = Address::Ipc(path.clone());
        let dial = async || Stream::dial(&address).await.unwrap_err().is_absent;
        assert!(dial().await, "no such file");
        let listener = UnixListener::bind(&path).unwrap();
        let hang_up = async || drop(listener.accept().await.unwrap());
        let (is_absent, ()) = ::tokio::join!(dial(), hang_up());
        assert!(!is_absent, "it hangs up");
        drop(listener);
        assert!(dial().await, "connection refused");
        std::fs::remove_file(&path).unwrap();
    }
}
