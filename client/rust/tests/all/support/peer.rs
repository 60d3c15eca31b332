//! `tests/wire_peer`, a peer that behaves badly in a chosen way.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use tine_client::v1::{self, StoreServiceClient};
use tine_client::{Channel, tokio};

use crate::support::{Directory, build_directory};

pub struct Peer {
    child: Child,
    directory: Directory,
}

impl Peer {
    /// Starts the peer and returns when it listens.
    pub fn start(mode: &str) -> Self {
        let directory = Directory::new();
        let mut child = Command::new(build_directory().join("tests/wire_peer"))
            .arg("--socket")
            .arg(directory.path("peer.sock"))
            .args(["--mode", mode])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("tests/wire_peer of the release build");
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        out.read_line(&mut line).expect("a line");
        assert_eq!(line.trim(), "ready");
        Self { child, directory }
    }

    pub fn url(&self) -> String {
        format!("ipc://{}", self.directory.path("peer.sock").display())
    }

    pub fn client(&self) -> StoreServiceClient {
        StoreServiceClient::new(Channel::connect(&self.url()).expect("a good URL"))
    }

    pub fn tokio_client(&self) -> v1::tokio::StoreServiceClient {
        let channel = tokio::Channel::connect(&self.url()).expect("a good URL");
        v1::tokio::StoreServiceClient::new(channel)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
