# SPDX-License-Identifier: Apache-2.0
"""Where a process is: which system call its most telling thread is in, or has just come from."""

import os
import platform
import signal
import time
from pathlib import Path

# Which numbers of each machine stand for which phase. A wait that was stopped goes on as "waiting".
CALLS = {
    "x86_64": {
        "linkat": (86, 265), "rename": (82, 264, 316), "unlinkat": (87, 263), "mkdir": (83, 258),
        "write": (1, 18, 20), "flock": (73,), "fsync": (74,), "fdatasync": (75,),
        "openat": (2, 257), "getdents": (217,), "read": (0, 17), "stat": (4, 5, 262, 332),
        "execve": (59,), "clone": (56, 435), "memory": (9, 10, 11, 12, 28),
        "futex": (202,), "poll": (7, 271), "sleep": (35, 230), "waiting": (219,),
    },
    "aarch64": {
        "linkat": (37,), "rename": (38, 276), "unlinkat": (35,), "mkdir": (34,),
        "write": (64, 66, 68), "flock": (32,), "fsync": (82,), "fdatasync": (83,),
        "openat": (56,), "getdents": (61,), "read": (63, 67), "stat": (79, 80, 291),
        "execve": (221,), "clone": (220, 435), "memory": (214, 215, 222, 226, 233),
        "futex": (98,), "poll": (73,), "sleep": (101, 115), "waiting": (128,),
    },
}  # fmt: skip
PHASES = {
    machine: {number: phase for phase, numbers in calls.items() for number in numbers}
    for machine, calls in CALLS.items()
}

# Whoever changes a file tells more than who reads one, and who runs more than who waits.
CHANGING = ("linkat", "rename", "unlinkat", "fdatasync", "fsync", "write", "mkdir", "flock")
READING = ("openat", "getdents", "read", "stat", "execve", "clone")
WAITING = ("waiting", "futex", "poll", "sleep")
ORDER = (*CHANGING, *READING, "running", "memory", "other", *WAITING, "gone")


def name_of(line: str, machine: str = platform.machine()) -> str:
    """The phase that a line of /proc/PID/syscall stands for."""
    word = line.split(" ", 1)[0].strip()
    if word in ("running", "-1"):  # -1: stopped outside of any call.
        return "running"
    if not word.isdecimal():
        return "gone"
    return PHASES.get(machine, {}).get(int(word), "other")


def most_telling(phases: list[str]) -> str:
    return min(phases, key=ORDER.index, default="gone")


def phase_of(pid: int) -> str:
    """Where the process is now."""
    phases = []
    for thread in Path(f"/proc/{pid}/task").glob("*/syscall"):
        try:
            phases.append(name_of(thread.read_text(encoding="ascii")))
        except OSError:
            continue  # It has ended meanwhile, or may not be looked at.
    return most_telling(phases)


def is_stopped(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except OSError:
        return True  # Gone: nothing more will happen.
    return stat.rpartition(") ")[2][:1] in ("T", "Z", "X")


def stop_and_look(pid: int, patience_s: float = 0.05) -> str:
    """Stops the process, which stays stopped, and says where that hit."""
    os.kill(pid, signal.SIGSTOP)
    end = time.monotonic() + patience_s
    while not is_stopped(pid) and time.monotonic() < end:
        time.sleep(0.0002)
    return phase_of(pid)


def stop_while_changing(pid: int, tries: int = 60) -> str:
    """Stops the process, if that can be had, while it changes a file."""
    for _ in range(tries):
        phase = stop_and_look(pid)
        if phase in CHANGING or phase == "gone":
            return phase
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.001)
    return stop_and_look(pid)
