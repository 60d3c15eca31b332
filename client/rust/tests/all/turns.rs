//! Threads that take turns in sending and receiving on one connection. The test plays the server.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc;

use prost::Message;
use tine_client::sp::{HEADER_BYTES, HELLO_BYTES, Transport, frame_finish};
use tine_client::v1::{self, StoreServiceClient};
use tine_client::{Channel, Request};

use crate::support::*;

/// More than the buffer of a socket holds.
const LONG_TEXT_BYTES: usize = 4 << 20;

fn accept(listener: &UnixListener) -> UnixStream {
    let (mut stream, _) = listener.accept().unwrap();
    let mut hello = [0; HELLO_BYTES];
    stream.read_exact(&mut hello).unwrap();
    stream
        .write_all(&[0, b'S', b'P', 0, 0, 0x31, 0, 0])
        .unwrap();
    stream
}

/// Reads the header of the next frame. Returns its id and how many bytes follow.
fn read_header(stream: &mut UnixStream) -> (u32, usize) {
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header).unwrap();
    let length = u64::from_be_bytes(header[1..9].try_into().unwrap());
    let id = u32::from_be_bytes(header[9..].try_into().unwrap());
    (id, length as usize - 4)
}

fn read_body(stream: &mut UnixStream, count: usize) {
    stream.read_exact(&mut vec![0; count]).unwrap();
}

/// Sends an empty reply.
fn answer(stream: &mut UnixStream, id: u32) {
    let mut frame = vec![0; HEADER_BYTES];
    frame.extend(
        v1::Response {
            body: vec![],
            status: Some(v1::Status::default()),
        }
        .encode_to_vec(),
    );
    frame_finish(&mut frame, id, Transport::Ipc);
    stream.write_all(&frame).unwrap();
}

/// Waits until a thread sleeps, whose directory in /proc is given.
fn wait_until_asleep(thread: &Path) {
    loop {
        let stat = std::fs::read_to_string(thread.join("stat")).unwrap();
        let (_, state) = stat.rsplit_once(") ").unwrap();
        if state.starts_with('S') {
            return;
        }
        std::thread::yield_now();
    }
}

#[test]
fn what_a_thread_leaves_unsent_is_sent_by_the_one_that_receives() {
    let directory = Directory::new();
    let path = directory.path("turns.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let channel = Channel::connect(&format!("ipc://{}", path.display())).unwrap();
    let client = &StoreServiceClient::new(channel);
    let long = &user_message("any", &"x".repeat(LONG_TEXT_BYTES));
    let append = || client.append_message(Request::new(long.clone()).timeout(LONG));
    std::thread::scope(|scope| {
        // The first receives for all.
        let first = scope.spawn(|| client.health(v1::HealthRequest {}));
        let mut stream = accept(&listener);
        stream.set_read_timeout(Some(LONG)).unwrap();
        let (first_id, count) = read_header(&mut stream);
        read_body(&mut stream, count);
        // The second sends, and there is no room for all of it.
        let second = scope.spawn(append);
        let (second_id, second_count) = read_header(&mut stream);
        // The frame of the third waits behind that one.
        let (began, begins) = mpsc::channel();
        let third = scope.spawn(move || {
            let message = long.clone();
            let thread = std::fs::read_link("/proc/thread-self").unwrap();
            began.send(Path::new("/proc").join(thread)).unwrap();
            client.append_message(message)
        });
        wait_until_asleep(&begins.recv().unwrap());
        // The first leaves. Now the third receives, while the second still sends.
        answer(&mut stream, first_id);
        first.join().unwrap().unwrap();
        // The second leaves; the third must send the rest by itself.
        read_body(&mut stream, second_count);
        answer(&mut stream, second_id);
        second.join().unwrap().unwrap();
        let (third_id, third_count) = read_header(&mut stream);
        read_body(&mut stream, third_count);
        answer(&mut stream, third_id);
        third.join().unwrap().unwrap();
    });
}
