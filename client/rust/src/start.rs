//! Starting `tined`, as the command line does. Whoever holds the lock looks once more whether one
//! listens, then starts one and keeps the lock until it is ready. So of twenty at once one starts
//! it, and nineteen find it.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

/// Whether somebody accepts connections there.
pub(crate) fn is_listening(path: &Path) -> bool {
    UnixStream::connect(path).is_ok()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn start(_path: &Path, _deadline: Option<Instant>) -> Result<(), String> {
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
    use std::path::PathBuf;
    use std::process::{Child, Command, ExitStatus, Stdio};
    use std::sync::{Mutex, PoisonError};
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::{FlockOperation, flock};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    use super::*;
    use crate::link::random_u32;

    const READY_WITHIN: Duration = Duration::from_secs(60);
    const ENDED_WITHIN: Duration = Duration::from_secs(15); // tined gives up on its clients after 6 s
    const EXIT_IN_USE: i32 = 3;

    /// Those that were started here, to take leave of the dead among them.
    static STARTED: Mutex<Vec<Child>> = Mutex::new(Vec::new());

    /// Returns when a tined is ready. The error says why there is none.
    pub(crate) fn start(path: &Path, deadline: Option<Instant>) -> Result<(), String> {
        STARTED
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        let start = Start::begin(path, deadline)?;
        if is_listening(path) {
            Ok(())
        } else {
            start.launch()
        }
    }

    struct Start {
        tined: PathBuf,
        socket: PathBuf,
        log_path: PathBuf,
        log_bytes: u64, // of the log, before
        deadline: Instant,
        _lock: File,
    }

    enum Launched {
        Ready,
        Ended(ExitStatus),
    }

    impl Start {
        /// Takes the lock; waits for the one who has it.
        fn begin(path: &Path, deadline: Option<Instant>) -> Result<Self, String> {
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
            rustix::io::retry_on_intr(|| flock(&lock, FlockOperation::LockExclusive))
                .map_err(|error| fail(error.into()))?;
            let limit = Instant::now() + READY_WITHIN;
            Ok(Self {
                tined,
                socket: std::path::absolute(path).map_err(fail)?, // tined leaves this directory
                log_path,
                log_bytes: log_bytes.len(),
                deadline: deadline.map_or(limit, |deadline| deadline.min(limit)),
                _lock: lock,
            })
        }

        fn launch(&self) -> Result<(), String> {
            let mut launched = self.launch_once()?;
            if self.is_in_use(&launched) && !is_listening(&self.socket) {
                // Who has the socket and does not answer is about to leave.
                self.wait_for_holder();
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
            // It says here that it is ready, as a service would say it to systemd.
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

        /// Waits until it is ready or has ended.
        fn wait_for(&self, mut child: Child, ready: &UnixDatagram) -> Result<Launched, String> {
            let process = pidfd(child.id());
            let is_ready = match &process {
                Some(process) => {
                    let mut wanted = [
                        PollFd::new(ready, PollFlags::IN),
                        PollFd::new(process, PollFlags::IN),
                    ];
                    poll_until(&mut wanted, self.deadline);
                    !wanted[0].revents().is_empty()
                }
                None => poll_until(&mut [PollFd::new(ready, PollFlags::IN)], self.deadline),
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

        /// Waits for the end of the process that the socket's lock names: a tined that was told to
        /// stop, and still answers what it had accepted.
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
                poll_until(&mut [PollFd::new(&holder, PollFlags::IN)], until);
            }
        }

        /// What it said last, to its log, is why it ended.
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

    fn find_tined() -> Option<PathBuf> {
        if let Some(said) = std::env::var_os("TINED").filter(|path| !path.is_empty()) {
            return Some(said.into());
        }
        let path = std::env::var_os("PATH")?;
        let found =
            |directory: PathBuf| Some(directory.join("tined")).filter(|file| is_program(file));
        std::env::split_paths(&path).find_map(found)
    }

    fn is_program(file: &Path) -> bool {
        file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
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

    /// False: the time is up.
    fn poll_until(wanted: &mut [PollFd<'_>], until: Instant) -> bool {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match poll(wanted, Timespec::try_from(left).ok().as_ref()) {
                Ok(count) => return count > 0,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// A session of its own, and none of this process's files: whoever reads our output to its end
    /// must not have to wait for tined's.
    #[allow(unsafe_code)]
    fn leave_everything(command: &mut Command) {
        const FIRST: libc::c_uint = 3;
        let in_child = || {
            rustix::process::setsid()?;
            // SAFETY: it only marks descriptors; where the kernel is too old it does nothing.
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
