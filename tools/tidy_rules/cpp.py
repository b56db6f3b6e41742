# SPDX-License-Identifier: Apache-2.0
"""Rules about C++: what the simulator could not control, and what costs every reader."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tidy_rules.tree import CPP, Finding, SourceFile, Tree

# Names that may follow `std::`, or stand alone as C functions do; never a member's name.
STD = r"(?<![\w.>:])(?:::)?(?:std::)?"


@dataclass(frozen=True)
class Ban:
    pattern: re.Pattern[str]
    replacement: str


def ban(pattern: str, replacement: str) -> Ban:
    return Ban(re.compile(pattern), replacement)


# What would escape the simulator, or differ from run to run. Holds outside batchloom/base.
BANS = (
    ban(r"\bstd::j?thread\b|\bpthread_\w+", "Runtime::spawn"),
    ban(r"\bstd::(?:async|packaged_task)\b", "Runtime::spawn"),
    ban(r"\bthis_thread::\w+", "Runtime::sleep_until"),
    ban(rf"{STD}(?:sleep|usleep|nanosleep)\(", "Runtime::sleep_until"),
    ban(r"\bstd::condition_variable(?:_any)?\b", "Event of batchloom/base/runtime.h"),
    ban(
        r"\bstd::(?:future|promise|latch|barrier|\w+_semaphore)\b",
        "Event of batchloom/base/runtime.h",
    ),
    ban(r"\bstd::(?:\w+_)?mutex\b", "Mutex of batchloom/base/mutex.h"),
    ban(r"\bstd::(?:\w+_lock|lock_guard)\b", "MutexLock of batchloom/base/mutex.h"),
    ban(r"\b(?:system|steady|high_resolution)_clock\b", "Runtime::now"),
    ban(rf"{STD}time\(\s*(?:nullptr|NULL|0|&\w+)?\s*\)", "Runtime::now"),
    ban(rf"{STD}(?:clock_gettime|gettimeofday|clock)\(", "Runtime::now"),
    ban(r"\brandom_device\b", "Runtime::random"),
    ban(rf"{STD}s?rand\(", "Runtime::random"),
    ban(
        r"\bstd::(?:\w+_distribution|\w+_engine|mt19937(?:_64)?|minstd_rand0?|ranlux\w+|knuth_b)\b",
        "Random of batchloom/base/random.h",
    ),
    ban(r"\bstd::(?:ranges::)?(?:shuffle|sample)\b", "Random::below of batchloom/base/random.h"),
    ban(r"\bstd::unordered_\w+", "std::map or std::set: their order is the same in every run"),
)

# Writing to a terminal is for commands, benchmarks, tests and the log itself.
OUTPUT = re.compile(
    r"\bstd::(?:cout|cerr|clog)\b|\b(?:fmt|std)::print(?:ln)?\b"
    rf"|{STD}(?:printf|fprintf|puts|fputs|putchar)\("
)
MAY_PRINT = ("cli/", "bench/", "examples/", "tests/")
MAY_PRINT += ("batchloom/base/log.cc", "batchloom/base/check.cc")

MAY_DEFINE = {f"batchloom/base/{name}.h" for name in ("status", "check", "mutex")}

HEAVY = re.compile(
    r"^(?:CLI|spdlog|arrow|parquet|nanobind|torch|ATen|c10|curl|openssl|toml\+\+)/"
    r"|^simdjson|_generated\.h$"
)
INCLUDE = re.compile(r"\s*#\s*include\s*(?P<open>[<\"])(?P<path>[^>\"]+)[>\"]")


def includes(file: SourceFile) -> Iterator[tuple[int, str, bool]]:
    """Line, path and whether it is quoted, of each #include outside a comment."""
    for number, (line, code) in enumerate(zip(file.lines, file.code_lines), 1):
        found = INCLUDE.match(line) if code.lstrip().startswith("#") else None
        if found:
            yield number, found["path"], found["open"] == '"'


def search(file: SourceFile, pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Line and text of each match in the code, comments and literals aside."""
    for number, line in enumerate(file.code_lines, 1):
        for match in pattern.finditer(line):
            yield number, match[0].strip(" (")


def banned(tree: Tree) -> Iterator[Finding]:
    for file in tree.of_kind(*CPP):
        if file.path.startswith("batchloom/base/"):
            continue
        for rule in BANS:
            for number, text in search(file, rule.pattern):
                yield Finding(file.path, number, f"{text}: use {rule.replacement}")


def output(tree: Tree) -> Iterator[Finding]:
    for file in tree.of_kind(*CPP):
        if file.is_test or file.path.startswith(MAY_PRINT):
            continue
        for number, text in search(file, OUTPUT):
            message = f"{text}: return a value or a Status, or use batchloom/base/log.h"
            yield Finding(file.path, number, message)


def pragma_once(tree: Tree) -> Iterator[Finding]:
    for file in tree.of_kind("header"):
        if "#pragma once" not in file.code_lines:
            yield Finding(file.path, 1, "no #pragma once: add it below the opening comment")


def using_namespace(tree: Tree) -> Iterator[Finding]:
    for file in tree.of_kind(*CPP):
        for number, _ in search(file, re.compile(r"\busing\s+namespace\b")):
            yield Finding(file.path, number, "using namespace: name what you use, one by one")


def macro(tree: Tree) -> Iterator[Finding]:
    for file in tree.of_kind(*CPP):
        if file.path in MAY_DEFINE:
            continue
        for number, _ in search(file, re.compile(r"^\s*#\s*define\b")):
            yield Finding(file.path, number, "macro: write a function, a template or a constant")


def heavy_header(tree: Tree) -> Iterator[Finding]:
    for file in tree.of_kind("header"):
        for number, path, _ in includes(file):
            if HEAVY.search(path):
                message = f"<{path}> is slow to compile: include it in one .cc, declare here"
                yield Finding(file.path, number, message)


FOR = re.compile(r"\bfor\s*\(")
RANGE_OF = re.compile(r"(?<!:):(?!:)")
PART_OF_CALL = re.compile(r"\)\s*->")


def in_parentheses(code: str, begin: int) -> str:
    """What stands between the parenthesis that opens before `begin` and its partner."""
    depth = 1
    for at in range(begin, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if depth == 0:
            return code[begin:at]
    return ""


def range_of_part(tree: Tree) -> Iterator[Finding]:
    """`for (x : f()->parts)`: what f() returned is gone before the first turn (until C++23)."""
    for file in tree.of_kind(*CPP):
        code = "\n".join(file.code_lines)
        for loop in FOR.finditer(code):
            head = in_parentheses(code, loop.end())
            colon = RANGE_OF.search(head) if ";" not in head else None
            if colon and PART_OF_CALL.search(head, colon.end()):
                number = code.count("\n", 0, loop.start()) + 1
                message = "loops over a part of what a call returned: name that before the loop"
                yield Finding(file.path, number, message)
