//! Real daemons and hostile peers, in directories of their own, and helpers of the tests.

mod peer;

use std::io::Write;
use std::ops::Deref;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub use peer::Peer;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tine_client::testing::{self, DaemonOptions};
use tine_client::v1::{self, StoreServiceClient};
use tine_client::{Channel, Options};

/// A timeout that no test should reach.
pub const LONG: Duration = Duration::from_secs(60);

pub const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Returns the directory of the release build of the C side.
pub fn build_directory() -> PathBuf {
    std::env::var_os("TINE_BUILD").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/release"),
        PathBuf::from,
    )
}

pub struct Directory(PathBuf);

impl Directory {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("tine-rs-{}-{count}", std::process::id()));
            match std::fs::create_dir(&path) {
                Ok(()) => return Self(path),
                // A killed process with the same id has left its directory.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => panic!("{}: {error}", path.display()),
            }
        }
    }

    /// Writes a token file that only its owner can read. Returns its path.
    pub fn token_file(&self, token: &str) -> String {
        let path = self.path("token");
        let mut options = std::fs::OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .unwrap();
        writeln!(file, "{token}").unwrap();
        path.display().to_string()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A daemon of the release build, with functions that only these tests need.
pub struct Daemon(testing::Daemon);

impl Deref for Daemon {
    type Target = testing::Daemon;

    fn deref(&self) -> &testing::Daemon {
        &self.0
    }
}

impl Daemon {
    /// With a store in memory.
    pub fn ephemeral() -> Self {
        Self::with(&["--ephemeral"])
    }

    /// With a store on the disk.
    pub fn durable() -> Self {
        Self::with(&[])
    }

    pub fn with(arguments: &[&str]) -> Self {
        let options = DaemonOptions::new()
            .program(build_directory().join("server/tined"))
            .arguments(arguments.iter().copied());
        Self(options.start().unwrap_or_else(|error| panic!("{error}")))
    }

    pub fn tokio_client(&self) -> v1::tokio::StoreServiceClient {
        let channel = tine_client::tokio::Channel::connect(&self.url()).expect("a good URL");
        v1::tokio::StoreServiceClient::new(channel)
    }

    pub fn client_with(&self, options: Options) -> StoreServiceClient {
        let channel = Channel::open(options.url(self.url())).expect("a good URL");
        StoreServiceClient::new(channel)
    }

    pub fn start(&mut self) {
        self.0
            .start_again()
            .unwrap_or_else(|error| panic!("{error}"));
    }

    pub fn kill(&mut self) {
        self.0.kill();
    }

    pub fn process(&self) -> Pid {
        let id = self.id().expect("it runs");
        Pid::from_raw(id.try_into().unwrap()).unwrap()
    }

    /// Stops the process by SIGSTOP: its sockets stay open, but it does nothing.
    pub fn pause(&self) {
        kill_process(self.process(), Signal::STOP).unwrap();
        waitpid(Some(self.process()), WaitOptions::UNTRACED).unwrap(); // until it has stopped
    }

    pub fn go_on(&self) {
        kill_process(self.process(), Signal::CONT).unwrap();
    }
}

/// Kills the daemon, which would wait for unfinished calls if it were stopped.
impl Drop for Daemon {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// Stops the tined whose process id is in the lock of a socket.
pub fn stop_by_lock(lock: &Path) {
    let text = std::fs::read_to_string(lock).expect("the lock of a tined that was started");
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    let pid = rustix::process::Pid::from_raw(digits.parse().unwrap()).unwrap();
    let ended = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let mut wanted = [rustix::event::PollFd::new(
        &ended,
        rustix::event::PollFlags::IN,
    )];
    let limit = rustix::event::Timespec {
        tv_sec: 60,
        tv_nsec: 0,
    };
    assert_eq!(
        rustix::event::poll(&mut wanted, Some(&limit)),
        Ok(1),
        "it does not end"
    );
}

pub fn model() -> Option<v1::ModelRef> {
    Some(v1::ModelRef {
        provider: "anthropic".into(),
        name: "claude-sonnet-4".into(),
    })
}

pub fn new_session() -> v1::CreateSessionRequest {
    let session = v1::NewSession {
        project_dir: "/p".into(),
        model: model(),
        ..Default::default()
    };
    v1::CreateSessionRequest {
        session: Some(session),
        ..Default::default()
    }
}

pub fn create_session(client: &StoreServiceClient) -> String {
    client
        .create_session(new_session())
        .expect("a session")
        .session
        .expect("it")
        .id
}

pub fn get_session(id: &str) -> v1::GetSessionRequest {
    v1::GetSessionRequest {
        session_id: id.into(),
    }
}

pub fn text(text: &str) -> v1::Part {
    let text = v1::Text {
        text: text.into(),
        ..Default::default()
    };
    v1::Part {
        kind: Some(v1::part::Kind::Text(text)),
        ..Default::default()
    }
}

pub fn user_message(session_id: &str, content: &str) -> v1::AppendMessageRequest {
    let message = v1::NewMessage {
        kind: v1::MessageKind::Conversation.into(),
        role: v1::Role::User.into(),
        parts: vec![text(content)],
        ..Default::default()
    };
    v1::AppendMessageRequest {
        session_id: session_id.into(),
        message: Some(message),
        ..Default::default()
    }
}

pub fn text_of(message: &v1::Message) -> &str {
    match &message.parts[0].kind {
        Some(v1::part::Kind::Text(text)) => &text.text,
        other => panic!("no text: {other:?}"),
    }
}

/// Returns all texts of a session's history.
pub fn texts(client: &StoreServiceClient, session_id: &str) -> Vec<String> {
    let request = v1::MessagesForSessionRequest {
        session_id: session_id.into(),
        ..Default::default()
    };
    let messages = client.messages_for_session_pages(request).items();
    messages
        .map(|message| text_of(&message.expect("a page")).to_owned())
        .collect()
}

/// An encoded message.
#[derive(Debug, Default)]
pub struct Raw(pub Vec<u8>);

impl prost::Message for Raw {
    fn encode_raw(&self, out: &mut impl prost::bytes::BufMut) {
        out.put_slice(&self.0);
    }

    fn merge_field(
        &mut self,
        _: u32,
        _: prost::encoding::WireType,
        _: &mut impl prost::bytes::Buf,
        _: prost::encoding::DecodeContext,
    ) -> Result<(), prost::DecodeError> {
        unreachable!("it is only encoded")
    }

    fn encoded_len(&self) -> usize {
        self.0.len()
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}
