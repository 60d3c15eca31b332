"""Starts tined, as the command line `tine` does. Linux only.

A client takes a lock, checks again whether a tined listens, starts one if not, and holds the lock
until it is ready. So of many clients that do this at once, one starts tined and the others find it.
"""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import BinaryIO, Callable, Optional

_IDLE_EXIT = "30m"
_READY_WITHIN_S = 60.0
_ENDED_WITHIN_S = 15.0  # a stopping tined waits for its clients for 6 s
_LOOK_AGAIN_S = 0.02
_TINED_EXIT_IN_USE = 3
_LAST_WORDS_BYTES_MAX = 4096

_started: list[int] = []  # ids of children that have not been reaped


class StartError(Exception):
    """Why tined could not be started."""


#: Whether the caller has given up waiting.
IsGivenUp = Callable[[], bool]


def start(socket_path: str, is_given_up: IsGivenUp) -> None:
    """Returns when a tined listens there. Raises StartError."""
    try:
        _start(socket_path, is_given_up)
    except OSError as error:  # for example of the lock or the log file
        raise StartError(f"no tined runs, and none can be started: {error}") from None


def _start(socket_path: str, is_given_up: IsGivenUp) -> None:
    tined = find()
    directory = _state_directory()
    log = directory / "tined.log"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(
        directory / "start.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
    )
    try:
        _take(lock, is_given_up)
        _reap()
        path = os.path.abspath(socket_path)
        if _is_listening(path):
            return
        is_in_use = _launch(tined, path, log, is_given_up)
        if is_in_use and not _is_listening(path):
            _wait_for_holder(path, is_given_up)
            if _is_listening(path):
                return
            is_in_use = is_given_up() or _launch(tined, path, log, is_given_up)
            if is_in_use and not _is_listening(path):
                raise StartError(f"another tined has {path}, and does not answer")
    finally:
        os.close(lock)


def find(tined: Optional[str] = None) -> str:
    """Returns the program: this one, $TINED, or the one in $PATH. Raises StartError."""
    if not sys.platform.startswith("linux"):
        raise StartError("no tined runs, and it can be started on Linux only")
    found = tined or os.environ.get("TINED") or shutil.which("tined")
    if not found:
        raise StartError("no tined runs, and none is in $PATH; $TINED may name one")
    return found


def _take(lock: int, is_given_up: IsGivenUp) -> None:
    """Waits until the lock is free and takes it."""
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if is_given_up():
                raise StartError("no tined runs, and another process is starting one") from None
            sleep(_LOOK_AGAIN_S)


def _state_directory() -> Path:
    state, home = os.environ.get("XDG_STATE_HOME", ""), os.environ.get("HOME", "")
    if state.startswith("/"):
        return Path(state) / "tine"
    if home.startswith("/"):
        return Path(home) / ".local/state/tine"
    raise StartError("no tined runs, and its log has no directory: set $HOME or $XDG_STATE_HOME")


def _is_listening(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
            probe.sendall(b"\0SP\0\0\x30\0\0")
            return len(probe.recv(8)) > 0
        except OSError:
            return False


def _launch(tined: str, path: str, log: Path, is_given_up: IsGivenUp) -> bool:
    """Starts tined and waits until it is ready. Returns True if it ended because another one uses
    the socket or the store. Raises StartError."""
    environment = dict(os.environ)
    environment.setdefault("TINE_IDLE_EXIT", _IDLE_EXIT)
    with open(log, "ab") as output:
        begin = output.tell()
        arguments = [tined, "--socket", path, "--log-file", str(log)]
        process, is_ready = spawn(arguments, environment, output, is_given_up, cwd="/")
    if is_ready:
        _leave(process)
        return False
    if process.wait() == _TINED_EXIT_IN_USE:
        return True
    raise StartError(last_words(log, begin))


def spawn(
    arguments: list[str],
    environment: dict[str, str],
    output: BinaryIO,
    is_given_up: IsGivenUp = lambda: False,
    cwd: Optional[str] = None,
) -> tuple[subprocess.Popen[bytes], bool]:
    """Starts tined and waits. Returns the process and whether it became ready; if not, it has ended
    or is about to. Raises StartError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
        ready.bind("")  # the kernel chooses an abstract name
        name = os.fsdecode(ready.getsockname()[1:])
        try:
            process = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=cwd,
                env={**environment, "NOTIFY_SOCKET": f"@{name}"},
                start_new_session=True,
            )
        except OSError as error:
            raise StartError(f"{arguments[0]} does not start: {error}") from None
        return process, _wait_ready(ready, process, is_given_up)


def _leave(process: subprocess.Popen[bytes]) -> None:
    """Detaches the process: it outlives this one, and subprocess must not warn about it."""
    _started.append(process.pid)
    process.returncode = 0


def _wait_ready(
    ready: socket.socket, process: subprocess.Popen[bytes], is_given_up: IsGivenUp
) -> bool:
    """Returns False if it has ended. If the caller gives up, tined is left running."""
    ended = os.pidfd_open(process.pid)
    try:
        wanted = select.poll()
        wanted.register(ready, select.POLLIN)
        wanted.register(ended, select.POLLIN)
        until = monotonic() + _READY_WITHIN_S
        found = wanted.poll(_LOOK_AGAIN_S * 1000)
        while not found and monotonic() < until:
            if is_given_up():
                _leave(process)
                raise StartError("tined was started and is not ready yet")
            found = wanted.poll(_LOOK_AGAIN_S * 1000)
    finally:
        os.close(ended)
    if not found:
        process.kill()
        process.wait()
        raise StartError("tined was started and was not ready in time")
    return any(fd == ready.fileno() for fd, _ in found)


def last_words(log: Path, begin: int) -> str:
    """Finds in the log why tined ended."""
    with open(log, "rb") as file:
        file.seek(begin)
        text = file.read(_LAST_WORDS_BYTES_MAX).decode(errors="replace")
    for line in text.splitlines():
        _, found, why = line.partition("tined: ")
        if found:
            return f"tined does not start: {why}"
    return f"tined was started and ended; see {log}"


def _wait_for_holder(path: str, is_given_up: IsGivenUp) -> None:
    """Waits for the process that the lock file of the socket names. It does not answer, because it
    is about to stop, or was started by a client that did not wait for it."""
    try:
        holder = os.pidfd_open(int(Path(path + ".lock").read_text().split()[0]))
    except (OSError, ValueError, IndexError):
        return  # it has already ended
    try:
        wanted = select.poll()
        wanted.register(holder, select.POLLIN)
        until = monotonic() + _ENDED_WITHIN_S
        while not wanted.poll(_LOOK_AGAIN_S * 1000) and monotonic() < until:
            if is_given_up() or _is_listening(path):
                return
    finally:
        os.close(holder)


def _reap() -> None:
    for pid in list(_started):
        try:
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                continue
        except ChildProcessError:
            pass  # a child of the parent of a fork
        _started.remove(pid)
