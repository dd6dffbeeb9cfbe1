"""Workers of one step, all driven by the one client of the bench."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from psycopg.types.json import Jsonb

from pgflow_stepq.bench.errors import BenchError
from pgflow_stepq.bench.flow import FLOW
from pgflow_stepq.bench.workload import Connection

_LEASE_SECONDS = 300

# handler(input, flow_input) -> output, as JSON values.
Handler = Callable[[Any, Any], Any]


class Task(NamedTuple):
    """A claimed task."""

    outcome: str
    run_id: UUID
    step_slug: str
    task_index: int
    attempt: int
    input: Any
    flow_input: Any


class StepWorker:
    """A worker of one step that polls and completes in batches: two calls and two commits a batch."""

    def __init__(self, connection: Connection, step_slug: str | None, handler: Handler, batch: int) -> None:
        """Register as a worker of the step, or with None of all steps of a flow in flow mode."""
        self.connection = connection
        self.step_slug = step_slug
        self.handler = handler
        self.batch = batch
        self.worker_id = uuid4()
        row = connection.execute(
            "select queue_name from pgflow.register_worker(%s, %s, %s, %s)",
            [self.worker_id, f"{FLOW}/{step_slug or '*'}", FLOW, step_slug],
        ).fetchone()
        self.queue_name = str(row[0]) if row else ""

    def work(self) -> int:
        """Claim and complete one batch; return how many tasks it had, 0 when there was no work. Raises BenchError."""
        tasks = self.claim()
        for task in tasks:
            if task.outcome != "claimed":
                raise BenchError(f'A message for worker "{self.step_slug}" was {task.outcome} instead of claimed.')
        if tasks:
            self.complete(tasks)
        return len(tasks)

    def claim(self) -> list[Task]:
        """Read and claim one batch in one call."""
        cursor = self.connection.execute(
            """
            select outcome, run_id, step_slug, task_index, attempt, input, flow_input
            from pgflow.poll_tasks(%s, %s, 0)
            """,
            [self.worker_id, self.batch],
        )
        return [Task(*row) for row in cursor]

    def complete(self, tasks: Sequence[Task]) -> None:
        """Complete a batch in one call."""
        results = [
            {
                "run_id": str(task.run_id),
                "step_slug": task.step_slug,
                "task_index": task.task_index,
                "attempt": task.attempt,
                "output": self.handler(task.input, task.flow_input),
            }
            for task in tasks
        ]
        for (status,) in self.connection.execute("select status from pgflow.complete_tasks(%s)", [Jsonb(results)]):
            self._expect_completed(status)

    def _expect_completed(self, status: str) -> None:
        if status != "completed":
            raise BenchError(f'A task of worker "{self.step_slug}" was {status} instead of completed.')


class ClaimingStepWorker(StepWorker):
    """The same by hand: pgmq.read(), claim_tasks() and complete_tasks(), three calls and three commits a batch."""

    def claim(self) -> list[Task]:
        """Read one batch, then claim it."""
        read = self.connection.execute(
            "select msg_id from pgmq.read(%s, %s, %s)", [self.queue_name, _LEASE_SECONDS, self.batch]
        )
        ids = [msg_id for (msg_id,) in read]
        if not ids:
            return []
        cursor = self.connection.execute(
            """
            select outcome, run_id, step_slug, task_index, attempt, input, flow_input
            from pgflow.claim_tasks(%s, %s, %s, %s::bigint[], %s)
            """,
            [self.queue_name, FLOW, self.step_slug, ids, self.worker_id],
        )
        return [Task(*row) for row in cursor]


class SingleStepWorker(StepWorker):
    """The same one task at a time, by the single-task call complete_task()."""

    def __init__(self, connection: Connection, step_slug: str, handler: Handler) -> None:
        """Register as a worker of the step."""
        super().__init__(connection, step_slug, handler, batch=1)

    def complete(self, tasks: Sequence[Task]) -> None:
        """Complete the one task."""
        for task in tasks:
            rows = self.connection.execute(
                "select status from pgflow.complete_task(%s, %s, %s, %s)",
                [task.run_id, task.step_slug, task.task_index, Jsonb(self.handler(task.input, task.flow_input))],
            ).fetchall()
            self._expect_completed(rows[0][0] if rows else "unknown")


def drain(*workers: StepWorker) -> int:
    """Let the workers take turns, a batch each, until none finds work; return how many tasks they did."""
    total = 0
    while done := sum(worker.work() for worker in workers):
        total += done
    return total
