//! The envelopes of `rpc.proto`, put together and taken apart around the message without a copy of
//! its bytes.

use prost::Message;
use prost::encoding::{
    DecodeContext, WireType, decode_key, decode_varint, encode_key, encode_varint,
    encoded_len_varint, skip_field,
};

use crate::status::{Code, Error};
use crate::v1;

const REQUEST_BYTES_MAX: usize = 16 << 20;

/// The fields of a Request beside its body.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestHead<'a> {
    pub method: &'a str,
    pub operation_id: &'a str,
    /// 0: none.
    pub timeout_ms: i64,
    pub traceparent: &'a str,
    pub token: &'a str,
    pub sync: bool,
}

/// A Request behind `room` bytes that are left for the frame's header: the fields in the order of
/// their numbers, the body last.
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
            "TOO_LONG",
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

/// The body of a Response that succeeded, else what it says or that it says nothing.
pub fn response_decode(bytes: &[u8]) -> Result<&[u8], Error> {
    let parts = parts_of(bytes).filter(|_| !bytes.is_empty());
    let Some((status, body)) = parts else {
        return Err(undecodable());
    };
    match status {
        Some(said) if said.code != 0 => {
            Err(Error::new(Code::from(said.code), said.reason, said.message))
        }
        _ => Ok(body),
    }
}

pub(crate) fn undecodable() -> Error {
    Error::plain(Code::Internal, "the reply cannot be decoded")
}

/// A field said twice is what protobuf makes of it: of the body the last one, of the status all of
/// them merged.
fn parts_of(mut rest: &[u8]) -> Option<(Option<v1::Status>, &[u8])> {
    let mut status: Option<v1::Status> = None;
    let mut body: &[u8] = &[];
    while !rest.is_empty() {
        let (number, wire_type) = decode_key(&mut rest).ok()?;
        match (number, wire_type) {
            (1, WireType::LengthDelimited) => {
                let said = take_bytes(&mut rest)?;
                status.get_or_insert_default().merge(said).ok()?;
            }
            (15, WireType::LengthDelimited) => body = take_bytes(&mut rest)?,
            (1 | 15, _) => return None,
            _ => skip_field(wire_type, number, &mut rest, DecodeContext::default()).ok()?,
        }
    }
    Some((status, body))
}

fn take_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(decode_varint(rest).ok()?).ok()?;
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

/// A message of the bus: its topic and the event.
pub fn event_decode(message: &[u8]) -> Option<(&[u8], v1::Event)> {
    let end = message.iter().position(|byte| *byte == 0)?;
    let event = v1::Event::decode(&message[end + 1..]).ok()?;
    Some((&message[..end], event))
}
