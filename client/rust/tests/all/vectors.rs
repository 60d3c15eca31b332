//! The conformance vectors of the C side, `tests/wire/vectors.json`.

use prost::Message;
use serde_json::Value;
use tine_client::envelope::{RequestHead, event_decode, request_encode, response_decode};
use tine_client::sp::{FrameReader, HEADER_BYTES, Protocol, Transport, hello_check};

use crate::support::Raw;

fn vectors(kind: &str) -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/wire/vectors.json");
    let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let found = all[kind].as_array().unwrap().clone();
    assert!(!found.is_empty());
    found
}

/// Decodes bytes that are given as hex, as a repeated byte, or as a list of both.
pub fn bytes_of(value: &Value) -> Vec<u8> {
    match value {
        Value::String(hex) => unhex(hex),
        Value::Array(parts) => parts.iter().flat_map(bytes_of).collect(),
        Value::Object(_) => {
            let count = value["count"].as_u64().unwrap() as usize;
            unhex(value["repeat"].as_str().unwrap()).repeat(count)
        }
        other => panic!("no bytes: {other}"),
    }
}

fn unhex(hex: &str) -> Vec<u8> {
    let digits = |index| u8::from_str_radix(&hex[index..index + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digits).collect()
}

fn text<'a>(vector: &'a Value, name: &str) -> &'a str {
    vector[name].as_str().unwrap_or_default()
}

#[test]
fn hellos_are_taken_and_refused() {
    for vector in vectors("hellos") {
        let own = if text(&vector, "client") == "sub" {
            Protocol::Sub
        } else {
            Protocol::Req
        };
        let hello: [u8; 8] = bytes_of(&vector["hex"]).try_into().unwrap();
        assert_eq!(
            hello_check(own, &hello).is_ok(),
            vector["ok"].as_bool().unwrap(),
            "{vector}"
        );
    }
}

#[test]
fn frames_are_read_however_they_are_cut() {
    for vector in vectors("frames") {
        let bytes = bytes_of(&vector["hex"]);
        let transport = if text(&vector, "transport") == "tcp" {
            Transport::Tcp
        } else {
            Transport::Ipc
        };
        let payloads: Vec<Vec<u8>> = vector["payloads"]
            .as_array()
            .unwrap()
            .iter()
            .map(bytes_of)
            .collect();
        let small = if bytes.len() > 100_000 { 4093 } else { 1 };
        for step in [small, 7, 4096, usize::MAX] {
            let (found, then) = frames_of(&bytes, transport, step);
            assert_eq!(found, payloads, "{}", text(&vector, "name"));
            assert_eq!(
                then,
                text(&vector, "then"),
                "{}: {}",
                text(&vector, "name"),
                step
            );
        }
    }
}

/// Returns the payloads of a stream that arrives in pieces of `step` bytes, and how it ends.
pub fn frames_of(
    mut bytes: &[u8],
    transport: Transport,
    step: usize,
) -> (Vec<Vec<u8>>, &'static str) {
    let mut reader = FrameReader::new(transport);
    let mut found = Vec::new();
    loop {
        loop {
            match reader.next_payload() {
                Ok(Some(payload)) => found.push(payload),
                Ok(None) => break,
                Err(_) => return (found, "error"),
            }
        }
        if bytes.is_empty() {
            return (found, if reader.is_empty() { "end" } else { "more" });
        }
        let room = reader.room();
        let count = room.len().min(step).min(bytes.len());
        room[..count].copy_from_slice(&bytes[..count]);
        reader.took(count);
        bytes = &bytes[count..];
    }
}

#[test]
fn requests_are_encoded_to_the_byte() {
    for vector in vectors("requests") {
        let head = RequestHead {
            method: text(&vector, "method"),
            operation_id: text(&vector, "operation_id"),
            timeout_ms: vector["timeout_ms"].as_i64().unwrap_or_default(),
            traceparent: text(&vector, "traceparent"),
            token: text(&vector, "token"),
            sync: false,
        };
        let body = Raw(bytes_of(&vector["body"]));
        let encoded = request_encode(&head, &body, HEADER_BYTES).unwrap();
        assert_eq!(
            encoded[HEADER_BYTES..],
            bytes_of(&vector["hex"]),
            "{}",
            text(&vector, "name")
        );
    }
}

#[test]
fn a_request_may_ask_for_the_disk() {
    let head = RequestHead {
        method: "/m",
        token: "t",
        sync: true,
        ..RequestHead::default()
    };
    let encoded = request_encode(&head, &Raw(vec![1]), HEADER_BYTES).unwrap();
    let request = tine_client::v1::Request::decode(&encoded[HEADER_BYTES..]).unwrap();
    assert!(request.sync && request.token == "t" && request.body == [1]);
    let fields = [10, 2, b'/', b'm', 42, 1, b't', 48, 1, 122, 1, 1];
    assert_eq!(encoded[HEADER_BYTES..], fields);
}

#[test]
fn responses_are_decoded() {
    for vector in vectors("responses") {
        let bytes = bytes_of(&vector["hex"]);
        let name = text(&vector, "name");
        match (vector["code"].as_i64().unwrap(), response_decode(&bytes)) {
            (0, reply) => assert_eq!(reply.unwrap(), bytes_of(&vector["body"]), "{name}"),
            (_, Ok(_)) => panic!("{name}: no error"),
            (code, Err(error)) => {
                assert_eq!(error.code as i64, code, "{name}");
                if vector["ok"].as_bool().unwrap() {
                    assert_eq!(error.message, text(&vector, "message"), "{name}");
                    assert_eq!(error.reason, text(&vector, "reason"), "{name}");
                }
            }
        }
    }
}

#[test]
fn events_are_decoded() {
    for vector in vectors("events") {
        let message = bytes_of(&vector["hex"]);
        let found = event_decode(&message);
        assert_eq!(found.is_some(), vector["ok"].as_bool().unwrap(), "{vector}");
        let Some((topic, event)) = found else {
            continue;
        };
        assert_eq!(topic, text(&vector, "topic").as_bytes(), "{vector}");
        assert_eq!(
            event.sequence,
            vector["sequence"].as_u64().unwrap(),
            "{vector}"
        );
        assert_eq!(event.r#type, text(&vector, "type"), "{vector}");
        assert_eq!(event.session_id, text(&vector, "session_id"), "{vector}");
    }
}
