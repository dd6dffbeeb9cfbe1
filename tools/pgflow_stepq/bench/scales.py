"""How much work a measurement does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Scale:
    """The size of every workload.

    `messages`: raw PGMQ in batches. `map_tasks`: tasks of the one map. `chain_runs`: runs of the chain of three.
    `single_calls`: tasks (messages, for raw PGMQ) that are worked one by one; a multiple of 3, the chain's length.
    `started_runs`: runs that are only started. `compiled_steps`: steps of all compiled flows; a multiple of 20.
    `verifications`: how often a flow is verified.
    """

    messages: int
    map_tasks: int
    chain_runs: int
    single_calls: int
    started_runs: int
    compiled_steps: int
    verifications: int


SCALES: Final = {
    "small": Scale(
        messages=2_000,
        map_tasks=1_000,
        chain_runs=200,
        single_calls=150,
        started_runs=200,
        compiled_steps=200,
        verifications=100,
    ),
    "full": Scale(
        messages=10_000,
        map_tasks=5_000,
        chain_runs=1_000,
        single_calls=900,
        started_runs=1_000,
        compiled_steps=1_000,
        verifications=300,
    ),
}

# Enough that the session has every function compiled and has settled on its plans before anything is timed.
WARM_UP: Final = Scale(
    messages=200, map_tasks=200, chain_runs=20, single_calls=30, started_runs=20, compiled_steps=20, verifications=20
)
