//! The module `testing`.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tine_client::testing::{Daemon, DaemonOptions};
use tine_client::{Code, Error};

use crate::support::{Directory, LONG, build_directory, create_session, get_session};

fn tined() -> PathBuf {
    build_directory().join("server/tined")
}

fn options() -> DaemonOptions {
    DaemonOptions::new().program(tined())
}

fn check(result: Result<Daemon, Error>, words: &str) {
    let error = result.expect_err(words);
    assert_eq!(error.code, Code::Unavailable);
    assert!(error.message.contains(words), "{error}");
}

/// Makes a shell script that is started instead of tined.
fn script(directory: &Directory, text: &str) -> PathBuf {
    let path = directory.path("script");
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    path
}

#[test]
fn a_store_outlives_stop_and_kill_and_is_removed_at_the_end() {
    let mut daemon = options().start().unwrap();
    let id = create_session(&daemon.client());
    daemon.stop().unwrap();
    assert_eq!(daemon.id(), None);
    daemon.start_again().unwrap();
    daemon.client().get_session(get_session(&id)).unwrap();
    daemon.kill();
    daemon.start_again().unwrap();
    daemon.start_again().unwrap(); // does nothing while it runs
    daemon.client().get_session(get_session(&id)).unwrap();

    let process = format!("/proc/{}", daemon.id().unwrap());
    let directory = daemon.directory().to_owned();
    assert!(directory.exists() && Path::new(&process).exists());
    drop(daemon);
    assert!(!directory.exists() && !Path::new(&process).exists());
}

#[test]
fn two_daemons_have_nothing_in_common() {
    let [one, other] = [options().start().unwrap(), options().start().unwrap()];
    let id = create_session(&one.client());
    let error = other.client().get_session(get_session(&id)).unwrap_err();
    assert_eq!(error.code, Code::NotFound);
}

#[test]
fn a_daemon_that_does_not_stop_is_killed() {
    let mut daemon = options()
        .arguments(["--ephemeral"])
        .stop_within(Duration::from_millis(50))
        .start()
        .unwrap();
    let id = i32::try_from(daemon.id().unwrap()).unwrap();
    let process = rustix::process::Pid::from_raw(id).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::STOP).unwrap();
    let error = daemon.stop().unwrap_err();
    assert!(error.message.contains("was killed"), "{error}");
    assert!(!Path::new(&format!("/proc/{id}")).exists());
}

#[test]
fn a_daemon_that_cannot_start_says_why() {
    check(
        options().arguments(["--no-such-option"]).start(),
        "no-such-option",
    );
    check(
        DaemonOptions::new().program("/nowhere/tined").start(),
        "cannot start /nowhere/tined: No such file or directory",
    );
    let directory = Directory::new();
    let never = DaemonOptions::new()
        .program(script(&directory, "echo about to wait; exec sleep 100"))
        .ready_within(Duration::from_millis(300))
        .start();
    check(never, "is not ready in time");
}

/// Returns a command that runs a test of this file in a process with its own environment.
fn run_child(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([name, "--exact", "--ignored", "--nocapture"]);
    command
}

fn check_child(mut command: Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn without_a_tined_it_says_where_it_looked() {
    let mut command = run_child("testing::nowhere_child");
    command.env_remove("TINED").env("PATH", "/nowhere");
    check_child(command);
}

#[test]
#[ignore = "a part of without_a_tined_it_says_where_it_looked"]
fn nowhere_child() {
    check(
        Daemon::start(),
        "name it by $TINED or DaemonOptions::program",
    );
}

#[test]
fn the_environment_names_the_program_and_nothing_else() {
    let own = Directory::new();
    let directory = own.path(&"long".repeat(30)); // too long for a socket
    std::fs::create_dir(&directory).unwrap();
    let mut command = run_child("testing::environment_child");
    command
        .env("TINED", tined())
        .env("TMPDIR", directory)
        .env("TINE_URL", "tcp://nowhere:1")
        .env("TINE_DATA", "/nowhere")
        .env("TINE_LOG_LEVEL", "nonsense");
    check_child(command);
}

#[test]
#[ignore = "a part of the_environment_names_the_program_and_nothing_else"]
fn environment_child() {
    let daemon = Daemon::start().unwrap();
    assert_eq!(daemon.directory().parent(), Some(Path::new("/tmp")));
    daemon.client().channel().ready(LONG).unwrap();
    assert!(!daemon.log().is_empty());
}
