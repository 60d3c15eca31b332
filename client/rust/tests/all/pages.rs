//! Listings that are read page by page.

use std::time::Duration;

use tine_client::v1::{self, StoreServiceClient};
use tine_client::{
    CancelToken, Code, Error, Listing, Pages, Reason, Request, tokio as client_tokio,
};

use crate::support::*;

/// How many records of each kind `fill` makes.
const COUNT: usize = 5;

/// Makes `COUNT` sessions, and `COUNT` records of each kind in the first one, whose id it returns.
fn fill(client: &StoreServiceClient) -> String {
    let ids: Vec<String> = (0..COUNT).map(|_| create_session(client)).collect();
    let session_id = ids[0].clone();
    for (number, other_id) in ids.iter().enumerate() {
        let mut append = user_message(&session_id, &number.to_string());
        append.message.as_mut().unwrap().parts.push(tool_use());
        let receipt = client.append_message(append).unwrap().receipt.unwrap();
        let original = v1::PutOriginalRequest {
            message_id: receipt.id,
            content: vec![1],
        };
        client.put_original(original).unwrap();
        let marker = v1::Marker {
            keep_all: true,
            ..Default::default()
        };
        let marker = v1::AddCompactionMarkerRequest {
            session_id: session_id.clone(),
            marker: Some(marker),
            ..Default::default()
        };
        client.add_compaction_marker(marker).unwrap();
        let memory = v1::NewMemory {
            scope: v1::MemoryScope::Session.into(),
            content: number.to_string(),
            ..Default::default()
        };
        let memory = v1::RememberSessionMemoryRequest {
            session_id: session_id.clone(),
            memory: Some(memory),
        };
        client.remember_session_memory(memory).unwrap();
        // Each session has a call, for the sums by session.
        for session_id in [&session_id, other_id] {
            let call = v1::NewCall {
                resolved: model(),
                ..Default::default()
            };
            let call = v1::RecordCallRequest {
                session_id: session_id.clone(),
                call: Some(call),
                ..Default::default()
            };
            client.record_call(call).unwrap();
        }
    }
    session_id
}

fn tool_use() -> v1::Part {
    let tool_use = v1::ToolUse {
        id: "call".into(),
        name: "ls".into(),
        ..Default::default()
    };
    v1::Part {
        kind: Some(v1::part::Kind::ToolUse(tool_use)),
        ..Default::default()
    }
}

/// Calls a macro with the pages of each listing, one record per page, and their number of records.
macro_rules! each_listing {
    ($check:ident, $client:ident, $id:expr) => {
        each_listing!(@of $check, $client, $id,
            messages_for_session_pages MessagesForSessionRequest,
            messages_direct_for_session_pages MessagesDirectForSessionRequest,
            messages_since_latest_marker_pages MessagesSinceLatestMarkerRequest,
            list_markers_for_session_pages ListMarkersForSessionRequest,
            list_session_memories_pages ListSessionMemoriesRequest,
            list_parts_pages ListPartsRequest,
            list_originals_pages ListOriginalsRequest,
            build_context_pages BuildContextRequest,
        );
        let limit = 1;
        $check!($client.list_sessions_pages(v1::ListSessionsRequest {
            limit,
            ..Default::default()
        }), COUNT);
        $check!($client.list_messages_pages(v1::ListMessagesRequest {
            session_id: $id.clone(),
            limit,
            ..Default::default()
        }), 2 * COUNT); // markers too
        $check!($client.list_calls_pages(v1::ListCallsRequest {
            session_id: $id.clone(),
            limit,
            ..Default::default()
        }), COUNT + 1);
        $check!($client.summarize_cost_pages(v1::SummarizeCostRequest {
            by: v1::CostGroup::Session.into(),
            page_bytes: 1,
            ..Default::default()
        }), COUNT);
    };
    (@of $check:ident, $client:ident, $id:expr, $($function:ident $request:ident,)*) => {
        $($check!($client.$function(v1::$request {
            session_id: $id.clone(),
            limit: 1,
            ..Default::default()
        }), COUNT);)*
    };
}

#[test]
fn every_listing_is_read_to_its_end() {
    let daemon = Daemon::ephemeral();
    let client = daemon.client();
    let id = fill(&client);
    let mut listing_count = 0;
    macro_rules! check {
        ($pages:expr, $count:expr) => {
            listing_count += 1;
            check_pages($pages, $count)
        };
    }
    each_listing!(check, client, id);
    // Fails if the contract gets a listing that this test does not have.
    let contract = include_str!("../../proto/tine/v1/store.proto");
    assert_eq!(listing_count, contract.matches("string cursor =").count());
}

fn check_pages<Q: Listing>(pages: Pages<Q>, count: usize) {
    let name = Q::METHOD.path();
    assert_eq!(
        pages.clone().items().filter_map(Result::ok).count(),
        count,
        "{name}"
    );
    let pages: Result<Vec<Q::Page>, Error> = pages.collect();
    assert!(
        pages.unwrap().len() >= count,
        "{name}: one record to a page"
    );
}

#[tokio::test]
async fn every_listing_of_tokio_is_read_to_its_end() {
    let daemon = Daemon::ephemeral();
    let id = fill(&daemon.client());
    let client = daemon.tokio_client();
    macro_rules! check {
        ($pages:expr, $count:expr) => {
            check_pages_of_tokio($pages, $pages, $count).await
        };
    }
    each_listing!(check, client, id);
}

async fn check_pages_of_tokio<Q: Listing>(
    mut pages: client_tokio::Pages<Q>,
    again: client_tokio::Pages<Q>,
    count: usize,
) {
    let name = Q::METHOD.path();
    let mut page_count = 0;
    while let Some(page) = pages.next().await {
        page.unwrap();
        page_count += 1;
    }
    assert!(page_count >= count, "{name}: one record to a page");
    let (mut items, mut item_count) = (again.items(), 0);
    while let Some(item) = items.next().await {
        drop(item.unwrap());
        item_count += 1;
    }
    assert_eq!(item_count, count, "{name}");
    assert!(items.next().await.is_none() && pages.next().await.is_none());
}

fn two_to_a_page(session_id: &str) -> v1::MessagesForSessionRequest {
    v1::MessagesForSessionRequest {
        session_id: session_id.into(),
        limit: 2,
        ..Default::default()
    }
}

fn purge(session_id: &str) -> v1::PurgeSessionRequest {
    v1::PurgeSessionRequest {
        session_id: session_id.into(),
        ..Default::default()
    }
}

#[test]
fn a_listing_is_in_order_and_may_be_left_early() {
    let daemon = Daemon::ephemeral();
    let client = daemon.client();
    let id = fill(&client);
    let found: Vec<String> = client
        .messages_for_session_pages(two_to_a_page(&id))
        .items()
        .map(|message| text_of(&message.unwrap()).to_owned())
        .collect();
    assert_eq!(found, ["0", "1", "2", "3", "4"]);
    let pages = client.messages_for_session_pages(two_to_a_page(&id));
    let lengths: Vec<usize> = pages.map(|page| page.unwrap().messages.len()).collect();
    assert_eq!(lengths, [2, 2, 1]);

    let before = call_count(&client);
    for message in client
        .messages_for_session_pages(two_to_a_page(&id))
        .items()
    {
        if text_of(&message.unwrap()) == "1" {
            break;
        }
    }
    assert_eq!(call_count(&client), before + 1, "one page was read");
}

/// Returns how many calls of MessagesForSession the server has counted.
fn call_count(client: &StoreServiceClient) -> u64 {
    let stats = client.stats(v1::StatsRequest {}).unwrap();
    let method = stats
        .methods
        .iter()
        .find(|method| method.name == "MessagesForSession");
    method.map_or(0, |method| method.calls)
}

#[test]
fn an_error_is_the_last_item_and_comes_once() {
    let daemon = Daemon::ephemeral();
    let client = daemon.client();
    let id = fill(&client);
    let mut pages = client.messages_for_session_pages(two_to_a_page(&id));
    let mut items = client
        .messages_for_session_pages(two_to_a_page(&id))
        .items();
    assert!(pages.next().unwrap().is_ok());
    assert!(items.next().unwrap().is_ok());
    client.purge_session(purge(&id)).unwrap();
    assert!(
        pages
            .next()
            .unwrap()
            .unwrap_err()
            .is(Reason::SessionNotFound)
    );
    assert!(pages.next().is_none() && pages.next().is_none());
    assert!(
        items.next().unwrap().is_ok(),
        "it was on the page that was read"
    );
    assert!(
        items
            .next()
            .unwrap()
            .unwrap_err()
            .is(Reason::SessionNotFound)
    );
    assert!(items.next().is_none() && items.next().is_none());
}

#[tokio::test]
async fn an_error_of_tokio_is_the_last_item_and_comes_once() {
    let daemon = Daemon::ephemeral();
    let id = fill(&daemon.client());
    let client = daemon.tokio_client();
    let mut items = client
        .messages_for_session_pages(two_to_a_page(&id))
        .items();
    assert!(items.next().await.unwrap().is_ok());
    client.purge_session(purge(&id)).await.unwrap();
    assert!(items.next().await.unwrap().is_ok());
    let error = items.next().await.unwrap().unwrap_err();
    assert!(error.is(Reason::SessionNotFound), "{error}");
    assert!(items.next().await.is_none() && items.next().await.is_none());
}

#[tokio::test]
async fn a_dropped_wait_loses_no_item() {
    let daemon = Daemon::ephemeral();
    let id = fill(&daemon.client());
    let client = daemon.tokio_client();
    let mut items = client
        .messages_for_session_pages(two_to_a_page(&id))
        .items();
    let mut found = Vec::new();
    loop {
        // The future of next() is dropped after one poll.
        let next = tokio::select! {
            biased;
            next = items.next() => next,
            () = tokio::task::yield_now() => continue,
        };
        match next {
            Some(message) => found.push(text_of(&message.unwrap()).to_owned()),
            None => break,
        }
    }
    assert_eq!(found, ["0", "1", "2", "3", "4"]);
}

#[test]
fn what_a_request_says_holds_for_each_page() {
    let daemon = Daemon::ephemeral();
    let client = daemon.client();
    let id = fill(&client);
    let token = CancelToken::new();
    let request = Request::new(two_to_a_page(&id))
        .timeout(LONG)
        .cancel(&token);
    let mut pages = client.messages_for_session_pages(request);
    assert!(pages.next().unwrap().is_ok());
    token.cancel();
    assert_eq!(pages.next().unwrap().unwrap_err().code, Code::Cancelled);
    let late = Request::new(two_to_a_page(&id)).timeout(Duration::ZERO);
    let mut pages = client.messages_for_session_pages(late);
    assert_eq!(
        pages.next().unwrap().unwrap_err().code,
        Code::DeadlineExceeded
    );
    assert!(pages.next().is_none());
}
