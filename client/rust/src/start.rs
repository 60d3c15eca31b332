//! Starts `tined` like the command line does. A lock makes sure that only one of many clients
//! starts it: its holder checks again whether a tined listens, starts one if not, and keeps the
//! lock until that tined is ready.

use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::cancel::CancelToken;

/// Returns whether somebody listens on the socket, without waiting. A full backlog counts as
/// listening.
pub(crate) fn is_listening(path: &Path) -> bool {
    let connect = || {
        let address = SocketAddrUnix::new(path)?;
        let socket = rustix::net::socket_with(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        rustix::io::ioctl_fionbio(&socket, true)?;
        rustix::net::connect(&socket, &address)
    };
    matches!(connect(), Ok(()) | Err(Errno::AGAIN))
}

/// The `tined` to start: `$TINED`, else the one in `$PATH`.
#[cfg(any(target_os = "linux", feature = "testing"))]
pub(crate) fn find_tined() -> Option<PathBuf> {
    if let Some(said) = std::env::var_os("TINED").filter(|path| !path.is_empty()) {
        return Some(said.into());
    }
    let path = std::env::var_os("PATH")?;
    let found = |directory: PathBuf| Some(directory.join("tined")).filter(|file| is_program(file));
    std::env::split_paths(&path).find_map(found)
}

#[cfg(any(target_os = "linux", feature = "testing"))]
fn is_program(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn start(_: &Path, _: Option<Instant>, _: &CancelToken) -> Result<(), String> {
    Err("no tined runs, and it is started on Linux only".into())
}

#[cfg(target_os = "linux")]
pub(crate) use linux::start;

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::{DirBuilder, File, OpenOptions};
    use std::io::{self, Read, Seek, SeekFrom};
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, ExitStatus, Stdio};
    use std::sync::{Mutex, PoisonError};
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::{FlockOperation, flock};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    use super::*;
    use crate::link::random_u32;

    const LOOK_AGAIN: Duration = Duration::from_millis(20);
    const READY_WITHIN: Duration = Duration::from_secs(60);
    const ENDED_WITHIN: Duration = Duration::from_secs(15); // tined waits 6 s for its clients
    const EXIT_IN_USE: i32 = 3;

    /// The daemons that this process started, so that it can reap those that have ended.
    static STARTED: Mutex<Vec<Child>> = Mutex::new(Vec::new());

    /// Returns when a tined is ready. The error says why there is none. Gives up at the deadline
    /// and when `stop` is cancelled; a tined that was started then continues to start.
    pub(crate) fn start(
        path: &Path,
        deadline: Option<Instant>,
        stop: &CancelToken,
    ) -> Result<(), String> {
        STARTED
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        let start = Start::begin(path, deadline, stop)?;
        if is_listening(path) {
            Ok(())
        } else {
            start.launch()
        }
    }

    struct Start<'a> {
        tined: PathBuf,
        socket: PathBuf,
        log_path: PathBuf,
        log_bytes: u64, // the length of the log before the start
        deadline: Instant,
        stop: &'a CancelToken,
        _lock: File,
    }

    enum Launched {
        Ready,
        Ended(ExitStatus),
    }

    impl<'a> Start<'a> {
        /// Takes the lock, and waits until another process has released it.
        fn begin(
            path: &Path,
            deadline: Option<Instant>,
            stop: &'a CancelToken,
        ) -> Result<Self, String> {
            let fail =
                |error: io::Error| format!("no tined runs, and none can be started: {error}");
            let tined = find_tined().ok_or("no tined runs, and none is installed in PATH")?;
            let directory = state_directory().ok_or(
                "no tined runs, and without $HOME or $XDG_STATE_HOME there is no place for its log",
            )?;
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&directory)
                .map_err(fail)?;
            let lock = open_private(&directory.join("start.lock")).map_err(fail)?;
            let log_path = directory.join("tined.log");
            let log_bytes = open_private(&log_path)
                .and_then(|log| log.metadata())
                .map_err(fail)?;
            loop {
                match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                    Ok(()) => break,
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => {
                        let is_late = deadline.is_some_and(|at| Instant::now() >= at);
                        if is_late || stop.is_cancelled() {
                            return Err("no tined runs, and another process is starting one".into());
                        }
                        std::thread::sleep(LOOK_AGAIN);
                    }
                    Err(error) => return Err(fail(error.into())),
                }
            }
            let limit = Instant::now() + READY_WITHIN;
            Ok(Self {
                tined,
                socket: std::path::absolute(path).map_err(fail)?, // tined leaves this directory
                log_path,
                log_bytes: log_bytes.len(),
                deadline: deadline.map_or(limit, |deadline| deadline.min(limit)),
                stop,
                _lock: lock,
            })
        }

        fn launch(&self) -> Result<(), String> {
            let mut launched = self.launch_once()?;
            if self.is_in_use(&launched) && !is_listening(&self.socket) {
                self.wait_for_holder();
                if is_listening(&self.socket) {
                    return Ok(());
                }
                if self.stop.is_cancelled() || Instant::now() >= self.deadline {
                    return Err("another tined has the socket, and does not answer".into());
                }
                launched = self.launch_once()?;
            }
            match launched {
                Launched::Ready => Ok(()),
                Launched::Ended(_) if is_listening(&self.socket) => Ok(()),
                Launched::Ended(status) => Err(self.last_words(status)),
            }
        }

        fn is_in_use(&self, launched: &Launched) -> bool {
            matches!(launched, Launched::Ended(status) if status.code() == Some(EXIT_IN_USE))
        }

        fn launch_once(&self) -> Result<Launched, String> {
            let fail = |error: io::Error| format!("tined cannot be started: {error}");
            // tined reports here that it is ready, as a service does to systemd.
            let name = format!("tine-start-{}-{:08x}", std::process::id(), random_u32());
            let address = SocketAddr::from_abstract_name(&name).map_err(fail)?;
            let ready = UnixDatagram::bind_addr(&address).map_err(fail)?;
            let log = open_private(&self.log_path).map_err(fail)?;

            let mut command = Command::new(&self.tined);
            command
                .arg("--socket")
                .arg(&self.socket)
                .arg("--log-file")
                .arg(&self.log_path);
            command
                .env("NOTIFY_SOCKET", format!("@{name}"))
                .current_dir("/");
            if std::env::var_os("TINE_IDLE_EXIT").is_none() {
                command.env("TINE_IDLE_EXIT", "30m");
            }
            command
                .stdin(Stdio::null())
                .stdout(log.try_clone().map_err(fail)?)
                .stderr(log);
            leave_everything(&mut command);
            let child = command.spawn().map_err(fail)?;
            self.wait_for(child, &ready)
        }

        /// Waits until the tined is ready or has ended.
        fn wait_for(&self, mut child: Child, ready: &UnixDatagram) -> Result<Launched, String> {
            let process = pidfd(child.id());
            let is_ready = match &process {
                Some(process) => {
                    let mut wanted = [
                        PollFd::new(ready, PollFlags::IN),
                        PollFd::new(process, PollFlags::IN),
                    ];
                    self.poll_until(&mut wanted, self.deadline, || false);
                    !wanted[0].revents().is_empty()
                }
                None => {
                    let mut wanted = [PollFd::new(ready, PollFlags::IN)];
                    self.poll_until(&mut wanted, self.deadline, || false)
                }
            };
            let ended = if is_ready {
                None
            } else {
                child.try_wait().ok().flatten()
            };
            STARTED
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(child);
            match ended {
                Some(status) => Ok(Launched::Ended(status)),
                None if is_ready => Ok(Launched::Ready),
                None => Err(format!(
                    "tined was started but is not ready; see {}",
                    self.log_path.display()
                )),
            }
        }

        /// Waits for the process that the socket's lock names. It does not answer: either it is
        /// stopping and finishes accepted requests, or it is starting and its starter gave up.
        fn wait_for_holder(&self) {
            let mut lock = self.socket.clone().into_os_string();
            lock.push(".lock");
            let text = std::fs::read_to_string(lock).unwrap_or_default();
            let digits = text
                .trim_start()
                .split(|c: char| !c.is_ascii_digit())
                .next();
            let holder = digits
                .and_then(|digits| digits.parse().ok())
                .and_then(pidfd);
            if let Some(holder) = holder {
                let until = self.deadline.min(Instant::now() + ENDED_WITHIN);
                let mut wanted = [PollFd::new(&holder, PollFlags::IN)];
                self.poll_until(&mut wanted, until, || is_listening(&self.socket));
            }
        }

        /// Returns false if the time is up, `stop` is cancelled, or `is_done` returns true.
        fn poll_until(
            &self,
            wanted: &mut [PollFd<'_>],
            until: Instant,
            is_done: impl Fn() -> bool,
        ) -> bool {
            loop {
                let left = until.saturating_duration_since(Instant::now());
                let step = Timespec::try_from(left.min(LOOK_AGAIN));
                match poll(wanted, step.ok().as_ref()) {
                    Ok(0) if left.is_zero() || self.stop.is_cancelled() || is_done() => {
                        return false;
                    }
                    Ok(0) | Err(Errno::INTR) => {}
                    Ok(_) => return true,
                    Err(_) => return false,
                }
            }
        }

        /// Returns why the tined ended, from what it wrote to its log.
        fn last_words(&self, status: ExitStatus) -> String {
            let mut text = String::new();
            if let Ok(mut log) = File::open(&self.log_path) {
                let _ = log.seek(SeekFrom::Start(self.log_bytes));
                let _ = log.take(4096).read_to_string(&mut text);
            }
            match text.lines().find_map(|line| line.split_once("tined: ")) {
                Some((_, why)) => format!("tined does not start: {why}"),
                None => {
                    format!(
                        "tined was started and ended ({status}); see {}",
                        self.log_path.display()
                    )
                }
            }
        }
    }

    fn open_private(path: &Path) -> io::Result<File> {
        let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NOCTTY).bits();
        OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(flags as i32)
            .open(path)
    }

    fn state_directory() -> Option<PathBuf> {
        let absolute = |name| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|p| p.is_absolute())
        };
        let state = absolute("XDG_STATE_HOME");
        state
            .or_else(|| Some(absolute("HOME")?.join(".local/state")))
            .map(|base| base.join("tine"))
    }

    fn pidfd(process: u32) -> Option<rustix::fd::OwnedFd> {
        let pid = i32::try_from(process).ok().and_then(Pid::from_raw)?;
        pidfd_open(pid, PidfdFlags::empty()).ok()
    }

    /// Gives the child a session of its own and closes this process's descriptors in it, so that a
    /// reader of our output does not have to wait for the end of tined.
    #[allow(unsafe_code)]
    fn leave_everything(command: &mut Command) {
        const FIRST: libc::c_uint = 3;
        let in_child = || {
            rustix::process::setsid()?;
            // SAFETY: it only marks descriptors; on an old kernel it does nothing.
            unsafe {
                libc::close_range(
                    FIRST,
                    libc::c_uint::MAX,
                    libc::CLOSE_RANGE_CLOEXEC as libc::c_int,
                )
            };
            Ok(())
        };
        // SAFETY: between fork and exec it makes two system calls and touches no memory.
        unsafe { command.pre_exec(in_child) };
    }
}
