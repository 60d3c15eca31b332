//! Sockets for threads. They wait with poll(2), so that a call can be cancelled while it waits.

use std::io;
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt,
};

use crate::address::Address;
use crate::cancel::Descriptor;
use crate::link::{DialError, why};
use crate::sp::{self, HELLO_BYTES, Protocol, Transport};

/// A connect(2) to a full backlog sleeps. It sleeps this long at a time, then checks for the end.
const CONNECT_STEP: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

/// The limits of a wait: a time and a cancellation.
pub(crate) struct Wait<'a> {
    pub until: Option<Instant>,
    pub cancel: Option<&'a Descriptor>,
}

impl Wait<'_> {
    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

impl Socket {
    /// Connects and exchanges hellos.
    pub fn dial(address: &Address, wait: &Wait<'_>) -> Result<Self, DialError> {
        address.check()?;
        let socket = match address {
            Address::Ipc(path) => {
                Self::Unix(connect_unix(path, wait).map_err(|error| DialError::of_unix(&error))?)
            }
            Address::Tcp(place) => Self::Tcp(connect_tcp(place, wait).map_err(|e| why(&e))?),
        };
        socket.hello_exchange(wait)?;
        Ok(socket)
    }

    /// Connects to the bus and sends the hello. The hello of the bus is read with its first
    /// message.
    pub fn subscribe(path: &Path) -> io::Result<Self> {
        let wait = Wait {
            until: Some(Instant::now() + CONNECT_STEP),
            cancel: None,
        };
        let socket = Self::Unix(connect_unix(path, &wait)?);
        socket.send(&sp::hello(Protocol::Sub))?;
        Ok(socket)
    }

    pub fn transport(&self) -> Transport {
        match self {
            Self::Unix(_) => Transport::Ipc,
            Self::Tcp(_) => Transport::Tcp,
        }
    }

    fn hello_exchange(&self, wait: &Wait<'_>) -> Result<(), String> {
        let sent = self
            .send(&sp::hello(Protocol::Req))
            .map_err(|error| why(&error))?;
        let mut hello = [0; HELLO_BYTES];
        let mut got = 0;
        while sent == HELLO_BYTES && got < HELLO_BYTES {
            if !self.wait_for(PollFlags::IN, wait) {
                return Err("it accepted, but did not say hello".into());
            }
            match self.receive_now(&mut hello[got..]) {
                Ok(0) => break,
                Ok(count) => got += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(why(&error)),
            }
        }
        if got < HELLO_BYTES {
            return Err("it hung up before it said hello".into());
        }
        sp::hello_check(Protocol::Req, &hello).map_err(Into::into)
    }

    /// Sends as much as the socket takes.
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        Ok(rustix::io::retry_on_intr(|| {
            rustix::net::send(self, bytes, flags)
        })?)
    }

    /// Receives what is there, without waiting.
    pub fn receive_now(&self, room: &mut [u8]) -> io::Result<usize> {
        self.receive_with(room, RecvFlags::DONTWAIT)
    }

    /// Receives, and sleeps until something is there.
    pub fn receive(&self, room: &mut [u8]) -> io::Result<usize> {
        self.receive_with(room, RecvFlags::empty())
    }

    fn receive_with(&self, room: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
        loop {
            match rustix::net::recv(self, &mut *room, flags) {
                Ok((count, _)) => return Ok(count),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns whether the other side has closed the connection, before anything is sent. Needed on
    /// tcp only: there a first send to a closed connection succeeds, on a Unix socket it fails.
    pub fn is_stale(&self) -> bool {
        matches!(self, Self::Tcp(stream) if has_ended(stream))
    }

    /// Waits for one of `flags`. Returns false if the time is up or the call was cancelled.
    pub fn wait_for(&self, flags: PollFlags, wait: &Wait<'_>) -> bool {
        loop {
            let mut wanted = vec![PollFd::new(self, flags)];
            if let Some(cancel) = wait.cancel {
                wanted.push(PollFd::new(cancel, PollFlags::IN));
            }
            let left = wait
                .until
                .map(|until| until.saturating_duration_since(Instant::now()));
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            match poll(&mut wanted, timeout.as_ref()) {
                Ok(0) if !wait.is_over() => {}
                Ok(0) => return false,
                Ok(_) => return !wanted[0].revents().is_empty(),
                Err(Errno::INTR) => {}
                Err(_) => return true, // the next read returns the error
            }
        }
    }

    /// Ends all waits for this socket.
    pub fn shut_down(&self) {
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

/// Returns whether a stream that must be silent has something to read: its end, or noise.
pub(crate) fn has_ended(stream: impl AsFd) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    !matches!(
        rustix::net::recv(stream, &mut [0; 1][..], flags),
        Err(Errno::AGAIN)
    )
}

fn connect_unix(path: &Path, wait: &Wait<'_>) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let socket = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(CONNECT_STEP))?;
    loop {
        match rustix::net::connect(&socket, &address) {
            Ok(()) => return Ok(socket.into()),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let cancelled = wait.cancel.is_some_and(is_readable);
                if cancelled || wait.is_over() {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "nobody accepts"));
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn is_readable(descriptor: &Descriptor) -> bool {
    let mut wanted = [PollFd::new(descriptor, PollFlags::IN)];
    poll(
        &mut wanted,
        Some(&Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        }),
    )
    .is_ok_and(|count| count > 0)
}

fn connect_tcp(place: &str, wait: &Wait<'_>) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in place.to_socket_addrs()? {
        let left = wait
            .until
            .map(|until| until.saturating_duration_since(Instant::now()));
        let left = left
            .unwrap_or(crate::link::CONNECT_MAX)
            .max(Duration::from_millis(1));
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_dial_tells_whether_nobody_listens() {
        let path = std::env::temp_dir().join(format!("tine-rs-dial-{}", crate::link::random_u32()));
        let address = Address::Ipc(path.clone());
        let wait = Wait {
            until: None,
            cancel: None,
        };
        let is_absent = || Socket::dial(&address, &wait).unwrap_err().is_absent;
        assert!(is_absent(), "no such file");
        let listener = UnixListener::bind(&path).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| drop(listener.accept().unwrap()));
            assert!(!is_absent(), "it hangs up");
        });
        drop(listener);
        assert!(is_absent(), "connection refused");
        std::fs::remove_file(&path).unwrap();
    }
}
