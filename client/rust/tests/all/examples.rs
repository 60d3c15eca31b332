//! The examples, which are in the README too, each with a tined of its own.

use std::path::PathBuf;
use std::process::Command;

use crate::support::*;

/// Runs an example in an environment of its own and stops the tined that it started.
fn run(example: &str) -> String {
    let directory = Directory::new();
    let tests = std::env::current_exe().unwrap();
    let built: PathBuf = tests.parent().unwrap().parent().unwrap().join("examples");
    let output = Command::new(built.join(example))
        .env("TINED", build_directory().join("server/tined"))
        .env_remove("TINE_URL")
        .env("TINE_SOCKET", directory.path("tine.sock"))
        .env("TINE_DATA", directory.path("store"))
        .env("XDG_STATE_HOME", directory.path("state"))
        .output()
        .unwrap();
    stop_by_lock(&directory.path("tine.sock.lock"));
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_readme_shows_a_program_that_runs() {
    let readme = include_str!("../../README.md");
    let program = include_str!("../../examples/hello.rs");
    assert!(
        readme.contains(program),
        "README.md is to hold examples/hello.rs as it is"
    );
    assert_eq!(run("hello"), "1 message\n");
}

#[test]
fn the_readme_shows_a_test_that_runs() {
    let readme = include_str!("../../README.md");
    let test = include_str!("readme.rs");
    assert!(
        readme.contains(test),
        "README.md is to hold tests/all/readme.rs as it is"
    );
}

#[test]
fn an_agent_does_its_turn() {
    let printed = run("agent");
    let lines = [
        "ls and whoami have run",
        "the worker has cost 4200000 nano-USD",
        "the planner has cost 4200000 nano-USD",
        "the fork has 5 messages",
    ];
    for line in lines {
        assert!(printed.contains(line), "{line}: {printed}");
    }
}
