"""A taste of isolation: one step has no worker for a while, and the others don't notice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pgflow_stepq.console import Console
from pgflow_stepq.demo import figures
from pgflow_stepq.demo.figures import Connection
from pgflow_stepq.demo.pool import WorkerPool, WorkerSpec
from pgflow_stepq.demo.starter import start_runs
from pgflow_stepq.demo.watch import Watch
from pgflow_stepq.shapes import FlowFile

# A dozen of threads that were delivered, so that something waits, and a dozen that were not.
_RUNS_OF_A_KIND: Final = 12


@dataclass(frozen=True)
class HeldBack:
    """What was seen while the step had no worker: its waiting messages, and the steps without coverage."""

    step_slug: str
    runs: int
    waiting: int
    gaps: list[str]


def hold_one_step_back(
    console: Console,
    connection: Connection,
    flow: FlowFile,
    pool: WorkerPool,
    workers: Sequence[WorkerSpec],
) -> HeldBack:
    """Stop one step's worker, start more runs, show that only that step waits; then let it drain."""
    held = _choose(connection, flow.slug, workers)
    pool.stop(held.step_slug)
    console.heading(f"Isolation: {held.step_slug} has no worker for a while")

    runs = sum(start_runs(connection, flow.slug, _inputs(connection, flow.slug)))
    console.line(f"The worker of {held.step_slug} was stopped, and {runs:,} more runs were started.")
    watch = Watch(console, connection, flow.slug, pool)
    waiting_steps = {held.step_slug, *_dependents(flow, held.step_slug)}
    watch.until(lambda steps: all(step.open == 0 for step in steps if step.step_slug not in waiting_steps))

    found = _show_gap(console, connection, flow.slug, held.step_slug, runs)

    console.line()
    console.line(f"Now the worker of {held.step_slug} starts.")
    pool.start(held)
    watch.until(lambda steps: all(step.open == 0 for step in steps))
    return found


def _choose(connection: Connection, flow_slug: str, workers: Sequence[WorkerSpec]) -> WorkerSpec:
    """Return deliverSlack's worker, or that of the first step where no thread was worth a delivery."""
    worked = {step.step_slug for step in figures.steps(connection, flow_slug) if step.tasks > 0}
    return next(
        (worker for worker in workers if worker.step_slug == "deliverSlack" and worker.step_slug in worked), workers[0]
    )


def _inputs(connection: Connection, flow_slug: str) -> list[dict[str, Any]]:
    """Return inputs of earlier runs to start anew: of some with a delivery, and of some without."""
    rows = connection.execute(
        """
        with threads as (
          select run.input,
                 row_number() over (partition by state.status order by run.started_at, run.run_id) as place
          from pgflow.runs as run
          join pgflow.step_states as state using (run_id)
          where run.flow_slug = %s
            and state.step_slug = 'deliverSlack'
            and state.status in ('completed', 'skipped')
        )
        select input
        from threads
        where place <= %s
        """,
        [flow_slug, _RUNS_OF_A_KIND],
    ).fetchall()
    return [run_input for (run_input,) in rows]


def _dependents(flow: FlowFile, step_slug: str) -> set[str]:
    """Return every step that can't begin before this one has ended."""
    found = {step_slug}
    for step in flow.shape["steps"]:  # in topological order: dependencies come first
        if found & set(step["dependencies"]):
            found.add(step["slug"])
    return found - {step_slug}


def _show_gap(console: Console, connection: Connection, flow_slug: str, step_slug: str, runs: int) -> HeldBack:
    coverage = figures.coverage(connection, flow_slug)
    gaps = figures.gaps(connection, flow_slug)
    console.line()
    console.table(
        ("step", "queue", "live workers", "waiting", "covered"),
        [
            (
                queue.step_slug,
                queue.queue_name,
                queue.live_workers,
                queue.messages_total,
                "yes" if queue.is_covered else "NO",
            )
            for queue in coverage
        ],
    )
    waiting = next(queue.messages_total for queue in coverage if queue.step_slug == step_slug)
    console.line()
    console.line(f"pgflow.coverage_gaps('{flow_slug}') says:")
    for step, reason in gaps.items():
        console.paragraph(step, reason)
    return HeldBack(step_slug, runs, waiting, list(gaps))
