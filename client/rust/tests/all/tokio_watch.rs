//! WatchEvents as a stream.

use std::time::Duration;

use tine_client::tokio::Watch;
use tine_client::{CancelToken, Code, Request, v1};

use crate::support::*;

async fn next(watch: &mut Watch) -> v1::Event {
    watch
        .next()
        .await
        .expect("it goes on")
        .expect("an event")
        .event
        .expect("it")
}

#[tokio::test]
async fn a_watch_tells_what_happens_from_now_on() {
    let daemon = Daemon::ephemeral();
    let client = daemon.tokio_client();
    let mut watch = client
        .watch_events(v1::WatchEventsRequest::default())
        .await
        .unwrap();
    let first = watch.position().0;
    let blocking = daemon.client();
    let id = create_session(&blocking);
    for _ in 0..200 {
        blocking.append_message(user_message(&id, "text")).unwrap();
    }
    for sequence in first + 1..=first + 201 {
        assert_eq!(next(&mut watch).await.sequence, sequence);
    }
    assert_eq!(watch.position().0, first + 201);
}

#[tokio::test]
async fn a_dropped_wait_loses_no_event() {
    let daemon = Daemon::ephemeral();
    let client = daemon.tokio_client();
    let blocking = daemon.client();
    let mut watch = client
        .watch_events(v1::WatchEventsRequest::default())
        .await
        .unwrap();
    let first = watch.position().0;
    let id = create_session(&blocking);
    let mut last = first;
    while last < first + 50 {
        if let Ok(event) = tokio::time::timeout(Duration::from_micros(200), watch.next()).await {
            last += 1;
            assert_eq!(event.unwrap().unwrap().event.unwrap().sequence, last);
        }
        blocking.append_message(user_message(&id, "text")).unwrap();
    }
}

#[tokio::test]
async fn a_watch_goes_on_when_the_daemon_was_restarted() {
    let mut daemon = Daemon::durable();
    let client = daemon.tokio_client();
    let mut watch = client
        .watch_events(v1::WatchEventsRequest::default())
        .await
        .unwrap();
    let mut last = watch.position().0;
    for _ in 0..3 {
        let id = create_session(&daemon.client());
        daemon
            .client()
            .append_message(user_message(&id, "text"))
            .unwrap();
        daemon.kill();
        daemon.start();
        for _ in 0..2 {
            assert_eq!(next(&mut watch).await.sequence, last + 1);
            last += 1;
        }
    }
}

#[tokio::test]
async fn a_watch_ends_with_an_error_and_then_with_nothing() {
    let daemon = Daemon::ephemeral();
    let client = daemon.tokio_client();
    let id = create_session(&daemon.client());
    let request = v1::WatchEventsRequest {
        session_id: id.clone(),
        ..Default::default()
    };
    let mut watch = client.watch_events(request).await.unwrap();
    let purge = v1::PurgeSessionRequest {
        session_id: id,
        ..Default::default()
    };
    client.purge_session(purge).await.unwrap();
    let error = watch.next().await.unwrap().unwrap_err();
    assert_eq!(error.reason, "SESSION_NOT_FOUND");
    assert!(watch.next().await.is_none());

    let token = CancelToken::new();
    let request = Request::new(v1::WatchEventsRequest::default()).cancel(&token);
    let mut watch = client.watch_events(request).await.unwrap();
    token.cancel();
    assert_eq!(
        watch.next().await.unwrap().unwrap_err().code,
        Code::Cancelled
    );

    let mut watch = client
        .watch_events(v1::WatchEventsRequest::default())
        .await
        .unwrap();
    client.channel().close();
    assert_eq!(
        watch.next().await.unwrap().unwrap_err().code,
        Code::Cancelled
    );
}
