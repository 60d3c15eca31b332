//! The addresses of daemons: URLs, the default, and whether an address can be trusted.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::status::{Code, Error};

/// The longest path that fits into `sockaddr_un` with its NUL.
pub(crate) const SOCKET_PATH_BYTES_MAX: usize = 107;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Ipc(PathBuf),
    /// `HOST:PORT`
    Tcp(String),
}

impl Address {
    pub fn parse(url: &str) -> Result<Self, Error> {
        if let Some(path) = url.strip_prefix("ipc://") {
            if path.is_empty() {
                return Err(refused("ipc://: the path of the socket is missing"));
            }
            if path.len() > SOCKET_PATH_BYTES_MAX {
                return Err(refused(format!(
                    "the path of a socket has at most {SOCKET_PATH_BYTES_MAX} bytes, this one has \
                     {}: {path}",
                    path.len()
                )));
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

    /// The path of the event bus. `None` on tcp, and if the path would be too long.
    pub fn of_bus(&self) -> Option<PathBuf> {
        let Self::Ipc(path) = self else { return None };
        let path = path.to_str()?;
        let bus = format!("{}.events", path.strip_suffix(".sock").unwrap_or(path));
        (bus.len() <= SOCKET_PATH_BYTES_MAX).then(|| bus.into())
    }

    /// Checks before each connection whether the listener can be trusted. The error says why not.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Ipc(path) if path.parent() == Some(&directory_in_tmp()) => {
                check_private(&directory_in_tmp())
            }
            _ => Ok(()),
        }
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

/// The address that the command line uses by default: `$TINE_URL`, then `$TINE_SOCKET` (a path or a
/// URL), then the default socket of `tined`.
pub(crate) fn default_address() -> Result<Address, Error> {
    default_of(|name| std::env::var(name).ok())
}

fn default_of(variable: impl Fn(&str) -> Option<String>) -> Result<Address, Error> {
    let variable = |name| variable(name).filter(|value| !value.is_empty());
    if let Some(url) = variable("TINE_URL") {
        return Address::parse(&url);
    }
    if let Some(socket) = variable("TINE_SOCKET") {
        let is_url = socket.contains("://") || socket.starts_with("embedded:");
        let url = if is_url {
            socket
        } else {
            format!("ipc://{socket}")
        };
        return Address::parse(&url);
    }
    if let Some(runtime) = variable("XDG_RUNTIME_DIR").filter(|path| path.starts_with('/')) {
        return Address::parse(&format!("ipc://{runtime}/tine/tine.sock"));
    }
    Ok(Address::Ipc(directory_in_tmp().join("tine.sock")))
}

fn directory_in_tmp() -> PathBuf {
    format!("/tmp/tine-{}", rustix::process::geteuid().as_raw()).into()
}

/// Checks that only this user or root can write to a directory in /tmp: anybody else who listens
/// there would receive all calls.
fn check_private(directory: &Path) -> Result<(), String> {
    let Ok(found) = directory.symlink_metadata() else {
        return Ok(());
    };
    let user = rustix::process::geteuid().as_raw();
    let is_ours = found.uid() == user || found.uid() == 0;
    if found.is_dir() && is_ours && found.mode() & 0o022 == 0 {
        return Ok(());
    }
    let directory = directory.display();
    Err(format!(
        "{directory} belongs to others, or others can write to it; name a URL"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link;

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
        let longest = format!("/{}", "a".repeat(SOCKET_PATH_BYTES_MAX - 1));
        let address = Address::parse(&format!("ipc://{longest}"));
        assert_eq!(address, Ok(Address::Ipc(longest.clone().into())));
        let error = Address::parse(&format!("ipc://{longest}a")).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument);
        let message =
            format!("the path of a socket has at most 107 bytes, this one has 108: {longest}a");
        assert_eq!(error.message, message);
    }

    #[test]
    fn the_bus_is_beside_the_socket() {
        let bus = |url| Address::parse(url).unwrap().of_bus();
        assert_eq!(bus("ipc:///a/tine.sock"), Some("/a/tine.events".into()));
        assert_eq!(bus("ipc:///a/tine"), Some("/a/tine.events".into()));
        assert_eq!(bus("tcp://localhost:1"), None);
        assert_eq!(bus(&format!("ipc:///{}", "a".repeat(103))), None);
    }

    #[test]
    fn without_a_url_it_is_where_the_command_line_looks() {
        let place = |said: &[(&str, &str)]| {
            default_of(|name| {
                let found = said.iter().find(|(variable, _)| *variable == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        let ipc = |path: &str| Ok(Address::Ipc(path.into()));
        let tcp = || Ok(Address::Tcp("127.0.0.1:7461".into()));
        let in_tmp = directory_in_tmp().join("tine.sock");
        assert_eq!(place(&[]), Ok(Address::Ipc(in_tmp)));
        let runtime = ("XDG_RUNTIME_DIR", "/run/user/7");
        assert_eq!(place(&[runtime]), ipc("/run/user/7/tine/tine.sock"));
        assert_eq!(
            place(&[("TINE_SOCKET", "/own.sock"), runtime]),
            ipc("/own.sock")
        );
        assert_eq!(
            place(&[("TINE_SOCKET", "ipc:///own.sock")]),
            ipc("/own.sock")
        );
        assert_eq!(place(&[("TINE_SOCKET", "tcp://127.0.0.1:7461")]), tcp());
        assert!(place(&[("TINE_SOCKET", "embedded:x")]).is_err());
        let both = [
            ("TINE_URL", "tcp://127.0.0.1:7461"),
            ("TINE_SOCKET", "/own.sock"),
        ];
        assert_eq!(place(&both), tcp());
        assert_eq!(
            place(&[("TINE_URL", ""), runtime]),
            ipc("/run/user/7/tine/tine.sock")
        );
    }

    #[test]
    fn a_directory_that_others_can_write_to_is_not_trusted() {
        use std::os::unix::fs::DirBuilderExt;
        let directory = std::env::temp_dir().join(format!("tine-rs-own-{}", link::random_u32()));
        assert_eq!(check_private(&directory), Ok(()), "tined will make it");
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&directory)
            .unwrap();
        assert_eq!(check_private(&directory), Ok(()));
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(&directory, all).unwrap();
        assert!(check_private(&directory).is_err());
        std::fs::remove_dir(&directory).unwrap();
        assert!(check_private(Path::new("/dev/null")).is_err());
    }
}
