//! Calls of the client for threads.

use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tine_client::v1::StoreServiceClient;
use tine_client::{CancelToken, Channel, Code, Method, Options, Reason, Request, v1};

use crate::support::*;

#[test]
fn a_session_is_created_and_read() {
    let daemon = Daemon::ephemeral();
    let client = daemon.client();
    let id = create_session(&client);
    let session = client
        .get_session(get_session(&id))
        .unwrap()
        .session
        .unwrap();
    assert_eq!((session.id, session.project_dir), (id, "/p".to_owned()));
}

#[test]
fn an_error_has_a_code_a_reason_and_a_message() {
    let daemon = Daemon::ephemeral();
    let error = daemon
        .client()
        .get_session(get_session("01J00000000000000000000000"))
        .unwrap_err();
    assert_eq!(
        (error.code, &*error.reason),
        (Code::NotFound, "SESSION_NOT_FOUND")
    );
    assert!(error.is(Reason::SessionNotFound));
    assert!(!error.message.is_empty());
    assert!(
        error
            .to_string()
            .starts_with("NOT_FOUND, SESSION_NOT_FOUND: "),
        "{error}"
    );
}

#[test]
fn without_a_daemon_a_call_fails_at_once() {
    let directory = Directory::new();
    let url = format!("ipc://{}", directory.path("tine.sock").display());
    let client = StoreServiceClient::new(Channel::connect(&url).unwrap());
    let error = client.health(v1::HealthRequest {}).unwrap_err();
    assert_eq!(error.code, Code::Unavailable);
    assert!(error.message.contains("nothing was done"), "{error}");
}

#[test]
fn threads_share_a_connection() {
    let daemon = Daemon::ephemeral();
    let client = daemon.client();
    let id = create_session(&client);
    std::thread::scope(|scope| {
        for thread in 0..100 {
            let (client, id) = (&client, &id);
            scope.spawn(move || {
                for call in 0..20 {
                    client
                        .append_message(user_message(id, &format!("{thread}/{call}")))
                        .unwrap();
                    client.get_session(get_session(id)).unwrap();
                }
            });
        }
    });
    let mut found = texts(&client, &id);
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 2000);
}

#[test]
fn a_write_has_an_operation_id_and_runs_once() {
    let daemon = Daemon::ephemeral();
    let client = daemon.client();
    let id = create_session(&client);
    let append = || Request::new(user_message(&id, "hello")).operation_id("op-1");
    let first = client.append_message(append()).unwrap();
    assert_eq!(client.append_message(append()).unwrap(), first);
    let other = Request::new(user_message(&id, "other")).operation_id("op-1");
    let error = client.append_message(other).unwrap_err();
    assert_eq!(
        (error.code, &*error.reason),
        (Code::Aborted, "OPERATION_ID_REUSED")
    );
    assert_eq!(texts(&client, &id), ["hello"]);
}

#[test]
fn events_tell_of_the_operation_ids_made_and_left_out() {
    let daemon = Daemon::ephemeral();
    let client = daemon.client();
    let id = create_session(&client);
    let none = Request::new(user_message(&id, "none")).operation_id("");
    client.append_message(none).unwrap();
    let events = client
        .list_events(v1::ListEventsRequest::default())
        .unwrap()
        .events;
    assert!(events[0].operation_id.len() >= 26, "{:?}", events[0]);
    assert_eq!(events[1].operation_id, "");
}

#[test]
fn a_deadline_ends_a_call_here_and_at_the_server() {
    let daemon = Daemon::ephemeral();
    let client = daemon.client();
    create_session(&client);
    daemon.pause();
    let begun = Instant::now();
    let request = Request::new(v1::HealthRequest {}).timeout(Duration::from_millis(80));
    let error = client.health(request).unwrap_err();
    assert_eq!(error.code, Code::DeadlineExceeded);
    assert!(begun.elapsed() >= Duration::from_millis(80));
    daemon.go_on();
    client.health(v1::HealthRequest {}).unwrap(); // the late reply is dropped

    let wait = v1::ListEventsRequest {
        after_sequence: 1,
        wait_ms: 60_000,
        ..Default::default()
    };
    let request = Request::new(wait).timeout(Duration::from_millis(80));
    assert_eq!(
        client.list_events(request).unwrap_err().code,
        Code::DeadlineExceeded
    );
    let zero = Request::new(v1::HealthRequest {}).timeout(Duration::ZERO);
    assert_eq!(
        client.health(zero).unwrap_err().code,
        Code::DeadlineExceeded
    );
}

#[test]
fn a_token_cancels_a_call_that_waits() {
    let daemon = Daemon::ephemeral();
    let client = daemon.client();
    let wait = || v1::ListEventsRequest {
        wait_ms: 60_000,
        ..Default::default()
    };
    // One of them receives for both; the other is parked.
    let tokens = [CancelToken::new(), CancelToken::new()];
    std::thread::scope(|scope| {
        let (began, begins) = mpsc::channel();
        let calls = tokens.each_ref().map(|token| {
            let (client, began) = (&client, began.clone());
            scope.spawn(move || {
                began.send(()).unwrap();
                client.list_events(Request::new(wait()).cancel(token))
            })
        });
        tokens.iter().for_each(|_| begins.recv().unwrap());
        client.health(v1::HealthRequest {}).unwrap();
        tokens.iter().for_each(CancelToken::cancel);
        for call in calls {
            assert_eq!(call.join().unwrap().unwrap_err().code, Code::Cancelled);
        }
    });
    let cancelled = CancelToken::new();
    cancelled.cancel();
    let request = Request::new(v1::HealthRequest {}).cancel(&cancelled);
    assert_eq!(client.health(request).unwrap_err().code, Code::Cancelled);
    client.health(v1::HealthRequest {}).unwrap();
}

#[test]
fn close_cancels_the_calls_in_flight_and_later_ones() {
    let daemon = Daemon::ephemeral();
    let client = daemon.client();
    let wait = v1::ListEventsRequest {
        wait_ms: 60_000,
        ..Default::default()
    };
    std::thread::scope(|scope| {
        let (began, begins) = mpsc::channel();
        let calls: Vec<_> = (0..3)
            .map(|_| {
                let (client, wait, began) = (&client, wait.clone(), began.clone());
                scope.spawn(move || {
                    began.send(()).unwrap();
                    client.list_events(wait)
                })
            })
            .collect();
        calls.iter().for_each(|_| begins.recv().unwrap());
        client.channel().close();
        for call in calls {
            let error = call.join().unwrap().unwrap_err();
            assert_eq!(
                (error.code, &*error.message),
                (Code::Cancelled, "the client is closed")
            );
        }
    });
    let error = client.health(v1::HealthRequest {}).unwrap_err();
    assert_eq!(
        (error.code, &*error.message),
        (Code::Cancelled, "the client is closed")
    );
}

#[test]
fn at_most_64_calls_are_in_flight_and_the_65th_waits() {
    let daemon = Daemon::ephemeral();
    let client = daemon.client();
    create_session(&client);
    let token = CancelToken::new();
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..64)
            .map(|_| {
                let wait = v1::ListEventsRequest {
                    after_sequence: 1,
                    wait_ms: 60_000,
                    ..Default::default()
                };
                let (client, request) = (&client, Request::new(wait).cancel(&token));
                scope.spawn(move || client.list_events(request))
            })
            .collect();
        // The server refuses the 65th request of a connection, so this one must not be sent.
        let late = |timeout| client.health(Request::new(v1::HealthRequest {}).timeout(timeout));
        let error = loop {
            match late(Duration::from_millis(50)) {
                // It was sent: not all 64 are in flight yet.
                Err(error) if error.message.contains("is not known") => {}
                Err(error) => break error,
                Ok(_) => {}
            }
        };
        assert_eq!(error.code, Code::DeadlineExceeded, "{error}");
        assert!(error.message.contains("nothing was done"), "{error}");
        let other = daemon.client();
        let waiting = scope.spawn(move || late(LONG));
        let session = v1::PublishEventRequest {
            r#type: "go".into(),
            ..Default::default()
        };
        other.publish_event(session).unwrap();
        for call in calls {
            assert_eq!(call.join().unwrap().unwrap().events.len(), 1);
        }
        waiting.join().unwrap().unwrap();
    });
}

#[test]
fn many_more_calls_than_64_are_all_answered() {
    let daemon = Daemon::ephemeral();
    let client = daemon.client();
    std::thread::scope(|scope| {
        for _ in 0..200 {
            scope.spawn(|| {
                for _ in 0..20 {
                    client.health(v1::HealthRequest {}).unwrap();
                }
            });
        }
    });
}

#[test]
fn messages_of_many_megabytes_go_both_ways() {
    let daemon = Daemon::ephemeral();
    let client = daemon.client();
    let id = create_session(&client);
    let long = "x".repeat(7 << 20);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| client.append_message(user_message(&id, &long)).unwrap());
            scope.spawn(|| client.health(v1::HealthRequest {}).unwrap());
        }
    });
    let request = v1::MessagesForSessionRequest {
        session_id: id,
        page_bytes: 15 << 20,
        ..Default::default()
    };
    let page = client.messages_for_session(request).unwrap();
    assert_eq!(page.messages.len(), 2);
    assert!(page.messages.iter().all(|message| text_of(message) == long));
}

#[test]
fn a_request_that_is_too_long_is_refused_here() {
    let daemon = Daemon::ephemeral();
    let client = daemon.client();
    let id = create_session(&client);
    let error = client
        .append_message(user_message(&id, &"x".repeat(16 << 20)))
        .unwrap_err();
    assert_eq!(
        (error.code, &*error.reason),
        (Code::InvalidArgument, "TOO_LONG")
    );
    client.health(v1::HealthRequest {}).unwrap();
}

#[test]
fn a_restarted_daemon_is_found_again() {
    let mut daemon = Daemon::durable();
    let client = daemon.client();
    let id = create_session(&client);
    for _ in 0..3 {
        daemon.kill();
        assert_eq!(
            client.get_session(get_session(&id)).unwrap_err().code,
            Code::Unavailable
        );
        daemon.start();
        let retried = Request::new(get_session(&id)).retry(LONG);
        client.get_session(retried).unwrap();
    }
    daemon.kill();
    daemon.start();
    client.get_session(get_session(&id)).unwrap(); // it notices the closed connection
}

#[test]
fn a_call_that_is_retried_waits_for_the_daemon() {
    let mut daemon = Daemon::durable();
    let client = daemon.client_with(Options::new().retry(LONG));
    let id = create_session(&client);
    daemon.kill();
    let call = {
        let (client, id) = (client.clone(), id.clone());
        std::thread::spawn(move || client.append_message(user_message(&id, "late")))
    };
    daemon.start();
    call.join().unwrap().unwrap();
    assert_eq!(texts(&client, &id), ["late"]);
}

#[test]
fn over_tcp_there_is_a_token() {
    let directory = Directory::new();
    let file = directory.token_file(TOKEN);
    let port = free_port();
    let listen = format!("tcp://127.0.0.1:{port}");
    let mut daemon = Daemon::with(&["--ephemeral", "--listen", &listen, "--token-file", &file]);
    let with = |token: &str| {
        let options = Options::new().url(listen.clone()).token(token);
        StoreServiceClient::new(Channel::open(options).unwrap())
    };
    let client = with(TOKEN);
    let id = create_session(&client);
    let long = "y".repeat(1 << 20);
    client.append_message(user_message(&id, &long)).unwrap();
    assert_eq!(texts(&client, &id), [long]);

    let stranger = with("open");
    let error = stranger.get_session(get_session(&id)).unwrap_err();
    assert_eq!(error.code, Code::Unauthenticated);
    let told = Request::new(get_session(&id)).token(TOKEN);
    stranger.get_session(told).unwrap();

    daemon.kill();
    daemon.start(); // with a new store
    let error = client.get_session(get_session(&id)).unwrap_err();
    assert_eq!(error.code, Code::NotFound, "{error}");
}

/// Returns a free port outside of the range that the kernel assigns by itself.
pub fn free_port() -> u16 {
    let random = RandomState::new();
    let ports = (0..u64::MAX).map(|i| 10_000 + (random.hash_one(i) % 20_000) as u16);
    ports
        .take(1000)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a free port")
}

/// A message as generated by a user's own build.
#[derive(Clone, PartialEq, prost::Message)]
struct Ask {
    #[prost(string, tag = "1")]
    session_id: String,
}

#[test]
fn messages_of_ones_own_are_called_by_a_method_of_ones_own() {
    const GET: Method<Ask, v1::GetSessionResponse> =
        Method::new("/tine.v1.StoreService/GetSession", true);
    let daemon = Daemon::ephemeral();
    let client = daemon.client();
    let session_id = create_session(&client);
    let ask = Ask {
        session_id: session_id.clone(),
    };
    let reply = client.channel().call(&GET, ask.into()).unwrap();
    assert_eq!(reply.session.unwrap().id, session_id);
}
