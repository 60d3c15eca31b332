//! Fuzzes the decoders with noise and with slightly changed good bytes. They must not panic or read
//! out of bounds, and the result must not depend on how the bytes were split. The seed is fixed, so
//! failures are reproducible. With TINE_RUST_FUZZ_SECONDS each test runs for that time with a
//! random seed, and prints the seed of a failure, which TINE_RUST_FUZZ_SEED repeats.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use tine_client::Code;
use tine_client::envelope::{event_decode, response_decode, undecodable};
use tine_client::sp::{HEADER_BYTES, PAYLOAD_BYTES_MAX, Transport, frame_finish};
use tine_client::v1;

use crate::vectors::frames_of;

/// xorshift64*
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }

    /// Changes, removes, repeats or inserts a few bytes.
    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len() + 1);
            match self.below(5) {
                0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                1 if at < bytes.len() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][self.below(5)],
                2 => bytes.truncate(at),
                3 => {
                    let tail = bytes.split_off(at);
                    let count = self.below(20);
                    bytes.extend(self.bytes(count));
                    bytes.extend(tail);
                }
                _ => bytes.extend_from_within(at..),
            }
        }
    }
}

fn number_of(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().expect("a number"))
}

/// Runs `count` rounds, or as many as fit into the time that the environment sets.
fn rounds(seed: u64, count: u64, mut round: impl FnMut(&mut Random)) {
    let seconds = number_of("TINE_RUST_FUZZ_SECONDS");
    let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let mut seed = match end {
        None => seed,
        Some(_) => seed ^ now.as_nanos() as u64,
    };
    let only = number_of("TINE_RUST_FUZZ_SEED");
    let mut random = Random(only.unwrap_or(seed));
    for number in 0.. {
        let is_over = match end {
            _ if only.is_some() => number > 0,
            None => number == count,
            Some(end) => Instant::now() >= end,
        };
        if is_over {
            return;
        }
        seed = random.0;
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| round(&mut random))) {
            eprintln!("round {number}: TINE_RUST_FUZZ_SEED={seed}");
            resume_unwind(panic);
        }
    }
}

fn frame(random: &mut Random, transport: Transport) -> Vec<u8> {
    let count = match random.below(20) {
        0 => 40_000 + random.below(120_000), // more than the inbox holds
        _ => random.below(300),
    };
    let mut frame = vec![0; HEADER_BYTES];
    frame.extend(random.bytes(count));
    let begin = frame_finish(&mut frame, random.next() as u32 | 1 << 31, transport);
    frame.split_off(begin)
}

#[test]
fn frames_that_were_tampered_with() {
    rounds(0x7469_6e65, 3000, |random| {
        let round = random.below(10);
        let transport = if round % 2 == 0 {
            Transport::Ipc
        } else {
            Transport::Tcp
        };
        let mut stream = Vec::new();
        for _ in 0..=random.below(3) {
            stream.extend(frame(random, transport));
        }
        if round % 5 != 0 {
            random.mutate(&mut stream);
        }
        let whole = frames_of(&stream, transport, usize::MAX);
        let step = 1 + random.below(5000);
        assert_eq!(
            whole,
            frames_of(&stream, transport, step),
            "{stream:02x?}, {step}"
        );
        assert!(
            whole
                .0
                .iter()
                .all(|payload| payload.len() as u64 <= PAYLOAD_BYTES_MAX)
        );
        let given: usize = whole.0.iter().map(|payload| payload.len() + 8).sum();
        assert!(given <= stream.len(), "{stream:02x?}: more than there is");
        assert!(
            round % 5 != 0 || whole.1 == "end",
            "{stream:02x?}: good frames"
        );
    });
}

#[test]
fn noise_for_frames() {
    rounds(0x6672_616d, 1500, |random| {
        let count = random.below(64);
        let mut bytes = random.bytes(count);
        bytes.splice(0..0, [1, 0, 0, 0, 0, 0].into_iter().take(random.below(7)));
        for transport in [Transport::Ipc, Transport::Tcp] {
            let whole = frames_of(&bytes, transport, usize::MAX);
            assert_eq!(whole, frames_of(&bytes, transport, 1), "{bytes:02x?}");
        }
    });
}

/// The features of a message that prost and the wire treat differently, nested messages included.
#[derive(Default)]
struct Odds {
    /// A group, or a tag of more than five bytes: malformed for the wire.
    is_strange: bool,
    /// A known field with another wire type: malformed for prost.
    is_retyped: bool,
}

impl Odds {
    /// `types`: the wire types of the known fields. `inner`: those of field 1, if it is a message.
    fn look(&mut self, mut rest: &[u8], types: &[(u32, WireType)], inner: &[(u32, WireType)]) {
        while !rest.is_empty() {
            let before = rest.len();
            let Ok((number, wire_type)) = decode_key(&mut rest) else {
                return;
            };
            self.is_strange |= before - rest.len() > 5 || wire_type == WireType::StartGroup;
            let known = types.iter().find(|(known, _)| *known == number);
            self.is_retyped |= known.is_some_and(|(_, known)| *known != wire_type);
            let value = rest;
            if skip_field(wire_type, number, &mut rest, DecodeContext::default()).is_err() {
                return;
            }
            if number == 1 && wire_type == WireType::LengthDelimited && !inner.is_empty() {
                let mut content = &value[..value.len() - rest.len()];
                decode_varint(&mut content).unwrap();
                self.look(content, inner, &[]);
            }
        }
    }
}

fn odds_of_response(bytes: &[u8]) -> Odds {
    let text = WireType::LengthDelimited;
    let mut odds = Odds::default();
    let status = [(1, WireType::Varint), (2, text), (3, text)];
    odds.look(bytes, &[(1, text), (15, text)], &status);
    odds
}

#[test]
fn envelopes_that_were_tampered_with() {
    rounds(0x656e_7665, 40_000, |random| {
        let status = v1::Status {
            code: random.below(18) as i32,
            message: "no such session".into(),
            reason: "SESSION_NOT_FOUND".into(),
        };
        let count = random.below(40);
        let response = v1::Response {
            status: (random.below(2) == 0).then_some(status),
            body: random.bytes(count),
        };
        let mut bytes = response.encode_to_vec();
        random.mutate(&mut bytes);
        // The model is prost's own decoder: both must accept the same bytes, with the same result.
        let found = response_decode(&bytes);
        let model = v1::Response::decode(&*bytes);
        let odds = odds_of_response(&bytes);
        match model {
            _ if odds.is_strange || bytes.is_empty() => {
                assert_eq!(found, Err(undecodable()), "{bytes:02x?}");
            }
            Ok(model) => {
                let status = model.status.unwrap_or_default();
                match found {
                    Ok(body) => assert_eq!((status.code, body), (0, &*model.body), "{bytes:02x?}"),
                    Err(error) => {
                        assert_ne!(status.code, 0, "{bytes:02x?}");
                        assert_eq!(error.code, Code::from(status.code), "{bytes:02x?}");
                        assert_eq!(error.message, status.message, "{bytes:02x?}");
                        assert_eq!(error.reason, status.reason, "{bytes:02x?}");
                    }
                }
            }
            Err(_) if odds.is_retyped => {}
            Err(_) => assert_eq!(found, Err(undecodable()), "{bytes:02x?}"),
        }
    });
}

#[test]
fn events_that_were_tampered_with() {
    rounds(0x6576_656e, 40_000, |random| {
        let event = v1::Event {
            sequence: random.next(),
            r#type: "a.b".into(),
            ..Default::default()
        };
        let mut bytes = b"session/01J/a.b\0".to_vec();
        bytes.extend(event.encode_to_vec());
        random.mutate(&mut bytes);
        if let Some((topic, event)) = event_decode(&bytes) {
            assert_eq!(bytes[topic.len()], 0, "{bytes:02x?}");
            let model = v1::Event::decode(&bytes[topic.len() + 1..]);
            assert_eq!(Ok(event), model, "{bytes:02x?}");
        }
    });
}
