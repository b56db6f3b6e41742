# SPDX-License-Identifier: Apache-2.0
"""Debian packages, fetched and unpacked aside: nothing is installed, and no root is needed.

What was unpacked stays, a folder each, and is not fetched again.
"""

import errno
import os
import re
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

FETCH_TIME_S = 600
SILENCE_S = 30  # That apt waits for a server.
AT_ONCE = 2
NAMES_SHOWN = 4
# A name that apt has no version of makes it end before it fetches anything. Of one that is
# installed, but is in no list, it says 'name:architecture'.
NAMED = re.compile(
    r"^E: (?:Unable to locate package|Can't find a source to download .* of) '?([^\s':]+)"
)


class Unavailable(Exception):
    """Says which packages are not to be had here, and why."""


def unpack_all(names: Sequence[str], cache: Path) -> dict[str, Path]:
    """The folder of each package. Unavailable where one of them cannot be had."""
    cache.mkdir(parents=True, exist_ok=True)
    missing = [name for name in names if not (cache / name).is_dir()]
    if missing:
        with TemporaryDirectory(dir=cache, prefix=".fetched-") as folder:
            fetched = fetch(missing, Path(folder))
            with ThreadPoolExecutor(AT_ONCE) as pool:
                for done in [pool.submit(unpack, *one, cache) for one in fetched.items()]:
                    done.result()
    return {name: cache / name for name in names}


def fetch(names: Sequence[str], folder: Path) -> dict[str, Path]:
    """By name the .deb."""
    settings = [
        "APT::Sandbox::User=root",  # As this user, where it is a root whose folder is its own.
        "Acquire::Retries=1",
        *(f"Acquire::{how}::Timeout={SILENCE_S}" for how in ("http", "https")),
    ]
    words = ["apt-get", "-qq", *(f"-o={setting}" for setting in settings), "download", *names]
    try:
        done = subprocess.run(
            words, cwd=folder, capture_output=True, text=True, timeout=FETCH_TIME_S, check=False
        )
    except FileNotFoundError as error:
        raise Unavailable("this machine has no apt-get") from error
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"packages did not come within {FETCH_TIME_S} s") from error
    if done.returncode != 0:
        check_room(done.stderr, folder)
        raise Unavailable(reason_of(done.stderr))
    return {name: file_of(name, folder) for name in names}


def reason_of(said: str) -> str:
    lines = [line for line in said.splitlines() if line.startswith("E: ")]
    unknown = [found[1] for line in lines if (found := NAMED.match(line))]
    if unknown:
        more = len(unknown) - NAMES_SHOWN
        names = ", ".join(unknown[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
        return f"apt knows no packages of these names (`apt-get update` may bring them): {names}"
    return f"apt-get download: {lines[0][3:] if lines else said.strip() or 'failed'}"


def check_room(said: str, folder: Path) -> None:
    """A full disk is no matter of packages: other data would have no room either."""
    if "No space left on device" in said or "enough free space" in said:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))


def file_of(name: str, folder: Path) -> Path:
    files = list(folder.glob(f"{name}_*.deb"))
    if len(files) != 1:
        raise Unavailable(f"apt-get download left {len(files)} files of {name}")
    return files[0]


def unpack(name: str, deb: Path, cache: Path) -> None:
    """A folder with its name is whole."""
    begun = cache / f".{name}"
    subprocess.run(["rm", "-rf", begun], check=True)
    done = subprocess.run(["dpkg", "-x", deb, begun], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        subprocess.run(["rm", "-rf", begun], check=True)
        check_room(done.stderr, cache)
        said = " ".join(done.stderr.split())
        raise Unavailable(f"{deb.name} ({deb.stat().st_size:,} bytes) cannot be unpacked: {said}")
    deb.unlink()
    begun.rename(cache / name)
