//! Encodes and decodes the envelopes of `rpc.proto`, without copying the message inside.

use prost::Message;
use prost::encoding::{
    WireType, decode_key, decode_varint, encode_key, encode_varint, encoded_len_varint,
};

use crate::reason::Reason;
use crate::status::{Code, Error};
use crate::v1;

const REQUEST_BYTES_MAX: usize = 16 << 20;
const TAG_BYTES_MAX: usize = 5;

/// The fields of a Request except its body.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestHead<'a> {
    pub method: &'a str,
    pub operation_id: &'a str,
    /// 0 means no timeout.
    pub timeout_ms: i64,
    pub traceparent: &'a str,
    pub token: &'a str,
    pub sync: bool,
}

/// Encodes a Request after `room` bytes that are left free for the frame's header. Fields are in
/// the order of their numbers, so the body is last.
pub fn request_encode(
    head: &RequestHead<'_>,
    body: &impl Message,
    room: usize,
) -> Result<Vec<u8>, Error> {
    let body_bytes = body.encoded_len();
    let texts = [head.method, head.operation_id, head.traceparent, head.token];
    let head_bytes_max = texts.iter().map(|text| text.len() + 11).sum::<usize>() + 32;
    let mut out = Vec::with_capacity(room + head_bytes_max + body_bytes);
    out.resize(room, 0);
    put_text(1, head.method, &mut out);
    put_text(2, head.operation_id, &mut out);
    if head.timeout_ms != 0 {
        encode_key(3, WireType::Varint, &mut out);
        encode_varint(head.timeout_ms as u64, &mut out);
    }
    put_text(4, head.traceparent, &mut out);
    put_text(5, head.token, &mut out);
    if head.sync {
        encode_key(6, WireType::Varint, &mut out);
        encode_varint(1, &mut out);
    }
    if body_bytes > 0 {
        encode_key(15, WireType::LengthDelimited, &mut out);
        encode_varint(body_bytes as u64, &mut out);
    }
    if out.len() - room + body_bytes > REQUEST_BYTES_MAX {
        return Err(Error::new(
            Code::InvalidArgument,
            Reason::TooLong,
            "the request is longer than 16 MiB; send it in several",
        ));
    }
    body.encode_raw(&mut out);
    debug_assert!(encoded_len_varint(body_bytes as u64) <= 10);
    Ok(out)
}

fn put_text(number: u32, text: &str, out: &mut Vec<u8>) {
    if !text.is_empty() {
        encode_key(number, WireType::LengthDelimited, out);
        encode_varint(text.len() as u64, out);
        out.extend_from_slice(text.as_bytes());
    }
}

/// Returns the body of a successful Response. `Err`: its status, or that it cannot be decoded.
pub fn response_decode(bytes: &[u8]) -> Result<&[u8], Error> {
    let parts = parts_of(bytes).filter(|_| !bytes.is_empty());
    match parts {
        None => Err(undecodable()),
        Some((Said { code: 0, .. }, body)) => Ok(body),
        Some((said, _)) => Err(Error::new(Code::from(said.code), said.reason, said.message)),
    }
}

pub fn undecodable() -> Error {
    Error::plain(Code::Internal, "the reply cannot be decoded")
}

/// The fields of a Status that were decoded so far.
#[derive(Default)]
struct Said<'a> {
    code: i32,
    message: &'a str,
    reason: &'a str,
}

/// Decodes a Response. Repeated fields follow protobuf: the last body wins, statuses are merged.
fn parts_of(mut rest: &[u8]) -> Option<(Said<'_>, &[u8])> {
    let mut said = Said::default();
    let mut body: &[u8] = &[];
    while !rest.is_empty() {
        match take_field(&mut rest)? {
            (1, Value::Bytes(status)) => said.merge(status)?,
            (15, Value::Bytes(bytes)) => body = bytes,
            _ => {}
        }
    }
    Some((said, body))
}

impl<'a> Said<'a> {
    /// Checks each text, including one that a later field replaces.
    fn merge(&mut self, mut rest: &'a [u8]) -> Option<()> {
        while !rest.is_empty() {
            match take_field(&mut rest)? {
                (1, Value::Varint(code)) => self.code = code as i32,
                (2, Value::Bytes(text)) => self.message = std::str::from_utf8(text).ok()?,
                (3, Value::Bytes(text)) => self.reason = std::str::from_utf8(text).ok()?,
                _ => {}
            }
        }
        Some(())
    }
}

enum Value<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    Fixed,
}

/// Takes the first field, or returns `None` if it is malformed. Like the server's reader this is
/// stricter than protobuf where no encoder is affected: a tag has at most five bytes, and there are
/// no groups.
fn take_field<'a>(rest: &mut &'a [u8]) -> Option<(u32, Value<'a>)> {
    let before = rest.len();
    let (number, wire_type) = decode_key(rest).ok()?;
    if before - rest.len() > TAG_BYTES_MAX {
        return None;
    }
    let value = match wire_type {
        WireType::Varint => Value::Varint(decode_varint(rest).ok()?),
        WireType::LengthDelimited => {
            let length = usize::try_from(decode_varint(rest).ok()?).ok()?;
            Value::Bytes(take_bytes(rest, length)?)
        }
        WireType::SixtyFourBit => take_bytes(rest, 8).map(|_| Value::Fixed)?,
        WireType::ThirtyTwoBit => take_bytes(rest, 4).map(|_| Value::Fixed)?,
        WireType::StartGroup | WireType::EndGroup => return None,
    };
    Some((number, value))
}

fn take_bytes<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(count)?;
    *rest = left;
    Some(taken)
}

/// Splits a message of the event bus into its topic and the event.
pub fn event_decode(message: &[u8]) -> Option<(&[u8], v1::Event)> {
    let end = message.iter().position(|byte| *byte == 0)?;
    let (topic, encoded) = (&message[..end], &message[end + 1..]);
    std::str::from_utf8(topic).ok()?;
    let mut rest = encoded;
    while !rest.is_empty() {
        take_field(&mut rest)?;
    }
    Some((topic, v1::Event::decode(encoded).ok()?))
}
