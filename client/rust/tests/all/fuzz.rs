//! Noise, and good bytes with a little wrong: nothing panics, nothing is read that is not there, and
//! what is read does not depend on how the bytes were cut. The seed is fixed, so a failure is there
//! again the next time.

use prost::Message;
use tine_client::envelope::{event_decode, response_decode};
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

    /// A few bytes changed, left out, doubled, or put in.
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

fn frame(random: &mut Random, transport: Transport) -> Vec<u8> {
    let count = match random.below(20) {
        0 => 40_000 + random.below(120_000), // past the inbox
        _ => random.below(300),
    };
    let mut frame = vec![0; HEADER_BYTES];
    frame.extend(random.bytes(count));
    let begin = frame_finish(&mut frame, random.next() as u32 | 1 << 31, transport);
    frame.split_off(begin)
}

#[test]
fn frames_that_were_tampered_with() {
    let mut random = Random(0x7469_6e65);
    for round in 0..3000 {
        let transport = if round % 2 == 0 {
            Transport::Ipc
        } else {
            Transport::Tcp
        };
        let mut stream = Vec::new();
        for _ in 0..=random.below(3) {
            stream.extend(frame(&mut random, transport));
        }
        if round % 5 != 0 {
            random.mutate(&mut stream);
        }
        let whole = frames_of(&stream, transport, usize::MAX);
        let step = 1 + random.below(5000);
        assert_eq!(
            whole,
            frames_of(&stream, transport, step),
            "round {round}, {step}"
        );
        assert!(
            whole
                .0
                .iter()
                .all(|payload| payload.len() as u64 <= PAYLOAD_BYTES_MAX)
        );
        let given: usize = whole.0.iter().map(|payload| payload.len() + 8).sum();
        assert!(given <= stream.len(), "round {round}: more than there is");
        assert!(
            round % 5 != 0 || whole.1 == "end",
            "round {round}: good frames"
        );
    }
}

#[test]
fn noise_for_frames() {
    let mut random = Random(0x6672_616d);
    for _ in 0..1500 {
        let count = random.below(64);
        let mut bytes = random.bytes(count);
        bytes.splice(0..0, [1, 0, 0, 0, 0, 0].into_iter().take(random.below(7)));
        for transport in [Transport::Ipc, Transport::Tcp] {
            let whole = frames_of(&bytes, transport, usize::MAX);
            assert_eq!(whole, frames_of(&bytes, transport, 1));
        }
    }
}

#[test]
fn envelopes_that_were_tampered_with() {
    let mut random = Random(0x656e_7665);
    for round in 0..40_000 {
        let status = v1::Status {
            code: random.below(18) as i32,
            message: "no such session".into(),
            reason: "SESSION_NOT_FOUND".into(),
        };
        let count = random.below(40);
        let response = v1::Response {
            status: (round % 2 == 0).then_some(status),
            body: random.bytes(count),
        };
        let mut bytes = response.encode_to_vec();
        random.mutate(&mut bytes);
        // prost's own decoder is the model: what it takes, this one takes, to the same end.
        let found = response_decode(&bytes);
        match v1::Response::decode(&*bytes) {
            Ok(model) if !bytes.is_empty() => {
                let code = model.status.as_ref().map_or(0, |status| status.code);
                match found {
                    Ok(body) => assert_eq!((code, body), (0, &*model.body), "round {round}"),
                    Err(error) => assert!(
                        code != 0 && error.message == model.status.unwrap().message,
                        "round {round}"
                    ),
                }
            }
            _ => assert_eq!(found.unwrap_err().message, "the reply cannot be decoded"),
        }
    }
}

#[test]
fn events_that_were_tampered_with() {
    let mut random = Random(0x6576_656e);
    for _ in 0..40_000 {
        let event = v1::Event {
            sequence: random.next(),
            r#type: "a.b".into(),
            ..Default::default()
        };
        let mut bytes = b"session/01J/a.b\0".to_vec();
        bytes.extend(event.encode_to_vec());
        random.mutate(&mut bytes);
        if let Some((topic, _)) = event_decode(&bytes) {
            assert_eq!(bytes[topic.len()], 0);
        }
    }
}
