# SPDX-License-Identifier: Apache-2.0
"""A process that makes ids of texts with a function of the user's; python_tokenizer.h has the
protocol. It is a part of the command, which starts it as `python3 -c THIS FOLDER MODULE:FUNCTION`:
nothing of Batchloom need be installed where it runs."""

import importlib
import os
import struct
import sys
from array import array
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

IDS, MASKED, BAD, BAD_ID = range(4)
GOOD, WRONG, STORAGE, MEMORY = range(4)
NO_RECORD = 0xFFFFFFFF
MAX_IDS = 1 << 25
MAX_REPLY_BYTES = 1 << 29

Function = Callable[[list], Any]


class WorkerError(Exception):
    """What ends the run: `kind` says who is to blame, `record` is its number in the batch."""

    def __init__(self, kind: int, what: str, record: int = NO_RECORD) -> None:
        super().__init__(what)
        self.kind = kind
        self.what = what
        self.record = record


def told(error: BaseException) -> str:
    """The last line of a traceback."""
    text = str(error).strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def shown(value: object) -> str:
    kind = type(value)
    name = kind.__qualname__
    return name if kind.__module__ == "builtins" else f"{kind.__module__}.{name}"


def check_content(error: Exception, record: int = NO_RECORD) -> None:
    """A machine, a file or an installation that fails makes no record a bad one."""
    kinds = ((MemoryError, MEMORY), (OSError, STORAGE), (ImportError, WRONG))
    for of_type, kind in kinds:
        if isinstance(error, of_type):
            raise WorkerError(kind, told(error), record) from error


def load(name: str) -> Function:
    module_name, function_name = name.split(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise WorkerError(WRONG, f"cannot import {module_name}: {told(error)}") from error
    function = module
    for part in function_name.split("."):
        function = getattr(function, part, None)
        if function is None:
            where = getattr(module, "__file__", None)
            raise WorkerError(WRONG, f"module {module_name} ({where}) has no {function_name}")
    if not callable(function):
        raise WorkerError(WRONG, f"{function_name} is no function but {shown(function)}")
    return function


def plain(value: object) -> Sequence | None:
    """A list of what a list, a tuple, or an array of NumPy or torch holds; None: it is none."""
    if isinstance(value, list | tuple):
        return value
    values = value.tolist() if hasattr(value, "tolist") else None
    return values if isinstance(values, list) else None


def pack_text(text: str) -> bytes:
    content = text.encode(errors="backslashreplace")[:4096]
    return struct.pack("<I", len(content)) + content


def pack_bad(what: str) -> bytes:
    return bytes([BAD]) + pack_text(what)


def pack_ids(values: Sequence, record: int) -> bytes | None:
    """As int32; None: one of them is none."""
    try:
        return array("i", values).tobytes()
    except TypeError as error:
        raise WorkerError(WRONG, f"it returns ids that are no integers: {error}", record) from error
    except OverflowError:
        return None


def pack_mask(value: object, ids: int, record: int) -> bytes:
    marks = plain(value)
    if marks is None:
        raise WorkerError(WRONG, f"its mask is {shown(value)}; expected a list of 0 and 1", record)
    if len(marks) != ids:
        raise WorkerError(WRONG, f"it returns {ids} ids and a mask of {len(marks)}", record)
    try:
        packed = bytes(marks)
    except (TypeError, ValueError) as error:
        raise WorkerError(WRONG, f"its mask has other than 0 and 1: {error}", record) from error
    if packed.strip(b"\0\1"):
        raise WorkerError(WRONG, "its mask has other than 0 and 1", record)
    return packed


def has_mask(encoded: object) -> bool:
    """(ids, mask), and not two ids."""
    return isinstance(encoded, tuple) and len(encoded) == 2 and hasattr(encoded[0], "__len__")


def pack_record(encoded: object, record: int) -> bytes:
    masked = has_mask(encoded)
    given = encoded[0] if masked else encoded
    values = plain(given)
    if values is None:
        raise WorkerError(WRONG, f"it returns {shown(given)}; expected a list of ids", record)
    if len(values) > MAX_IDS:
        return pack_bad(f"{len(values)} ids; at most {MAX_IDS}")
    ids = pack_ids(values, record)
    mask = pack_mask(encoded[1], len(values), record) if masked else b""
    if ids is None:
        at = next(i for i, id in enumerate(values) if not -(2**31) <= id < 2**31)
        return struct.pack("<BI", BAD_ID, at) + pack_text(str(values[at]))
    return struct.pack("<BI", MASKED if masked else IDS, len(values)) + ids + mask


def per_record(encoded: object, records: int) -> Sequence:
    values = plain(encoded)
    if values is None:
        expected = f"a list with the ids of each of {records} records"
        raise WorkerError(WRONG, f"it returns {shown(encoded)}; expected {expected}")
    if len(values) != records:
        raise WorkerError(WRONG, f"it returns a list of {len(values)} for {records} records")
    return values


def encode_one(function: Function, record: object, number: int) -> bytes:
    try:
        encoded = function([record])
    except Exception as error:
        check_content(error, number)
        return pack_bad(f"raises {told(error)}")
    return pack_record(per_record(encoded, 1)[0], number)


def encode(function: Function, records: list) -> list[bytes]:
    try:
        encoded = function(list(records))
    except Exception as error:
        check_content(error)
        # Which of them is it? Each alone tells, whatever batch it came in.
        return [encode_one(function, record, number) for number, record in enumerate(records)]
    given = per_record(encoded, len(records))
    return [pack_record(ids, number) for number, ids in enumerate(given)]


def unpack(request: bytes) -> list:
    has_answers, count = struct.unpack_from("<BI", request)
    at = 5
    texts = []
    for _ in range(count * (1 + has_answers)):
        (size,) = struct.unpack_from("<I", request, at)
        texts.append(request[at + 4 : at + 4 + size].decode())
        at += 4 + size
    if not has_answers:
        return texts
    pairs = zip(texts[::2], texts[1::2], strict=True)
    return [{"prompt": prompt, "answer": answer} for prompt, answer in pairs]


def send(channel: BinaryIO, outcome: int, parts: list[bytes]) -> None:
    size = 1 + sum(map(len, parts))
    channel.write(struct.pack("<IB", size, outcome) + b"".join(parts))
    channel.flush()


def serve(name: str, requests: BinaryIO, replies: BinaryIO) -> None:
    try:
        function = load(name)
        send(replies, GOOD, [])
        while header := requests.read(4):
            records = unpack(requests.read(int.from_bytes(header, "little")))
            parts = encode(function, records)
            if sum(map(len, parts)) > MAX_REPLY_BYTES:
                raise WorkerError(WRONG, f"it returns more than {MAX_REPLY_BYTES} bytes of ids")
            send(replies, GOOD, parts)
    except WorkerError as error:
        send(replies, error.kind, [struct.pack("<I", error.record), pack_text(error.what)])
    except MemoryError as error:
        send(replies, MEMORY, [struct.pack("<I", NO_RECORD), pack_text(told(error))])


def main(folder: str, name: str) -> None:
    # The channel is this program's alone: what the function prints or reads is not in it.
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(0), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.path[0] = folder
    sys.argv = [name]
    serve(name, requests, replies)


main(*sys.argv[1:])
