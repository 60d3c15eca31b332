//! Daemons for tests, each with its own store and socket (feature `testing`, Linux).

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::address::SOCKET_PATH_BYTES_MAX;
use crate::blocking::Channel;
use crate::link::random_u32;
use crate::start::find_tined;
use crate::status::{Code, Error};
use crate::v1::StoreServiceClient;

const READY_WITHIN: Duration = Duration::from_secs(60);
const STOP_WITHIN: Duration = Duration::from_secs(30); // tined waits 6 s for its clients
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Ends the daemon if the test that started it was killed.
const IDLE_EXIT: &str = "1h";

/// How to start a [`Daemon`].
#[derive(Clone, Debug)]
pub struct DaemonOptions {
    program: Option<PathBuf>,
    arguments: Vec<String>,
    ready_within: Duration,
    stop_within: Duration,
}

impl Default for DaemonOptions {
    fn default() -> Self {
        Self {
            program: None,
            arguments: Vec::new(),
            ready_within: READY_WITHIN,
            stop_within: STOP_WITHIN,
        }
    }
}

impl DaemonOptions {
    /// `$TINED`, or the `tined` in `$PATH`, with a store on the disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// The program to run.
    pub fn program(mut self, path: impl Into<PathBuf>) -> Self {
        self.program = Some(path.into());
        self
    }

    /// Further arguments for `tined`. With `--ephemeral` the store is in memory: it is faster, and
    /// empty again after [`Daemon::start_again`].
    pub fn arguments<T: Into<String>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// How long the daemon may take until it is ready; the default is 60 s.
    pub fn ready_within(mut self, limit: Duration) -> Self {
        self.ready_within = limit;
        self
    }

    /// How long the daemon may take to stop before it is killed; the default is 30 s.
    pub fn stop_within(mut self, limit: Duration) -> Self {
        self.stop_within = limit;
        self
    }

    /// Starts a daemon and returns when it answers.
    pub fn start(self) -> Result<Daemon, Error> {
        let program = self.program.clone().or_else(find_tined).ok_or_else(|| {
            unavailable(
                "there is no tined to start: install it in $PATH, or name it by $TINED or \
                 DaemonOptions::program",
            )
        })?;
        let directory = Directory::make()
            .map_err(|error| unavailable(format!("no directory for tined: {error}")))?;
        let mut daemon = Daemon {
            options: self,
            program,
            directory,
            child: None,
        };
        daemon.start_again()?;
        Ok(daemon)
    }
}

/// A `tined` for a test. It does not inherit the test's `TINE_` variables. Dropping it stops the
/// daemon, or kills it if it does not stop, and removes its store.
#[derive(Debug)]
pub struct Daemon {
    options: DaemonOptions,
    program: PathBuf,
    directory: Directory,
    child: Option<Child>,
}

impl Daemon {
    /// Starts a daemon with [`DaemonOptions::new`] and returns when it answers.
    pub fn start() -> Result<Self, Error> {
        DaemonOptions::new().start()
    }

    /// Returns the URL of its socket, for [`Channel::connect`].
    pub fn url(&self) -> String {
        format!("ipc://{}", self.socket().display())
    }

    /// Returns the path of its socket.
    pub fn socket(&self) -> PathBuf {
        self.directory.0.join("tine.sock")
    }

    /// Returns the temporary directory of its socket, store and log. The test may use it too.
    pub fn directory(&self) -> &Path {
        &self.directory.0
    }

    /// Returns a blocking client with a connection of its own.
    pub fn client(&self) -> StoreServiceClient {
        let channel = Channel::connect(&self.url());
        StoreServiceClient::new(channel.expect("a path that fits a socket"))
    }

    /// Returns its log.
    pub fn log(&self) -> String {
        let bytes = std::fs::read(self.log_path()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns its process id, or `None` after [`stop`](Self::stop) and [`kill`](Self::kill).
    pub fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Starts it again after [`stop`](Self::stop) or [`kill`](Self::kill), on the same socket and
    /// store, and returns when it answers. Does nothing while it runs.
    pub fn start_again(&mut self) -> Result<(), Error> {
        if self.child.is_some() {
            return Ok(());
        }
        let fail = |error: io::Error| {
            unavailable(format!("cannot start {}: {error}", self.program.display()))
        };
        let notify = self.directory.0.join("notify");
        let _ = std::fs::remove_file(&notify); // of an earlier start
        let ready = UnixDatagram::bind(&notify).map_err(fail)?;
        ready.set_read_timeout(Some(LOOK_AGAIN)).map_err(fail)?;
        let child = self.spawn(&notify).map_err(fail)?;
        self.child = Some(child);
        let is_ready = self.wait_until_ready(&ready);
        if is_ready.is_err() {
            self.kill();
        }
        is_ready
    }

    /// Stops it by SIGTERM and waits for its end. Returns an error if it ended with a failure, or
    /// if it did not end in time and was killed.
    pub fn stop(&mut self) -> Result<(), Error> {
        let Some(child) = &mut self.child else {
            return Ok(());
        };
        let _ = kill_process(Pid::from_child(child), Signal::TERM); // it may have ended
        let status = wait_until_ended(child, self.options.stop_within);
        self.kill();
        match status {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(self.failed(&format!("tined ended with {status}"))),
            None => Err(self.failed("tined did not stop in time and was killed")),
        }
    }

    /// Kills it, like a crash. Acknowledged writes are in the store.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn log_path(&self) -> PathBuf {
        self.directory.0.join("log")
    }

    fn spawn(&self, notify: &Path) -> io::Result<Child> {
        let log = open_log(&self.log_path())?;
        let mut command = Command::new(&self.program);
        command.arg("--socket").arg(self.socket());
        if !self.options.arguments.iter().any(|a| a == "--ephemeral") {
            command.arg("--data").arg(self.directory.0.join("store"));
        }
        command.args(&self.options.arguments);
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"TINE_") {
                command.env_remove(name);
            }
        }
        command
            .env("TINE_IDLE_EXIT", IDLE_EXIT)
            .env("NOTIFY_SOCKET", notify)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
    }

    /// Waits until the daemon reports that it is ready: then it answers on all its sockets.
    fn wait_until_ready(&mut self, ready: &UnixDatagram) -> Result<(), Error> {
        let until = Instant::now() + self.options.ready_within;
        loop {
            let mut said = [0; 64];
            match ready.recv(&mut said) {
                Ok(count) if said[..count].starts_with(b"READY=1") => return Ok(()),
                Ok(_) | Err(_) => {}
            }
            let ended = self.child.as_mut().map(Child::try_wait);
            if let Some(Ok(Some(status))) = ended {
                return Err(self.failed(&format!("tined ended with {status}")));
            }
            if Instant::now() >= until {
                return Err(self.failed("tined is not ready in time"));
            }
        }
    }

    fn failed(&self, why: &str) -> Error {
        unavailable(format!("{why}; its log:\n{}", self.log()))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("{}", error.message);
        }
    }
}

/// Waits for the end of a process. Returns `None` when the time is up.
fn wait_until_ended(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let until = Instant::now() + limit;
    let mut pause = Duration::from_millis(1);
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if Instant::now() >= until {
            return None;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LOOK_AGAIN);
    }
}

fn open_log(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}

fn unavailable(message: impl Into<String>) -> Error {
    Error::new(Code::Unavailable, Code::Unavailable.name(), message)
}

/// A temporary directory, removed when it is dropped.
#[derive(Debug)]
struct Directory(PathBuf);

impl Directory {
    /// Makes a directory in `$TMPDIR`, or in /tmp if that is too long for the path of a socket.
    fn make() -> io::Result<Self> {
        let name = format!("tine-{:08x}", random_u32());
        let mut path = std::env::temp_dir().join(&name);
        if path.join("tine.events").as_os_str().len() > SOCKET_PATH_BYTES_MAX {
            path = Path::new("/tmp").join(&name);
        }
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
