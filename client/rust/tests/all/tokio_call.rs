//! Calls of the client for tokio.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tine_client::{CancelToken, Code, Request, v1};

use crate::support::*;

async fn create(client: &v1::tokio::StoreServiceClient) -> String {
    client
        .create_session(new_session())
        .await
        .unwrap()
        .session
        .unwrap()
        .id
}

fn wait_for_news() -> v1::ListEventsRequest {
    v1::ListEventsRequest {
        after_sequence: 1,
        wait_ms: 60_000,
        ..Default::default()
    }
}

/// Polls a call once; it must be pending.
async fn begin<T>(call: std::pin::Pin<&mut impl Future<Output = T>>) {
    let mut call = Some(call);
    poll_fn(|cx| {
        let mut call = call.take().expect("polled once");
        assert!(call.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
}

#[tokio::test]
async fn a_session_is_created_and_read() {
    let daemon = Daemon::ephemeral();
    let client = daemon.tokio_client();
    let id = create(&client).await;
    let session = client
        .get_session(get_session(&id))
        .await
        .unwrap()
        .session
        .unwrap();
    assert_eq!(session.id, id);
    let error = client
        .get_session(get_session("01J00000000000000000000000"))
        .await
        .unwrap_err();
    assert_eq!(
        (error.code, &*error.reason),
        (Code::NotFound, "SESSION_NOT_FOUND")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_share_a_connection() {
    let daemon = Daemon::ephemeral();
    let client = daemon.tokio_client();
    let id = create(&client).await;
    let tasks: Vec<_> = (0..200)
        .map(|task| {
            let (client, id) = (client.clone(), id.clone());
            tokio::spawn(async move {
                for call in 0..10 {
                    let text = format!("{task}/{call}");
                    client
                        .append_message(user_message(&id, &text))
                        .await
                        .unwrap();
                    client.get_session(get_session(&id)).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let mut found = texts(&daemon.client(), &id);
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 2000);
}

#[tokio::test]
async fn a_dropped_future_is_a_cancelled_call() {
    let daemon = Daemon::ephemeral();
    let client = daemon.tokio_client();
    create(&client).await;
    for _ in 0..200 {
        let mut waiting = pin!(client.list_events(wait_for_news()));
        begin(waiting.as_mut()).await;
    }
    client.health(v1::HealthRequest {}).await.unwrap();
}

#[tokio::test]
async fn who_receives_for_all_may_be_dropped() {
    let daemon = Daemon::ephemeral();
    let client = daemon.tokio_client();
    create(&client).await;
    let other = client.clone();
    let mut first = Box::pin(client.list_events(wait_for_news()));
    begin(first.as_mut()).await;
    let second = tokio::spawn(async move { other.list_events(wait_for_news()).await });
    client.health(v1::HealthRequest {}).await.unwrap();
    drop(first);
    client
        .publish_event(v1::PublishEventRequest {
            r#type: "go".into(),
            ..Default::default()
        })
        .await
        .unwrap();
    assert_eq!(second.await.unwrap().unwrap().events.len(), 1);
}

#[tokio::test]
async fn deadlines_tokens_and_close_end_a_call() {
    let daemon = Daemon::ephemeral();
    let client = daemon.tokio_client();
    create(&client).await;
    let short = Request::new(wait_for_news()).timeout(Duration::from_millis(60));
    assert_eq!(
        client.list_events(short).await.unwrap_err().code,
        Code::DeadlineExceeded
    );

    let token = CancelToken::new();
    let mut waiting = pin!(client.list_events(Request::new(wait_for_news()).cancel(&token)));
    begin(waiting.as_mut()).await;
    token.cancel();
    assert_eq!(waiting.await.unwrap_err().code, Code::Cancelled);

    let mut waiting = pin!(client.list_events(wait_for_news()));
    begin(waiting.as_mut()).await;
    client.channel().close();
    let error = waiting.await.unwrap_err();
    assert_eq!(
        (error.code, &*error.message),
        (Code::Cancelled, "the client is closed")
    );
    let error = client.health(v1::HealthRequest {}).await.unwrap_err();
    assert_eq!(error.code, Code::Cancelled);
}

#[tokio::test]
async fn at_most_64_calls_are_in_flight_and_the_65th_waits() {
    let daemon = Daemon::ephemeral();
    let client = daemon.tokio_client();
    create(&client).await;
    let mut calls = Vec::new();
    for _ in 0..64 {
        let mut call = Box::pin(client.list_events(wait_for_news()));
        begin(call.as_mut()).await;
        calls.push(call);
    }
    let late = Request::new(v1::HealthRequest {}).timeout(Duration::from_millis(60));
    let error = client.health(late).await.unwrap_err();
    assert_eq!(error.code, Code::DeadlineExceeded);
    assert!(error.message.contains("nothing was done"), "{error}");
    let mut waiting = pin!(client.health(v1::HealthRequest {}));
    begin(waiting.as_mut()).await;
    let publish = v1::PublishEventRequest {
        r#type: "go".into(),
        ..Default::default()
    };
    daemon.tokio_client().publish_event(publish).await.unwrap();
    for call in calls {
        assert_eq!(call.await.unwrap().events.len(), 1);
    }
    waiting.await.unwrap();
}

#[tokio::test]
async fn messages_of_many_megabytes_go_both_ways() {
    let daemon = Daemon::ephemeral();
    let client = daemon.tokio_client();
    let id = create(&client).await;
    let long = "x".repeat(7 << 20);
    let append = || client.append_message(user_message(&id, &long));
    let (first, second, health) =
        tokio::join!(append(), append(), client.health(v1::HealthRequest {}));
    assert!(first.is_ok() && second.is_ok() && health.is_ok());
    let request = v1::MessagesForSessionRequest {
        session_id: id.clone(),
        page_bytes: 15 << 20,
        ..Default::default()
    };
    let page = client.messages_for_session(request).await.unwrap();
    assert_eq!(page.messages.len(), 2);
    assert!(page.messages.iter().all(|message| text_of(message) == long));
    let error = client
        .append_message(user_message(&id, &"x".repeat(16 << 20)))
        .await
        .unwrap_err();
    assert_eq!(error.reason, "TOO_LONG");
}

#[tokio::test]
async fn a_restarted_daemon_is_found_again() {
    let mut daemon = Daemon::durable();
    let client = daemon.tokio_client();
    let id = create(&client).await;
    daemon.kill();
    let error = client.get_session(get_session(&id)).await.unwrap_err();
    assert_eq!(error.code, Code::Unavailable);
    let (other, wanted) = (client.clone(), id.clone());
    let retried = tokio::spawn(async move {
        other
            .get_session(Request::new(get_session(&wanted)).retry(LONG))
            .await
    });
    tokio::task::yield_now().await;
    daemon.start();
    retried.await.unwrap().unwrap();
}
