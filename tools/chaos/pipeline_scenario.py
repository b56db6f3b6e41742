# SPDX-License-Identifier: Apache-2.0
"""How a run of a whole pipeline goes.

1. Sources are made up. A job that nobody hurts indexes and reads them; what its ranks got is what
   must come out.
2. The same job, with a stream and indexes of its own, is hurt (job_harm.py), and comes to its end.
3. A last removal, a verification, and the judgement of every line that ranks have written. What it
   means that a rank has got a step once stands in job.py.
"""

import random
import subprocess
import time
from dataclasses import replace

from chaos.job import Job
from chaos.job_harm import Harm
from chaos.judge import judge_log, judge_report, run_json, verify_payload
from chaos.kill_plan import plan_kills
from chaos.pipeline_settings import PipelineSettings
from chaos.pipeline_summary import PipelineSummary
from chaos.scenario import Failure


class PipelineScenario:
    """One run. run() once."""

    def __init__(self, settings: PipelineSettings) -> None:
        self.settings = settings
        aimed = settings.sources.aimed
        self.plans = plan_kills(settings.producer_kills, settings.consumer_kills, len(aimed))
        self.summary = PipelineSummary(plans=self.plans, aimed_indexes=aimed)
        self.startup_s = 0.0  # Of a producer that nobody hurts.

    def run(self) -> PipelineSummary:
        began = time.monotonic()
        try:
            self.settings.sources.write(self.settings.folder, self.settings.seed)
            self.settings.pipeline.write_text(self.settings.to_toml(), encoding="utf-8")
            expected = self.undisturbed()
            self.disturbed(expected)
        except (Failure, RuntimeError, subprocess.TimeoutExpired) as failure:
            self.summary.problems.insert(0, str(failure))
        self.summary.problems = [*dict.fromkeys(self.summary.problems)]
        self.summary.counts["seconds"] = round(time.monotonic() - began)
        return self.summary

    def undisturbed(self) -> list[list[str]]:
        """The hashes that must come out, by rank, then by step."""
        settings = replace(self.settings, folder=self.settings.folder / "whole", broken="")
        job = Job(settings, random.Random(settings.seed))
        index = [str(settings.command), "index", str(settings.pipeline)]
        run_json([*index, f"--index-folder={settings.index_folder}"])
        try:
            job.finish()
        finally:
            job.kill_all()
        for rank in job.ranks:
            if rank.log.position != settings.steps or rank.log.repeats:
                raise Failure(f"undisturbed: {rank.name} has {rank.log.position} steps")
        self.startup_s = job.producer.startup_s
        return [rank.log.hashes for rank in job.ranks]

    def disturbed(self, expected: list[list[str]]) -> None:
        settings = replace(self.settings, folder=self.settings.folder / "hurt")
        choice = random.Random(settings.seed + 1)
        job = Job(settings, choice)
        job.producer.startup_s = self.startup_s
        harm = Harm(job, self.plans, choice)
        try:
            harm.run()
            job.finish()
        finally:
            job.kill_all()
            self.summary.hits = harm.killer.hits
            self.summary.indexes_hit = harm.killer.indexes_hit
            self.count(job)
            for rank in job.ranks:
                self.summary.problems += judge_log(rank.log, expected[rank.rank])
        self.judge_stream(settings)

    def count(self, job: Job) -> None:
        for kind in ("producer", "consumer"):
            kills = sum(n for (role, _, _), n in self.summary.hits.items() if role == kind)
            self.summary.counts[f"{kind}_kills"] = kills
        self.summary.counts["ranks"] = len(job.ranks)
        self.summary.counts["steps"] = min(rank.log.position for rank in job.ranks)
        self.summary.counts["producer_runs"] = job.producer.runs
        self.summary.counts["steps_repeated"] = sum(rank.log.repeats for rank in job.ranks)

    def judge_stream(self, settings: PipelineSettings) -> None:
        run_json([*settings.on_stream("store", "gc"), "--yes"])
        if settings.broken == "flip-byte":
            flip_byte(settings)
        report = verify_payload(settings)
        self.summary.problems += judge_report(report)
        if report["next_step"] != settings.steps:
            problem = f"the stream has {report['next_step']} steps, not {settings.steps}"
            self.summary.problems.append(problem)


def flip_byte(settings: PipelineSettings) -> None:
    """Of a stored batch, among its runs: the index, at the end, says nothing of it."""
    batch = min((settings.stream / "d").glob("*/*.tgb"))
    content = bytearray(batch.read_bytes())
    content[len(content) // 3] ^= 1
    batch.write_bytes(content)
