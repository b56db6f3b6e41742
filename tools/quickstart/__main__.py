# SPDX-License-Identifier: Apache-2.0
"""scripts/quickstart, once Python is there."""

import subprocess
import sys

from quickstart import live, report
from quickstart.balance import balance_of
from quickstart.commands import CommandFailed
from quickstart.data import prepare
from quickstart.delivered import RankFile
from quickstart.folder import Folder, NotOurs, remove
from quickstart.gathering import NoData
from quickstart.made_ids import faults_of_ids
from quickstart.options import ROOT, USAGE, Options, parse
from quickstart.records import Source
from quickstart.report_files import write_report
from quickstart.stream import Stream
from quickstart.tamper import tamper
from quickstart.verdict import Judge
from quickstart.vocabulary import NoVocabulary

RANKS = 8
INTERRUPTED = 130


def say(text: str) -> None:
    print(f"quickstart: {text}", file=sys.stderr, flush=True)


def told(error: OSError) -> str:
    """What and where, as in "./out/data/x.tar: No space left on device"."""
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


def build() -> None:
    words = [str(ROOT / "scripts" / "build"), "dev", "batchloom_cli", "_core"]
    subprocess.run(words, stdout=sys.stderr, check=True)


def quickstart(options: Options, folder: Folder) -> report.Findings:
    prepared = prepare(options, folder, say)
    pipeline = prepared.pipeline
    say(f"{RANKS} ranks and a producer, which is killed on the way")
    run = live.run(options, folder, RANKS)
    files = [folder.of_rank(rank) for rank in range(RANKS)]
    if options.how_to_break:
        tamper(options.how_to_break, files, options.break_at)
    say("compares what ranks got with the files")
    sources = [Source(folder.path, pipeline, table) for table in pipeline["source"]]
    stream = Stream(options.command, folder.stream, RANKS)
    ranks = [RankFile(file) for file in files]
    verdict = Judge(pipeline, sources, stream.plan_of).judge(ranks, options.steps)
    verdict.reasons += faults_of_ids(folder.path, pipeline)
    capacity = pipeline["topology"]["capacity"]
    kept = options.keep or not verdict.is_yes
    if not kept:
        remove(folder.delivered)
    return report.Findings(
        options=options,
        folder=folder,
        prepared=prepared,
        sources=sources,
        live=run,
        stream_bytes=stream.size_bytes(),
        rank_memory_bytes=max(rank.peak_memory_bytes or 0 for rank in ranks),
        balance=balance_of(stream, capacity, verdict.lengths_of_step, shown=run.went_on_at),
        verdict=verdict,
        kept=kept,
    )


def main() -> int:
    options = parse(sys.argv[1:])
    folder = Folder(options.out)
    try:
        folder.make()
    except NotOurs as refusal:
        say(str(refusal))
        return USAGE
    except OSError as error:
        say(told(error))
        return 1
    try:
        if not options.is_built:
            build()
        found = quickstart(options, folder)
        text = report.render(found)
        write_report(found, text)
    except (NoData, NoVocabulary, CommandFailed, subprocess.CalledProcessError) as failure:
        say(str(failure))
        return 1
    except OSError as error:
        say(told(error))
        return 1
    except live.RunFailed as failure:
        say(f"{failure}\nlogs: {folder.logs}")
        print(report.last_line(is_yes=False), flush=True)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    print(text, end="", flush=True)
    return int(not found.verdict.is_yes)


if __name__ == "__main__":
    sys.exit(main())
