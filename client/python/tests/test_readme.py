"""Runs the examples of the README, examples/agent, and the workload of the benchmark kit."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import BUILD, ROOM, ROOT
from tine.testing import Tined

EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOM / "README.md").read_text(), re.DOTALL)


def run(daemon: Tined, *arguments: str) -> str:
    environment = {**os.environ, "TINE_URL": daemon.url, "TINED": str(BUILD / "server/tined")}
    result = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return result.stdout


def test_the_readme_blocking(daemon: Tined) -> None:
    assert re.fullmatch(r"[0-9A-Z]{26}\n", run(daemon, "-c", EXAMPLES[0]))


def test_the_readme_aio(daemon: Tined) -> None:
    assert run(daemon, "-c", EXAMPLES[1]) == "deploy\n"


def test_the_readme_testing(daemon: Tined, tmp_path: Path) -> None:
    assert len(EXAMPLES) == 3
    (tmp_path / "test_example.py").write_text(EXAMPLES[2])
    assert "1 passed" in run(daemon, "-m", "pytest", "-p", "no:cacheprovider", str(tmp_path))


@pytest.mark.parametrize("name", ["blocking", "asynchronous"])
def test_the_agent(daemon: Tined, name: str) -> None:
    told = run(daemon, str(ROOM / f"examples/agent/{name}.py"), daemon.url)
    assert told.count("has cost 0.0042 USD") == 2
    assert told.count("event message.appended") == 5
    assert "the fork has 6 messages" in told


def test_the_benchmark_kits_workload(daemon: Tined) -> None:
    told = run(daemon, str(ROOT / "bench/kit/my_workload.py"), daemon.url, "1", "2", "100")
    assert told.count("\n") == 1
    figures = json.loads(told)
    assert (figures["forks"], figures["messages"], figures["bytes"]) == (1, 2, 100)
    assert figures["count"] == 1000
    assert 0 < figures["median_us"] <= figures["p99_us"] <= figures["p999_us"]
