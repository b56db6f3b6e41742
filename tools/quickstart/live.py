# SPDX-License-Identifier: Apache-2.0
"""The run itself, in real processes.

1. All ranks and the producer start together; the ranks wait for a stream that is not there yet.
2. When rank 0 has half of the steps, the producer is killed as soon as it writes the next batch
   object, and another one is started. Rank 0 goes no further than a few steps meanwhile, so that
   there are steps to make.
3. All come to their end: the ranks when they have all steps, the producer when it has made them.

A process that ends otherwise ends the run at once, and is named: the others would only wait.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from quickstart.folder import Folder
from quickstart.options import Options

OBJECT_TIME_S = 5.0
POLL_S = 0.0002
POLL_OF_ENDS_S = 0.02
LOG_LINES_SHOWN = 5


class RunFailed(Exception):
    pass


@dataclass(frozen=True)
class LiveRun:
    ranks: int
    seconds: float
    killed_at: int  # Rank 0 had come so far.
    went_on_at: int  # The second producer's first step.
    producer_memory_bytes: int  # Of the larger one.


@dataclass
class Ended:
    status: int
    peak_memory_bytes: int


@dataclass(eq=False)
class Process:
    name: str
    log: Path  # What it says on stderr.
    popen: subprocess.Popen[str]

    def status(self) -> int | None:
        """As subprocess has it, None while it runs. It can still be waited for."""
        ended = os.waitid(os.P_PID, self.popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def send(self, number: signal.Signals) -> None:
        """Popen's would take its end from wait()."""
        os.kill(self.popen.pid, number)

    def failure(self, status: int, when: str = "") -> RunFailed:
        """That it ended so, with the end of its log."""
        said = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        what = f"{self.name} ended with {status}{when}:"
        return RunFailed("\n  ".join([what, *said[-LOG_LINES_SHOWN:]]))


class Processes:
    """What was started here, and ends with this."""

    def __init__(self, options: Options, folder: Folder) -> None:
        self._options = options
        self._folder = folder
        self._running: list[Process] = []

    def start_producer(self, number: int) -> Process:
        steps = f"--steps={self._options.steps}"
        words = [str(self._options.command), "run", "pipeline.toml", steps, "--reclaim-every=never"]
        return self._start(f"producer {number}", [*words, "--json"], stdin=subprocess.DEVNULL)

    def start_rank(self, rank: int, ranks: int) -> Process:
        file = self._folder.of_rank(rank).resolve()
        words = [sys.executable, "-m", "quickstart.rank", "./stream"]
        words += map(str, (rank, ranks, self._options.steps, file))
        # The first is told when to go on; for the others there is nothing to read.
        stdin = subprocess.PIPE if rank == 0 else subprocess.DEVNULL
        return self._start(f"rank {rank}", words, stdin)

    def _start(self, name: str, words: list[str], stdin: int) -> Process:
        tools = str(self._options.build / "python"), os.environ["PYTHONPATH"]
        path = self._folder.log_of(name.replace(" ", "-"))
        with path.open("w", encoding="utf-8") as log:
            popen = subprocess.Popen(
                words,
                cwd=self._folder.path,
                stdin=stdin,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(tools)},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        process = Process(name, path, popen)
        self._running.append(process)
        return process

    def wait(self, process: Process) -> Ended:
        """How it ended, and the most memory it had. What it prints must fit into its pipe."""
        _, status, usage = os.wait4(process.popen.pid, 0)
        process.popen.returncode = os.waitstatus_to_exitcode(status)
        self._running.remove(process)
        return Ended(process.popen.returncode, usage.ru_maxrss << 10)

    def kill_all(self) -> None:
        for process in self._running:
            with process.popen:  # Which waits for it.
                process.popen.kill()


@contextmanager
def processes(options: Options, folder: Folder) -> Iterator[Processes]:
    started = Processes(options, folder)
    try:
        yield started
    finally:
        started.kill_all()


def run(options: Options, folder: Folder, ranks: int) -> LiveRun:
    with processes(options, folder) as started:
        began = time.monotonic()
        consumers = [started.start_rank(rank, ranks) for rank in range(ranks)]
        producer = started.start_producer(1)
        wait_for_half(consumers, producer)
        wait_for_batch_object(folder)
        producer.send(signal.SIGKILL)
        first = started.wait(producer)
        if first.status != -signal.SIGKILL:
            raise producer.failure(first.status, " before it was killed")
        producer = started.start_producer(2)
        go_on(consumers[0])
        wait_for_ends(consumers, producer)
        for consumer in consumers:
            started.wait(consumer)
        seconds = time.monotonic() - began
        assert producer.popen.stdout
        printed = producer.popen.stdout.read()
        second = started.wait(producer)
        if second.status != 0:
            raise producer.failure(second.status)
        result = json.loads(printed)
        return LiveRun(
            ranks=ranks,
            seconds=seconds,
            killed_at=options.steps // 2,
            went_on_at=result["next_step"] - result["steps"],
            producer_memory_bytes=max(first.peak_memory_bytes, second.peak_memory_bytes),
        )


def wait_for_half(consumers: list[Process], producer: Process) -> None:
    """That the first consumer says that it has half of the steps."""
    said = consumers[0].popen.stdout
    assert said
    while not select.select([said], [], [], POLL_OF_ENDS_S)[0]:
        check_ranks(consumers[1:])
        if (status := producer.status()) is not None:
            raise producer.failure(status, " before it was killed")
    if not said.readline():
        status = consumers[0].popen.wait()
        raise consumers[0].failure(status, " before it had half of the steps")


def check_ranks(consumers: list[Process]) -> None:
    """Fails for one that has ended badly."""
    for consumer in consumers:
        if status := consumer.status():
            raise consumer.failure(status)


def wait_for_batch_object(folder: Folder) -> None:
    """The moment is not the point: after a while without one, the producer may be killed too."""
    deadline = time.monotonic() + OBJECT_TIME_S
    before = folder.count_batch_objects()
    while folder.count_batch_objects() == before and time.monotonic() < deadline:
        time.sleep(POLL_S)


def go_on(consumer: Process) -> None:
    assert consumer.popen.stdin
    consumer.popen.stdin.close()


def wait_for_ends(consumers: list[Process], producer: Process) -> None:
    while any(consumer.status() is None for consumer in consumers):
        check_ranks(consumers)
        if status := producer.status():
            raise producer.failure(status)
        time.sleep(POLL_OF_ENDS_S)
    check_ranks(consumers)
