# SPDX-License-Identifier: Apache-2.0
"""What the commands say about damaged objects: which one, at which byte, and why."""

import json
import os
import re
import shutil
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_test import FAILED, ROOT, fail, keys_of, make_sample, run, succeed, succeed_json

FRAME_BYTES = 40
BLOCK_BYTES = 64  # A batch object's header, and its footer.

Damage = tuple[bytes, str]
"""The bytes of a damaged object, and a pattern of what is to be said after its key."""


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stream with an object of every kind; see cli/sample_stream_testing.cc."""
    return make_sample(tmp_path_factory.mktemp("pristine") / "stream")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another stream like it."""
    return make_sample(tmp_path_factory.mktemp("other") / "stream")


@pytest.fixture
def stream(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "stream"))


def crc_table() -> list[int]:
    table = []
    for crc in range(256):
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


CRC_TABLE = crc_table()


def crc32c(data: bytes) -> bytes:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return struct.pack("<I", crc ^ 0xFFFFFFFF)


def with_frame_version(frame: bytes, version: int) -> bytes:
    head = frame[:6] + struct.pack("<H", version) + frame[8:32]
    return head + crc32c(head + frame[FRAME_BYTES:]) + frame[36:]


def with_block_version(block: bytes, version: int) -> bytes:
    head = block[:4] + struct.pack("<H", version) + block[6:60]
    return head + crc32c(head)


def replaced(data: bytes, at: int, part: bytes) -> bytes:
    return data[:at] + part + data[at + len(part) :]


def flipped(data: bytes, at: int) -> bytes:
    return replaced(data, at, bytes([data[at] ^ 1]))


def kind_of(key: str) -> str:
    """The part of a key that all objects of its kind share."""
    if key.startswith("pin/"):
        return "cursor" if key.endswith("/live") else "pin"
    if key.startswith("d/"):
        return Path(key).suffix
    return Path(key).parts[0]


KINDS = {
    "FORMAT": "FORMAT",
    "m": "head",
    "s": "segment",
    ".state": "state",
    ".membership": "membership",
    "gc": "floor",
    "pin": "pin",
    "cursor": "live cursor",
}
SIZED = ("s", ".state", ".membership")
"""The manifest says how large these are."""
LARGEST = {"m": 64 << 10}
"""The others have at most 16 KiB."""


def framed_damages(kind: str, sound: bytes, foreign: bytes) -> Iterator[Damage]:
    size = len(sound)
    yield b"", r"at byte 0: the object is empty"
    yield sound[:7], r"at byte 7: truncated: ends inside the frame"
    yield sound[:FRAME_BYTES], r"at byte 24: truncated: states a payload of "
    yield sound[:-1], r"at byte 24: truncated: states a payload of "
    if kind in SIZED:
        yield sound + b"x", rf"at byte {size}: too long: it has {size + 1} bytes"
    else:
        largest = LARGEST.get(kind, 16 << 10)
        yield sound + b"x", r"at byte 24: too long: states a payload of "
        yield sound.ljust(largest + 1), rf"at byte {largest}: too long: it has {largest + 1} bytes"
    yield flipped(sound, 0), r"at byte 0: not an object of a batch store"
    yield flipped(sound, 4), r"at byte 4: holds a "
    for at in (32, FRAME_BYTES, size // 2, size - 1):
        yield flipped(sound, at), r"at byte 32: damaged: CRC-32C is [0-9a-f]{8}, stored "
    yield b"\x89PNG\r\n".ljust(size), r"at byte 0: not an object of a batch store"
    if kind != "FORMAT":
        yield foreign, r"at byte 8: belongs to stream [0-9a-f-]+, expected "
        if kind in SIZED and size != len(foreign):
            raise AssertionError("the other stream's is of another size")
    future = rf"at byte 6: {KINDS[kind]} has format version 2, this build reads up to 1: upgrade"
    yield with_frame_version(sound, 2), future


def batch_damages(sound: bytes, foreign: bytes) -> Iterator[Damage]:
    size = len(sound)
    footer = size - BLOCK_BYTES
    index, index_bytes = struct.unpack_from("<QQ", sound, footer + 24)
    (run,) = struct.unpack_from("<Q", sound, BLOCK_BYTES)
    assert index + index_bytes == footer
    yield b"", r"at byte 0: the object is empty: it has 0 bytes, step \d+ in .* says "
    for cut in (1, BLOCK_BYTES, size // 2, size - 1):
        yield sound[:cut], rf"at byte {cut}: truncated: it has {cut} bytes, step "
    yield sound + b"x", rf"at byte {size}: too long: it has {size + 1} bytes, step "
    yield flipped(sound, 0), r"at byte 0: no header of a batch object \(the magic is missing\)"
    yield flipped(sound, 24), r"at byte 60: damaged header: CRC-32C is "
    yield flipped(sound, BLOCK_BYTES), r"at byte 64: damaged, or not the run table of rank 0"
    run_frame = rf"at byte {run + 32}: run of rank 0, step 0: damaged: CRC-32C is "
    yield flipped(sound, run + FRAME_BYTES), run_frame
    yield flipped(sound, index - BLOCK_BYTES), r"at byte \d+: run of rank .*: damaged tokens "
    yield flipped(sound, index - 1), rf"at byte {index - 1}: run of rank .*: padding is not zero"
    index_frame = rf"at byte {index + 32}: index: damaged: CRC-32C is "
    yield flipped(sound, index + index_bytes // 2), index_frame
    yield flipped(sound, footer + 24), rf"at byte {footer + 60}: damaged footer: CRC-32C is "
    yield b"\x89PNG\r\n".ljust(size), rf"at byte {footer}: no footer of a batch object"
    assert len(foreign) == size
    yield foreign, rf"at byte {footer + 8}: belongs to stream [0-9a-f-]+, expected "
    future = "has format version 2, this build reads up to 1: upgrade batchloom"
    newer = with_block_version(sound[:BLOCK_BYTES], 2)
    yield replaced(sound, 0, newer), rf"at byte 4: the header {future}"
    newer = with_block_version(sound[footer:], 2)
    yield replaced(sound, footer, newer), rf"at byte {footer + 4}: the footer {future}"
    newer = with_frame_version(sound[index:footer], 2)
    yield replaced(sound, index, newer), rf"at byte {index + 6}: index: batch index {future}"
    (payload,) = struct.unpack_from("<Q", sound, run + 24)
    newer = with_frame_version(sound[run : run + FRAME_BYTES + payload], 2)
    future = rf"at byte {run + 6}: run of rank 0, step 0: run header {future}"
    yield replaced(sound, run, newer), future


def damages(key: str, sound: bytes, foreign: bytes) -> Iterator[Damage]:
    kind = kind_of(key)
    if kind == ".tgb":
        return batch_damages(sound, foreign)
    return framed_damages(kind, sound, foreign)


def counterparts(stream: Path, other: Path) -> dict[str, bytes]:
    """For each key an object of the other stream, of the same kind and, if any is, size."""
    theirs: dict[str, list[bytes]] = {}
    for key in keys_of(other):
        theirs.setdefault(kind_of(key), []).append((other / key).read_bytes())
    found = {}
    for key in keys_of(stream):
        size = (stream / key).stat().st_size
        found[key] = min(theirs[kind_of(key)], key=lambda foreign: abs(len(foreign) - size))
    return found


def problems_of(stream: Path) -> list[str]:
    done = run("store", "verify", stream, "--depth=payload", "--json")
    assert done.returncode == FAILED, done.stderr
    problems = json.loads(done.stdout)["problems"]
    assert f"{stream}: {len(problems)} problem" in done.stderr
    for problem in problems:
        assert re.match(r"\S+: (at byte \d+: |missing, ).", problem), problem
    return problems


def test_the_sample_has_every_kind(pristine: Path) -> None:
    assert {kind_of(key) for key in keys_of(pristine)} == {*KINDS, ".tgb"}


@pytest.mark.parametrize("kind", [*(kind for kind in KINDS if kind != "FORMAT"), ".tgb"])
def test_verify_names_every_damaged_object(stream: Path, other: Path, kind: str) -> None:
    foreign = counterparts(stream, other)
    for key in (key for key in keys_of(stream) if kind_of(key) == kind):
        path = stream / key
        sound = path.read_bytes()
        for damaged, reason in damages(key, sound, foreign[key]):
            path.write_bytes(damaged)
            # Some damage to a batch object is met by each rank that reads it.
            problems = problems_of(stream)
            assert all(problem.startswith(f"{key}: ") for problem in problems), problems
            assert any(re.match(rf"{re.escape(key)}: {reason}", p) for p in problems), problems
        path.write_bytes(sound)
    succeed("store", "verify", stream, "--depth=payload")


def test_a_damaged_format_stops_every_command(stream: Path, other: Path) -> None:
    path = stream / "FORMAT"
    sound = path.read_bytes()
    for damaged, reason in framed_damages("FORMAT", sound, b""):
        path.write_bytes(damaged)
        for command in ("ls", "show", "verify", "init"):
            complaint = fail("store", command, stream)
            assert re.search(rf"{re.escape(str(stream))}: FORMAT: {reason}", complaint), complaint
    # That of another stream is sound by itself: all else is foreign then.
    path.write_bytes((other / "FORMAT").read_bytes())
    assert "at byte 8: belongs to stream" in fail("store", "ls", stream)
    problems = problems_of(stream)
    for key in (key for key in keys_of(stream) if key[0] == "m"):
        assert any(p.startswith(f"{key}: at byte 8: belongs to stream") for p in problems)


def make_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # A socket's path is short.
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path.name)
    finally:
        os.chdir(here)


Stray = tuple[str, Callable[[Path], None]]
STRAYS: dict[str, Stray] = {
    "folder": ("a folder", Path.mkdir),
    "pipe": ("a pipe", os.mkfifo),
    "socket": ("a socket", make_socket),
    "dangling link": ("a link", lambda path: path.symlink_to("nothing")),
    "link to a file": ("a link", lambda path: path.symlink_to(elsewhere(path))),
    "link to itself": ("a link", lambda path: path.symlink_to(path.name)),
}


def elsewhere(path: Path) -> Path:
    """Where the sound object is kept: a name that no key can have."""
    return path.with_name(".aside")


def put_in_place_of(path: Path, make: Callable[[Path], None]) -> None:
    path.rename(elsewhere(path))
    make(path)


def put_back(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink()
    elsewhere(path).rename(path)


@pytest.mark.parametrize("stray", STRAYS)
def test_verify_names_what_is_no_file(stream: Path, stray: str) -> None:
    what, make = STRAYS[stray]
    for key in keys_of(stream):
        path = stream / key
        put_in_place_of(path, make)
        if key == "FORMAT":
            problems = [fail("store", "verify", stream)]
        elif stray == "folder" and key.startswith("pin/"):
            # A folder may hold keys, so that a listing does not show it.
            assert succeed_json("store", "verify", stream)["problems"] == []
            put_back(path)
            continue
        else:
            problems = problems_of(stream)
        reason = f"{key}: at byte 0: no object: {path} is {what} and no plain file"
        assert any(reason in problem for problem in problems), problems
        put_back(path)
    succeed("store", "verify", stream)


@pytest.mark.parametrize("stray", STRAYS)
@pytest.mark.parametrize("place", ["newest", "next"])
def test_no_command_gets_past_a_slot_that_is_no_file(stream: Path, stray: str, place: str) -> None:
    what, make = STRAYS[stray]
    slot = {"newest": 19, "next": 20}[place]
    path = stream / f"m/{slot:020}"
    if place == "newest":
        path.rename(elsewhere(path))
    else:
        shutil.copy(stream / "m" / f"{slot - 1:020}", elsewhere(path))
    make(path)
    reason = f"m/{slot:020}: at byte 0: no object: {path} is {what} and no plain file"
    (problem,) = problems_of(stream)
    assert problem.startswith(reason)
    commands = ["ls", "show", "fence --producer=a", "gc --yes", "end", "skip --step=14"]
    for command in commands:  # None of them waits.
        verb, *options = command.split()
        assert reason in fail("store", verb, stream, *options), command


@pytest.mark.parametrize("stray", [stray for stray in STRAYS if stray != "folder"])
def test_a_pin_that_is_no_file_stops_a_trim(stream: Path, stray: str) -> None:
    what, make = STRAYS[stray]
    for key in (key for key in keys_of(stream) if key.startswith("pin/")):
        put_in_place_of(stream / key, make)
        complaint = fail("store", "gc", stream, "--yes")
        assert f"{key}: at byte 0: no object: {stream / key} is {what}" in complaint
        assert "nothing is trimmed" in complaint
        put_back(stream / key)


@pytest.mark.parametrize("stray", STRAYS)
@pytest.mark.parametrize("key", ["FORMAT", "gc/floor"])
def test_no_command_opens_a_stream_by_what_is_no_file(stream: Path, stray: str, key: str) -> None:
    what, make = STRAYS[stray]
    put_in_place_of(stream / key, make)
    reason = f"{key}: at byte 0: no object: {stream / key} is {what}"
    for command in ("init", "ls", "fence --producer=a", "gc --yes", "pins"):
        verb, *options = command.split()
        assert reason in fail("store", verb, stream, *options), command
    verified = run("store", "verify", stream)  # It goes on without a floor.
    assert verified.returncode == FAILED
    assert reason in verified.stderr + verified.stdout


NO_FOLDERS = [stray for stray in STRAYS if stray not in ("folder", "link to a file")]


@pytest.mark.parametrize("stray", NO_FOLDERS)
def test_no_command_waits_for_a_folder_that_is_none(stream: Path, stray: str) -> None:
    make = STRAYS[stray][1]
    for name in ("m", "gc"):
        put_in_place_of(stream / name, make)
        for command in ("verify", "ls", "show", "gc --yes", "fence --producer=a"):
            done = run("store", *command.split()[:1], stream, *command.split()[1:])
            assert done.returncode == FAILED, command
        put_back(stream / name)
    put_in_place_of(stream / "pin", make)  # Not as if there were no pins.
    for command in ("pins", "gc --yes", "verify"):
        complaint = fail("store", *command.split()[:1], stream, *command.split()[1:])
        assert str(stream / "pin") in complaint, command


@pytest.mark.parametrize("stray", NO_FOLDERS)
@pytest.mark.parametrize("name", ["m", "gc"])
def test_init_does_not_wait_for_a_folder_that_is_none(
    tmp_path: Path, stray: str, name: str
) -> None:
    STRAYS[stray][1](tmp_path / name)
    assert str(tmp_path / name) in fail("store", "init", tmp_path)


@pytest.mark.parametrize("stray", STRAYS)
def test_what_is_no_file_and_has_no_name_of_a_stream_is_foreign(stream: Path, stray: str) -> None:
    STRAYS[stray][1](stream / "m" / "notes")
    shown = [] if stray == "folder" else ["m/notes"]
    assert succeed_json("store", "verify", stream)["foreign"] == shown
    orphan = stream / "d" / "ff" / "a.000000000002.000000000009.ff00000000000000.tgb"
    STRAYS[stray][1](orphan)
    assert succeed_json("store", "verify", stream)["orphan_batches"] == len(shown)
    succeed("store", "fence", stream, "--producer=a")
    succeed("store", "gc", stream, "--yes")
    assert os.path.lexists(orphan) == (stray == "folder")


def test_errors_about_damage_are_made_in_one_place() -> None:
    sources = (ROOT / "batchloom" / "store").glob("*.[ch]*")
    makers = [path.name for path in sources if "Status::corruption(" in path.read_text()]
    assert [name for name in makers if "test" not in name] == ["damage.cc"]
