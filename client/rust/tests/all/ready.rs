//! Waiting until the daemon answers.

use std::sync::mpsc;
use std::time::Duration;

use tine_client::{Channel, Code, Error, Options};

use crate::support::*;

const SHORT: Duration = Duration::from_millis(60);

/// Calls `ready` of both clients.
fn ready(options: Options, timeout: Duration) -> [Result<(), Error>; 2] {
    let blocking = Channel::open(options.clone()).unwrap().ready(timeout);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let tokio = runtime.block_on(async {
        let channel = tine_client::tokio::Channel::open(options).unwrap();
        channel.ready(timeout).await
    });
    [blocking, tokio]
}

fn check(results: [Result<(), Error>; 2], code: Code, words: &str) {
    for result in results {
        let error = result.unwrap_err();
        assert_eq!(error.code, code, "{error}");
        assert!(error.message.contains(words), "{error}");
    }
}

#[test]
fn ready_returns_when_a_daemon_that_is_started_later_answers() {
    let mut daemon = Daemon::ephemeral();
    daemon.kill();
    let options = Options::new().url(daemon.url());
    let (began, begins) = mpsc::channel();
    let waiting = std::thread::spawn(move || {
        began.send(()).unwrap();
        ready(options, LONG)
    });
    begins.recv().unwrap();
    daemon.start();
    assert_eq!(waiting.join().unwrap(), [Ok(()), Ok(())]);
}

#[test]
fn without_a_daemon_ready_says_why() {
    let directory = Directory::new();
    let path = directory.path("tine.sock").display().to_string();
    let options = Options::new().url(format!("ipc://{path}"));
    let words = format!("no tined answers at {path}: No such file or directory");
    let timeout = Duration::from_millis(500); // time for an attempt on a busy machine
    check(ready(options, timeout), Code::Unavailable, &words);
}

#[test]
fn ready_does_not_wait_for_ever_for_a_daemon_that_accepts_and_says_nothing() {
    let daemon = Daemon::ephemeral();
    let options = Options::new().url(daemon.url());
    let channel = Channel::open(options.clone()).unwrap();
    channel.ready(LONG).unwrap();
    daemon.pause();
    let error = channel.ready(SHORT).unwrap_err();
    assert!(error.message.contains("did not answer in time"), "{error}");
    // Only the kernel accepts a new connection; there is no hello.
    check(
        ready(options, SHORT),
        Code::Unavailable,
        "did not answer in time",
    );
    daemon.go_on();
    channel.ready(LONG).unwrap();
}

#[test]
fn what_a_daemon_refuses_is_returned_at_once() {
    let directory = Directory::new();
    let file = directory.token_file(TOKEN);
    let listen = format!("tcp://127.0.0.1:{}", crate::call::free_port());
    let _daemon = Daemon::with(&["--ephemeral", "--listen", &listen, "--token-file", &file]);
    let options = Options::new().url(&listen).token("another");
    check(ready(options, LONG), Code::Unauthenticated, "");
    let closed = Channel::connect(&listen).unwrap();
    closed.close();
    assert_eq!(closed.ready(LONG).unwrap_err().code, Code::Cancelled);
}
