# SPDX-License-Identifier: Apache-2.0
"""`batchloom top` beside a real run, in a pipe and in a terminal."""

import fcntl
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from cli_test import COMMAND, DONE, FAILED, fail, refuse, succeed
from metrics_test import LEAD, at_its_lead, folder, place_of, scrape_until, serving, stop

__all__ = ["folder"]  # A fixture.

BEGIN, END = b"\x1b[?1049h\x1b[?25l", b"\x1b[?25h\x1b[?1049l"
ESCAPE = re.compile(rb"\x1b\[[?0-9;]*[A-Za-z]")


def test_once_shows_where_the_run_stands(folder: Path) -> None:
    with serving("--steps=1000") as (process, url):
        scrape_until(url, at_its_lead)
        text = succeed("top", place_of(url), "--once")
        assert "waits for   consumer\n" in succeed("top", url, "--once")
        stop(process)
    lines = dict(re.findall(r"^([a-z ]+?) {2,}(.*)$", text.split("\n\n")[0], re.MULTILINE))
    assert text.startswith(f"{place_of(url)}  batchloom ")
    assert lines["step"].startswith(f"{LEAD} of 1000, ")
    assert lines["lead"] == f"{LEAD} of {LEAD} steps"
    assert lines["memory"] == "0.0 MiB of 2048.0 MiB"
    assert lines["waits for"] == "consumer"
    assert re.fullmatch(r"1\.\d\d as drawn, 1\.\d\d as planned", lines["imbalance"])
    assert re.search(r"^docs +75\.0% +7\d\.\d% ", text, re.MULTILINE)
    assert re.search(r"^chats-2 +25\.0% +2\d\.\d% ", text, re.MULTILINE)
    assert "\x1b" not in text


def test_in_a_pipe_it_prints_views_until_the_run_ends(folder: Path) -> None:
    with serving() as (process, url):
        scrape_until(url, at_its_lead)
        command = [COMMAND, "top", place_of(url), "--every=20ms"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as top:
            assert top.stdout is not None
            seen = ""
            while seen.count(f"{place_of(url)}  batchloom ") < 3:
                seen += top.stdout.readline()
            stop(process)
            out, err = top.communicate(timeout=60)
    assert top.returncode == DONE
    assert f"{place_of(url)} answers no more: the run has ended" in err
    assert "\x1b" not in seen + out
    assert re.search(r", rates of the last \d+\.\d s\n", seen)


@pytest.mark.parametrize("place", ["", "9464", "localhost", "127.0.0.1:0", "http://localhost/"])
def test_what_is_no_place_is_wrong_usage(place: str) -> None:
    assert "HOST:PORT" in refuse("top", place)


def test_where_nobody_listens_it_says_so() -> None:
    assert re.search(r"unavailable: http://127\.0\.0\.1:1/metrics: ", fail("top", "127.0.0.1:1"))
    assert "host 'no-such-host.invalid': " in fail("top", "no-such-host.invalid:1", "--once")


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (200, b"up 1\n", "serves metrics, but not those of batchloom run --metrics"),
        (200, b"<html></html>\n", "corruption: line 1 is no metric: '<html></html>'"),
        (200, b"", "serves metrics, but not those of batchloom run --metrics"),
        (404, b"", "/metrics: it answers with status 404"),
        (500, b"batchloom_build_info 1\n", "/metrics: it answers with status 500"),
    ],
)
def test_others_are_told_from_runs(status: int, body: bytes, why: str) -> None:
    with answering(status, body) as place:
        assert why in fail("top", place, "--once")


class Terminal:
    """The command in a terminal of 40 columns and 8 lines."""

    def __init__(self, *arguments: str) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 8, 40, 0, 0))
            os.execv(COMMAND, [str(COMMAND), *arguments])
        self.printed = b""

    def read_until(self, pattern: bytes) -> None:
        until = time.monotonic() + 60
        while not re.search(pattern, self.printed):
            assert time.monotonic() < until, self.printed
            ready, _, _ = select.select([self.fd], [], [], 60)
            assert ready, self.printed
            self.printed += os.read(self.fd, 65536)

    def end(self) -> int:
        """Its exit code; what it printed to the end is in `printed`."""
        while True:
            try:
                part = os.read(self.fd, 65536)
            except OSError:  # Linux says so where nobody has the terminal open any more.
                break
            if not part:
                break
            self.printed += part
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)

    def reads_keys_one_by_one(self) -> bool:
        return not termios.tcgetattr(self.fd)[3] & (termios.ICANON | termios.ECHO)


@pytest.mark.parametrize("key", [b"q", b"Q", b"xq", b"\x03"], ids=["q", "Q", "xq", "Ctrl-C"])
def test_in_a_terminal_it_draws_over_what_it_drew(folder: Path, key: bytes) -> None:
    with serving() as (process, url):
        scrape_until(url, at_its_lead)
        terminal = Terminal("top", place_of(url), "--every=50ms")
        terminal.read_until(rb"(?s)\x1b\[H.*\x1b\[H.*\x1b\[H")
        assert terminal.reads_keys_one_by_one()
        os.write(terminal.fd, key)
        assert terminal.end() == DONE, terminal.printed
        assert not terminal.reads_keys_one_by_one()
        os.close(terminal.fd)
        assert process.poll() is None, "the run goes on"
    shown = terminal.printed.split(BEGIN)[1].split(END)[0]
    views = shown.split(b"\x1b[H")[1:]
    assert len(views) >= 3
    for view in views[:-1]:  # Into the last one the log says that it was told to end.
        lines = ESCAPE.sub(b"", view).decode("utf-8").split("\r\n")
        assert len(lines) <= 8
        assert all(len(line) <= 40 for line in lines), lines
    assert "lines more" in views[0].decode("utf-8")


def test_in_a_terminal_what_it_showed_last_stays(folder: Path) -> None:
    with serving() as (process, url):
        scrape_until(url, at_its_lead)
        terminal = Terminal("top", place_of(url), "--every=50ms")
        terminal.read_until(rb"(?s)\x1b\[H.*\x1b\[H")
        process.send_signal(signal.SIGKILL)
        assert terminal.end() == DONE, terminal.printed
        os.close(terminal.fd)
    left = terminal.printed.split(END)[1].decode("utf-8")
    assert f"lead        {LEAD} of {LEAD} steps\r\n" in left
    assert "answers no more" in left


def test_a_second_signal_leaves_the_terminal_as_it_was() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # Who connects is never answered.
        terminal = Terminal("top", f"127.0.0.1:{silent.getsockname()[1]}")
        terminal.read_until(re.escape(BEGIN))
        os.write(terminal.fd, b"\x03")
        terminal.read_until(rb"SIGINT: ending in good order")
        os.write(terminal.fd, b"\x03")
        assert terminal.end() == 128 + signal.SIGINT
        assert not terminal.reads_keys_one_by_one()
        os.close(terminal.fd)
    assert END in terminal.printed


def test_a_run_that_never_answered_is_an_error_in_a_terminal_too() -> None:
    terminal = Terminal("top", "127.0.0.1:1")
    assert terminal.end() == FAILED
    os.close(terminal.fd)
    assert b"unavailable" in terminal.printed.split(END)[1]


@contextmanager
def dripping(head: bytes) -> Iterator[str]:
    """A server that sends a byte now and then, for as long as somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            client, _ = server.accept()
            with client:
                client.recv(65536)
                part = head
                try:
                    while True:
                        client.sendall(part)
                        part = b"#"
                        ready, _, _ = select.select([client], [], [], 0.1)
                        if ready and not client.recv(1):
                            break
                except OSError:
                    pass  # It was hung up on.

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join()


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_who_never_ends_an_answer_does_not_hold_it(head: bytes) -> None:
    with dripping(head) as place:
        said = fail("top", place, "--once")
    assert re.search(
        rf"unavailable: http://{place}/metrics: no whole answer within 3 s: \d+ bytes came", said
    )
