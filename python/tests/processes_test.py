# SPDX-License-Identifier: Apache-2.0
"""Signals, forks, threads, and the interpreter's end."""

import queue
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import batchloom as bl
import pytest
from conftest import Run, produce


# What a shell runs in the background ignores SIGINT, and so would its children.
TAKES_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


def python(code: str, *arguments: object) -> subprocess.Popen[str]:
    code = TAKES_CTRL_C + textwrap.dedent(code)
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def outcome(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    try:
        out, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, out, err


WAITS_FOR_A_STEP = """
    import sys, batchloom as bl
    data = bl.Consumer(sys.argv[1], rank=0, world_size=2)
    for batch in data:
        if batch.step == 2: print("waits", flush=True)
"""
WAITS_FOR_A_STREAM = """
    import sys, batchloom as bl
    print("waits", flush=True)
    bl.Consumer(sys.argv[1] + "-not-there", rank=0, world_size=2, open_timeout=600)
"""


@pytest.mark.parametrize("code", [WAITS_FOR_A_STEP, WAITS_FOR_A_STREAM])
def test_ctrl_c_ends_a_wait(endless: Path, code: str) -> None:
    process = python(code, endless)
    assert process.stdout.readline() == "waits\n"
    process.send_signal(signal.SIGINT)
    status, _, err = outcome(process)
    assert "KeyboardInterrupt" in err
    assert status == -signal.SIGINT, err


def test_the_interpreter_ends_with_open_consumers(endless: Path) -> None:
    status, out, err = outcome(
        python(
            """
            import sys, batchloom as bl
            data = bl.Consumer(sys.argv[1], rank=0, world_size=2)
            other = bl.Consumer(sys.argv[1], rank=1, world_size=2)
            batch = next(data)
            tokens, stored = batch.micro_batches[0].tokens, batch.micro_batches[0].stored
            data.itself = data  # A cycle, which nobody collects.
            print(batch.step)
            """,
            endless,
        )
    )
    assert (status, out, err) == (0, "0\n", "")


def test_a_forked_process_is_told_to_open_its_own(endless: Path) -> None:
    status, out, err = outcome(
        python(
            """
            import os, sys, batchloom as bl
            data = bl.Consumer(sys.argv[1], rank=0, world_size=2)
            batch = next(data)
            if os.fork() == 0:
                for use in (lambda: next(data), lambda: data.cursor, data.close, data.counters,
                            lambda: data.pin(batch.state, name="x")):
                    try:
                        use()
                    except bl.Invalid as error:
                        assert "Open a Consumer in each process" in str(error), error
                    else:
                        raise AssertionError("it was let")
                own = bl.Consumer(sys.argv[1], rank=1, world_size=2)
                print(next(own).step, len(batch.micro_batches[0].tokens) > 0, flush=True)
                sys.exit(0)
            _, status = os.wait()
            assert status == 0, status
            print(next(data).step)
            """,
            endless,
        )
    )
    assert (status, out, err) == (0, "0 True\n1\n", "")


def test_one_thread_at_a_time(run: Run, endless: Path) -> None:
    data = bl.Consumer(endless, rank=0, world_size=2)
    for _ in range(3):
        next(data)
    answers: queue.Queue[bl.Batch | bl.Error] = queue.Queue()

    def wait() -> None:
        try:
            answers.put(data.next(timeout=60))
        except bl.Error as error:
            answers.put(error)

    threads = [threading.Thread(target=wait) for _ in range(2)]
    for thread in threads:
        thread.start()
    refused = answers.get(timeout=60)
    assert isinstance(refused, bl.Invalid)
    assert "another thread" in str(refused)
    produce(run, endless, "--ranks=2", "--steps=4", "--record-tokens=64")
    assert answers.get(timeout=60).step == 3
    for thread in threads:
        thread.join()
