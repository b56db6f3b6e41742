# SPDX-License-Identifier: Apache-2.0
"""attach(): a Consumer that also starts the producer of its stream.

1. Rank 0 starts `batchloom run` as a child, unless a child of attach() on this host makes the
   stream already: a file's lock, which the child inherits and its death ends, says so. A producer
   that was started by hand is not seen, and would be fenced: open a Consumer beside it instead.
2. The child ends with its parent, whatever ends that (see _supervise.py), at a step boundary.
3. Where a child fails, rank 0 raises ProducerFailed with its last lines. The others, who may be on
   other hosts, find no stream or no step, and raise Unavailable at their deadline.
"""

import atexit
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from ._core import Batch, Topology
from .consumer import Consumer, Framework
from .errors import Error, Invalid, NotFound, Unavailable
from .pipeline import Pipeline, Tokenizer

SLICE_S = 0.5
LAST_LINES = 20


class ProducerFailed(Error):
    """The producer that attach() started ended, and not because its stream did."""


def command() -> str:
    """Where the command `batchloom` is: $BATCHLOOM, or else on the PATH. NotFound without it."""
    named = os.environ.get("BATCHLOOM")
    found = shutil.which(named or "batchloom")
    if found is None:
        raise NotFound(
            f"BATCHLOOM={named!r} is no program"
            if named
            else "there is no `batchloom` on the PATH; name the built command in $BATCHLOOM"
        )
    return found


def attach(
    pipeline: Pipeline | str | os.PathLike[str],
    *,
    rank: int,
    world_size: int | None = None,
    topology: Topology | str | None = None,
    group: str = "default",
    resume: bytes | None = None,
    start: int | None = None,
    split: str | None = None,
    options: Sequence[str] = (),
    prefetch_bytes: int = 256 << 20,
    framework: Framework = "numpy",
    open_timeout: float = 600.0,
    step_timeout: float = 600.0,
    split_samples: bool = False,
) -> "Attached":
    """Opens the stream of a pipeline for this rank, and on rank 0 sees to it that it is produced.

    pipeline: a file, or a Pipeline, whose relative paths count from the working directory. Of one
        whose tokenizer is a function of Python, a file.
    split: which one is made and read, instead of the pipeline's; give it a store of its own.
    options: more of `batchloom run`, as ["--index-folder=/cache", "--lead=8"].
    open_timeout: how long all wait for the stream to begin; indexing comes before that.
    step_timeout: how long next() waits where it is not told.
    The rest as of Consumer. ProducerFailed where the producer ends before the stream begins.
    """
    settings = {
        "rank": rank,
        "world_size": world_size,
        "topology": topology,
        "group": group,
        "resume": resume,
        "start": start,
        "prefetch_bytes": prefetch_bytes,
        "framework": framework,
        "split_samples": split_samples,
    }
    producer = _Producer(pipeline, split, options)
    try:
        if rank == 0:
            producer.start()
        return Attached(producer, open_timeout, step_timeout, settings)
    except BaseException:
        producer.stop()
        raise


class Attached(Consumer):
    """As a Consumer; where it ends, so does the producer that it started."""

    def __init__(
        self,
        producer: "_Producer",
        open_timeout: float,
        step_timeout: float,
        settings: dict[str, Any],
    ) -> None:
        self._producer = producer
        self._step_timeout = step_timeout
        begin = time.monotonic()
        while True:
            self._waited_s = time.monotonic() - begin
            rest = max(open_timeout - self._waited_s, 0.0)
            over = producer.is_over()
            try:
                super().__init__(producer.url, open_timeout=min(rest, SLICE_S), **settings)
                return
            except NotFound as error:
                if over:
                    raise producer.failure() from error
                if rest <= SLICE_S:
                    raise

    def __next__(self) -> Batch:
        batch = self.next()
        if batch is None:
            raise StopIteration
        return batch

    def next(self, timeout: float | None = None) -> Batch | None:
        """As of Consumer; without a timeout it is attach()'s step_timeout."""
        ends_at = time.monotonic() + (self._step_timeout if timeout is None else timeout)
        while True:
            rest = max(ends_at - time.monotonic(), 0.0)
            over = self._producer.is_over()  # Before: its last steps are still to be read.
            try:
                return super().next(min(rest, SLICE_S))
            except Unavailable as error:
                if over:
                    raise self._producer.failure() from error
                if rest <= SLICE_S:
                    raise

    def close(self) -> None:
        """As of Consumer, and ends the producer."""
        try:
            super().close()
        finally:
            self._producer.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        try:
            super().__exit__(*error)
        finally:
            self._producer.stop()


class _Producer:
    """`batchloom run` of a pipeline, once it is started."""

    def __init__(
        self, pipeline: Pipeline | str | os.PathLike[str], split: str | None, options: Sequence[str]
    ) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._options = [*options, *([] if split is None else [f"--split={split}"])]
        self._owner = os.getpid()
        self._folder = Path(tempfile.mkdtemp(prefix="batchloom-"))
        atexit.register(self.stop)
        if isinstance(pipeline, Pipeline):
            self._file = _from_here(pipeline).write(self._folder / "pipeline.toml")
        else:
            self._file = Path(pipeline)
        self.url = _stream_of(self._file, self._options)

    def start(self) -> None:
        """Unless another child makes this stream."""
        lock = os.open(_lock_path(self.url), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            run = [command(), "run", str(self._file), *self._options]
            supervise = [sys.executable, str(Path(__file__).with_name("_supervise.py")), *run]
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    supervise,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    pass_fds=[lock],
                )
        finally:
            os.close(lock)  # The child has it.

    @property
    def _log(self) -> Path:
        return self._folder / "producer.log"

    def is_over(self) -> bool:
        """Whether it was started and has ended."""
        return self._process is not None and self._process.poll() is not None

    def failure(self) -> ProducerFailed:
        """What to raise where it is over, and what is waited for did not come."""
        assert self._process is not None
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        told = "\n".join(lines[-LAST_LINES:])
        return ProducerFailed(
            f"the producer of {self.url} ended with status {self._process.returncode}:\n{told}"
        )

    def stop(self) -> None:
        """Ends it, at a step boundary; may be called again. A forked process leaves it alone."""
        if os.getpid() != self._owner:
            return
        atexit.unregister(self.stop)
        if self._process is not None:
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def _from_here(pipeline: Pipeline) -> Pipeline:
    """With the paths of all files absolute, so that its own file may lie anywhere."""

    def here(path: str) -> str:
        return path if "://" in path else os.path.abspath(path)

    sources = []
    for source in pipeline.sources:
        files = [source.files] if isinstance(source.files, str) else source.files
        sources.append(replace(source, files=[here(pattern) for pattern in files]))
    tokens = pipeline.tokens
    if isinstance(tokens.tokenizer, Tokenizer) and tokens.tokenizer.function is not None:
        raise Invalid(
            f"the function {tokens.tokenizer.function} is sought beside the pipeline's file: write "
            "the pipeline there with Pipeline.write(), and attach to that file"
        )
    if isinstance(tokens.tokenizer, Tokenizer) and tokens.tokenizer.model is not None:
        model = here(tokens.tokenizer.model)
        tokens = replace(tokens, tokenizer=replace(tokens.tokenizer, model=model))
    balance = pipeline.balance
    if balance is not None and balance.cost_model and balance.cost_model.endswith(".toml"):
        balance = replace(balance, cost_model=here(balance.cost_model))
    store = replace(pipeline.store, url=here(pipeline.store.url))
    return replace(pipeline, store=store, sources=sources, tokens=tokens, balance=balance)


def _stream_of(file: Path, options: Sequence[str]) -> str:
    """Where the stream lies. Invalid for a file that says nothing of it."""
    stores = [option.partition("=")[2] for option in options if option.startswith("--store=")]
    if stores:
        return stores[-1] if "://" in stores[-1] else os.path.abspath(stores[-1])
    try:
        url = tomllib.loads(file.read_text(encoding="utf-8"))["store"]["url"]
    except FileNotFoundError as error:
        raise NotFound(f"{file}: there is no such pipeline") from error
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise Invalid(f"{file}: no store.url can be read: {error}") from error
    return url if "://" in url else os.path.abspath(file.parent / url)


def _lock_path(url: str) -> str:
    """One for each stream and user of this host."""
    name = hashlib.sha256(url.encode()).hexdigest()[:16]
    return os.path.join(tempfile.gettempdir(), f"batchloom-{os.getuid()}-{name}.lock")
