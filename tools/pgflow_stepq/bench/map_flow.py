"""One map between two single steps."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from pgflow_stepq.bench.flow import check_runs, compile_flow, queued_messages, start_many, start_one, step
from pgflow_stepq.bench.step_worker import ClaimingStepWorker, Handler, StepWorker, drain
from pgflow_stepq.bench.workload import Connection, Workload

MAP_HANDLERS: dict[str, Handler] = {
    "split": lambda _, flow_input: list(range(flow_input)),
    "each": lambda element, _: element * 2,
    "total": lambda outputs, _: sum(outputs["each"]),
}


def compile_map(connection: Connection) -> None:
    """Compile the flow: the first step makes an array, the map doubles its elements, the last step sums them up."""
    compile_flow(connection, step("split"), step("each", "split", step_type="map"), step("total", "each"))


def map_output(elements: int) -> dict[str, int]:
    """Return the output of a run whose input is a number of elements."""
    return {"total": elements * (elements - 1)}


class Map(Workload):
    """1 → N → 1."""

    name = "map"
    summary = "(a) one run of a map 1 -> N -> 1, from start_flow to its end: poll_tasks and complete_tasks by 50"
    unit = "tasks"
    against: ClassVar[tuple[str, ...]] = ("raw",)
    batch: ClassVar[int] = 50
    worker: ClassVar[type[StepWorker]] = StepWorker

    def set_up(self, connection: Connection) -> None:
        """Compile the flow and register a worker for each step."""
        compile_map(connection)
        self._delayed = queued_messages(connection)
        self._split, self._each, self._total = (
            self.worker(connection, slug, handler, self.batch) for slug, handler in MAP_HANDLERS.items()
        )

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
        check_runs(self, connection, {self._run_id: map_output(tasks)}, tasks + 2, delayed=self._delayed)


class MapByClaim(Map):
    """The same with reading and claiming as two calls."""

    name = "map-claim"
    summary = "(a) the same by 100: pgmq.read, claim_tasks and complete_tasks, a commit each"
    against = ("raw-100", "map")
    batch = 100
    worker = ClaimingStepWorker


class MapsOfHundred(Map):
    """Many small maps at once, which have as many tasks together as the largest map alone."""

    name = "map-100"
    summary = "(h) runs of maps of 100, all started first by start_flows, with as many tasks as map-10000 has: by 50"
    against: ClassVar[tuple[str, ...]] = ()
    elements: ClassVar[int] = 100

    def load(self, connection: Connection) -> None:
        """Start all runs and do their first tasks."""
        self._elements = min(self.elements, self.scale.growth_tasks)
        inputs = [self._elements] * (self.scale.growth_tasks // self._elements)
        self._run_ids: list[UUID] = []
        for start in range(0, len(inputs), self.batch):
            self._run_ids += start_many(connection, inputs[start : start + self.batch])
        self._first = drain(self._split)

    def check(self, connection: Connection) -> None:
        """See that every run completed with the right sum."""
        outputs = {run_id: map_output(self._elements) for run_id in self._run_ids}
        self.expect("tasks of maps", len(outputs) * self._elements, self.scale.growth_tasks)
        check_runs(self, connection, outputs, len(outputs) * (self._elements + 2), delayed=self._delayed)


class MapsOfThousand(MapsOfHundred):
    """The same with larger maps."""

    name = "map-1000"
    summary = "(h) the same with maps of 1,000"
    against = ("map-100",)
    elements = 1_000


class MapOfTenThousand(MapsOfHundred):
    """The same with the largest map."""

    name = "map-10000"
    summary = "(h) one run of a map of 10,000"
    against = ("map-100", "map-1000")
    elements = 10_000
