# SPDX-License-Identifier: Apache-2.0
"""Peers: the same samples, through each of them into a trainer's loop. README.md has the method.

Prints one JSON document to stdout, as bench/run takes it; progress and bars go to stderr.
"""

import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bars import at_least, report
from corpus import digest, write
from environments import ROOT, python_of
from reading import Done, Job

HERE = Path(__file__).resolve().parent
PROCESSES = ROOT / "bench" / "processes"
RELEASE = ROOT / "build" / "release"
SAMPLE_TOKENS = 2048  # 4 KiB, as ids of 16 bits.
TIME_LIMIT_S = 600

BARS = (at_least("vs_streaming", 10), at_least("vs_webdataset", 3), at_least("vs_dataloader", 1.5))


@dataclass(frozen=True)
class Way:
    """A peer, and how it is asked to read."""

    peer: str
    workers: int
    labels: bool = True

    @property
    def name(self) -> str:
        return f"{self.peer}{self.workers}{'' if self.labels else '_tokens'}"


@dataclass(frozen=True)
class Effort:
    samples: int = 1 << 16
    sources: Sequence[int] = (1, 16, 256)
    rounds: int = 5
    epochs: int = 4  # Of timed reads: so many that the fastest takes seconds.


QUICK = Effort(samples=1 << 12, sources=(1, 4), rounds=1, epochs=1)

OURS = Way("batchloom", 2)
WAYS = (
    OURS,
    Way("batchloom_stored", 2),
    Way("dataloader", 0),
    Way("dataloader", 2),
    Way("dataloader", 0, labels=False),
    Way("dataloader", 2, labels=False),
    Way("grain", 0),
    Way("grain", 2),
    Way("streaming", 0),
    Way("streaming", 2),
    Way("webdataset", 0),
    Way("webdataset", 2),
)
# Whose memory and resuming are measured; all in one way, with workers.
PEERS = ("batchloom", "dataloader", "grain", "streaming", "webdataset")
WORKERS = 2


class Bench:
    def __init__(self, folder: Path, effort: Effort) -> None:
        self._folder = folder
        self._effort = effort
        self._digests: dict[int, int] = {}
        self._left = itertools.count()
        for sources in effort.sources:
            corpus = self.job("", sources).source
            print(f"writing {corpus.samples} samples of {sources} sources", file=sys.stderr)
            write(corpus)
            parts = (digest(corpus.tokens(source)) for source in range(sources))
            self._digests[sources] = sum(parts) % (1 << 64)

    def job(self, peer: str, sources: int, **more: Any) -> Job:
        place = self._folder / f"{sources}"
        return Job(
            corpus=str(place / "corpus"),
            files=str(place / peer),
            samples=self._effort.samples,
            sources=sources,
            sample_tokens=SAMPLE_TOKENS,
            **more,
        )

    def read(self, peer: str, job: Job) -> Done:
        """In a process of its own; its files are made when they are asked for first."""
        if not Path(job.files).exists():
            self._call(peer, "write", job)
        if peer == OURS.peer and not job.resume:
            self._put_aside(Path(job.files) / "stream")
        os.sync()
        return Done(**json.loads(self._call(peer, "read", job)))

    def _put_aside(self, stream: Path) -> None:
        """Not removed: when it looks for an inode, ext4 without a journal steps over each that was
        freed in the last minutes."""
        if stream.exists():
            stream.rename(self._folder / f"stream-{next(self._left)}")

    def _call(self, peer: str, what: str, job: Job) -> str:
        path = self._folder / "job.json"
        path.write_text(json.dumps(asdict(job)), encoding="utf-8")
        paths = [PROCESSES, *([RELEASE / "python"] if peer.startswith("batchloom") else [])]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "BATCHLOOM": str(RELEASE / "batchloom"),
        }
        command = [str(python_of(peer)), str(HERE / f"peer_{peer}.py"), what, str(path)]
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, timeout=TIME_LIMIT_S, check=True
        )
        return done.stdout.decode()

    def rounds(self) -> list[dict[Way, Done]]:
        """All ways in turn, in each round, which begin elsewhere: who comes after whom may
        matter."""
        found = []
        for number in range(self._effort.rounds):
            ways = [*WAYS[number % len(WAYS) :], *WAYS[: number % len(WAYS)]]
            found.append({way: self._timed(way) for way in ways})
        return found

    def _timed(self, way: Way) -> Done:
        job = self.job(
            way.peer,
            self._effort.sources[0],
            workers=way.workers,
            epochs=self._effort.epochs,
            labels=way.labels,
        )
        done = self.read(way.peer, job)
        expect(done.each_once_an_epoch, f"{way.name}: not every sample once in each epoch")
        rate = done.samples / done.cpu_s
        print(f"{way.name}: {rate:.0f} samples per CPU second", file=sys.stderr)
        return done

    def memory(self, peer: str, sources: int) -> Done:
        done = self.read(peer, self.job(peer, sources, workers=WORKERS, check=True))
        expect(done.each_once_an_epoch, f"{peer}: not every sample once")
        expect(done.digest == self._digests[sources], f"{peer}: other samples than were written")
        return done

    def resume(self, peer: str) -> Done | None:
        """Half an epoch, then the rest in another process. None where the peer has no state."""
        state = self._folder / f"{peer}.state"
        job = self.job(peer, self._effort.sources[0], workers=WORKERS, check=True, state=str(state))
        half = job.samples // job.batch // 2
        before = self.read(peer, replace(job, batches=half))
        if not state.exists():
            return None
        rest = self.read(peer, replace(job, resume=True))
        together = sorted(before.numbers + rest.numbers)
        expect(together == list(range(job.samples)), f"{peer}: lost or repeated by resuming")
        return rest


def expect(true: bool, otherwise: str) -> None:
    if not true:
        raise SystemExit(f"bench/peers: {otherwise}")


def rate_row(way: Way, found: list[Done]) -> dict[str, Any]:
    def median(values: list[float]) -> float:
        return statistics.median(values)

    return {
        "peer": way.peer,
        "workers": way.workers,
        "content": "tokens, labels" if way.labels or way.peer.startswith("batch") else "tokens",
        "samples_per_cpu_s": round(median([done.samples / done.cpu_s for done in found])),
        "samples_per_s": round(median([done.samples / done.wall_s for done in found])),
        "first_batch_s": round(median([done.first_batch_s for done in found]), 3),
    }


def ratio(rounds: list[dict[Way, Done]], *others: Way) -> float:
    """Of samples per CPU second, over the best of the others in each round: the median."""

    def rate(done: Done) -> float:
        return done.samples / done.cpu_s

    return statistics.median(
        rate(found[OURS]) / max(rate(found[other]) for other in others) for found in rounds
    )


def of_peer(peer: str, labels: bool = True) -> list[Way]:
    return [way for way in WAYS if way.peer == peer and way.labels == labels]


def measure(bench: Bench, effort: Effort) -> dict[str, Any]:
    rounds = bench.rounds()
    rows = [rate_row(way, [found[way] for found in rounds]) for way in WAYS]
    figures = {}
    for peer in ("dataloader", "grain", "streaming", "webdataset"):
        ways = of_peer(peer)
        figures[f"vs_{peer}"] = ratio(rounds, *(way for way in ways if way.workers == WORKERS))
        figures[f"vs_{peer}_best"] = ratio(rounds, *ways)
    figures["vs_dataloader_tokens"] = ratio(rounds, *of_peer("dataloader", labels=False))
    for peer in PEERS:
        for sources in effort.sources:
            done = bench.memory(peer, sources)
            rows.append(
                {
                    "peer": peer,
                    "workers": WORKERS,
                    "sources": sources,
                    "memory_mib": round(done.memory_mib, 1),
                    "over_import_mib": round(done.memory_mib - done.before_mib, 1),
                }
            )
            print(f"{peer}, {sources} sources: {done.memory_mib:.0f} MiB", file=sys.stderr)
        figures[f"memory_mib_{peer}"] = rows[-1]["memory_mib"]
        resumed = bench.resume(peer)
        shown = round(resumed.first_batch_s, 3) if resumed else "it has no state"
        rows.append({"peer": peer, "workers": WORKERS, "resume_s": shown})
    figures["bars_missed"] = report(BARS, figures)
    return {"figures": figures, "rows": rows}


def main(arguments: Sequence[str]) -> None:
    effort = QUICK if "--quick" in arguments else Effort()
    # In the build folder: on the disk that holds the checkout, not in one of memory.
    folder = ROOT / "build" / f"peers.{os.getpid()}"
    try:
        document = measure(Bench(folder, effort), effort)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    json.dump(document, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
