//! Clients that start a tined.

use std::time::Duration;

use tine_client::v1::{self, StoreServiceClient};
use tine_client::{Channel, Code, Options, Request};

use crate::support::*;

#[test]
fn tined_is_started_once_when_asked() {
    let daemon = Daemon::ephemeral(); // only its directory is used
    let socket = daemon.directory().join("started.sock");
    let state = daemon.directory().join("state");
    let program = std::env::current_exe().unwrap();
    // The client is configured by the environment, so each one is a process of its own.
    let children: Vec<_> = (0..5)
        .map(|_| {
            std::process::Command::new(&program)
                .args(["start::start_child", "--exact", "--ignored", "--nocapture"])
                .env("TINED", build_directory().join("server/tined"))
                .env_remove("TINE_URL")
                .env("TINE_SOCKET", &socket)
                .env("TINE_DATA", daemon.directory().join("started"))
                .env("XDG_STATE_HOME", &state)
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    stop_by_lock(&daemon.directory().join("started.sock.lock"));
    assert!(state.join("tine/tined.log").exists());
}

#[test]
#[ignore = "a part of tined_is_started_once_when_asked"]
fn start_child() {
    let channel = Channel::open(Options::new().start(true)).unwrap();
    channel.ready(LONG).unwrap();
    let client = StoreServiceClient::new(channel);
    client.health(v1::HealthRequest {}).unwrap();
}

#[test]
fn a_tined_that_cannot_start_says_why() {
    let directory = Directory::new();
    let program = std::env::current_exe().unwrap();
    let output = std::process::Command::new(program)
        .args([
            "start::start_fails_child",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env("TINED", "/nowhere/tined")
        .env_remove("TINE_URL")
        .env("TINE_SOCKET", directory.path("t.sock"))
        .env("XDG_STATE_HOME", directory.path("state"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
#[ignore = "a part of a_tined_that_cannot_start_says_why"]
fn start_fails_child() {
    let channel = Channel::open(Options::new().start(true)).unwrap();
    let error = channel.ready(LONG).unwrap_err();
    assert!(error.message.contains("tined cannot be started"), "{error}");
    let error = StoreServiceClient::new(channel)
        .health(v1::HealthRequest {})
        .unwrap_err();
    assert_eq!(error.code, Code::Unavailable);
    assert!(error.message.contains("tined cannot be started"), "{error}");
}

#[test]
fn a_deadline_holds_while_another_starts_a_tined() {
    let directory = Directory::new();
    let state = directory.path("state/tine");
    std::fs::create_dir_all(&state).unwrap();
    let lock = std::fs::File::create(state.join("start.lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let program = std::env::current_exe().unwrap();
    let output = std::process::Command::new(program)
        .args([
            "start::start_waits_child",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env("TINED", build_directory().join("server/tined"))
        .env_remove("TINE_URL")
        .env("TINE_SOCKET", directory.path("t.sock"))
        .env("XDG_STATE_HOME", directory.path("state"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
#[ignore = "a part of a_deadline_holds_while_another_starts_a_tined"]
fn start_waits_child() {
    let short = || Request::new(v1::HealthRequest {}).timeout(Duration::from_millis(50));
    let options = || Options::new().start(true);
    let channel = Channel::open(options()).unwrap();
    let client = StoreServiceClient::new(channel.clone());
    assert_eq!(
        client.health(short()).unwrap_err().code,
        Code::DeadlineExceeded
    );
    let code = std::thread::scope(|scope| {
        let calling = scope.spawn(|| client.health(v1::HealthRequest {}).unwrap_err().code);
        channel.close();
        calling.join().unwrap()
    });
    assert_eq!(code, Code::Cancelled);

    let runtime = tokio::runtime::Runtime::new().unwrap();
    let code = runtime.block_on(async {
        let channel = tine_client::tokio::Channel::open(options()).unwrap();
        let client = v1::tokio::StoreServiceClient::new(channel);
        client.health(short()).await.unwrap_err().code
    });
    assert_eq!(code, Code::DeadlineExceeded);
    drop(runtime); // waits for the threads of the runtime
}
