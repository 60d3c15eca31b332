//! Peers that send noise, incomplete frames, too much, or nothing. Each call must end by its
//! deadline, without leaking descriptors or threads.

use std::process::Command;
use std::time::{Duration, Instant};

use tine_client::{CancelToken, Code, Error, Request, v1};

use crate::support::*;

/// The codes that a call may end with, by the mode of the peer.
const MODES: &[(&str, &[Code])] = &[
    ("garbage", &[Code::Unavailable]),
    ("bad-hello", &[Code::Unavailable]),
    ("half-hello", &[Code::DeadlineExceeded]),
    ("silent", &[Code::DeadlineExceeded]),
    ("hello-then-silent", &[Code::DeadlineExceeded]),
    ("hang-up", &[Code::Unavailable]),
    ("hang-up-after-hello", &[Code::Unavailable]),
    ("hang-up-on-request", &[Code::Unavailable]),
    ("half-frame", &[Code::DeadlineExceeded]),
    ("half-frame-close", &[Code::Unavailable]),
    ("length-bomb", &[Code::Unavailable]),
    ("length-huge", &[Code::Unavailable]),
    ("length-over", &[Code::Unavailable]),
    ("wrong-id", &[Code::DeadlineExceeded]),
    ("no-id", &[Code::Unavailable]),
    ("garbage-reply", &[Code::Internal]),
    ("twice", &[Code::Ok]),
    ("flood", &[Code::DeadlineExceeded]),
];

const SHORT: Duration = Duration::from_millis(120);

fn request(id: &str) -> Request<v1::GetSessionRequest> {
    Request::new(get_session(id)).timeout(SHORT)
}

/// Returns a request with a short timeout only if the deadline is expected to end the call.
fn request_of(codes: &[Code]) -> Request<v1::GetSessionRequest> {
    let is_late = codes.contains(&Code::DeadlineExceeded);
    request("any").timeout(if is_late { SHORT } else { LONG })
}

fn code_of<T>(result: &Result<T, Error>) -> Code {
    result
        .as_ref()
        .map_or_else(|error| error.code, |_| Code::Ok)
}

#[test]
fn a_bad_peer_fails_each_call_by_its_deadline() {
    for (mode, codes) in MODES {
        let peer = Peer::start(mode);
        let client = peer.client();
        for _ in 0..3 {
            let result = client.get_session(request_of(codes));
            // After a bad hello the client pauses before it connects again, and returns an error.
            let expected = codes.contains(&code_of(&result));
            assert!(
                expected || code_of(&result) == Code::Unavailable,
                "{mode}: {result:?}"
            );
        }
        let result = peer.client().get_session(request_of(codes));
        assert!(codes.contains(&code_of(&result)), "{mode}: {result:?}");
    }
}

#[test]
fn a_bad_peer_fails_each_call_of_tokio_by_its_deadline() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for (mode, codes) in MODES {
        let peer = Peer::start(mode);
        runtime.block_on(async {
            let client = peer.tokio_client();
            let calls: Vec<_> = (0..5)
                .map(|_| {
                    let client = client.clone();
                    tokio::spawn(async move { client.get_session(request_of(codes)).await })
                })
                .collect();
            for call in calls {
                // Five incomplete frames in a row are noise.
                let code = code_of(&call.await.unwrap());
                let expected = codes.contains(&code) || mode.starts_with("half-frame");
                assert!(
                    expected && (code != Code::Ok || *mode == "twice"),
                    "{mode}: {code}"
                );
            }
        });
    }
}

#[test]
fn many_threads_at_a_bad_peer_all_come_back() {
    for mode in [
        "hang-up-on-request",
        "wrong-id",
        "half-frame",
        "length-bomb",
        "flood",
    ] {
        let peer = Peer::start(mode);
        let client = peer.client();
        std::thread::scope(|scope| {
            for _ in 0..80 {
                scope.spawn(|| client.get_session(request("any")).unwrap_err());
            }
        });
    }
}

#[test]
fn a_watch_of_a_bad_peer_does_not_begin() {
    for mode in [
        "garbage",
        "hang-up",
        "hello-then-silent",
        "half-frame",
        "garbage-reply",
    ] {
        let peer = Peer::start(mode);
        let begun = Instant::now();
        let watch = Request::new(v1::WatchEventsRequest::default()).timeout(SHORT);
        assert!(peer.client().watch_events(watch).is_err(), "{mode}");
        assert!(begun.elapsed() < LONG, "{mode}");
    }
}

#[test]
fn every_code_is_said_with_its_reason_and_message() {
    let peer = Peer::start("status");
    let client = peer.client();
    for number in 1..=16 {
        let body = format!("code:{number}:SOME_REASON:some message");
        let error = client
            .get_session(Request::new(get_session(&body)))
            .unwrap_err();
        assert_eq!((error.code as i32, &*error.reason), (number, "SOME_REASON"));
        assert_eq!(error.message, "some message");
    }
    client.get_session(get_session("delay:30")).unwrap();
}

#[test]
fn a_silent_call_is_cancelled_and_the_others_go_on() {
    let peer = Peer::start("status");
    let client = peer.client();
    let token = CancelToken::new();
    std::thread::scope(|scope| {
        let silent = Request::new(get_session("silent")).cancel(&token);
        let call = scope.spawn(|| client.get_session(silent));
        client.get_session(get_session("delay:10")).unwrap();
        token.cancel();
        assert_eq!(call.join().unwrap().unwrap_err().code, Code::Cancelled);
    });
    client.get_session(get_session("delay:10")).unwrap();
}

#[test]
fn calls_given_up_do_not_use_up_a_connection() {
    let peer = Peer::start("status");
    let client = peer.client();
    client.get_session(get_session("delay:1")).unwrap();
    for _ in 0..60 {
        let silent = Request::new(get_session("silent")).timeout(Duration::from_millis(3));
        assert_eq!(
            client.get_session(silent).unwrap_err().code,
            Code::DeadlineExceeded
        );
    }
    client
        .get_session(Request::new(get_session("delay:1")).timeout(LONG))
        .unwrap();
}

#[test]
fn a_bad_peer_leaves_no_descriptor_and_no_thread() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "hostile::leak_child",
            "--exact",
            "--ignored",
            "--test-threads=1",
        ])
        .env("TINE_BUILD", build_directory())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

/// Runs in a process of its own, because it counts the descriptors and threads of the process.
#[test]
#[ignore = "a part of a_bad_peer_leaves_no_descriptor_and_no_thread"]
fn leak_child() {
    let count = |what: &str| {
        std::fs::read_dir(format!("/proc/self/{what}"))
            .unwrap()
            .count()
    };
    for (mode, _) in MODES {
        let peer = Peer::start(mode);
        let before = (count("fd"), count("task"));
        {
            let client = peer.client();
            let token = CancelToken::new();
            for _ in 0..4 {
                let short = Duration::from_millis(30);
                let call = Request::new(get_session("any"))
                    .timeout(short)
                    .cancel(&token);
                let _ = client.get_session(call);
                let watch = Request::new(v1::WatchEventsRequest::default()).timeout(short);
                let _ = client.watch_events(watch);
            }
        }
        {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(async {
                let client = peer.tokio_client();
                for _ in 0..4 {
                    let call = client.get_session(Request::new(get_session("any")));
                    let _ = tokio::time::timeout(Duration::from_millis(30), call).await;
                }
            });
        }
        assert_eq!((count("fd"), count("task")), before, "{mode}");
    }
}
