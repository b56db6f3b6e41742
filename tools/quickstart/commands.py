# SPDX-License-Identifier: Apache-2.0
"""Commands of others, and what they complain about."""

import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

LAST_CHARACTERS = 400


class CommandFailed(Exception):
    pass


def output_of(words: Sequence[str | Path], given: bytes = b"") -> bytes:
    """What the command makes of `given`. CommandFailed, with the end of its stderr, where it ends
    with another status than 0; OSError where there is no such program."""
    done = subprocess.run(words, input=given, capture_output=True, check=False)
    if done.returncode == 0:
        return done.stdout
    told = done.stderr.decode(errors="replace").strip()[-LAST_CHARACTERS:]
    raise CommandFailed(
        f"{shlex.join(map(str, words))} ended with status {done.returncode}: "
        f"{told or 'it says nothing'}"
    )
