# SPDX-License-Identifier: Apache-2.0
"""Signals, forks, threads, and the interpreter's end."""

import contextlib
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


@pytest.mark.parametrize(
    "call",
    [
        "[waits.set() for batch in bl.Consumer(url, rank=0, world_size=2) if batch.step == 2]",
        "bl.Consumer(url + '-not-there', rank=0, world_size=2, open_timeout=waits.set() or 600)",
        "bl._core.find_start(url + '-not-there', rank=0, topology=bl.Topology('dp=2'), group='g',"
        " resume=None, start=None, min_slot=0, open_timeout=waits.set() or 600)",
        "while waits.set() is None: bl.plan([1000] * 3000, 'dp=8')",
    ],
    ids=["next", "open", "find_start", "plan"],
)
def test_the_interpreter_ends_with_a_daemon_thread_that_waits(endless: Path, call: str) -> None:
    ends = """
        import sys, threading, batchloom as bl
        url, waits = sys.argv[1], threading.Event()
        threading.Thread(target=exec, args=(sys.argv[2], globals()), daemon=True).start()
        waits.wait()
    """
    assert outcome(python(ends, endless, call)) == (0, "", "")


def test_what_a_daemon_thread_holds_is_no_leak(endless: Path) -> None:
    holds = """
        import sys, threading, batchloom as bl

        def hold(data):
            holds.set()
            threading.Event().wait()

        holds, data = threading.Event(), bl.Consumer(sys.argv[1], rank=0, world_size=2)
        threading.Thread(target=hold, args=(data,), daemon=True).start()
        holds.wait()
    """
    assert outcome(python(holds, endless)) == (0, "", "")


def test_nothing_waits_once_the_interpreter_ends(endless: Path) -> None:
    status, out, err = outcome(
        python(
            """
            import atexit, sys

            @atexit.register  # Before batchloom's own, which is called earlier for that.
            def late():
                for use in (data.next, lambda: bl.plan([1], "dp=1"),
                            lambda: bl.Consumer(sys.argv[1], rank=1, world_size=2)):
                    try:
                        use()
                    except bl.Cancelled as error:
                        print(error)

            import batchloom as bl
            data = bl.Consumer(sys.argv[1], rank=0, world_size=2)
            """,
            endless,
        )
    )
    ends = "the interpreter ends: nothing can be waited for\n"
    assert (status, out, err) == (0, f"the Consumer was closed\n{ends}{ends}", "")


def test_a_failed_release_does_not_keep_others() -> None:
    status, out, err = outcome(
        python(
            """
            import batchloom.consumer as of

            class Open:
                def __init__(self, name): self.name = name
                def release(self):
                    print(self.name, flush=True)
                    raise RuntimeError("lost " + self.name)

            both = [Open("a"), Open("b")]
            of._open_consumers.update(both)
            """
        )
    )
    assert (status, sorted(out.split())) == (0, ["a", "b"])
    assert "RuntimeError: lost" in err


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


def test_a_forked_process_ends_without_the_waits_of_its_parent(endless: Path) -> None:
    status, out, err = outcome(
        python(
            """
            import os, signal, sys, threading, batchloom as bl
            data, waits = bl.Consumer(sys.argv[1], rank=0, world_size=2), threading.Event()

            def wait():
                for batch in data:
                    if batch.step == 2:
                        waits.set()

            threading.Thread(target=wait, daemon=True).start()
            waits.wait()
            if os.fork() == 0:
                signal.alarm(20)
                sys.exit(0)
            print(os.wait()[1])
            """,
            endless,
        )
    )
    assert (status, out, err) == (0, "0\n", "")


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


def wait_in_a_thread(data: bl.Consumer, timeout: float | None) -> "queue.Queue[bl.Error]":
    """What ends a wait for a step that does not come; returns once it has begun."""
    ended: queue.Queue[bl.Error] = queue.Queue()
    begins = threading.Event()

    def wait() -> None:
        while True:
            begins.set()
            try:
                data.next(timeout)
            except bl.Unavailable:
                continue
            except bl.Error as error:
                ended.put(error)
                return

    threading.Thread(target=wait, daemon=True).start()
    begins.wait()
    return ended


@pytest.mark.parametrize("timeout", [None, 0.001])
@pytest.mark.parametrize("how", ["close", "release"])
def test_closing_ends_another_threads_wait(endless: Path, how: str, timeout: float | None) -> None:
    data = bl.Consumer(endless, rank=0, world_size=2)
    for _ in range(3):
        next(data)
    ended = wait_in_a_thread(data, timeout)
    getattr(data._core, how)()
    error = ended.get(timeout=5)
    assert type(error) is bl.Cancelled
    assert "the Consumer was closed" in str(error) or "the consumer was closed" in str(error)
    with pytest.raises(bl.Cancelled):
        next(data)
    data.close()  # Again: nothing.


def test_a_signal_handler_cannot_close_beneath_its_own_thread(endless: Path) -> None:
    process = python(
        """
        import sys, batchloom as bl
        data = bl.Consumer(sys.argv[1], rank=0, world_size=2, start=3)
        beneath = []

        def handle(_, frame):
            beneath.append(frame.f_code.co_name)
            if beneath.count("__next__") == 2:  # The first may have come before it waits.
                signal.signal(signal.SIGUSR1, signal.SIG_IGN)
                data.close()

        signal.signal(signal.SIGUSR1, handle)
        print("waits", flush=True)
        next(data)
        """,
        endless,
    )
    assert process.stdout.readline() == "waits\n"
    for _ in range(200):
        process.send_signal(signal.SIGUSR1)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.1)
            break
    status, _, err = outcome(process)
    assert "closed by the handler of a signal" in err
    assert status == 1
