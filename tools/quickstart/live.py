# SPDX-License-Identifier: Apache-2.0
"""The run itself, in real processes.

1. All ranks and the producer start together; the ranks wait for a stream that is not there yet.
2. When rank 0 has half of the steps, the producer is killed as soon as it writes the next batch
   object, and another one is started. Rank 0 goes no further than a few steps meanwhile, so that
   there are steps to make.
3. All come to their end: the ranks when they have all steps, the producer when it has made them.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

from quickstart.folder import Folder
from quickstart.options import Options


OBJECT_TIME_S = 5.0
POLL_S = 0.0002


class RunFailed(Exception):
    pass


@dataclass(frozen=True)
class LiveRun:
    seconds: float
    killed_at: int  # Rank 0 had come so far.
    went_on_at: int  # The second producer's first step.
    producer_memory_bytes: int  # Of the larger one.
    exits: list[int]  # Of the ranks.


@dataclass
class Ended:
    status: int
    peak_memory_bytes: int


class Processes:
    """What was started here, and ends with this."""

    def __init__(self, options: Options, folder: Folder, log: TextIO) -> None:
        self._options = options
        self._folder = folder
        self._log = log
        self._running: list[subprocess.Popen[str]] = []

    def start_producer(self) -> subprocess.Popen[str]:
        steps = f"--steps={self._options.steps}"
        words = [str(self._options.command), "run", "pipeline.toml", steps, "--reclaim-every=never"]
        return self._start([*words, "--json"], stdin=subprocess.DEVNULL)

    def start_rank(self, rank: int, ranks: int) -> subprocess.Popen[str]:
        file = self._folder.of_rank(rank).resolve()
        words = ["./stream", rank, ranks, self._options.steps, file]
        # The first is told when to go on; for the others there is nothing to read.
        stdin = subprocess.PIPE if rank == 0 else subprocess.DEVNULL
        return self._start([sys.executable, "-m", "quickstart.rank", *map(str, words)], stdin)

    def _start(self, words: list[str], stdin: int) -> subprocess.Popen[str]:
        tools = str(self._options.build / "python"), os.environ["PYTHONPATH"]
        process = subprocess.Popen(
            words,
            cwd=self._folder.path,
            stdin=stdin,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(tools)},
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._running.append(process)
        return process

    def wait(self, process: subprocess.Popen[str]) -> Ended:
        """How it ended, and the most memory it had. What it prints must fit into its pipe."""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self._running.remove(process)
        return Ended(process.returncode, usage.ru_maxrss << 10)

    def kill_all(self) -> None:
        for process in self._running:
            process.kill()
            process.communicate()


@contextmanager
def processes(options: Options, folder: Folder) -> Iterator[Processes]:
    with folder.log.open("w", encoding="utf-8") as log:
        started = Processes(options, folder, log)
        try:
            yield started
        finally:
            started.kill_all()


def run(options: Options, folder: Folder, ranks: int) -> LiveRun:
    with processes(options, folder) as started:
        began = time.monotonic()
        consumers = [started.start_rank(rank, ranks) for rank in range(ranks)]
        producer = started.start_producer()
        wait_for_half(consumers[0])
        wait_for_batch_object(folder)
        os.kill(producer.pid, signal.SIGKILL)
        first = started.wait(producer)
        if first.status != -signal.SIGKILL:
            raise RunFailed(f"the producer had ended before, with {first.status}")
        producer = started.start_producer()
        go_on(consumers[0])
        exits = [started.wait(consumer).status for consumer in consumers]
        seconds = time.monotonic() - began
        if any(exits):  # It may wait for the ranks for ever.
            os.kill(producer.pid, signal.SIGTERM)  # send_signal() would take its end from wait().
        assert producer.stdout
        printed = producer.stdout.read()
        second = started.wait(producer)
        if second.status != 0:
            raise RunFailed(f"the second producer ended with {second.status}")
        result = json.loads(printed)
        return LiveRun(
            seconds=seconds,
            killed_at=options.steps // 2,
            went_on_at=result["next_step"] - result["steps"],
            producer_memory_bytes=max(first.peak_memory_bytes, second.peak_memory_bytes),
            exits=exits,
        )


def wait_for_batch_object(folder: Folder) -> None:
    """The moment is not the point: after a while without one, the producer may be killed too."""
    deadline = time.monotonic() + OBJECT_TIME_S
    before = folder.count_batch_objects()
    while folder.count_batch_objects() == before and time.monotonic() < deadline:
        time.sleep(POLL_S)


def go_on(consumer: subprocess.Popen[str]) -> None:
    assert consumer.stdin
    consumer.stdin.close()


def wait_for_half(consumer: subprocess.Popen[str]) -> None:
    assert consumer.stdout
    if not consumer.stdout.readline():
        raise RunFailed("rank 0 ended before it had half of the steps")
