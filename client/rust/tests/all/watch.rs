//! WatchEvents as an iterator.

use std::time::Duration;

use tine_client::v1::StoreServiceClient;
use tine_client::{CancelToken, Channel, Code, Options, Request, Watch, v1};

use crate::call::free_port;
use crate::support::*;

fn watch_all() -> v1::WatchEventsRequest {
    v1::WatchEventsRequest::default()
}

fn next(watch: &mut Watch) -> v1::Event {
    watch
        .next()
        .expect("it goes on")
        .expect("an event")
        .event
        .expect("it")
}

#[test]
fn a_watch_tells_what_happens_from_now_on() {
    let daemon = Daemon::ephemeral();
    let client = daemon.client();
    create_session(&client);
    let mut watch = client.watch_events(watch_all()).unwrap();
    let id = create_session(&client);
    client.append_message(user_message(&id, "hello")).unwrap();
    let (first, second) = (next(&mut watch), next(&mut watch));
    assert_eq!(
        (&*first.r#type, &first.session_id),
        ("session.created", &id)
    );
    assert_eq!(
        (&*second.r#type, second.sequence),
        ("message.appended", first.sequence + 1)
    );
    assert_eq!(watch.position().0, second.sequence);
    assert!(watch.next_within(Duration::from_millis(50)).is_none());
}

#[test]
fn a_watch_begins_with_the_oldest_or_after_a_position() {
    let daemon = Daemon::ephemeral();
    let client = daemon.client();
    let id = create_session(&client);
    client.append_message(user_message(&id, "one")).unwrap();
    let oldest = v1::WatchEventsRequest {
        start: v1::WatchStart::Oldest.into(),
        ..watch_all()
    };
    let mut watch = client.watch_events(oldest).unwrap();
    assert_eq!(
        [next(&mut watch).sequence, next(&mut watch).sequence],
        [1, 2]
    );
    let (after_sequence, instance_id) = watch.position();
    let after = v1::WatchEventsRequest {
        start: v1::WatchStart::After.into(),
        after_sequence: after_sequence - 1,
        instance_id: instance_id.to_owned(),
        ..watch_all()
    };
    assert_eq!(next(&mut client.watch_events(after).unwrap()).sequence, 2);
    let elsewhere = v1::WatchEventsRequest {
        start: v1::WatchStart::After.into(),
        instance_id: "01J00000000000000000000000".into(),
        ..watch_all()
    };
    let error = client.watch_events(elsewhere).unwrap_err();
    assert_eq!(
        (error.code, &*error.reason),
        (Code::OutOfRange, "STORE_CHANGED")
    );
}

#[test]
fn a_watch_of_a_session_tells_of_it_alone_and_ends_with_it() {
    let daemon = Daemon::ephemeral();
    let client = daemon.client();
    let (mine, other) = (create_session(&client), create_session(&client));
    let request = v1::WatchEventsRequest {
        session_id: mine.clone(),
        type_prefix: "message.".into(),
        ..watch_all()
    };
    let mut watch = client.watch_events(request).unwrap();
    for text in ["one", "two", "three"] {
        client.append_message(user_message(&other, text)).unwrap();
        client.append_message(user_message(&mine, text)).unwrap();
        assert_eq!(next(&mut watch).session_id, mine);
    }
    client
        .purge_session(v1::PurgeSessionRequest {
            session_id: mine,
            ..Default::default()
        })
        .unwrap();
    let error = watch.next().unwrap().unwrap_err();
    assert_eq!(error.reason, "SESSION_NOT_FOUND");
    assert!(watch.next().is_none());
}

#[test]
fn broadcasts_come_between_the_events() {
    let daemon = Daemon::ephemeral();
    let client = daemon.client();
    let mut watch = client.watch_events(watch_all()).unwrap();
    // A broadcast reaches only a subscriber that the server has registered.
    client
        .publish_event(v1::PublishEventRequest {
            r#type: "a".into(),
            ..Default::default()
        })
        .unwrap();
    assert_eq!(next(&mut watch).r#type, "a");
    for round in 0..20 {
        let r#type = format!("draft.{round}");
        client
            .broadcast_event(v1::BroadcastEventRequest {
                r#type,
                ..Default::default()
            })
            .unwrap();
        let r#type = format!("kept.{round}");
        client
            .publish_event(v1::PublishEventRequest {
                r#type,
                ..Default::default()
            })
            .unwrap();
    }
    for round in 0..20 {
        let (draft, kept) = (next(&mut watch), next(&mut watch));
        assert_eq!(
            (draft.r#type, draft.sequence),
            (format!("draft.{round}"), 0)
        );
        assert_eq!(kept.r#type, format!("kept.{round}"));
    }
}

#[test]
fn a_watch_goes_on_when_the_daemon_was_restarted() {
    let mut daemon = Daemon::durable();
    let client = daemon.client_with(Options::new().retry(LONG));
    let id = create_session(&client);
    let mut watch = client.watch_events(watch_all()).unwrap();
    let mut last = watch.position().0;
    for round in 0..4 {
        for _ in 0..5 {
            client.append_message(user_message(&id, "text")).unwrap();
        }
        if round % 2 == 0 {
            assert_eq!(next(&mut watch).sequence, last + 1);
            last += 1;
        }
        daemon.kill();
        daemon.start();
    }
    while last < 21 {
        assert_eq!(next(&mut watch).sequence, last + 1);
        last += 1;
    }
    assert!(watch.next_within(Duration::from_millis(100)).is_none());
}

#[test]
fn over_tcp_a_watch_lists_and_waits() {
    let directory = Directory::new();
    let file = directory.token_file(TOKEN);
    let listen = format!("tcp://127.0.0.1:{}", free_port());
    let daemon = Daemon::with(&["--ephemeral", "--listen", &listen, "--token-file", &file]);
    let channel = Channel::open(Options::new().url(listen).token(TOKEN)).unwrap();
    let mut watch = StoreServiceClient::new(channel)
        .watch_events(watch_all())
        .unwrap();
    let client = daemon.client();
    let id = create_session(&client);
    assert_eq!(next(&mut watch).session_id, id);
    client.append_message(user_message(&id, "text")).unwrap();
    assert_eq!(next(&mut watch).r#type, "message.appended");
}

#[test]
fn a_watch_ends_by_its_token_its_time_and_its_channel() {
    let daemon = Daemon::ephemeral();
    let client = daemon.client();
    let token = CancelToken::new();
    let mut watch = client
        .watch_events(Request::new(watch_all()).cancel(&token))
        .unwrap();
    let waiting = std::thread::spawn(move || (watch.next(), watch.next()));
    token.cancel();
    let (end, after) = waiting.join().unwrap();
    assert_eq!(end.unwrap().unwrap_err().code, Code::Cancelled);
    assert!(after.is_none());

    let short = Request::new(watch_all()).timeout(Duration::from_millis(150));
    let mut watch = client.watch_events(short).unwrap();
    assert_eq!(
        watch.next().unwrap().unwrap_err().code,
        Code::DeadlineExceeded
    );

    let mut watch = client.watch_events(watch_all()).unwrap();
    let waiting = std::thread::spawn(move || watch.next());
    client.channel().close();
    let error = waiting.join().unwrap().unwrap().unwrap_err();
    assert_eq!(
        (error.code, &*error.message),
        (Code::Cancelled, "the client is closed")
    );
}

#[test]
fn a_burst_is_told_without_a_gap() {
    let daemon = Daemon::ephemeral();
    let client = daemon.client();
    let id = create_session(&client);
    let mut watch = client.watch_events(watch_all()).unwrap();
    let first = watch.position().0;
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for _ in 0..125 {
                    client.append_message(user_message(&id, "text")).unwrap();
                }
            });
        }
    });
    for sequence in first + 1..=first + 2000 {
        assert_eq!(next(&mut watch).sequence, sequence);
    }
}

#[test]
fn without_a_daemon_a_watch_does_not_begin() {
    let directory = Directory::new();
    let url = format!("ipc://{}", directory.path("tine.sock").display());
    let client = StoreServiceClient::new(Channel::connect(&url).unwrap());
    assert_eq!(
        client.watch_events(watch_all()).unwrap_err().code,
        Code::Unavailable
    );
}
