# SPDX-License-Identifier: Apache-2.0
"""A producer and a rank as processes, over sources of JSON Lines."""

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
COMMAND = ROOT / "build" / "release" / "batchloom"
TIME_LIMIT_S = 300.0  # Of everything that is waited for.
END_LIMIT_S = 60.0  # From SIGTERM; the command ends itself after 30 s.
TOKEN_BYTES = 2

HEAD = """
seed = 17
[store]
url = "./stream"
lead_steps = {lead_steps}
[topology]
axes = "dp=1"
capacity = 16_384
[step]
tokens = {step_tokens}
max_sample_tokens = 4096
[tokens]
tokenizer = "bytes"
vocab = 257
end = [256]
[limits]
memory = "16 MiB"
workers = {workers}
"""
SOURCE = """
[[source]]
name = "s{source}"
files = ["{data}/s{source}/*.jsonl"]
exhausted = "repeat"
"""


@dataclass(frozen=True)
class Data:
    """Folders of JSON Lines, one for each source; all texts have one length."""

    folder: Path
    sources: int
    files: int  # Of each source.
    records: int  # Of each file.
    text_bytes: int

    def write(self) -> None:
        for source in range(self.sources):
            folder = self.folder / f"s{source}"
            folder.mkdir(parents=True)
            for file in range(self.files):
                (folder / f"{file:03}.jsonl").write_text(self._lines(source, file))

    def _lines(self, source: int, file: int) -> str:
        texts = (
            f"{source} {file} {record} ".ljust(self.text_bytes, "x")
            for record in range(self.records)
        )
        return "".join(f'{{"text": "{text}"}}\n' for text in texts)

    @property
    def sample_tokens(self) -> int:
        return self.text_bytes + 1  # And the end.


@dataclass(frozen=True)
class Pipeline:
    """A file in a folder of its own, with the stream beside it."""

    folder: Path
    data: Data
    workers: int
    step_tokens: int
    lead_steps: int = 4

    def write(self) -> Path:
        self.folder.mkdir(parents=True)
        settings = {
            "workers": self.workers,
            "step_tokens": self.step_tokens,
            "lead_steps": self.lead_steps,
        }
        text = HEAD.format(**settings)
        for source in range(self.data.sources):
            text += SOURCE.format(source=source, data=self.data.folder)
        self.file.write_text(text, encoding="utf-8")
        return self.file

    @property
    def file(self) -> Path:
        return self.folder / "pipeline.toml"

    @property
    def stream(self) -> Path:
        return self.folder / "stream"


def index(pipeline: Pipeline) -> None:
    """What a run reads later is made, and in the page cache."""
    call("index", str(pipeline.file))


def call(*arguments: str) -> None:
    """Runs the command to its end. SystemExit where it does not come."""
    command = [COMMAND, *arguments]
    try:
        subprocess.run(command, stdout=subprocess.DEVNULL, timeout=TIME_LIMIT_S, check=True)
    except subprocess.TimeoutExpired:
        raise SystemExit(f"{shown(command)} did not end within {TIME_LIMIT_S:g} s") from None


def shown(command: Sequence[str | Path]) -> str:
    return " ".join(map(str, command))


@contextlib.contextmanager
def started(*arguments: str, paced: bool = False) -> Iterator[subprocess.Popen[str]]:
    """A process of the command, which is ended and waited for at the end. SystemExit where it had
    to be killed for that. With `paced` it takes lines from a pipe."""
    process = subprocess.Popen(
        [COMMAND, *arguments],
        stdin=subprocess.PIPE if paced else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=sys.stderr if os.environ.get("BENCH_LOUD") else subprocess.DEVNULL,
        text=True,
    )
    with process:
        try:
            yield process
        except BaseException:
            process.kill()  # Why is what there is to say.
            raise
        end(process)


def end(process: subprocess.Popen[str]) -> None:
    """SystemExit where it goes on after SIGTERM: it is killed then."""
    process.terminate()
    try:
        process.wait(END_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise SystemExit(
            f"{shown(process.args)} went on for {END_LIMIT_S:g} s after SIGTERM, and was killed"
        ) from None


def wait_for_stream(pipeline: Pipeline, producer: subprocess.Popen[str]) -> None:
    """Until a rank can open it. SystemExit where the producer ends first, or hangs."""
    deadline = time.monotonic() + TIME_LIMIT_S
    while not (pipeline.stream / "gc" / "floor").exists():  # What comes last.
        if producer.poll() is not None:
            raise SystemExit(f"{pipeline.file}: the producer ended before there was a stream")
        if time.monotonic() > deadline:
            raise SystemExit(
                f"{pipeline.file}: the producer made no stream within {TIME_LIMIT_S:g} s"
            )
        time.sleep(0.001)


def next_step(rank: subprocess.Popen[str]) -> str:
    """The line that a rank prints for its next step. SystemExit where it ends or hangs instead;
    what hangs is killed, which ends the read."""
    assert rank.stdout is not None
    hangs = threading.Event()

    def give_up() -> None:
        hangs.set()
        rank.kill()

    timer = threading.Timer(TIME_LIMIT_S, give_up)
    timer.start()
    try:
        line = rank.stdout.readline()
    finally:
        timer.cancel()
    if hangs.is_set():
        raise SystemExit(f"{shown(rank.args)} got no step within {TIME_LIMIT_S:g} s")
    if not line.strip():
        raise SystemExit(f"{shown(rank.args)} ended before its next step")
    return line


def consume(pipeline: Pipeline, *options: str) -> Sequence[str]:
    """The arguments of a rank that reads the stream, and prints a line for each step."""
    return ("consume", str(pipeline.stream), "--rank=0", "--hashes=-", *options)
