"""Types, lint and layout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.conftest import BUILD, ROOM

MEMORY_BYTES_MAX = 4_000_000_000  # bounds mypy, which may not terminate
CACHE = f"--cache-dir={BUILD.parent / 'python/mypy'}"


def run(*arguments: str, cwd: Path = ROOM) -> None:
    result = subprocess.run(
        ["prlimit", f"--as={MEMORY_BYTES_MAX}", sys.executable, "-m", *arguments],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    assert result.returncode == 0, result.stdout


def test_the_package_as_installed_is_typed(tmp_path: Path) -> None:
    run("mypy", f"--config-file={ROOM / 'pyproject.toml'}", CACHE, "--package=tine", cwd=tmp_path)


def test_what_uses_it_is_typed() -> None:
    run("mypy", CACHE, "tests", "programs", "examples/agent")


def test_lint() -> None:
    run("ruff", "check", "--no-cache", ".")


def test_layout() -> None:
    run("ruff", "format", "--no-cache", "--check", ".")
