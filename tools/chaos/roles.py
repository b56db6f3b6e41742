# SPDX-License-Identifier: Apache-2.0
"""Who takes part: places that a process fills, and after it the next one."""

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from chaos.settings import GROUP, PRODUCER, Settings, StreamSettings
from chaos.step_logs import RankLog


class Role:
    """A place. The files of its n-th process are called `name`.n."""

    kind = "role"

    def __init__(self, settings: StreamSettings, name: str, choice: random.Random) -> None:
        self.settings = settings
        self.name = name
        self.choice = choice
        self.process: subprocess.Popen[bytes] | None = None
        self.runs = 0
        self.due = 0.0  # When the next process starts.
        self.ending = False  # There is none after this one.

    def command(self) -> list[str]:
        raise NotImplementedError

    def pause_s(self, fenced: bool) -> float:
        """Before the next process."""
        del fenced
        return self.choice.uniform(0.0, 0.3)

    def listen(self) -> None:
        """Takes in what the process has written by now."""

    @property
    def pid(self) -> int:
        assert self.process
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def path(self, suffix: str, run: int) -> Path:
        return self.settings.folder / f"{self.name}.{run}.{suffix}"

    def start(self) -> None:
        self.runs += 1
        with (
            self.path("out", self.runs).open("wb") as out,
            self.path("err", self.runs).open("wb") as err,
        ):
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.PIPE, stdout=out, stderr=err
            )

    def send(self, number: signal.Signals) -> None:
        if self.alive:
            os.kill(self.pid, number)

    def kill(self) -> int:
        """At once, even a stopped one; the status it ended with, which may be its own."""
        self.send(signal.SIGKILL)
        return self.wait() if self.process else 0

    def wait(self) -> int:
        assert self.process and self.process.stdin
        status = self.process.wait(timeout=30.0)
        self.process.stdin.close()
        self.listen()
        return status

    def has_open(self, part: str) -> bool:
        """Whether the process has a file open whose path has this part; nobody has once it died."""
        for link in Path(f"/proc/{self.pid}/fd").glob("*"):
            try:
                if part in str(link.readlink()):
                    return True
            except OSError:
                continue  # It was closed meanwhile.
        return False

    def complaint(self) -> str:
        """The last line that the process has written to stderr."""
        text = self.path("err", self.runs).read_text(encoding="utf-8", errors="replace")
        return (["", *text.splitlines()])[-1]

    def rest(self, fenced: bool = False) -> None:
        self.process = None
        self.due = time.monotonic() + self.pause_s(fenced)

    def rows(self, run: int) -> list[dict[str, Any]]:
        """What a process has printed, as far as its lines are whole."""
        whole, _, _ = self.path("out", run).read_text(encoding="utf-8").rpartition("\n")
        return [json.loads(line) for line in whole.splitlines()]


class Producer(Role):
    """Several of them bear one producer's name, so that each fences the other."""

    kind = "producer"
    settings: Settings

    def command(self) -> list[str]:
        return [*self.settings.on_stream("produce"), *self.options()]

    def options(self) -> list[str]:
        options = ["--synthetic", f"--producer={PRODUCER}", "--uploaders=3", "--json"]
        return [*options, f"--lead={self.settings.lead}", *self.settings.synthetic()]

    def pause_s(self, fenced: bool) -> float:
        return self.choice.uniform(0.3, 2.0) if fenced else self.choice.uniform(0.0, 0.5)


class LastProducer(Producer):
    """Goes on to `steps` and ends the stream."""

    def __init__(self, settings: Settings, choice: random.Random, steps: int) -> None:
        super().__init__(settings, "last-producer", choice)
        self.steps = steps

    def options(self) -> list[str]:
        return [*super().options(), f"--steps={self.steps}", "--end"]


class Consumer(Role):
    """A rank of the group. It reads a step for each line that it is given."""

    kind = "consumer"

    def __init__(self, settings: StreamSettings, rank: int, choice: random.Random) -> None:
        super().__init__(settings, f"rank-{rank}", choice)
        self.rank = rank
        self.log = RankLog(settings.folder / f"rank-{rank}.steps")
        self.first = 0  # Where the next process begins.
        self.granted = 0

    def command(self) -> list[str]:
        options = [f"--rank={self.rank}", f"--group={GROUP}", f"--start={self.first}", "--paced"]
        options += [f"--hashes={self.log.path}", "--json", "--prefetch=1MiB"]
        if self.rank == 0:
            options += ["--report", f"--report-every={self.settings.report_every}"]
            options += [f"--pin-every={self.settings.pin_every}", "--keep=2"]
        return [*self.settings.on_stream("consume"), *options]

    def start(self) -> None:
        self.log.begin(self.first)
        self.granted = self.first
        super().start()

    def listen(self) -> None:
        self.log.read_on()

    def grant(self, position: int) -> None:
        """Lets the process read up to there."""
        if position <= self.granted or not self.alive:
            return
        assert self.process and self.process.stdin
        try:
            os.write(self.process.stdin.fileno(), b"\n" * (position - self.granted))
        except BrokenPipeError:
            return  # It has just ended.
        self.granted = position


class Reclaimer(Role):
    """Removes what nobody needs, again and again."""

    kind = "reclaimer"
    settings: Settings

    def command(self) -> list[str]:
        options = ["--yes", "--list", "--json", "--every=50ms"]
        kept = f"--slots-kept={self.settings.slots_kept}"
        return [*self.settings.on_stream("store", "gc"), *options, kept]
