# SPDX-License-Identifier: Apache-2.0
"""A job of real processes: `batchloom run`, and a rank each that trains on nothing.

What "once" means: a rank has trained on the steps below the one that its checkpoint says is next.
It notes a checkpoint at the latest after every `pin_every` steps. Killed, it forgets what it did
since, goes on at its checkpoint, and must get the same steps again, with the same bytes; each
process must get its steps in order, without a gap. So a step counts once: when a checkpoint first
covers it. Rank 0 pins for all of them, and so it comes last.
"""

import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

from chaos.judge import run_json
from chaos.pipeline_settings import PipelineSettings
from chaos.roles import Consumer, Role
from chaos.scenario import PATIENCE_S, TICK_S, Failure
from chaos.settings import GROUP
from chaos.stream_watch import StreamWatch
from shards import every_format


class Runner(Role):
    """`batchloom run`."""

    kind = "producer"
    settings: PipelineSettings

    def __init__(self, settings: PipelineSettings, choice: random.Random) -> None:
        super().__init__(settings, "run", choice)
        self.watch = StreamWatch(settings)
        self.term_before = 0  # When the process began.
        self.newest_before = ""  # Manifest slot.
        self.started_at = 0.0
        self.has_fenced = False
        self.is_slowed = False  # It is being aimed at, and its times tell nothing.
        self.startup_s = 0.0  # How long a process took, when last seen, until it fenced.
        self.changes_at: int | None = None  # The step from which on it has other weights.
        self.pipeline = settings.pipeline

    def start(self) -> None:
        look = self.watch.look()
        self.term_before = look.term if look else 0
        if self.settings.broken == "other-weights" and look and look.next_step > 0 and self.runs:
            self.change_weights(look.next_step)
        self.newest_before = self.watch.newest()
        self.has_fenced = False
        self.started_at = time.monotonic()
        super().start()

    def listen(self) -> None:
        """Who has written a manifest slot has fenced: that comes first."""
        if self.alive and not self.has_fenced and self.watch.newest() != self.newest_before:
            self.has_fenced = True
            self.note_startup()

    def kill(self) -> int:
        """Who dies before it has fenced would have taken longer."""
        self.listen()
        if self.alive and not self.has_fenced:
            self.note_startup(at_least=self.startup_s)
        return super().kill()

    def note_startup(self, at_least: float = 0.0) -> None:
        if not self.is_slowed:
            self.startup_s = max(at_least, time.monotonic() - self.started_at)

    def change_weights(self, next_step: int) -> None:
        if self.changes_at is None:
            self.changes_at = next_step
            self.pipeline = self.pipeline.with_name("other.toml")
            self.pipeline.write_text(self.settings.to_toml(has_other_weight=True), encoding="utf-8")
        elif self.changes_at < next_step:
            self.changes_at = -1  # The stream knows them by now.

    def command(self) -> list[str]:
        settings = self.settings
        options = [f"--store={settings.stream}", f"--index-folder={settings.index_folder}"]
        options += [f"--fsync={settings.fsync}", "--reclaim-every=200ms", "--json"]
        if self.changes_at is not None and self.changes_at >= 0:
            options.append(f"--change-from={self.changes_at}")
        return [str(settings.command), "run", str(self.pipeline), *options]

    def pause_s(self, fenced: bool) -> float:
        del fenced
        return self.choice.uniform(0.0, 0.1)

    def indexes(self, source: str = "") -> list[Path]:
        """Those that are there, of all sources or of one that may be aimed at. Of Megatron's data
        sets the smaller file has it."""
        shards = Path(every_format.SOURCES[source].files).name if source else "*"
        names = f"{shards.replace('.bin', '.idx')}.*.blidx"
        return sorted(self.settings.index_folder.glob(names))

    def lacks_index(self, source: str = "") -> bool:
        """Of any source, or of this one."""
        shards = every_format.SOURCES[source].shards if source else self.settings.sources.shards
        return len(self.indexes(source)) < shards

    def writes_index(self) -> bool:
        """It has a temporary file open that is to become an index, with or without a name."""
        return self.has_open("/.blidx.tmp/")

    def has_workers(self) -> bool:
        """Processes of Python, which live while it indexes."""
        tasks = Path(f"/proc/{self.pid}/task")
        return any(self.children_of(task) for task in tasks.glob("*"))

    def children_of(self, task: Path) -> str:
        try:
            return (task / "children").read_text(encoding="ascii")
        except OSError:
            return ""  # It has ended meanwhile.


class Rank(Consumer):
    """Goes on at its checkpoint."""

    settings: PipelineSettings

    def __init__(self, settings: PipelineSettings, rank: int, choice: random.Random) -> None:
        super().__init__(settings, rank, choice)
        self.checkpoint = 0  # The next step, as it is noted.
        self.stays_at: int | None = None  # Where its checkpoint stays for now.
        self.skips = 0  # Steps that it leaves out when it goes on; see BREAKS.

    def listen(self) -> None:
        """A checkpoint after every `pin_every` steps, and now and then one in between."""
        before = self.log.position
        super().listen()
        position = self.log.position
        if self.stays_at is None and position > before:
            late = 0 if self.choice.random() < 0.2 else position % self.settings.pin_every
            self.checkpoint = max(self.checkpoint, position - late)

    def last_read(self) -> int:
        """The last step that it has read: what it is about to read again is still there."""
        return max(0, self.log.position - 1)

    def go_back(self, step: int) -> None:
        """To a checkpoint that is not above what it has; there it stays for now."""
        assert step <= self.log.position
        self.stays_at = self.checkpoint = step

    def start(self) -> None:
        self.first = self.checkpoint
        super().start()

    def command(self) -> list[str]:
        if not self.skips:
            return super().command()
        honest = f"--start={self.first}"
        wrong = f"--start={self.first + self.skips}"
        return [wrong if option == honest else option for option in super().command()]

    def pause_s(self, fenced: bool) -> float:
        del fenced
        return self.choice.uniform(0.0, 0.1)

    def says_nothing_yet(self) -> bool:
        """Its process has not delivered a step."""
        return self.log.next_step == self.first

    def has_opened(self) -> bool:
        """Its process has opened the stream, and next the file that it writes its steps to."""
        return self.has_open(str(self.log.path))


class Job:
    """The producer, the ranks, and how far these may read. Whoever ends is started again."""

    def __init__(self, settings: PipelineSettings, choice: random.Random) -> None:
        settings.folder.mkdir()
        self.settings = settings
        self.producer = Runner(settings, choice)
        self.watch = self.producer.watch
        self.ranks = [Rank(settings, rank, choice) for rank in range(settings.ranks)]
        self.allowed = 0  # The step before which ranks stop.
        self.held: set[Role] = set()  # Who isn't started.
        self.finishing = False  # Who comes to its end may stay there.
        self.is_pinned = False

    @property
    def roles(self) -> list[Role]:
        return [self.producer, *self.ranks]

    @property
    def most_allowed(self) -> int:
        """With ranks no further than that, the last step cannot be begun."""
        return max(0, self.settings.steps - 1 - self.settings.lead)

    def tick(self, pause_s: float = TICK_S) -> None:
        """Starts who is due, takes in what was written, and lets the ranks read on."""
        for role in self.roles:
            if role.process is not None and not role.alive:
                self.settle(role, role.wait())
            elif role.process is None and self.may_start(role):
                role.start()
            role.listen()
        for rank in self.ranks:
            if rank.log.problems:
                raise Failure(rank.log.problems[0])
        self.pace()
        time.sleep(pause_s)

    def tick_until(
        self, done: Callable[[], bool], what: str, progress: Callable[[], int] = lambda: 0
    ) -> None:
        """Patience counts from the last progress."""
        seen, since = progress(), time.monotonic()
        while not done():
            if (now := progress()) != seen:
                seen, since = now, time.monotonic()
            if time.monotonic() - since > PATIENCE_S:
                raise Failure(f"waited {PATIENCE_S:.0f} s for {what}")
            self.tick()

    def steps_read(self) -> int:
        """By all ranks together, each time that one was read."""
        return sum(rank.log.position + rank.log.repeats for rank in self.ranks)

    def may_start(self, role: Role) -> bool:
        if role.ending or role in self.held or role.due > time.monotonic():
            return False
        if role is not self.producer and not self.is_pinned:
            self.pin_begin()
            return self.is_pinned
        return True

    def pin_begin(self) -> None:
        """The checkpoint before the first step, once there is a stream."""
        if self.watch.exists():
            words = (f"--group={GROUP}", "--id=step-0", "--step=0")
            run_json([*self.settings.on_stream("store", "pin"), *words])
            self.is_pinned = True

    def settle(self, role: Role, status: int) -> None:
        """A process has ended by itself, or because it was asked to."""
        if status not in (0, -signal.SIGTERM):
            raise Failure(f"{role.name} ended with {status}: {role.complaint()}")
        has_ended = role is self.producer or role.log.position == self.settings.steps
        role.ending = self.finishing and has_ended
        role.rest()

    def pace(self) -> None:
        """Rank 0 comes last. At the end of the stream one more line lets a rank see that this is
        the end."""
        others = min(rank.log.position for rank in self.ranks[1:])
        over = int(self.finishing)
        for rank in self.ranks[1:]:
            rank.grant(self.allowed + over)
        self.ranks[0].grant(min(self.allowed, others) + over * int(others == self.settings.steps))

    def stop(self, role: Role) -> None:
        """In good order; it isn't started before it is let go."""
        self.held.add(role)
        role.send(signal.SIGCONT)
        role.send(signal.SIGTERM)
        self.tick_until(lambda: role.process is None, f"{role.name} to stop")

    def let_go(self, role: Role) -> None:
        self.held.discard(role)

    def finish(self) -> None:
        """All the rest, until everybody has come to the end; it may take long, while steps come."""
        self.finishing = True
        self.held.clear()
        self.allowed = self.settings.steps
        what = "a step on any rank, or for everybody to end"
        self.tick_until(lambda: all(role.ending for role in self.roles), what, self.steps_read)

    def kill_all(self) -> None:
        for role in self.roles:
            role.kill()
