# SPDX-License-Identifier: Apache-2.0
"""Which kills a job gets: anywhere, or aimed at a phase of the process that is killed."""

from collections import Counter

from chaos.phases import FIRST_STEP, INDEXING, LAST_STEP, UPLOADED

ANYWHERE = "anywhere"

# By role: what a long run must have hit.
AIMS = {
    "producer": (INDEXING, FIRST_STEP, UPLOADED, LAST_STEP),
    "consumer": (FIRST_STEP, LAST_STEP),
}
KILLS_THAT_HIT_ALL = 100


def plan_producer_kills(kills: int) -> Counter[str]:
    """Half of them anywhere. Of the others a fifth of all, and at least one, hits between upload
    and commit; the rest is spread over the other aims as evenly as it goes."""
    plan = Counter({ANYWHERE: kills // 2})
    aimed = kills - kills // 2
    plan[UPLOADED] = min(aimed, max(1, kills // 5))
    spread(plan, aimed - plan[UPLOADED], (INDEXING, FIRST_STEP, LAST_STEP))
    return +plan


def plan_consumer_kills(kills: int) -> Counter[str]:
    """A tenth hits each of the aims, at least one if there are as many; the others anywhere."""
    plan: Counter[str] = Counter()
    spread(plan, min(kills, 2 * max(1, kills // 10)), AIMS["consumer"])
    plan[ANYWHERE] = kills - plan.total()
    return +plan


def spread(plan: Counter[str], kills: int, aims: tuple[str, ...]) -> None:
    for i in range(kills):
        plan[aims[i % len(aims)]] += 1
