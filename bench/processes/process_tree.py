# SPDX-License-Identifier: Apache-2.0
"""What a process and all that descend from it use: CPU time and memory, from /proc."""

import os
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# Of /proc/PID/stat, counted behind the name, which may hold anything: the parent, then user and
# system time of the process and of the children that it waited for.
PARENT = 1
TIMES = slice(11, 15)


@dataclass(frozen=True)
class Memory:
    """Of all processes together, in KiB. A page that several of them share counts once."""

    anonymous_kib: int = 0  # What only these processes have, and no file.
    shared_kib: int = 0  # Shared memory: segments, memfds and files of /dev/shm that are mapped.

    @property
    def total_mib(self) -> float:
        return (self.anonymous_kib + self.shared_kib) / 1024

    def __add__(self, other: "Memory") -> "Memory":
        return Memory(self.anonymous_kib + other.anonymous_kib, self.shared_kib + other.shared_kib)


def fields_of(pid: int) -> list[str]:
    """Of /proc/PID/stat, from the state on; none where the process is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def tree(root: int) -> list[int]:
    """The process and its descendants."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (fields := fields_of(int(entry))):
            children.setdefault(int(fields[PARENT]), []).append(int(entry))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def cpu_s(root: int) -> float:
    """User and system time of the tree, in steps of a clock tick; descendants that have ended count
    where their parents waited for them."""
    times = (fields_of(pid)[TIMES] for pid in tree(root))
    return sum(int(ticks) for ticks_of_one in times for ticks in ticks_of_one) / TICKS_PER_S


def memory(root: int) -> Memory:
    return sum((memory_of(pid) for pid in tree(root)), Memory())


def memory_of(pid: int) -> Memory:
    """Its share of pages: those that n processes share count 1/n here, so that a sum is exact."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    except OSError:  # It has ended.
        return Memory()
    kib = {line.split(":")[0]: int(line.split()[1]) for line in text.splitlines()[1:]}
    return Memory(kib["Pss_Anon"], kib["Pss_Shmem"])
