# SPDX-License-Identifier: Apache-2.0
"""Runs a command until it ends, or until whoever started this does: _supervise.py COMMAND...

Standard input is a pipe that only the starter holds. Its end, for whatever reason, ends the
command: by SIGTERM, and after GRACE_S by SIGKILL. Should this process be killed itself, the kernel
ends the command. The exit status is the command's.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading

GRACE_S = 30.0
PR_SET_PDEATHSIG = 1


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def supervise(command: list[str]) -> int:
    """The command's exit status; of one that a signal ended, 128 and the signal."""
    # No thread has begun yet, so that this may run between fork and exec.
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, preexec_fn=_end_with_parent
    ) as child:

        def end_at_end_of_input() -> None:
            sys.stdin.buffer.read()
            child.terminate()
            try:
                child.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                child.kill()

        threading.Thread(target=end_at_end_of_input, daemon=True).start()
        status = child.wait()
    return 128 - status if status < 0 else status


if __name__ == "__main__":
    # Ctrl-C reaches the whole group: the command ends by itself, and this after it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Not sys.exit(), which would wait for the lock of the input that the thread reads.
    os._exit(supervise(sys.argv[1:]))
