# SPDX-License-Identifier: Apache-2.0
"""Which kills a job gets: anywhere, or aimed at a phase of the process that is killed.

Half of all kills hit anywhere. Of the others a fifth of all hits between upload and commit, and the
other aims have at least one each, which comes before the half where kills are few. What is left of
a producer's aimed half goes to its other aims, what is left of the ranks' to steps on the way.
Where sources are aimed at, there is one kill more for each, while an index of that one is written.
"""

from collections import Counter

from chaos.phases import FIRST_STEP, INDEXING, LAST_STEP, READING, UPLOADED

ANYWHERE = "anywhere"

# By role.
AIMS = {
    "producer": (INDEXING, FIRST_STEP, UPLOADED, LAST_STEP),
    "consumer": (FIRST_STEP, READING, LAST_STEP),
}
ONCE_EACH = (INDEXING, FIRST_STEP, LAST_STEP)  # Of a producer.

Plans = dict[str, Counter[str]]  # By role, then by aim.


def plan_kills(producer_kills: int, consumer_kills: int, sources: int = 0) -> Plans:
    kills = producer_kills + consumer_kills
    producer = plan_producer_kills(producer_kills, uploaded=max(1, kills // 5))
    aimed = kills - kills // 2 - (producer.total() - producer[ANYWHERE])
    producer[INDEXING] += sources
    return {
        "producer": +producer,
        "consumer": plan_consumer_kills(consumer_kills, max(0, aimed)),
    }


def plan_producer_kills(kills: int, uploaded: int) -> Counter[str]:
    """`uploaded`: how many are wanted between upload and commit."""
    plan = Counter({UPLOADED: min(uploaded, kills, max(1, kills - len(ONCE_EACH)))})
    aimed = min(kills, max(kills - kills // 2, plan[UPLOADED] + len(ONCE_EACH)))
    spread(plan, aimed - plan[UPLOADED], ONCE_EACH)
    plan[ANYWHERE] = kills - aimed
    return +plan


def plan_consumer_kills(kills: int, aimed: int) -> Counter[str]:
    """A tenth hits each of the first and the last step, at least one if there are as many."""
    plan: Counter[str] = Counter()
    aimed = min(kills, aimed)
    spread(plan, min(aimed, 2 * max(1, kills // 10)), (FIRST_STEP, LAST_STEP))
    plan[READING] = aimed - plan.total()
    plan[ANYWHERE] = kills - aimed
    return +plan


def spread(plan: Counter[str], kills: int, aims: tuple[str, ...]) -> None:
    for i in range(kills):
        plan[aims[i % len(aims)]] += 1
