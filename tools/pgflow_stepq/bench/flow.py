"""Flows of the bench: compiled, started and checked."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from psycopg.types.json import Jsonb

from pgflow_stepq.bench.errors import BenchError
from pgflow_stepq.bench.workload import Connection, Workload, value

FLOW: Final = "bench"

Step = dict[str, Any]


def step(slug: str, *dependencies: str, step_type: str = "single", required: Any = None) -> Step:
    """Return one step of a shape; with a pattern `required` of its input, without which it is skipped."""
    shape: Step = {"slug": slug, "stepType": step_type, "dependencies": list(dependencies)}
    if required is not None:
        shape |= {"requiredInputPattern": {"defined": True, "value": required}, "whenUnmet": "skip"}
    return shape


def compile_flow(connection: Connection, *steps: Step, mode: str = "step") -> None:
    """Make the flow "bench" of these steps, each with a queue of its own, or verify that it is there already.

    With the mode "flow" all of them share one queue. Raises BenchError.
    """
    report = value(
        connection,
        "select pgflow.ensure_flow_compiled(%s, %s, queue_mode => %s)",
        FLOW,
        Jsonb({"steps": list(steps)}),
        mode,
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


def check_runs(
    workload: Workload, connection: Connection, outputs: dict[UUID, Any], tasks: int, *, delayed: int = 0
) -> None:
    """Raise BenchError unless all runs completed with these outputs, by so many tasks, and no message is left.

    `delayed` is the number of messages that wait for later, as they did before the work.
    """
    found: dict[UUID, Any] = dict(
        connection.execute(
            "select run_id, output from pgflow.runs where status = 'completed' and run_id = any(%s)", [list(outputs)]
        ).fetchall()
    )
    workload.expect("completed runs", len(found), len(outputs))
    wrong = next((run_id for run_id, output in outputs.items() if found[run_id] != output), None)
    if wrong is not None:
        workload.expect(f"output of run {wrong}", found[wrong], outputs[wrong])
    workload.expect("completed tasks", completed_tasks(connection, list(outputs)), tasks)
    workload.expect("messages left on the flow's queues", queued_messages(connection), delayed)


def completed_tasks(connection: Connection, run_ids: list[UUID]) -> int:
    """Return how many tasks of these runs are completed."""
    completed: int = value(
        connection,
        "select count(*) from pgflow.step_tasks where status = 'completed' and run_id = any(%s)",
        run_ids,
    )
    return completed


def queued_messages(connection: Connection) -> int:
    """Return how many messages all queues of flows hold."""
    left: int = value(
        connection,
        """
        select coalesce(sum(metrics.queue_length), 0)::int
        from pgflow.queues as queue
        cross join lateral pgmq.metrics(queue.queue_name) as metrics
        """,
    )
    return left
