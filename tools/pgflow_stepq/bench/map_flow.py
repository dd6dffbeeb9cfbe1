"""One map between two single steps."""

from __future__ import annotations

from typing import ClassVar

from pgflow_stepq.bench.flow import check_runs, compile_flow, start_one, step
from pgflow_stepq.bench.step_worker import ClaimingStepWorker, StepWorker, drain
from pgflow_stepq.bench.workload import Connection, Workload


class Map(Workload):
    """1 → N → 1: the first step makes an array, the map doubles its elements, the last step sums them up."""

    name = "map"
    summary = "(a) one run of a map 1 -> N -> 1, from start_flow to its end: poll_tasks and complete_tasks by 50"
    unit = "tasks"
    against: ClassVar[tuple[str, ...]] = ("raw",)
    batch: ClassVar[int] = 50
    worker: ClassVar[type[StepWorker]] = StepWorker

    def set_up(self, connection: Connection) -> None:
        """Compile the flow and register a worker for each step."""
        compile_flow(connection, step("split"), step("each", "split", step_type="map"), step("total", "each"))
        self._split = self.worker(connection, "split", lambda _, flow_input: list(range(flow_input)), self.batch)
        self._each = self.worker(connection, "each", lambda element, _: element * 2, self.batch)
        self._total = self.worker(connection, "total", lambda outputs, _: sum(outputs["each"]), self.batch)

    def load(self, connection: Connection) -> None:
        """Start the run and do its first task, which queues those of the map."""
        self._run_id = start_one(connection, self.scale.map_tasks)
        self._first = drain(self._split)

    def work(self, connection: Connection) -> int:
        """Do the tasks of the map, then the last one."""
        return self._first + drain(self._each) + drain(self._total)

    def check(self, connection: Connection) -> None:
        """See that the run completed with the right sum."""
        tasks = self.scale.map_tasks
        check_runs(self, connection, {self._run_id: {"total": tasks * (tasks - 1)}}, tasks + 2)


class MapByClaim(Map):
    """The same with reading and claiming as two calls."""

    name = "map-claim"
    summary = "(a) the same by 100: pgmq.read, claim_tasks and complete_tasks, a commit each"
    against = ("raw-100", "map")
    batch = 100
    worker = ClaimingStepWorker
