"""A client with nothing of ours but the contract: pynng's Req0 and Sub0 sockets, on a real tined.

    main.py BUILD_DIRECTORY DESCRIPTOR_SET

Ends with the line `N passed, N failed`.
"""

import contextlib
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

import pynng
from google.protobuf import descriptor_pb2, json_format, message_factory

BUILD = Path(sys.argv[1])
CONTRACT = message_factory.GetMessages(
    descriptor_pb2.FileDescriptorSet.FromString(Path(sys.argv[2]).read_bytes()).file)
TIMEOUT_MS = 30000


def message(name, **fields):
    return json_format.ParseDict(fields, CONTRACT[f"tine.v1.{name}"]())


def dial(path, **options):
    return pynng.Req0(dial=f"ipc://{path}", recv_timeout=TIMEOUT_MS, block_on_dial=False, **options)


def call(socket, method, operation_id="", **fields):
    """Sends a Request and returns its Response."""
    request = CONTRACT["tine.v1.Request"]()
    request.method = f"/tine.v1.StoreService/{method}"
    request.operation_id = operation_id
    request.body = message(f"{method}Request", **fields).SerializeToString()
    socket.send(request.SerializeToString())
    return CONTRACT["tine.v1.Response"].FromString(socket.recv())


def call_ok(socket, method, operation_id="", **fields):
    response = call(socket, method, operation_id, **fields)
    assert response.status.code == 0, response.status
    return CONTRACT[f"tine.v1.{method}Response"].FromString(response.body)


def create(socket):
    model = {"provider": "p", "name": "m"}
    reply = call_ok(socket, "CreateSession", session={"project_dir": "/p", "model": model})
    return reply.session.id


def append(socket, session, operation_id=""):
    reply = call_ok(socket, "AppendMessage", operation_id, session_id=session,
                    message={"role": "ROLE_USER", "parts": [{"text": {"text": "Hello."}}]})
    return reply.receipt.id


def count(socket, session):
    return call_ok(socket, "GetSession", session_id=session).session.message_count


@contextlib.contextmanager
def running(program, socket, *arguments, says_ready):
    process = subprocess.Popen([BUILD / program, "--socket", socket, *arguments],
                               stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE if says_ready else subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        if says_ready:
            process.stdout.readline()
        yield
    finally:
        process.kill()
        process.wait()


def calls_are_answered(path):
    with dial(path) as socket:
        session = create(socket)
        assert count(socket, session) == 0
        append(socket, session)
        assert count(socket, session) == 1


def errors_are_statuses(path):
    with dial(path) as socket:
        status = call(socket, "GetSession", session_id="00000000000000000000000001").status
        assert (status.code, status.reason) == (5, "SESSION_NOT_FOUND"), status


def an_operation_is_done_once(path):
    with dial(path) as socket:
        session = create(socket)
        first = append(socket, session, "pynng-1")
        assert append(socket, session, "pynng-1") == first
        assert count(socket, session) == 1


def sent_again(mode):
    """Through a proxy that loses the first two replies or requests. When a connection ends pynng
    sends again by itself; when a reply is lost, after its resend time."""

    def test(path):
        proxied = path.with_name(mode)
        options = {"resend_time": 100} if mode == "drop-reply" else {}
        with dial(path) as direct, running(
                "tests/wire_proxy", proxied, "--to", path, "--mode", mode, "--count", "2",
                says_ready=True), dial(proxied, **options) as socket:
            session = create(direct)
            append(socket, session, f"pynng-{mode}")
            assert count(direct, session) == 1

    test.__name__ = f"what_is_sent_again_is_done_once_{mode.replace('-', '_')}"
    return test


def the_bus_is_heard(path):
    with dial(path) as requests, pynng.Sub0(recv_timeout=TIMEOUT_MS) as events:
        mine, other = create(requests), create(requests)
        events.subscribe(f"session/{mine}/")
        events.subscribe("heartbeat")
        events.dial(f"ipc://{path.with_suffix('.events')}", block=True)
        topic, _ = events.recv().split(b"\0", 1)
        assert topic == b"heartbeat", topic
        append(requests, other)
        mine_id = append(requests, mine)
        while topic == b"heartbeat":
            topic, encoded = events.recv().split(b"\0", 1)
        assert topic.decode() == f"session/{mine}/message.appended"
        assert CONTRACT["tine.v1.Event"].FromString(encoded).message_id == mine_id


TESTS = [calls_are_answered, errors_are_statuses, an_operation_is_done_once,
         sent_again("drop-reply"), sent_again("cut-reply"), sent_again("cut-request"),
         the_bus_is_heard]


def main():
    failed = 0
    with tempfile.TemporaryDirectory(prefix="tine-pynng-") as directory:
        path = Path(directory, "tine.sock")
        with running("server/tined", path, "--ephemeral", says_ready=False):
            for test in TESTS:
                try:
                    test(path)
                except Exception:  # whatever it was, the others still run
                    failed += 1
                    print(f"FAILED {test.__name__}")
                    traceback.print_exc(file=sys.stdout)
    print(f"{len(TESTS) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
