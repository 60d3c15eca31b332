"""A tined for tests: it has a store and a socket of its own, which are removed afterwards.

    with tine.testing.Tined() as tined, tine.connect(tined.url) as channel:
        store = StoreServiceStub(channel)

For pytest, in conftest.py:

    tined = pytest.fixture(tine.testing.fixture)

Linux only, as tined is.
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

_IDLE_EXIT = "1h"  # ends a tined whose test was killed


class Tined:
    """A tined that runs between `start` and `stop`, or as a context manager.

    options       more of its command line, as "--ephemeral" or "--durability", "relaxed"
    tined         the program; without it $TINED, else the one in $PATH
    directory     holds its store, socket and log, and is kept afterwards; without it a temporary
                  one, which `close` removes
    stop_timeout  the seconds that `stop` gives it before it kills it

    It gets none of this process's TINE_ variables. Not for several threads at once.
    """

    def __init__(
        self,
        *options: str,
        tined: Optional[str] = None,
        directory: Union[str, Path, None] = None,
        stop_timeout: float = 10.0,
    ) -> None:
        """Raises ValueError when the directory's path is too long for a socket in it."""
        self._options = options
        self._tined = tined
        self._stop_timeout = stop_timeout
        self._process: Optional[subprocess.Popen[bytes]] = None
        # They clean up after a Tined that was never closed.
        self._kill: Optional[weakref.finalize[..., Tined]] = None
        self._remove: Optional[weakref.finalize[..., Tined]] = None
        if directory is None:
            directory = tempfile.mkdtemp(prefix="tine-", dir=_temporary())
            self._remove = weakref.finalize(self, _remove, directory, os.getpid())
        self.directory = Path(directory)
        #: Where it listens: for `tine.connect`.
        self.url = f"ipc://{self.directory.absolute() / 'tine.sock'}"
        self.path = address_of(self.url).path
        self.log = self.directory / "tined.log"

    @property
    def pid(self) -> int:
        """Of the process; 0 when it does not run."""
        return self._process.pid if self._process else 0

    def start(self) -> None:
        """Starts it, on the store that it left if it ran before, and waits until it answers.
        Raises StartError."""
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
        """Ends it in order, and by force when it does not end within `stop_timeout`. Its store
        stays, for another `start`."""
        if not self._process:
            return
        self._process.terminate()
        try:
            self._process.wait(self._stop_timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._ended()

    def kill(self) -> None:
        """Ends it at once, as a crash does. Its store stays, for another `start`."""
        if self._process:
            self._process.kill()
            self._ended()

    def close(self) -> None:
        """Stops it, and removes its directory if that is a temporary one."""
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
    """For `pytest.fixture`, with any scope: a running Tined, which is closed afterwards."""
    with Tined() as tined:
        yield tined


def _temporary() -> Optional[str]:
    """Where temporary directories go; /tmp where $TMPDIR is too long for the path of a socket."""
    return None if len(os.fsencode(tempfile.gettempdir())) <= 60 else "/tmp"


def _kill(process: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() == owner:  # not in a fork
        process.kill()
        process.wait()


def _remove(directory: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)
