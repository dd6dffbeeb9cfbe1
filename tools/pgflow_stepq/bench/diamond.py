"""A diamond whose two arms depend on conditions."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from pgflow_stepq.bench.flow import check_runs, compile_flow, queued_messages, start_many, step
from pgflow_stepq.bench.step_worker import Handler, StepWorker, drain
from pgflow_stepq.bench.workload import Connection, Workload

_HANDLERS: dict[str, Handler] = {
    "top": lambda _, flow_input: {"number": flow_input, "left": True, "right": flow_input % 2 == 0},
    "left": lambda outputs, _: outputs["top"]["number"] + 1,
    "right": lambda outputs, _: outputs["top"]["number"] + 2,
    "join": lambda outputs, _: sum(outputs.values()),
}


def compile_diamond(connection: Connection) -> None:
    """Compile a top step, two arms that run if the top step says so, and a step that joins them."""
    compile_flow(
        connection,
        step("top"),
        step("left", "top", required={"top": {"left": True}}),
        step("right", "top", required={"top": {"right": True}}),
        step("join", "left", "right"),
    )


class Diamond(Workload):
    """Many runs of a diamond, of which one arm is skipped in every other run."""

    name = "diamond"
    summary = "(c) runs of a diamond with a condition on each arm, one arm skipped in half of them: by 50"
    unit = "tasks"
    against: ClassVar[tuple[str, ...]] = ("raw",)
    batch: ClassVar[int] = 50

    def set_up(self, connection: Connection) -> None:
        """Compile the flow and register a worker for each step."""
        self._run_ids: list[UUID] = []
        compile_diamond(connection)
        self._delayed = queued_messages(connection)
        self._workers = [StepWorker(connection, slug, handler, self.batch) for slug, handler in _HANDLERS.items()]

    def load(self, connection: Connection) -> None:
        """Start all runs, batch by batch, the number of each as its input."""
        inputs = list(range(self.scale.diamond_runs))
        for start in range(0, len(inputs), self.batch):
            self._run_ids += start_many(connection, inputs[start : start + self.batch])

    def work(self, connection: Connection) -> int:
        """Let the workers of the four steps take turns."""
        return drain(*self._workers)

    def check(self, connection: Connection) -> None:
        """See that every run completed with the sum of those arms that had to run."""
        outputs: dict[UUID, Any] = {}
        tasks = 0
        for number, run_id in enumerate(self._run_ids):
            right = number % 2 == 0
            outputs[run_id] = {"join": number + 1 + (number + 2 if right else 0)}
            tasks += 4 if right else 3
        self.expect("started runs", len(outputs), self.scale.diamond_runs)
        check_runs(self, connection, outputs, tasks, delayed=self._delayed)
