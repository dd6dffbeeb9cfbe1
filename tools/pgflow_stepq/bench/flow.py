"""Flows of the bench: compiled, started and checked."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from psycopg.types.json import Jsonb

from pgflow_stepq.bench.errors import BenchError
from pgflow_stepq.bench.workload import Connection, Workload, value

FLOW: Final = "bench"

Step = dict[str, Any]


def step(slug: str, *dependencies: str, step_type: str = "single") -> Step:
    """Return one step of a shape."""
    return {"slug": slug, "stepType": step_type, "dependencies": list(dependencies)}


def compile_flow(connection: Connection, *steps: Step) -> None:
    """Make the flow "bench" of these steps, each with a queue of its own, or verify that it is there already."""
    report = value(
        connection,
        "select pgflow.ensure_flow_compiled(%s, %s, queue_mode => 'step')",
        FLOW,
        Jsonb({"steps": list(steps)}),
    )
    if report["status"] not in ("compiled", "verified"):
        raise BenchError(f'The flow "{FLOW}" could not be compiled: {report["status"]}, {report["differences"]}.')


def start_one(connection: Connection, run_input: Any) -> UUID:
    """Start one run and return its id."""
    run_id: UUID = value(connection, "select run_id from pgflow.start_flow(%s, %s)", FLOW, Jsonb(run_input))
    return run_id


def start_many(connection: Connection, inputs: list[Any]) -> list[UUID]:
    """Start a run for each input in one call and return their ids, in order."""
    wrapped = [Jsonb(run_input) for run_input in inputs]
    rows = connection.execute("select run_id from pgflow.start_flows(%s, %s::jsonb[])", [FLOW, wrapped])
    return [run_id for (run_id,) in rows]


def check_runs(workload: Workload, connection: Connection, outputs: dict[UUID, Any], tasks: int) -> None:
    """Raise BenchError unless all runs completed with these outputs, by so many tasks, and no message is left."""
    found: dict[UUID, Any] = dict(
        connection.execute(
            "select run_id, output from pgflow.runs where status = 'completed' and run_id = any(%s)", [list(outputs)]
        ).fetchall()
    )
    workload.expect("completed runs", len(found), len(outputs))
    wrong = next((run_id for run_id, output in outputs.items() if found[run_id] != output), None)
    if wrong is not None:
        workload.expect(f"output of run {wrong}", found[wrong], outputs[wrong])
    completed = value(
        connection,
        "select count(*) from pgflow.step_tasks where status = 'completed' and run_id = any(%s)",
        list(outputs),
    )
    workload.expect("completed tasks", completed, tasks)
    left = value(
        connection,
        """
        select coalesce(sum(metrics.queue_length), 0)::int
        from pgflow.queues as queue
        cross join lateral pgmq.metrics(queue.queue_name) as metrics
        """,
    )
    workload.expect("messages left on the flow's queues", left, 0)
