"""`tine.testing`: the tined that it runs for tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tine.v1.store_pb2 import GetSessionRequest, HealthRequest
from tine.v1.store_pb2_grpc import StoreServiceStub

import tine
from tests.conftest import ROOM, create_session
from tine import testing
from tine.testing import StartError, Tined

running = pytest.fixture(testing.fixture)


def test_the_fixture_is_a_tined_that_answers(running: Tined) -> None:
    with tine.connect(running.url) as channel:
        assert StoreServiceStub(channel).Health(HealthRequest()).ready


def test_nothing_is_left_of_it() -> None:
    with Tined() as tined, tine.connect(tined.url) as channel:
        channel.ready()
        pid = tined.pid
    assert not tined.directory.exists()
    assert not tined.pid
    assert not is_running(pid)
    tined.close()


def test_its_store_outlives_a_crash_and_a_stop(directory: Path) -> None:
    with Tined(directory=directory) as tined, tine.connect(tined.url) as channel:
        store = StoreServiceStub(channel)
        request = GetSessionRequest(session_id=create_session(store))
        for end in (tined.kill, tined.stop):
            end()
            end()
            tined.start()
            tined.start()
            assert store.GetSession(request).session.id == request.session_id
    assert (directory / "store").exists()


def test_one_that_does_not_stop_is_killed() -> None:
    with Tined("--ephemeral", stop_timeout=0.1) as tined:
        pid = tined.pid
        os.kill(pid, signal.SIGSTOP)
        tined.stop()
        assert not is_running(pid)


def test_the_callers_environment_does_not_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINE_LOG_LEVEL", "nonsense")
    monkeypatch.setenv("TINE_EPHEMERAL", "1")
    monkeypatch.setenv("NOTIFY_SOCKET", "@another")
    with Tined() as tined:
        assert (tined.directory / "store").exists()


def test_without_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    named = os.environ["TINED"]
    monkeypatch.delenv("TINED")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(StartError, match=r"none is in \$PATH; \$TINED may name one"):
        Tined().__enter__()
    with pytest.raises(StartError, match="/nowhere/tined does not start: "):
        Tined(tined="/nowhere/tined").__enter__()
    with Tined(tined=named):
        pass
    monkeypatch.setenv("PATH", str(Path(named).parent))
    with Tined():
        pass


def test_why_it_does_not_start() -> None:
    with pytest.raises(StartError, match=r"tined does not start: .*--nonsense"):
        Tined("--nonsense").__enter__()


def test_a_directory_that_is_too_deep_for_a_socket(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = directory / ("x" * 120)
    deep.mkdir()
    with pytest.raises(ValueError, match="107"):
        Tined(directory=deep)
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    with Tined() as tined:
        assert tined.pid


def test_a_program_that_forgets_it() -> None:
    """The tined ends with the program, but not with a fork of the program."""
    program = """
import os, sys
from tine.testing import Tined
tined = Tined("--ephemeral")
tined.start()
child = os.fork()
if child == 0:
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
os.kill(tined.pid, 0)
print(tined.pid, tined.directory)
"""
    result = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True
    )
    pid, directory = result.stdout.split()
    assert not is_running(int(pid))
    assert not Path(directory).exists()


def test_pytest_is_not_imported() -> None:
    program = "import sys, tine.testing; sys.exit('pytest' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOM)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
