"""Work that goes on for a time, with and without an old snapshot that keeps dead rows from being removed."""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Final
from uuid import UUID

import psycopg

from pgflow_stepq.bench.chain import CHAIN_HANDLERS, compile_chain
from pgflow_stepq.bench.flow import check_runs, start_many, start_one
from pgflow_stepq.bench.map_flow import MAP_HANDLERS, compile_map, map_output
from pgflow_stepq.bench.raw import Raw
from pgflow_stepq.bench.step_worker import StepWorker
from pgflow_stepq.bench.workload import Connection, Workload, conninfo_of, value

_BATCH: Final = 50


class Snapshot:
    """A session that holds a snapshot open."""

    def __init__(self, conninfo: str) -> None:
        """Open the session and take the snapshot."""
        self._connection = psycopg.connect(conninfo)
        self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        self._xmin = self._current_xmin()

    def is_held(self) -> bool:
        """Tell whether the server still keeps what this snapshot may see."""
        return self._current_xmin() == self._xmin

    def close(self) -> None:
        """Let go of it."""
        self._connection.close()

    def _current_xmin(self) -> str:
        return str(value(self._connection, "select pg_snapshot_xmin(pg_current_snapshot())"))


class Steady(Workload):
    """Portions of work, one after another, until the time is over."""

    # Whether another session holds an old snapshot meanwhile.
    holds_snapshot: ClassVar[bool] = False
    _snapshot: Snapshot | None = None

    def set_up(self, connection: Connection) -> None:
        """Prepare the portions, then take the snapshot."""
        self.prepare(connection)
        if self.holds_snapshot:
            self._snapshot = Snapshot(conninfo_of(connection))

    def load(self, connection: Connection) -> None:
        """Begin the first portion."""
        self._begun = self.begin_portion(connection)

    def work(self, connection: Connection) -> int:
        """Do batch after batch, portion after portion, until the time is over, wherever that is in a portion."""
        until = time.monotonic() + self.scale.steady_seconds
        self._done = self._rest = 0
        while time.monotonic() < until:
            done = self.work_batch()
            self._done += done
            if not done:
                self._begun += self.begin_portion(connection)
        return self._done

    def check(self, connection: Connection) -> None:
        """Do the rest of the last portion, and see that everything that was begun is done and that nothing is left."""
        if self._snapshot is not None:
            self.expect("old snapshot held to the end", self._snapshot.is_held(), True)
        while done := self.work_batch():
            self._rest += done
        self.expect("units done, with the rest", self._done + self._rest, self._begun)
        self.check_portions(connection)

    def close(self) -> None:
        """Let go of the snapshot."""
        if self._snapshot is not None:
            self._snapshot.close()

    @abstractmethod
    def prepare(self, connection: Connection) -> None:
        """Make what the portions need."""

    @abstractmethod
    def begin_portion(self, connection: Connection) -> int:
        """Fill the queues and return how many units that will be."""

    @abstractmethod
    def work_batch(self) -> int:
        """Do at most a batch of each step and return the units done; 0 when the portion is done."""

    @abstractmethod
    def check_portions(self, connection: Connection) -> None:
        """Raise BenchError unless all portions are truly done."""


class SteadyRaw(Steady):
    """Raw PGMQ by 50."""

    name = "raw-steady"
    summary = "(i) raw for a fixed time, portion after portion"
    unit = "messages"

    def prepare(self, connection: Connection) -> None:
        """Make the queue."""
        self._connection = connection
        self._raw = Raw(replace(self.scale, messages=self.scale.steady_tasks))
        self._raw.set_up(connection)

    def begin_portion(self, connection: Connection) -> int:
        """Send the messages of a portion."""
        self._raw.load(connection)
        return self._raw.size

    def work_batch(self) -> int:
        """Read and archive a batch."""
        read = self._raw.read(self._connection)
        return self._raw.archive(self._connection, read) if read else 0

    def check_portions(self, connection: Connection) -> None:
        """See that every message is in the archive and none on the queue."""
        self._raw.check_sent(connection, self._begun)


class SteadyMap(Steady):
    """Maps, one after another."""

    name = "map-steady"
    summary = "(i) map for a fixed time, run after run"
    unit = "tasks"

    def prepare(self, connection: Connection) -> None:
        """Compile the flow and register a worker for each step."""
        compile_map(connection)
        self._workers = [StepWorker(connection, slug, handler, _BATCH) for slug, handler in MAP_HANDLERS.items()]
        self._outputs: dict[UUID, Any] = {}

    def begin_portion(self, connection: Connection) -> int:
        """Start a run."""
        elements = self.scale.steady_tasks
        self._outputs[start_one(connection, elements)] = map_output(elements)
        return elements + 2

    def work_batch(self) -> int:
        """Do a batch of each step."""
        return sum(worker.work() for worker in self._workers)

    def check_portions(self, connection: Connection) -> None:
        """See that every run completed with the right sum."""
        check_runs(self, connection, self._outputs, self._begun)


class SteadyChain(Steady):
    """Chains, as many at once as have the tasks of a portion."""

    name = "chain-steady"
    summary = "(i) chain for a fixed time, portion after portion"
    unit = "tasks"

    def prepare(self, connection: Connection) -> None:
        """Compile the flow and register a worker for each step."""
        compile_chain(connection)
        self._workers = [StepWorker(connection, slug, handler, _BATCH) for slug, handler in CHAIN_HANDLERS.items()]
        self._outputs: dict[UUID, Any] = {}

    def begin_portion(self, connection: Connection) -> int:
        """Start the runs of a portion, batch by batch."""
        inputs = list(range(self.scale.steady_tasks // len(CHAIN_HANDLERS)))
        for start in range(0, len(inputs), _BATCH):
            batch = inputs[start : start + _BATCH]
            run_ids = start_many(connection, batch)
            self._outputs |= {run_id: {"third": number + 2} for run_id, number in zip(run_ids, batch, strict=True)}
        return len(inputs) * len(CHAIN_HANDLERS)

    def work_batch(self) -> int:
        """Do a batch of each step."""
        return sum(worker.work() for worker in self._workers)

    def check_portions(self, connection: Connection) -> None:
        """See that every run completed with its number plus two."""
        check_runs(self, connection, self._outputs, self._begun)


class SnapshotRaw(SteadyRaw):
    """Raw PGMQ beside an old snapshot."""

    name = "raw-snapshot"
    summary = "(i) raw-steady while another session holds an old snapshot, so that dead rows stay"
    against: ClassVar[tuple[str, ...]] = ("raw-steady",)
    holds_snapshot = True


class SnapshotMap(SteadyMap):
    """Maps beside an old snapshot."""

    name = "map-snapshot"
    summary = "(i) map-steady while such a snapshot is held"
    against: ClassVar[tuple[str, ...]] = ("map-steady",)
    holds_snapshot = True


class SnapshotChain(SteadyChain):
    """Chains beside an old snapshot."""

    name = "chain-snapshot"
    summary = "(i) chain-steady while such a snapshot is held"
    against: ClassVar[tuple[str, ...]] = ("chain-steady",)
    holds_snapshot = True
