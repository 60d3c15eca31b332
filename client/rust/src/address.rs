//! Where a daemon listens.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::status::{Code, Error};

/// Of `sockaddr_un`, without the zero at its end.
const SOCKET_PATH_BYTES_MAX: usize = 107;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Ipc(PathBuf),
    /// Host and port.
    Tcp(String),
}

impl Address {
    pub fn parse(url: &str) -> Result<Self, Error> {
        if let Some(path) = url.strip_prefix("ipc://") {
            if path.is_empty() || path.len() > SOCKET_PATH_BYTES_MAX {
                return Err(refused(
                    "the path of a socket has 1 to 107 bytes: ipc://PATH",
                ));
            }
            return Ok(Self::Ipc(path.into()));
        }
        let Some(place) = url.strip_prefix("tcp://") else {
            return Err(refused(format!(
                "{url}: a URL is ipc://PATH or tcp://HOST:PORT"
            )));
        };
        match place.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
                Ok(Self::Tcp(place.to_owned()))
            }
            _ => Err(refused(format!("{url}: after tcp:// comes HOST:PORT"))),
        }
    }

    /// Where the bus is; none on tcp, and none if its path would be too long.
    pub fn of_bus(&self) -> Option<PathBuf> {
        let Self::Ipc(path) = self else { return None };
        let path = path.to_str()?;
        let bus = format!("{}.events", path.strip_suffix(".sock").unwrap_or(path));
        (bus.len() <= SOCKET_PATH_BYTES_MAX).then(|| bus.into())
    }

    pub fn name(&self) -> String {
        match self {
            Self::Ipc(path) => path.display().to_string(),
            Self::Tcp(place) => place.clone(),
        }
    }
}

fn refused(message: impl Into<String>) -> Error {
    Error::plain(Code::InvalidArgument, message)
}

/// Where `tined` listens by itself, and `$TINE_SOCKET` if that is set.
pub(crate) fn default_address() -> Result<Address, Error> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    if let Some(path) = variable("TINE_SOCKET") {
        return Address::parse(&format!("ipc://{path}"));
    }
    if let Some(runtime) = variable("XDG_RUNTIME_DIR").filter(|path| path.starts_with('/')) {
        return Address::parse(&format!("ipc://{runtime}/tine/tine.sock"));
    }
    let user = rustix::process::geteuid().as_raw();
    let directory = PathBuf::from(format!("/tmp/tine-{user}"));
    check_private(&directory, user)?;
    Ok(Address::Ipc(directory.join("tine.sock")))
}

/// In /tmp anybody could listen where tined would, and be told everything.
fn check_private(directory: &Path, user: u32) -> Result<(), Error> {
    let Ok(found) = directory.symlink_metadata() else {
        return Ok(());
    };
    let is_ours = found.uid() == user || found.uid() == 0;
    if found.is_dir() && is_ours && found.mode() & 0o022 == 0 {
        return Ok(());
    }
    let directory = directory.display();
    Err(Error::plain(
        Code::Unavailable,
        format!("{directory} belongs to others, or others can write to it; set TINE_SOCKET"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_a_socket_or_a_port() {
        assert_eq!(
            Address::parse("ipc:///a/b.sock"),
            Ok(Address::Ipc("/a/b.sock".into()))
        );
        assert_eq!(
            Address::parse("tcp://[::1]:7461"),
            Ok(Address::Tcp("[::1]:7461".into()))
        );
        for bad in [
            "",
            "ipc://",
            "tcp://",
            "tcp://host",
            "tcp://:1",
            "tcp://h:99999",
            "/a",
        ] {
            assert_eq!(
                Address::parse(bad).unwrap_err().code,
                Code::InvalidArgument,
                "{bad}"
            );
        }
        let long = format!("ipc:///{}", "a".repeat(SOCKET_PATH_BYTES_MAX));
        assert_eq!(
            Address::parse(&long).unwrap_err().code,
            Code::InvalidArgument
        );
    }

    #[test]
    fn the_bus_is_beside_the_socket() {
        let bus = |url| Address::parse(url).unwrap().of_bus();
        assert_eq!(bus("ipc:///a/tine.sock"), Some("/a/tine.events".into()));
        assert_eq!(bus("ipc:///a/tine"), Some("/a/tine.events".into()));
        assert_eq!(bus("tcp://localhost:1"), None);
        assert_eq!(bus(&format!("ipc:///{}", "a".repeat(103))), None);
    }
}
