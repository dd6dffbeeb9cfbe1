"""The SQL core of pgflow, as its npm package ships it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, NamedTuple
from uuid import UUID, uuid4

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from pgflow_stepq.bench import npm_package
from pgflow_stepq.bench.errors import MissingPeerError
from pgflow_stepq.bench.scales import Scale
from pgflow_stepq.bench.templates import Template
from pgflow_stepq.bench.workload import Connection, Workload, value

PACKAGE: Final = "@pgflow/core@0.8.1"
_MIGRATIONS: Final = "package/dist/supabase/migrations/"
_FLOW: Final = "bench"
_LEASE_SECONDS: Final = 60

# Its functions send every event by this one, which Supabase offers; here nobody listens.
_REALTIME: Final = """
create schema realtime;
create function realtime.send(payload jsonb, event text, topic text, private boolean default true)
returns void
language sql
as 'select';
"""


class PgflowCore(Template):
    """A database with PGMQ and pgflow's SQL core, which has the schema to itself."""

    def refusal(self) -> str | None:
        """Return why the package can't be fetched; None when it is there."""
        try:
            npm_package.fetch(PACKAGE, _MIGRATIONS)
        except MissingPeerError as missing:
            return str(missing)
        return None

    def fill(self, connection: psycopg.Connection[tuple[Any, ...]], scale: Scale) -> None:
        """Run the migrations of the package in their order."""
        del scale
        connection.execute("create extension pgmq")
        connection.execute(_REALTIME)
        for path in sorted(npm_package.fetch(PACKAGE, _MIGRATIONS).glob("*.sql")):
            connection.execute(sql.SQL(path.read_text(encoding="utf-8")))


PGFLOW_CORE: Final = PgflowCore()


class _Step(NamedTuple):
    slug: str
    dependencies: tuple[str, ...]
    step_type: str
    # (its input, as pgflow builds it) -> its output
    handler: Callable[[Any], Any]


_CHAIN: Final = (
    _Step("first", (), "single", lambda given: given["run"]),
    _Step("second", ("first",), "single", lambda given: given["first"] + 1),
    _Step("third", ("second",), "single", lambda given: given["second"] + 1),
)
_MAP: Final = (
    _Step("split", (), "single", lambda given: list(range(given["run"]))),
    _Step("each", ("split",), "map", lambda given: given * 2),
    _Step("total", ("each",), "single", lambda given: sum(given["each"])),
)


class PgflowWorkload(Workload):
    """A flow of pgflow's core, worked as its own worker does: read a batch, start its tasks, complete each of them."""

    unit = "tasks"
    template = PGFLOW_CORE
    steps: ClassVar[Sequence[_Step]] = _CHAIN
    batch: ClassVar[int] = 50

    @classmethod
    def note(cls, scale: Scale) -> str:
        """Say which version it is."""
        return (
            f"pgflow's SQL core is that of the npm package {PACKAGE}, older than pgflow 0.14, with a stub for "
            "realtime.send(). Completing is one call a task, as its worker does it: it has no other."
        )

    def set_up(self, connection: Connection) -> None:
        """Make the flow, unless it is there, and the row of a worker."""
        self._outputs: dict[UUID, Any] = {}
        if not value(connection, "select count(*) from pgflow.flows where flow_slug = %s", _FLOW):
            connection.execute("select pgflow.create_flow(%s)", [_FLOW])
            for step in self.steps:
                connection.execute(
                    "select pgflow.add_step(%s, %s, %s, step_type => %s)",
                    [_FLOW, step.slug, list(step.dependencies), step.step_type],
                )
        self._handlers = {step.slug: step.handler for step in self.steps}
        self._worker_id = uuid4()
        connection.execute(
            "insert into pgflow.workers (worker_id, queue_name, function_name) values (%s, %s, 'bench')",
            [self._worker_id, _FLOW],
        )

    def start(self, connection: Connection, run_input: Any, output: Any) -> None:
        """Start a run and remember its output."""
        run_id = value(connection, "select run_id from pgflow.start_flow(%s, %s)", _FLOW, Jsonb(run_input))
        self._outputs[run_id] = output

    def work(self, connection: Connection) -> int:
        """Work batch by batch until the queue is empty."""
        total = 0
        while done := self.work_batch(connection):
            total += done
        return total

    def work_batch(self, connection: Connection) -> int:
        """Read a batch, start its tasks and complete each; return how many there were."""
        read = connection.execute("select msg_id from pgmq.read(%s, %s, %s)", [_FLOW, _LEASE_SECONDS, self.batch])
        ids = [msg_id for (msg_id,) in read]
        if not ids:
            return 0
        tasks = connection.execute(
            "select run_id, step_slug, task_index, input from pgflow.start_tasks(%s, %s::bigint[], %s)",
            [_FLOW, ids, self._worker_id],
        ).fetchall()
        self.expect("started tasks of a batch", len(tasks), len(ids))
        for run_id, step_slug, task_index, given in tasks:
            connection.execute(
                "select run_id from pgflow.complete_task(%s, %s, %s, %s)",
                [run_id, step_slug, task_index, Jsonb(self._handlers[step_slug](given))],
            )
        return len(tasks)

    def check(self, connection: Connection) -> None:
        """See that every run completed with its output, and that no message is left."""
        found: dict[UUID, Any] = dict(
            connection.execute(
                "select run_id, output from pgflow.runs where status = 'completed' and run_id = any(%s)",
                [list(self._outputs)],
            ).fetchall()
        )
        self.expect("completed runs", len(found), len(self._outputs))
        wrong = next((run_id for run_id, output in self._outputs.items() if found[run_id] != output), None)
        if wrong is not None:
            self.expect(f"output of run {wrong}", found[wrong], self._outputs[wrong])
        left = value(connection, "select queue_length from pgmq.metrics(%s)", _FLOW)
        self.expect("messages left on the queue", left, 0)


class PgflowMap(PgflowWorkload):
    """A map of pgflow's core."""

    name = "pgflow-map"
    summary = "(a) pgflow's SQL core: one run of a map 1 -> N -> 1, read and started by 50, completed one by one"
    against: ClassVar[tuple[str, ...]] = ("map",)
    steps = _MAP

    @classmethod
    def note(cls, scale: Scale) -> str:
        """Say how large its map is where it is not as large as ours."""
        if scale.peer_map_tasks == scale.map_tasks:
            return super().note(scale)
        return (
            f"{super().note(scale)} Its map has {scale.peer_map_tasks:,} tasks where ours has {scale.map_tasks:,}, to "
            "keep a round short: what a task costs it can grow with the map, so this favours it."
        )

    def load(self, connection: Connection) -> None:
        """Start the run and do its first task, which queues those of the map."""
        elements = self.scale.peer_map_tasks
        self.start(connection, elements, {"total": elements * (elements - 1)})
        self._first = self.work_batch(connection)

    def work(self, connection: Connection) -> int:
        """Do the tasks of the map, then the last one."""
        return self._first + super().work(connection)


class PgflowChain(PgflowWorkload):
    """Chains of pgflow's core."""

    name = "pgflow-chain"
    summary = "(b) pgflow's SQL core: runs of a chain of 3, read and started by 50, started and completed one by one"
    against: ClassVar[tuple[str, ...]] = ("chain",)

    @property
    def runs(self) -> int:
        """The number of runs."""
        return self.scale.chain_runs

    def load(self, connection: Connection) -> None:
        """Start all runs, one by one: it has no call for several."""
        for number in range(self.runs):
            self.start(connection, number, {"third": number + 2})


class PgflowSingle(PgflowChain):
    """The same by single-task calls."""

    name = "pgflow-single"
    summary = "(d) pgflow's SQL core: the same one task at a time: start_flow, read by 1, start_tasks, complete_task"
    against = ("single",)
    batch = 1

    @property
    def runs(self) -> int:
        """The number of runs."""
        return self.scale.single_calls // len(_CHAIN)


class PgflowStart(PgflowChain):
    """Runs that are only started."""

    name = "pgflow-start"
    summary = "(e) pgflow's SQL core: start of runs of a chain of 3 by start_flow, one by one, a commit each"
    unit = "runs"
    against = ("start",)

    @property
    def runs(self) -> int:
        """The number of runs."""
        return self.scale.started_runs

    def load(self, connection: Connection) -> None:
        """Do nothing: to fill the queue is the work."""

    def work(self, connection: Connection) -> int:
        """Start the runs."""
        super().load(connection)
        return len(self._outputs)

    def check(self, connection: Connection) -> None:
        """See that every run has its first task queued."""
        queued = value(
            connection,
            """
            select count(*)
            from pgflow.step_tasks as task
            inner join pgmq.q_bench as message on message.msg_id = task.message_id
            where task.run_id = any(%s) and task.status = 'queued' and task.step_slug = 'first'
            """,
            list(self._outputs),
        )
        self.expect("started runs with a queued first task", queued, self.scale.started_runs)
