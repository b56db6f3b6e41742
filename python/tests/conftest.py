# SPDX-License-Identifier: Apache-2.0
"""Streams made by the built command, and the package beside it, or the one that is installed.

BATCHLOOM_BUILD names the build folder (default: build/dev); with BATCHLOOM_INSTALLED=1 the package
is not taken from there.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BATCHLOOM_BUILD", ROOT / "build" / "dev"))
COMMAND = BUILD / "batchloom"
os.environ["BATCHLOOM"] = str(COMMAND)  # What attach() starts.

if not os.environ.get("BATCHLOOM_INSTALLED"):
    sys.path.insert(0, str(BUILD / "python"))
    # For the processes that tests start, too.
    paths = [str(BUILD / "python"), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)

Run = Callable[..., str]


@pytest.fixture(scope="session")
def run() -> Run:
    """Runs the command; fails where it does."""

    def run_command(*arguments: object) -> str:
        command = [str(COMMAND), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run_command


def produce(run: Run, folder: Path, *options: str) -> Path:
    """A stream in `folder` with `options` of `produce --synthetic`."""
    always = ("--synthetic", "--producer=p", "--lead=unlimited", "--fsync=none")
    run("produce", folder, *always, *options)
    return folder


@pytest.fixture
def stream(run: Run, tmp_path: Path) -> Path:
    """12 steps for 4 ranks, then the end."""
    options = ("--ranks=4", "--steps=12", "--end", "--record-tokens=64")
    return produce(run, tmp_path / "stream", *options)


@pytest.fixture
def endless(run: Run, tmp_path: Path) -> Path:
    """3 steps for 2 ranks, and more may come."""
    return produce(run, tmp_path / "endless", "--ranks=2", "--steps=3", "--record-tokens=64")
