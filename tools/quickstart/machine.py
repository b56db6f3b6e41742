# SPDX-License-Identifier: Apache-2.0
"""Data of the machine itself, where nothing is to be fetched: texts as JSON Lines, code in
Megatron's format, bytes as ids. They come with Debian and with what `scripts/setup` installs.
"""

from pathlib import Path

from quickstart.gathering import Collection, Gathered, Rules, gather
from quickstart.ids import encode_bytes
from quickstart.made_ids import write_ids
from quickstart.shard_files import write_jsonl

ROOT = Path("/")
RULES = Rules(
    largest_file_bytes=24 << 10,  # So that there are many records, of all lengths.
    order=str,
)
COLLECTIONS = (
    Collection("texts", "licenses", "licenses", ("usr/share/common-licenses/*",)),
    Collection("texts", "copyright", "copyrights", ("usr/share/doc/*/copyright",)),
    Collection("texts", "perl", "Perl's pod", ("usr/share/perl/*/**/*.pod",)),
    Collection("code", "python", "Python's library", ("usr/lib/python3*/**/*.py",)),
    Collection("code", "cpp", "C++ headers", ("usr/include/c++/**/*",)),
)


def write_sources(folder: Path, wanted_bytes: dict[str, int]) -> list[Gathered]:
    """Writes each collection that is there to a shard of its own; `wanted_bytes` by source."""
    folder.mkdir()
    gathered = []
    for source, wanted in wanted_bytes.items():
        collections = [c for c in COLLECTIONS if c.source == source]
        for found in gather(collections, lambda _: [ROOT], wanted, RULES):
            collection, documents = found.collection, found.documents
            where = ", ".join(f"/{pattern}" for pattern in collection.patterns)
            gathered.append(found.gathered(where))
            if documents and source == "texts":
                records = [{"path": one.name, "text": one.text} for one in documents]
                write_jsonl(folder / f"texts-{collection.name}.jsonl", records)
            elif documents:
                code = [one.text for one in documents]
                write_ids(folder / f"code-{collection.name}.bin", code, encode_bytes(code))
    return gathered
