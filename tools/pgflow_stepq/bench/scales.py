"""How much work a measurement does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Scale:
    """The size of every workload.

    `messages`: raw PGMQ in batches, and flat jobs. `map_tasks`: tasks of the one map; `peer_map_tasks`: of pgflow's.
    `chain_runs`, `diamond_runs`: runs of the chain of three and of the diamond.
    `single_calls`: tasks (messages, for raw PGMQ) that are worked one by one; a multiple of 3, the chain's length.
    `started_runs`: runs that are only started. `compiled_steps`: steps of all compiled flows; a multiple of 20.
    `verifications`: how often a flow is verified.
    `session_tasks`: tasks that several sessions share; a multiple of 8.
    `awaited_tasks`: tasks of the fast step, each of whose waits is taken. `backlog`: tasks waiting at the slow step
    beside it in step mode; `flow_backlog`: in flow mode.
    `growth_tasks`: tasks of all maps of one size together, hence of the largest; a multiple of 1,000, or
    below that of 100.
    `history_tasks`: finished tasks that lie in the database; `history_delayed`: delayed messages in each queue.
    `steady_seconds`: how long work goes on that is measured by time; `steady_tasks`: tasks that it is given at once.
    """

    messages: int
    map_tasks: int
    peer_map_tasks: int
    chain_runs: int
    diamond_runs: int
    single_calls: int
    started_runs: int
    compiled_steps: int
    verifications: int
    session_tasks: int
    awaited_tasks: int
    backlog: int
    flow_backlog: int
    growth_tasks: int
    history_tasks: int
    history_delayed: int
    steady_seconds: float
    steady_tasks: int


SCALES: Final = {
    "small": Scale(
        messages=2_000,
        map_tasks=1_000,
        peer_map_tasks=200,
        chain_runs=200,
        diamond_runs=100,
        single_calls=150,
        started_runs=200,
        compiled_steps=200,
        verifications=100,
        session_tasks=2_000,
        awaited_tasks=60,
        backlog=2_000,
        flow_backlog=200,
        growth_tasks=10_000,
        history_tasks=30_000,
        history_delayed=3_000,
        steady_seconds=2,
        steady_tasks=300,
    ),
    "full": Scale(
        messages=10_000,
        map_tasks=5_000,
        peer_map_tasks=5_000,
        chain_runs=1_000,
        diamond_runs=500,
        single_calls=900,
        started_runs=1_000,
        compiled_steps=1_000,
        verifications=300,
        session_tasks=8_000,
        awaited_tasks=500,
        backlog=10_000,
        flow_backlog=10_000,
        growth_tasks=10_000,
        history_tasks=1_000_000,
        history_delayed=100_000,
        steady_seconds=60,
        steady_tasks=1_000,
    ),
}

# Enough that the session has every function compiled and has settled on its plans before anything is timed.
WARM_UP: Final = Scale(
    messages=200,
    map_tasks=200,
    peer_map_tasks=60,
    chain_runs=20,
    diamond_runs=20,
    single_calls=30,
    started_runs=20,
    compiled_steps=20,
    verifications=20,
    session_tasks=800,
    awaited_tasks=20,
    backlog=50,
    flow_backlog=20,
    growth_tasks=200,
    history_tasks=1_000,
    history_delayed=100,
    steady_seconds=0.3,
    steady_tasks=200,
)
