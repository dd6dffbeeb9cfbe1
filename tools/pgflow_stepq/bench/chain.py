"""Chains of three single steps: in batches, one by one, and only started."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from pgflow_stepq.bench.flow import FLOW, check_runs, compile_flow, queued_messages, start_many, start_one, step
from pgflow_stepq.bench.step_worker import Handler, SingleStepWorker, StepWorker, drain
from pgflow_stepq.bench.workload import Connection, Workload, value

CHAIN_HANDLERS: dict[str, Handler] = {
    "first": lambda _, flow_input: flow_input,
    "second": lambda outputs, _: outputs["first"] + 1,
    "third": lambda outputs, _: outputs["second"] + 1,
}


def compile_chain(connection: Connection) -> None:
    """Compile the flow: its output is its input plus two."""
    compile_flow(connection, step("first"), step("second", "first"), step("third", "second"))


class Chain(Workload):
    """Many runs of a chain of three, in batches."""

    name = "chain"
    summary = "(b) many runs of a chain of 3, from start_flows to their end: started, polled and completed by 50"
    unit = "tasks"
    against: ClassVar[tuple[str, ...]] = ("raw",)
    batch: ClassVar[int] = 50

    @property
    def runs(self) -> int:
        """The number of runs."""
        return self.scale.chain_runs

    def set_up(self, connection: Connection) -> None:
        """Compile the flow and register a worker for each step."""
        self._run_ids: list[UUID] = []
        compile_chain(connection)
        self._delayed = queued_messages(connection)
        self._workers = self.make_workers(connection)

    def make_workers(self, connection: Connection) -> list[StepWorker]:
        """Return a worker for each step."""
        return [StepWorker(connection, slug, handler, self.batch) for slug, handler in CHAIN_HANDLERS.items()]

    def load(self, connection: Connection) -> None:
        """Start all runs."""
        self._run_ids = self.start(connection)

    def work(self, connection: Connection) -> int:
        """Let the workers of the three steps take turns."""
        return drain(*self._workers)

    def start(self, connection: Connection) -> list[UUID]:
        """Start all runs, batch by batch, the number of each as its input."""
        inputs = list(range(self.runs))
        return [
            run_id
            for start in range(0, self.runs, self.batch)
            for run_id in start_many(connection, inputs[start : start + self.batch])
        ]

    def check(self, connection: Connection) -> None:
        """See that every run completed with its number plus two."""
        outputs = {run_id: {"third": number + 2} for number, run_id in enumerate(self._run_ids)}
        self.expect("started runs", len(outputs), self.runs)
        check_runs(self, connection, outputs, len(CHAIN_HANDLERS) * self.runs, delayed=self._delayed)


class Single(Chain):
    """The same by single-task calls."""

    name = "single"
    summary = "(d) runs of a chain of 3 by single calls, a commit each: start_flow, poll_tasks by 1, complete_task"
    against: ClassVar[tuple[str, ...]] = ("raw-1",)

    @property
    def runs(self) -> int:
        """The number of runs."""
        return self.scale.single_calls // len(CHAIN_HANDLERS)

    def make_workers(self, connection: Connection) -> list[StepWorker]:
        """Return a worker for each step that does a task at a time."""
        return [SingleStepWorker(connection, slug, handler) for slug, handler in CHAIN_HANDLERS.items()]

    def start(self, connection: Connection) -> list[UUID]:
        """Start the runs one by one."""
        return [start_one(connection, number) for number in range(self.runs)]


class Start(Workload):
    """Runs of a chain of three, started one by one and left there."""

    name = "start"
    summary = "(e) start of runs of a chain of 3 by start_flow, one by one, a commit each"
    unit = "runs"

    def set_up(self, connection: Connection) -> None:
        """Compile the flow."""
        self._run_ids: list[UUID] = []
        compile_chain(connection)

    def load(self, connection: Connection) -> None:
        """Do nothing: to fill the queue is the work."""

    def work(self, connection: Connection) -> int:
        """Start the runs."""
        self._run_ids = [start_one(connection, number) for number in range(self.scale.started_runs)]
        return len(self._run_ids)

    def check(self, connection: Connection) -> None:
        """See that every run has its first task queued, with its message."""
        queued = value(
            connection,
            f"""
            select count(*)
            from pgflow.runs as run
            inner join pgflow.step_tasks as task on task.run_id = run.run_id
            inner join pgmq.q_{FLOW}__first as message on message.msg_id = task.message_id
            where run.run_id = any(%s)
              and run.status = 'started'
              and task.status = 'queued'
              and task.step_slug = 'first'
            """,  # noqa: S608 - the name of the bench's own flow
            self._run_ids,
        )
        self.expect("started runs with a queued first task", queued, self.scale.started_runs)


class StartMany(Start):
    """The same by start_flows()."""

    name = "starts"
    summary = "(e) the same by start_flows, 100 runs a call"
    against = ("start",)
    batch: ClassVar[int] = 100

    def work(self, connection: Connection) -> int:
        """Start the runs, batch by batch."""
        inputs = list(range(self.scale.started_runs))
        for start in range(0, len(inputs), self.batch):
            self._run_ids += start_many(connection, inputs[start : start + self.batch])
        return len(self._run_ids)
