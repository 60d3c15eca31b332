//! A daemon that is killed and restarted while clients use it: acknowledged writes are not lost, no
//! write happens twice, and watches continue.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use tine_client::{Code, Options, Request, v1};

use crate::support::*;

const WRITERS: usize = 8;
const KILLS: usize = 5;

/// Stops the writers even if the test panics, because a scope waits for its threads.
struct EndWriters<'a>(&'a AtomicBool);

impl Drop for EndWriters<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Kills and restarts the daemon each time that another 40 writes were acknowledged.
fn kill_under_load(daemon: &mut Daemon, acknowledged: &AtomicUsize) {
    for _ in 0..KILLS {
        let until = acknowledged.load(Ordering::SeqCst) + 40;
        let limit = Instant::now() + LONG;
        while acknowledged.load(Ordering::SeqCst) < until {
            assert!(Instant::now() < limit, "nothing is acknowledged any more");
            std::thread::yield_now();
        }
        daemon.kill();
        daemon.start();
    }
}

/// Checks that every acknowledged write is there, and none twice.
fn check_texts(found: &[String], acknowledged: &HashSet<String>) {
    let distinct: HashSet<&String> = found.iter().collect();
    assert_eq!(distinct.len(), found.len(), "a write is there twice");
    let lost: Vec<_> = acknowledged
        .iter()
        .filter(|text| !distinct.contains(text))
        .collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
}

#[test]
fn writers_that_retry_lose_nothing_and_write_nothing_twice() {
    let mut daemon = Daemon::durable();
    let client = daemon.client_with(Options::new().retry(LONG));
    let id = create_session(&client);
    let mut watch = client
        .watch_events(v1::WatchEventsRequest::default())
        .unwrap();
    let first = watch.position().0;
    let (is_over, acknowledged) = (AtomicBool::new(false), AtomicUsize::new(0));
    let written: Vec<String> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (client, id, is_over, acknowledged) = (&client, &id, &is_over, &acknowledged);
                scope.spawn(move || {
                    let mut written = Vec::new();
                    while !is_over.load(Ordering::SeqCst) {
                        let text = format!("{writer}/{}", written.len());
                        client.append_message(user_message(id, &text)).unwrap();
                        acknowledged.fetch_add(1, Ordering::SeqCst);
                        written.push(text);
                    }
                    written
                })
            })
            .collect();
        let end = EndWriters(&is_over);
        kill_under_load(&mut daemon, &acknowledged);
        drop(end);
        writers
            .into_iter()
            .flat_map(|writer| writer.join().unwrap())
            .collect()
    });
    let found = texts(&client, &id);
    assert_eq!(found.len(), written.len());
    check_texts(&found, &written.iter().cloned().collect());
    for sequence in first + 1..=first + written.len() as u64 {
        let event = watch.next().unwrap().unwrap().event.unwrap();
        assert_eq!(
            (event.sequence, &*event.r#type),
            (sequence, "message.appended")
        );
    }
}

#[test]
fn without_retries_a_call_in_flight_fails_as_unavailable_and_is_not_sent_again() {
    let mut daemon = Daemon::durable();
    let client = daemon.client();
    let id = create_session(&client);
    let (is_over, acknowledged) = (AtomicBool::new(false), AtomicUsize::new(0));
    let written: HashSet<String> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (client, id, is_over, acknowledged) = (&client, &id, &is_over, &acknowledged);
                scope.spawn(move || {
                    let mut written = Vec::new();
                    for round in 0.. {
                        let text = format!("{writer}/{round}");
                        // Without an operation id, so that a repeated request would be stored
                        // twice.
                        let request = Request::new(user_message(id, &text)).operation_id("");
                        match client.append_message(request) {
                            Ok(_) => {
                                acknowledged.fetch_add(1, Ordering::SeqCst);
                                written.push(text);
                            }
                            Err(error) => assert_eq!(error.code, Code::Unavailable, "{error}"),
                        }
                        if is_over.load(Ordering::SeqCst) {
                            break;
                        }
                    }
                    written
                })
            })
            .collect();
        let end = EndWriters(&is_over);
        kill_under_load(&mut daemon, &acknowledged);
        drop(end);
        writers
            .into_iter()
            .flat_map(|writer| writer.join().unwrap())
            .collect()
    });
    let last = Request::new(user_message(&id, "last")).retry(LONG);
    client.append_message(last).unwrap();
    check_texts(&texts(&client, &id), &written);
}

#[test]
fn tasks_that_retry_lose_nothing_and_write_nothing_twice() {
    let mut daemon = Daemon::durable();
    let blocking = daemon.client();
    let id = create_session(&blocking);
    let options = Options::new().url(daemon.url()).retry(LONG);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _guard = runtime.enter();
    let channel = tine_client::tokio::Channel::open(options).unwrap();
    let client = v1::tokio::StoreServiceClient::new(channel);
    let mut watch = runtime
        .block_on(client.watch_events(v1::WatchEventsRequest::default()))
        .unwrap();
    let first = watch.position().0;
    let is_over = std::sync::Arc::new(AtomicBool::new(false));
    let acknowledged = std::sync::Arc::new(AtomicUsize::new(0));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (client, id) = (client.clone(), id.clone());
            let (is_over, acknowledged) = (is_over.clone(), acknowledged.clone());
            runtime.spawn(async move {
                let mut written = Vec::new();
                while !is_over.load(Ordering::SeqCst) {
                    let text = format!("{writer}/{}", written.len());
                    client
                        .append_message(user_message(&id, &text))
                        .await
                        .unwrap();
                    acknowledged.fetch_add(1, Ordering::SeqCst);
                    written.push(text);
                }
                written
            })
        })
        .collect();
    kill_under_load(&mut daemon, &acknowledged);
    is_over.store(true, Ordering::SeqCst);
    let written: Vec<String> = writers
        .into_iter()
        .flat_map(|writer| runtime.block_on(writer).unwrap())
        .collect();
    let found = texts(&daemon.client(), &id);
    assert_eq!(found.len(), written.len());
    check_texts(&found, &written.iter().cloned().collect());
    for sequence in first + 1..=first + written.len() as u64 {
        let event = runtime
            .block_on(watch.next())
            .unwrap()
            .unwrap()
            .event
            .unwrap();
        assert_eq!(event.sequence, sequence);
    }
}
