"""Runs a tined for tests, on a temporary store and socket.

    with tine.testing.Tined() as tined, tine.connect(tined.url) as channel:
        store = StoreServiceStub(channel)

For pytest, in conftest.py:

    tined = pytest.fixture(tine.testing.fixture)

Linux only, like tined.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Optional, Union

from tine._place import address_of
from tine._start import StartError, find, last_words, spawn

__all__ = ["StartError", "Tined", "fixture"]

_IDLE_EXIT = "1h"  # ends a tined whose test process was killed


class Tined:
    """A tined that runs between `start` and `stop`, or as a context manager.

    options       additional arguments of tined, such as "--ephemeral"
    tined         the path of the program; default: $TINED, then the one in $PATH
    directory     for the store, the socket and the log; it is kept. Default: a temporary
                  directory, which `close` removes
    stop_timeout  how many seconds `stop` waits before it kills tined

    It does not inherit TINE_ variables of this process. It is not thread-safe.
    """

    def __init__(
        self,
        *options: str,
        tined: Optional[str] = None,
        directory: Union[str, Path, None] = None,
        stop_timeout: float = 10.0,
    ) -> None:
        """Raises ValueError if the path of the directory is too long for a socket."""
        self._options = options
        self._tined = tined
        self._stop_timeout = stop_timeout
        self._process: Optional[subprocess.Popen[bytes]] = None
        # These clean up if it is never closed.
        self._kill: Optional[weakref.finalize[..., Tined]] = None
        self._remove: Optional[weakref.finalize[..., Tined]] = None
        if directory is None:
            directory = tempfile.mkdtemp(prefix="tine-", dir=_temporary())
            self._remove = weakref.finalize(self, _remove, directory, os.getpid())
        self.directory = Path(directory)
        #: For `tine.connect`.
        self.url = f"ipc://{self.directory.absolute() / 'tine.sock'}"
        self.path = address_of(self.url).path
        self.log = self.directory / "tined.log"

    @property
    def pid(self) -> int:
        """The process id; 0 if it is not running."""
        return self._process.pid if self._process else 0

    def start(self) -> None:
        """Starts it and waits until it answers. It keeps the store of an earlier run. Raises
        StartError."""
        if self._process:
            return
        arguments = [find(self._tined), "--socket", self.path]
        if "--ephemeral" not in self._options:
            arguments += ["--data", str(self.directory.absolute() / "store")]
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("TINE_")
        }
        environment["TINE_IDLE_EXIT"] = _IDLE_EXIT
        with open(self.log, "ab") as log:
            begin = log.tell()
            process, is_ready = spawn([*arguments, *self._options], environment, log)
        if not is_ready:
            process.wait()
            raise StartError(last_words(self.log, begin))
        self._process = process
        self._kill = weakref.finalize(self, _kill, process, os.getpid())

    def stop(self) -> None:
        """Stops it, and kills it after `stop_timeout`. The store is kept for another `start`."""
        if not self._process:
            return
        self._process.terminate()
        try:
            self._process.wait(self._stop_timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._ended()

    def kill(self) -> None:
        """Kills it, like a crash. The store is kept for another `start`."""
        if self._process:
            self._process.kill()
            self._ended()

    def close(self) -> None:
        """Stops it and removes its directory, if that is a temporary one."""
        self.stop()
        if self._remove:
            self._remove()

    def _ended(self) -> None:
        assert self._process
        assert self._kill
        self._process.wait()
        self._process = None
        self._kill.detach()

    def __enter__(self) -> Tined:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def fixture() -> Iterator[Tined]:
    """For `pytest.fixture`, with any scope: yields a running Tined and closes it."""
    with Tined() as tined:
        yield tined


def _temporary() -> Optional[str]:
    """The parent of temporary directories: /tmp if $TMPDIR is too long for a socket."""
    return None if len(os.fsencode(tempfile.gettempdir())) <= 60 else "/tmp"


def _kill(process: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() == owner:  # not in a fork
        process.kill()
        process.wait()


def _remove(directory: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)
