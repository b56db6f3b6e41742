# SPDX-License-Identifier: Apache-2.0
"""What the quickstart makes of packages, and its oracle's view of what comes out. No network."""

import gzip
import io
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from quickstart import packages
from quickstart.commands import CommandFailed
from quickstart.figures import figures_of
from quickstart.ids import NEWLINE, encode_by, encode_bytes
from quickstart.made_ids import faults_of_ids, write_ids
from quickstart.pictures import Rules, is_known, rgb_of, scaled
from quickstart.shard_files import (
    frames_of,
    write_jsonl_zst,
    write_megatron,
    write_parquet,
    write_tar,
)
from quickstart.shards import Row, documents_of_ids, rows_of
from quickstart.texts import NoText, entries, page, whole
from quickstart.vocabulary import LINE_BYTES, cut
from quickstart.weights import SHARE_BITS, Shares

RULES = Rules(patch=14, merge=2, max_patches=256, token=3)


def make_deb(folder: Path, name: str) -> Path:
    tree = folder / f"tree-{name}"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN" / "control").write_text(
        f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b.c>\nDescription: d\n"
    )
    (tree / "usr").mkdir()
    (tree / "usr" / "text").write_text(name)
    deb = folder / f"{name}_1_all.deb"
    subprocess.run(["dpkg-deb", "-b", tree, deb], check=True, capture_output=True)
    return deb


def fake_apt(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    apt = folder / "bin" / "apt-get"
    apt.parent.mkdir()
    apt.write_text(f"#!/bin/sh\n{script}\n")
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", f"{apt.parent}:/usr/bin:/bin")


def test_packages_are_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    debs = [make_deb(tmp_path, name) for name in ("a", "b")]
    fake_apt(tmp_path, f'echo x >> {tmp_path}/calls; cp {" ".join(map(str, debs))} .', monkeypatch)
    cache = tmp_path / "cache"
    for _ in range(2):
        roots = packages.unpack_all(["a", "b"], cache)
        assert [(roots[name] / "usr" / "text").read_text() for name in "ab"] == ["a", "b"]
    assert (tmp_path / "calls").read_text() == "x\n"
    assert sorted(one.name for one in cache.iterdir()) == ["a", "b"], "nothing else is left"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            "E: Unable to locate package rust-src",
            r"no packages of these names \(`apt-get update` may bring them\): rust-src",
        ),
        (
            "\n".join(
                [f"E: Can'\"'\"'t find a source to download version 1 of '\"'\"'p{n}:amd64'\"'\"'"
                 for n in range(6)]
            ),
            ": p0, p1, p2, p3 and 2 more$",
        ),
        ("E: Failed to fetch http://x  404", "apt-get download: Failed to fetch http://x  404"),
    ],
)
def test_packages_that_are_not_there_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, reason: str
) -> None:
    fake_apt(tmp_path, f"echo '{said}' >&2; exit 100", monkeypatch)
    with pytest.raises(packages.Unavailable, match=reason):
        packages.unpack_all(["rust-src"], tmp_path / "cache")


def test_no_network_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "E: Failed to fetch http://deb/x.deb  Temporary failure resolving 'deb'"
    fake_apt(tmp_path, f'echo "{said}" >&2; exit 100', monkeypatch)
    with pytest.raises(packages.Unavailable, match="Temporary failure resolving 'deb'"):
        packages.unpack_all(["a"], tmp_path / "cache")
    assert not list((tmp_path / "cache").iterdir())


def test_apt_that_does_not_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_apt(tmp_path, "exec cat /dev/zero > /dev/null", monkeypatch)
    monkeypatch.setattr(packages, "FETCH_TIME_S", 0.2)
    with pytest.raises(packages.Unavailable, match=r"did not come within 0\.2 s"):
        packages.unpack_all(["a"], tmp_path / "cache")


def test_a_machine_without_apt_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(packages.Unavailable, match="this machine has no apt-get"):
        packages.unpack_all(["a"], tmp_path / "cache")


def test_a_package_that_was_cut_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole_deb, cut_deb = make_deb(tmp_path, "a"), make_deb(tmp_path, "b")
    size = cut_deb.stat().st_size // 2
    cut_deb.write_bytes(cut_deb.read_bytes()[:size])
    fake_apt(tmp_path, f"cp {whole_deb} {cut_deb} .", monkeypatch)
    cache = tmp_path / "cache"
    with pytest.raises(packages.Unavailable, match=rf"b_1_all.deb \({size} bytes\) cannot be unp"):
        packages.unpack_all(["a", "b"], cache)
    assert [one.name for one in cache.iterdir()] == ["a"], "what is whole stays, and nothing else"


@pytest.mark.parametrize(
    ("apt", "dpkg"),
    [
        ("echo 'E: You don'\"'\"'t have enough free space in /x.' >&2; exit 100", "exit 0"),
        (
            "touch a_1_all.deb",
            "mkdir $3; echo 'dpkg-deb: error: No space left on device' >&2; exit 2",
        ),
    ],
)
def test_a_full_disk_is_no_matter_of_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apt: str, dpkg: str
) -> None:
    fake_apt(tmp_path, apt, monkeypatch)
    (tmp_path / "bin" / "dpkg").write_text(f"#!/bin/sh\n{dpkg}\n")
    (tmp_path / "bin" / "dpkg").chmod(0o755)
    cache = tmp_path / "cache"
    with pytest.raises(OSError, match="No space left on device") as full:
        packages.unpack_all(["a"], cache)
    assert str(full.value.filename).startswith(str(cache))
    assert not list(cache.iterdir())


def test_texts_of_files(tmp_path: Path) -> None:
    packed, bad, mallard = tmp_path / "a.gz", tmp_path / "b", tmp_path / "c.page"
    packed.write_bytes(gzip.compress("ein Text\n".encode()))
    assert list(whole(packed)) == ["ein Text\n"]
    for content in (b"\xff", b"a\rb", b"\0"):
        bad.write_bytes(content)
        with pytest.raises(NoText):
            list(whole(bad))
    mallard.write_text(
        '<page xmlns="http://projectmallard.org/1.0/"><info>who</info>'
        "<title>One  two</title>\n\n<p>three</p></page>"
    )
    assert list(page(mallard)) == ["One two\nthree"]


def test_a_dictionary_is_cut_at_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "d.dz"
    path.write_bytes(gzip.compress(b"A \\a\\\n   one\n\n   two\n\nBad \xff\n\nC \\c\\\n   three\n"))
    assert list(entries(path)) == ["A \\a\\\n   one\n\n   two", "C \\c\\\n   three"]


def test_figures_have_their_captions(tmp_path: Path) -> None:
    for name in ("a.png", "b.jpg", "outside.png"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "p.html").write_text(
        '<img src="outside.png"><div class="figure"><p class="title"><b>Figure 1. Two</b></p>'
        '<div><img src="a.png" /><div class="caption"><p>left</p></div><img src="b.jpg"/>'
        '<div class="caption">right</div></div></div><div class="figure"><img src="gone.png"></div>'
    )
    found = {figure.picture.name: figure.caption for figure in figures_of(tmp_path)}
    assert found == {"a.png": "Figure 1. Two left", "b.jpg": "Figure 1. Two right"}


def test_shards_are_read_as_they_were_written(tmp_path: Path) -> None:
    records = [{"name": str(n), "text": f"text {n}\n\u00e4" * n} for n in range(1, 50)]
    rows = [Row((record["text"],)) for record in records]
    for ending, write in ((".jsonl.zst", write_jsonl_zst), (".parquet", write_parquet)):
        path = tmp_path / f"x{ending}"
        write(path, records)
        assert list(rows_of(path, {"text": "text"})) == rows
    samples = [{"picture": b"p", "txt": b"one"}, {"picture": b"q", "txt": b"two"}]
    write_tar(tmp_path / "x.tar", samples)
    fields = {"image": "picture", "text": "txt"}
    assert list(rows_of(tmp_path / "x.tar", fields)) == [Row(("one",), b"p"), Row(("two",), b"q")]
    ids = encode_bytes(["abc", "d"])
    write_megatron(tmp_path / "x.bin", ids)
    assert list(documents_of_ids(tmp_path / "x.bin")) == ids


def test_what_a_command_complains_about_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl.zst").write_bytes(b"nonsense")
    with pytest.raises(CommandFailed, match=r"zstd -dcq .*x.jsonl.zst ended with .*: .*format"):
        list(rows_of(tmp_path / "x.jsonl.zst", {"text": "text"}))
    with pytest.raises(CommandFailed, match=r"spm_encode --model=.* ended with .*: .*\S"):
        encode_by(tmp_path / "none.model")(["text"])


def test_ids_in_files_are_those_of_their_texts(tmp_path: Path) -> None:
    pipeline = {
        "tokens": {"tokenizer": "bytes"},
        "source": [{"files": ["x-*.jsonl"]}, {"files": ["c-*.bin"]}],
    }
    texts = ["abc", "d\ne"]
    write_ids(tmp_path / "c-a.bin", texts, encode_bytes(texts))
    write_ids(tmp_path / "c-b.bin", texts, encode_bytes(texts))
    assert not list(faults_of_ids(tmp_path, pipeline))
    write_ids(tmp_path / "c-a.bin", texts, encode_bytes(["abc", "d\nf"]))
    write_ids(tmp_path / "c-b.bin", texts, encode_bytes(texts[:1]))
    assert list(faults_of_ids(tmp_path, pipeline)) == [
        "c-a.bin: document 1 has other ids than its text",
        "c-b.bin has 1 documents, made of 2 texts",
    ]


def test_frames_are_small() -> None:
    lines = [b"x" * 300_000 for _ in range(10)]
    frames = list(frames_of(lines))
    assert b"".join(frames) == b"".join(lines)
    assert [len(frame) for frame in frames] == [900_000, 900_000, 900_000, 300_000]


def test_what_is_trained_on_has_no_long_lines() -> None:
    text = "\n".join("word " * 100 for _ in range(30))
    lines = list(cut(text))
    assert NEWLINE.join(lines) == text.replace("\n", NEWLINE)
    assert all(len(line.encode()) <= LINE_BYTES + 3 * line.count(NEWLINE) for line in lines)


def test_shares_change_at_their_step() -> None:
    shares = Shares([[{"step": 0, "value": 1}, {"step": 5, "value": 3}], 1])
    one = 1 << SHARE_BITS
    assert (shares.at(4), shares.at(5)) == ([one // 2] * 2, [one * 3 // 4, one // 4])
    # Half of a token a token until step 5 of 100 tokens, then three quarters.
    assert shares.due(0, 10 * one, step=4, filled=90, step_tokens=100) == 500 + 6
    assert shares.due(0, 2 * one, step=4, filled=90, step_tokens=100) == 490 + 4
    assert shares.due(1, -3 * one, step=4, filled=90, step_tokens=100) == 490 - 6


@pytest.mark.parametrize(
    ("size", "grid"),
    [((28, 28), (1, 1)), ((42, 41), (1, 2)), ((280, 280), (8, 8)), ((9000, 10), (1, 64))],
)
def test_grids(size: tuple[int, int], grid: tuple[int, int]) -> None:
    assert RULES.grid(*size) == grid


def test_pixels_are_averaged_and_interpolated() -> None:
    row = np.array([[[0] * 3, [10] * 3, [20] * 3, [31] * 3]], dtype=np.uint8)
    assert scaled(row, 1, 2)[0, :, 0].tolist() == [5, 26]
    assert scaled(row[:, :2], 1, 4)[0, :, 0].tolist() == [0, 3, 8, 10]
    glass = Image.new("RGBA", (1, 1), (0, 255, 100, 128))
    assert rgb_of(glass)[0, 0].tolist() == [127, 255, 177]


def test_deep_pictures_are_not_known() -> None:
    file = io.BytesIO()
    Image.fromarray(np.zeros((2, 2), dtype=np.uint16)).save(file, "PNG")
    assert not is_known(file.getvalue())
    file = io.BytesIO()
    Image.new("RGB", (2, 2)).save(file, "PNG")
    assert is_known(file.getvalue())
