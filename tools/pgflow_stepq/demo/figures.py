"""The figures of the report, every one of them read from the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import sql
from psycopg.rows import class_row

Connection = psycopg.Connection[tuple[Any, ...]]
Figures = TypeVar("Figures")


@dataclass(frozen=True)
class StepFigures:
    """One step over all runs: how its step states and its tasks ended.

    `retries` counts the attempts beyond a task's first. `median_ms` and `p95_ms` are the times from claim
    to completion, None when no task completed.
    """

    step_slug: str
    step_type: str
    completed: int
    skipped: int
    failed: int
    open: int
    tasks: int
    tasks_completed: int
    tasks_open: int
    retries: int
    median_ms: float | None
    p95_ms: float | None


@dataclass(frozen=True)
class QueueFigures:
    """One step's queue: messages ever sent, in the archive, and still on the queue."""

    step_slug: str
    queue_name: str
    sent: int
    archived: int
    left: int


@dataclass(frozen=True)
class CoverageFigures:
    """One step's queue and the live workers that serve it."""

    step_slug: str
    queue_name: str
    live_workers: int
    messages_total: int
    is_covered: bool


@dataclass(frozen=True)
class Count:
    """How often something occurs."""

    label: str
    count: int


def runs_by_status(connection: Connection, flow_slug: str) -> dict[str, int]:
    """Return {status: number of runs} for started, completed and failed."""
    found: dict[str, int] = dict(
        connection.execute(
            "select status, count(*) from pgflow.runs where flow_slug = %s group by status",
            [flow_slug],
        ).fetchall()
    )
    return {status: found.get(status, 0) for status in ("completed", "failed", "started")}


def elapsed_seconds(connection: Connection, flow_slug: str) -> float:
    """Return the time from the first run's start to the last run's end, in seconds."""
    row = connection.execute(
        """
        select extract(epoch from max(coalesce(completed_at, failed_at)) - min(started_at))::float8
        from pgflow.runs
        where flow_slug = %s
        """,
        [flow_slug],
    ).fetchone()
    return row[0] if row and row[0] is not None else 0.0


def steps(connection: Connection, flow_slug: str) -> list[StepFigures]:
    """Return one StepFigures a step, in step order."""
    return _rows(
        connection,
        StepFigures,
        """
        with states as (
          select step_slug,
                 count(*) filter (where status = 'completed') as completed,
                 count(*) filter (where status = 'skipped') as skipped,
                 count(*) filter (where status = 'failed') as failed,
                 count(*) filter (where status in ('created', 'started')) as open
          from pgflow.step_states
          where flow_slug = %(flow)s
          group by step_slug
        ),
        tasks as (
          select step_slug,
                 count(*) as tasks,
                 count(*) filter (where status = 'completed') as tasks_completed,
                 count(*) filter (where status in ('queued', 'started')) as tasks_open,
                 sum(greatest(attempts_count - 1, 0)) as retries,
                 percentile_cont(array[0.5, 0.95])
                   within group (order by extract(epoch from completed_at - started_at) * 1000)
                   filter (where status = 'completed') as millis
          from pgflow.step_tasks
          where flow_slug = %(flow)s
          group by step_slug
        )
        select step.step_slug,
               step.step_type,
               coalesce(states.completed, 0) as completed,
               coalesce(states.skipped, 0) as skipped,
               coalesce(states.failed, 0) as failed,
               coalesce(states.open, 0) as open,
               coalesce(tasks.tasks, 0) as tasks,
               coalesce(tasks.tasks_completed, 0) as tasks_completed,
               coalesce(tasks.tasks_open, 0) as tasks_open,
               coalesce(tasks.retries, 0)::int as retries,
               tasks.millis[1] as median_ms,
               tasks.millis[2] as p95_ms
        from pgflow.steps as step
        left join states using (step_slug)
        left join tasks using (step_slug)
        where step.flow_slug = %(flow)s
        order by step.step_index
        """,
        flow_slug,
    )


def queues(connection: Connection, flow_slug: str) -> list[QueueFigures]:
    """Return one QueueFigures a step, in step order."""
    routes = connection.execute(
        "select step_slug, queue_name from pgflow.steps where flow_slug = %s order by step_index",
        [flow_slug],
    ).fetchall()
    return [_queue(connection, step_slug, queue_name) for step_slug, queue_name in routes]


def _queue(connection: Connection, step_slug: str, queue_name: str) -> QueueFigures:
    row = connection.execute(
        sql.SQL(
            """
            select metrics.total_messages, (select count(*) from {archive}), metrics.queue_length
            from pgmq.metrics(%s) as metrics
            """
        ).format(archive=sql.Identifier("pgmq", f"a_{queue_name}")),
        [queue_name],
    ).fetchone()
    sent, archived, left = row if row else (0, 0, 0)
    return QueueFigures(step_slug, queue_name, sent, archived, left)


def coverage(connection: Connection, flow_slug: str) -> list[CoverageFigures]:
    """Return what the view pgflow.queue_coverage says of the flow, in step order."""
    return _rows(
        connection,
        CoverageFigures,
        """
        select step_slug, queue_name, live_workers, messages_total, is_covered
        from pgflow.queue_coverage
        where flow_slug = %(flow)s
        order by step_index
        """,
        flow_slug,
    )


def gaps(connection: Connection, flow_slug: str) -> dict[str, str]:
    """Return {step: reason} for the queues on which work waits and that no live worker serves."""
    return dict(connection.execute("select step_slug, reason from pgflow.coverage_gaps(%s)", [flow_slug]).fetchall())


def skips(connection: Connection, flow_slug: str) -> list[tuple[str, str, int]]:
    """Return (step, skip reason, how often), in step order."""
    return connection.execute(
        """
        select state.step_slug, state.skip_reason, count(*)
        from pgflow.step_states as state
        join pgflow.steps as step using (flow_slug, step_slug)
        where state.flow_slug = %s and state.status = 'skipped'
        group by step.step_index, state.step_slug, state.skip_reason
        order by step.step_index, state.skip_reason
        """,
        [flow_slug],
    ).fetchall()


def classified(connection: Connection, flow_slug: str, key: str) -> list[Count]:
    """Count the outputs of classify by one of their keys ("route", "language"), most frequent first."""
    return _rows(
        connection,
        Count,
        """
        select output ->> %(key)s as label, count(*) as count
        from pgflow.step_states
        where flow_slug = %(flow)s and step_slug = 'classify' and status = 'completed'
        group by label
        order by count desc, label
        """,
        flow_slug,
        key=key,
    )


def empty_maps(connection: Connection, flow_slug: str) -> int:
    """Return how many map steps completed without a single task."""
    row = connection.execute(
        """
        select count(*)
        from pgflow.step_states as state
        join pgflow.steps as step using (flow_slug, step_slug)
        where state.flow_slug = %s
          and step.step_type = 'map'
          and state.status = 'completed'
          and state.initial_tasks = 0
        """,
        [flow_slug],
    ).fetchone()
    return row[0] if row else 0


def failures(connection: Connection, flow_slug: str, limit: int) -> list[tuple[str, str, str]]:
    """Return (thread id, step, error message) of failed steps, at most `limit`."""
    return connection.execute(
        """
        select run.input ->> 'id', state.step_slug, coalesce(state.error_message, '')
        from pgflow.step_states as state
        join pgflow.runs as run using (run_id)
        where state.flow_slug = %s and state.status = 'failed'
        order by state.failed_at, run.run_id
        limit %s
        """,
        [flow_slug, limit],
    ).fetchall()


def diagram(connection: Connection, flow_slug: str) -> str:
    """Return the flow with its queues as a Mermaid diagram."""
    row = connection.execute("select pgflow.flow_diagram(%s)", [flow_slug]).fetchone()
    return str(row[0]) if row else ""


def _rows(
    connection: Connection, kind: type[Figures], query: LiteralString, flow_slug: str, **more: object
) -> list[Figures]:
    with connection.cursor(row_factory=class_row(kind)) as cursor:
        return cursor.execute(query, {"flow": flow_slug, **more}).fetchall()
