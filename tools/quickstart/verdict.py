# SPDX-License-Identifier: Apache-2.0
"""Whether every step reached every rank exactly once: what ranks wrote down, against the raw files.

1. Each rank has the steps 0, 1, 2, ... to the last, each once, in order, and ended well.
2. What all ranks together have of a step are the parts that `draws` says, each whole, on one rank,
   once: tokens, labels, positions and pictures as `records` makes them of the raw files. No
   identity that the product has told takes part in this, only content.
3. Sources keep to their quotas, the sum of their shares of all steps so far, within
   max_sample_tokens (twice that where weights change), steps to step.tokens, micro-batches to the
   capacity; all ranks run as many micro-batches, none of which is empty, and agree on state and
   number of labels. No two steps have one state.
4. Each rank has what is its own. Which part is on which rank follows from no membership: it is the
   plan's decision, and the plan is in the stream. So the evidence here is what `store show` prints
   of it: which parts each rank runs, in which order. Their content comes from the raw files again.
   A plan that places parts badly would pass; one that has them twice, or nowhere, would not.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace

from quickstart.delivered import MicroBatch, RankFile, Step
from quickstart.draws import ExpectedStep, expected_steps
from quickstart.records import NO_LABEL, Content, PartId, Source
from quickstart.weights import SHARE_BITS, Shares

FILLER = Content(
    tokens=array("i", [0]).tobytes(),
    labels=array("q", [NO_LABEL]).tobytes(),
    positions=array("i", [0]).tobytes(),
)

CONTENTS = [one.name for one in fields(Content)]
# By rank its micro-batches, each a list of parts; a filler has none.
Plan = list[list[list[PartId]]]
# By rank what it delivered as one step: one of them, if all is well.
Delivered = list[list[Step]]


@dataclass
class Verdict:
    reasons: list[str] = field(default_factory=list)  # Empty: yes.
    tokens_of_step: list[list[int]] = field(default_factory=list)  # By step, by source.
    tokens: list[int] = field(default_factory=list)  # By source.
    quotas: list[float] = field(default_factory=list)  # By source, in tokens.
    parts_of_source: list[int] = field(default_factory=list)
    lengths_of_step: list[list[int]] = field(default_factory=list)  # Of parts, as drawn.
    pictures: int = 0  # Delivered, and compared.
    apart_allowed: int = 0
    most_apart: float = 0  # Of a source from its quota after a step, in tokens.

    @property
    def parts(self) -> int:
        return sum(self.parts_of_source)

    @property
    def is_yes(self) -> bool:
        return not self.reasons


class Judge:
    """Judges what ranks delivered of one stream. `plan_of` tells the stream's plan of a step."""

    def __init__(
        self, pipeline: dict, sources: list[Source], plan_of: Callable[[int], Plan]
    ) -> None:
        self._seed: int = pipeline["seed"]
        self._step_tokens: int = pipeline["step"]["tokens"]
        self._part_tokens: int = pipeline["step"]["max_sample_tokens"]
        self._capacity: int = pipeline["topology"]["capacity"]
        self._sources = sources
        self._plan_of = plan_of
        self._step_of_state: dict[str, int] = {}
        self._shares = Shares([source.weight for source in sources])
        none = [0 for _ in sources]
        self._verdict = Verdict(tokens=[*none], quotas=[*none], parts_of_source=[*none])
        self._verdict.apart_allowed = self._part_tokens * (2 if self._shares.change else 1)

    def judge(self, ranks: list[RankFile], steps: int) -> Verdict:
        reasons = self._verdict.reasons
        for rank, file in enumerate(ranks):
            reasons += [f"rank {rank}: {fault}" for fault in faults_of_order(file, steps)]
        expected = expected_steps(
            self._sources, self._seed, self._step_tokens, self._part_tokens
        )
        for step, of_step in zip(range(steps), expected, strict=False):
            delivered = [file.load(step) for file in ranks]
            faults = self._faults_of_step(step, of_step, delivered)
            reasons += [f"step {step}: {fault}" for fault in faults]
        return self._verdict

    def _faults_of_step(
        self, step: int, expected: ExpectedStep, delivered: Delivered
    ) -> Iterator[str]:
        yield from self._faults_of_shares(step, expected)
        contents = {
            part: self._sources[part.source].content(part.record, part.part)
            for part in expected.parts
        }
        faults = [
            *faults_of_arrays(delivered, self._capacity),
            *faults_of_agreement(delivered, contents),
            *self._faults_of_states(step, delivered),
            *faults_of_membership(delivered, contents),
        ]
        yield from faults
        plan = self._plan_of(step)
        yield from faults_of_plan(plan, contents) or faults_of_places(
            # What is wrong in itself is in the wrong place, too; once is enough.
            [] if faults else delivered,
            [[[contents[part] for part in parts] for parts in rank] for rank in plan],
        )

    def _faults_of_states(self, step: int, delivered: Delivered) -> Iterator[str]:
        """Who goes on from one state goes on at one step."""
        for state in sorted({copy.state for copies in delivered for copy in copies}):
            other = self._step_of_state.setdefault(state, step)
            if other != step:
                yield f"its state is that of step {other}"

    def _faults_of_shares(self, step: int, expected: ExpectedStep) -> Iterator[str]:
        verdict = self._verdict
        of_step = [0 for _ in self._sources]
        lengths: list[int] = []
        for part in expected.parts:
            source = self._sources[part.source]
            tokens = source.part_tokens(part.record, part.part)
            of_step[part.source] += tokens
            verdict.parts_of_source[part.source] += 1
            lengths.append(tokens)
            verdict.pictures += part.part == 0 and source.records[part.record].picture is not None
        verdict.tokens_of_step.append(of_step)
        verdict.lengths_of_step.append(lengths)
        shares = self._shares.at(step)
        for number, source in enumerate(self._sources):
            verdict.tokens[number] += of_step[number]
            verdict.quotas[number] += expected.tokens * shares[number] / (1 << SHARE_BITS)
            apart = abs(verdict.tokens[number] - verdict.quotas[number])
            verdict.most_apart = max(verdict.most_apart, apart)
            if apart > verdict.apart_allowed:
                yield f"source {source.name} is {apart:.0f} tokens from its quota"
        if expected.tokens > self._step_tokens:
            yield f"it has {expected.tokens} tokens; {self._step_tokens} are allowed"


def faults_of_order(file: RankFile, steps: int) -> Iterator[str]:
    numbers = file.step_numbers()
    times = Counter(numbers)
    missing = [step for step in range(steps) if times[step] == 0]
    if missing:
        yield f"{len(missing)} steps are missing, the first is step {missing[0]}"
    for step, count in sorted(times.items()):
        if count > 1:
            yield f"step {step} came {count} times"
        if step >= steps:
            yield f"step {step} came, and the last is step {steps - 1}"
    if numbers != sorted(numbers):
        yield "the steps came out of order"
    if file.peak_memory_bytes is None:
        yield "its process did not come to its end"


def faults_of_arrays(delivered: Delivered, capacity: int) -> Iterator[str]:
    for rank, micro_batch in micro_batches_of(delivered):
        for fault in micro_batch.faults():
            yield f"rank {rank}: {fault}"
        if not micro_batch:
            yield f"rank {rank} has a micro-batch without tokens: a filler has one"
        if (tokens := len(micro_batch)) > capacity:
            yield f"rank {rank} has a micro-batch of {tokens} tokens; the capacity is {capacity}"


def faults_of_agreement(
    delivered: Delivered, contents: dict[PartId, Content]
) -> Iterator[str]:
    steps = [step for copies in delivered for step in copies]
    if len({len(step.micro_batches) for step in steps}) > 1:
        yield "ranks have different numbers of micro-batches"
    if len({step.state for step in steps}) > 1:
        yield "ranks have different states"
    labels = sum(content.valid_labels for content in contents.values())
    for told in {step.global_valid_labels for step in steps} - {labels}:
        yield f"ranks were told of {told} labels; its parts have {labels}"


def faults_of_membership(
    delivered: Delivered, contents: dict[PartId, Content]
) -> Iterator[str]:
    """What reached no rank, reached one once too often, or belongs to no part of this step."""
    missing = Counter(contents.values())
    strange: list[tuple[int, Content]] = []
    for rank, micro_batch in micro_batches_of(delivered):
        for sequence in micro_batch.sequences():
            if missing[sequence] > 0:
                missing[sequence] -= 1
            elif not is_filler(micro_batch):
                strange.append((rank, sequence))
    for part, content in contents.items():
        if missing[content] > 0:
            missing[content] -= 1
            yield f"part {part} of {len(content)} tokens reached no rank"
    once = set(contents.values())
    for rank, sequence in strange:
        if sequence in once:
            yield f"rank {rank} has a part of {len(sequence)} tokens once more"
        else:
            yield f"rank {rank} has {difference(sequence, contents)}"


def faults_of_plan(plan: Plan, contents: dict[PartId, Content]) -> list[str]:
    planned = Counter(part for rank in plan for parts in rank for part in parts)
    drawn = Counter(contents.keys())
    odd = sorted(((planned - drawn) + (drawn - planned)).elements())
    return [f"the plan in the stream has other parts: {odd[0]} is one of them"] if odd else []


def faults_of_places(delivered: Delivered, planned: list[list[list[Content]]]) -> Iterator[str]:
    for rank, copies in enumerate(delivered):
        for step in copies:
            got = [[] if is_filler(one) else list(one.sequences()) for one in step.micro_batches]
            if got == planned[rank]:
                continue
            owner = f"rank {planned.index(got)}" if got in planned else "no rank"
            yield f"rank {rank} has what the plan gives to {owner}"


def micro_batches_of(delivered: Delivered) -> Iterator[tuple[int, MicroBatch]]:
    """With their ranks."""
    for rank, copies in enumerate(delivered):
        for step in copies:
            for micro_batch in step.micro_batches:
                yield rank, micro_batch


def is_filler(micro_batch: MicroBatch) -> bool:
    return list(micro_batch.sequences()) == [FILLER]


def difference(sequence: Content, contents: dict[PartId, Content]) -> str:
    """How a sequence differs from the part that it was meant to be, as far as that can be told."""
    for part, content in contents.items():
        if replace(sequence, picture=content.picture) == content:
            return f"part {part} with another picture than its own"
        for what, code in (("tokens", "i"), ("labels", "q"), ("positions", "i")):
            got, right = (array(code, getattr(one, what)) for one in (sequence, content))
            others = (name for name in CONTENTS if name != what)
            if any(getattr(sequence, name) != getattr(content, name) for name in others):
                continue
            odd = [place for place, value in enumerate(got) if value != right[place]]
            is_one = f"part {part} with {len(odd)} wrong {what}"
            return f"{is_one}: {got[odd[0]]} for {right[odd[0]]} at {odd[0]}"
    return f"a sequence of {len(sequence)} tokens that is no part of it"
