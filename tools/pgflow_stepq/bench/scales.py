"""How much work a measurement does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Scale:
    """The size of every workload.

    `messages`: raw PGMQ in batches. `map_tasks`: tasks of the one map. `chain_runs`: runs of the chain of three.
    `single_calls`: tasks (messages, for raw PGMQ) that are worked one by one; a multiple of 3, the chain's length.
    `started_runs`: runs that are only started.
    """

    messages: int
    map_tasks: int
    chain_runs: int
    single_calls: int
    started_runs: int


SCALES: Final = {
    "small": Scale(messages=2_000, map_tasks=1_000, chain_runs=200, single_calls=150, started_runs=200),
    "full": Scale(messages=10_000, map_tasks=5_000, chain_runs=1_000, single_calls=900, started_runs=1_000),
}

# Enough that the session has every function compiled and has settled on its plans before anything is timed.
WARM_UP: Final = Scale(messages=200, map_tasks=200, chain_runs=20, single_calls=30, started_runs=20)
