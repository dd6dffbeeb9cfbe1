"""Run workloads in rounds, each in a database of its own, with the clock on their work only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Literal

import psycopg

from pgflow_stepq.bench.clock import Clock
from pgflow_stepq.bench.databases import ScratchDatabases
from pgflow_stepq.bench.profile import Profile, read_profiler, start_profiler
from pgflow_stepq.bench.scales import WARM_UP, Scale
from pgflow_stepq.bench.templates import Template
from pgflow_stepq.bench.workload import Connection, Workload

# When ANALYZE is run: where the queues are fullest, after the warm-up has emptied them again, or not at all.
Analyze = Literal["loaded", "drained", "never"]


@dataclass(frozen=True)
class Plan:
    """What is measured: which workloads, at which scale, in how many rounds.

    `analyze`: when the planner's statistics are made. `warm_up`: the size of the untimed run before each timed one.
    """

    workloads: tuple[type[Workload], ...]
    scale: Scale
    rounds: int
    analyze: Analyze = "loaded"
    warm_up: Scale = WARM_UP

    def in_turn(self, round_number: int) -> tuple[type[Workload], ...]:
        """Return the workloads in the order of a round, counted from 0: each round starts with another one."""
        if not self.workloads:
            return ()
        first = round_number % len(self.workloads)
        return self.workloads[first:] + self.workloads[:first]

    def without_missing(self) -> tuple[Plan, dict[str, str]]:
        """Return the plan without the workloads that can't be had here, and by their names why."""
        reasons: dict[Template, str | None] = {}
        for kind in self.workloads:
            if kind.template not in reasons:
                reasons[kind.template] = kind.template.refusal()
        missing = {kind.name: why for kind in self.workloads if (why := reasons[kind.template]) is not None}
        return replace(self, workloads=tuple(kind for kind in self.workloads if kind.name not in missing)), missing


@dataclass(frozen=True)
class Sample:
    """One measurement: of which workload, in which round (from 1), how many units in how many seconds.

    `server_seconds` is the processor time that the server processes used meanwhile, None where it isn't known. `wait`
    (seconds, 95th percentile) and `conflicts` (deadlocks and serialization failures) are of workloads that have them.
    """

    workload: str
    round: int
    units: int
    seconds: float
    server_seconds: float | None = None
    wait: float | None = None
    conflicts: int | None = None

    @property
    def cost(self) -> float:
        """What ratios are made of, in seconds: the wait where it was measured, else the time a unit took."""
        return self.seconds / self.units if self.wait is None else self.wait


class Harness:
    """Measures on the scratch databases of a server."""

    def __init__(self, databases: ScratchDatabases, plan: Plan, progress: Callable[[str], None]) -> None:
        """Measure by `plan` and tell `progress` a line a measurement."""
        self._databases = databases
        self._plan = plan
        self._progress = progress

    def measure(self) -> list[Sample]:
        """Run all rounds and return a sample for each workload and round. Raises BenchError, psycopg.Error."""
        samples = []
        for number in range(self._plan.rounds):
            for kind in self._plan.in_turn(number):
                with self._prepared(kind) as (workload, connection):
                    units, clock = self._timed(workload, connection)
                    workload.check(connection)
                done = f"{kind.name:<16}{units:>8,} {kind.unit:<9}{clock.seconds:>8.2f} s"
                self._progress(f"round {number + 1}/{self._plan.rounds}  {done}")
                samples.append(
                    Sample(
                        kind.name,
                        number + 1,
                        units,
                        clock.seconds,
                        clock.server_seconds,
                        workload.wait,
                        workload.conflicts,
                    )
                )
        return samples

    def profile(self) -> list[Profile]:
        """Run each workload once more and return where its time goes. Raises BenchError, psycopg.Error.

        Those that work in other sessions than this client's are left out: the profiler sees one session only.
        """
        profiles = []
        for kind in self._plan.workloads:
            if kind.backends is not Workload.backends:
                self._progress(f"no profile  {kind.name}: it works in sessions of its own")
                continue
            with self._prepared(kind) as (workload, connection):
                start_profiler(connection)
                units, clock = self._timed(workload, connection)
                functions, statements = read_profiler(connection)
                workload.check(connection)
            self._progress(f"profiled    {kind.name}")
            profiles.append(Profile(kind.name, kind.unit, units, clock.seconds, functions, statements))
        return profiles

    @contextmanager
    def _prepared(self, kind: type[Workload]) -> Iterator[tuple[Workload, Connection]]:
        with (
            self._databases.database(kind.template) as conninfo,
            psycopg.connect(conninfo, autocommit=True) as connection,
        ):
            if not kind.warms_itself_up:
                with closing(kind(self._plan.warm_up)) as warm_up:
                    warm_up.set_up(connection)
                    warm_up.load(connection)
                    warm_up.work(connection)
                    warm_up.check(connection)
            with closing(kind(self._plan.scale)) as workload:
                workload.set_up(connection)
                if self._plan.analyze == "drained":
                    connection.execute("analyze")
                # Writes out what the copy of the template left, which would otherwise be part of the figure.
                connection.execute("checkpoint")
                yield workload, connection

    def _timed(self, workload: Workload, connection: Connection) -> tuple[int, Clock]:
        """Load and work; return the units and the clock, which stood still during ANALYZE."""
        clock = Clock(workload.backends(connection))
        if workload.load_is_timed:
            with clock.running():
                workload.load(connection)
        else:
            workload.load(connection)
        if self._plan.analyze == "loaded":
            connection.execute("analyze")
        with clock.running():
            units = workload.work(connection)
        return units, clock
