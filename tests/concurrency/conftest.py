"""Sessions side by side: real connections in threads, barriers, and waits that are seen in the server's views."""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from typing import Any, TypeVar

import psycopg
import pytest
from psycopg.types.json import Jsonb

T = TypeVar("T")
Connection = psycopg.Connection[tuple[Any, ...]]

# Nothing here takes long; this only keeps a test that hangs from hanging for ever.
PATIENCE = 120


class Sessions:
    """Connections to one database, closed at the end of the test, and threads to use them in."""

    def __init__(self, conninfo: str) -> None:
        self.conninfo = conninfo
        self._stack = ExitStack()
        self._threads = ThreadPoolExecutor(max_workers=40)
        self.observer = self.connect()

    def connect(self, *, autocommit: bool = True) -> Connection:
        """Open a connection that notices deadlocks soon and gives up long before the test would."""
        connection = psycopg.connect(
            self.conninfo, autocommit=autocommit, options=f"-c deadlock_timeout=200ms -c statement_timeout={PATIENCE}s"
        )
        return self._stack.enter_context(connection)

    def connections(self, count: int) -> list[Connection]:
        return [self.connect() for _ in range(count)]

    def start(self, call: Callable[[], T]) -> Future[T]:
        """Run `call` in a thread of its own."""
        return self._threads.submit(call)

    def together(self, calls: Sequence[Callable[[], T]]) -> list[T]:
        """Run all calls at the same moment and return what they return; the first error of one is raised."""
        barrier = threading.Barrier(len(calls))

        def meet(call: Callable[[], T]) -> T:
            barrier.wait(PATIENCE)
            return call()

        futures = [self.start(lambda call=call: meet(call)) for call in calls]
        return [future.result(PATIENCE) for future in futures]

    def wait_until_blocked(self, connection: Connection, by: Connection | None = None) -> None:
        """Wait until `connection` waits for a lock, and for one that `by` holds."""
        pids = (connection.info.backend_pid,)
        blockers = self._until("select pg_blocking_pids(%s)", pids, lambda row: bool(row and row[0]))[0]
        if by is not None:
            assert by.info.backend_pid in blockers

    def wait_until_blocked_or_done(self, connection: Connection) -> None:
        """Wait until the first call of `connection` has ended or waits for a lock."""
        query = """
            select query like '%%pgflow.%%' and (state <> 'active' or cardinality(pg_blocking_pids(pid)) > 0)
            from pg_stat_activity
            where pid = %s
        """
        self._until(query, (connection.info.backend_pid,), lambda row: bool(row and row[0]))

    def wait_until_asleep(self, connection: Connection) -> None:
        """Wait until `connection` is in the pause between two looks of a poll."""
        query = "select wait_event from pg_stat_activity where pid = %s"
        self._until(query, (connection.info.backend_pid,), lambda row: row == ("PgSleep",))

    def wait_until(self, query: str, *args: Any) -> None:
        """Wait until `query` gives true."""
        self._until(query, args, lambda row: bool(row and row[0]))

    def close(self) -> None:
        # Connections first: a call that still waits for another session then ends, and its thread with it.
        self._stack.close()
        self._threads.shutdown()

    def _until(
        self, query: str, args: Sequence[Any], reached: Callable[[tuple[Any, ...] | None], bool]
    ) -> tuple[Any, ...]:
        deadline = time.monotonic() + PATIENCE
        while True:
            row = self.observer.execute(query, args).fetchone()
            if reached(row):
                assert row is not None
                return row
            assert time.monotonic() < deadline, f"never came: {query} {args}; last: {row}"
            time.sleep(0.01)


@pytest.fixture
def sessions(database: str) -> Iterator[Sessions]:
    sessions = Sessions(database)
    try:
        yield sessions
    finally:
        sessions.close()


_numbers = itertools.count(1)


class Flow:
    """A flow with a slug of its own, its workers and what tests ask about it."""

    def __init__(self, conn: Connection, *steps: dict[str, Any], mode: str = "step", **options: int) -> None:
        self.conn = conn
        self.slug = f"flow{next(_numbers)}"
        self.mode = mode
        self.shape = {"steps": [{"dependencies": [], **step} for step in steps], "options": options}
        conn.execute("set client_min_messages to warning")
        conn.execute("select pgflow.ensure_flow_compiled(%s, %s, false, %s)", (self.slug, Jsonb(self.shape), mode))

    def queue(self, step: str) -> str:
        return f"{self.slug}__{step}" if self.mode == "step" else self.slug

    def worker(self, step: str | None, function: str | None = None) -> uuid.UUID:
        """Register a worker and return its id."""
        worker_id = uuid.uuid4()
        name = function or f"{self.slug}_{step or 'all'}"
        self.conn.execute("select pgflow.register_worker(%s, %s, %s, %s)", (worker_id, name, self.slug, step))
        return worker_id

    def run(self, value: Any = None) -> uuid.UUID:
        """Start a run and return its id."""
        value = {} if value is None else value
        row = self.conn.execute("select run_id from pgflow.start_flow(%s, %s)", (self.slug, Jsonb(value))).fetchone()
        assert row is not None
        return row[0]

    def message(self, run: uuid.UUID, step: str, index: int = 0) -> int:
        return self._task(run, step, index, "message_id")

    def status(self, run: uuid.UUID, step: str, index: int = 0) -> str:
        """Return the task's status and its attempts, for example "started 1"."""
        return self._task(run, step, index, "status || ' ' || attempts_count")

    def steps(self, run: uuid.UUID) -> dict[str, str]:
        rows = self.conn.execute("select step_slug, status from pgflow.step_states where run_id = %s", (run,))
        return dict(rows.fetchall())

    def run_status(self, run: uuid.UUID) -> str:
        row = self.conn.execute("select status from pgflow.runs where run_id = %s", (run,)).fetchone()
        assert row is not None
        return row[0]

    def count(self, step: str, *, archive: bool = False) -> int:
        """Return how many messages are on the queue of a step, or in its archive."""
        table = f"{'a' if archive else 'q'}_{self.queue(step)}"
        row = self.conn.execute(f"select count(*) from pgmq.{table}").fetchone()
        assert row is not None
        return row[0]

    def age(self, run: uuid.UUID, seconds: int = 86400) -> None:
        """Let so much time pass for a run and its started tasks."""
        self.conn.execute(
            """
            with run as (
              update pgflow.runs set started_at = started_at - %(age)s where run_id = %(run)s
            ),
            state as (
              update pgflow.step_states
              set created_at = created_at - %(age)s, started_at = started_at - %(age)s
              where run_id = %(run)s
            )
            update pgflow.step_tasks
            set queued_at = queued_at - %(age)s, started_at = started_at - %(age)s
            where run_id = %(run)s and status = 'started'
            """,
            {"age": timedelta(seconds=seconds), "run": run},
        )

    def faults(self) -> list[tuple[Any, ...]]:
        """Return what check_integrity() finds, and active tasks of ended runs or steps."""
        rows = self.conn.execute(
            """
            select code, subject, detail from pgflow.check_integrity(%(slug)s)
            union all
            select 'active', task.step_slug || task.task_index, concat_ws(', ', task.status, state.status, run.status)
            from pgflow.step_tasks as task
            inner join pgflow.step_states as state using (run_id, step_slug)
            inner join pgflow.runs as run on run.run_id = task.run_id
            where task.flow_slug = %(slug)s
              and task.status in ('queued', 'started')
              and (state.status, run.status) <> ('started', 'started')
            """,
            {"slug": self.slug},
        )
        return rows.fetchall()

    def recompile(self, conn: Connection, steps: Sequence[dict[str, Any]] | None = None) -> str:
        """Compile the flow anew, with the loss of its data, in a shape that differs; return the status."""
        shape = {"steps": [{"dependencies": [], **step} for step in steps]} if steps else self.changed_shape()
        conn.execute("set client_min_messages to warning")
        row = conn.execute(
            "select pgflow.ensure_flow_compiled(%s, %s, true, %s) ->> 'status'", (self.slug, Jsonb(shape), self.mode)
        ).fetchone()
        assert row is not None
        self.shape = shape
        return row[0]

    def changed_shape(self) -> dict[str, Any]:
        first, *rest = self.shape["steps"]
        other = "skip" if first.get("whenExhausted", "fail") == "fail" else "fail"
        return {**self.shape, "steps": [{**first, "whenExhausted": other}, *rest]}

    def _task(self, run: uuid.UUID, step: str, index: int, what: str) -> Any:
        row = self.conn.execute(
            f"select {what} from pgflow.step_tasks where run_id = %s and step_slug = %s and task_index = %s",
            (run, step, index),
        ).fetchone()
        assert row is not None
        return row[0]


@pytest.fixture
def make_flow(conn: Connection) -> Callable[..., Flow]:
    """Give make_flow(step, ..., mode=...): a flow that is compiled and watched through `conn`."""

    def make(*steps: dict[str, Any], mode: str = "step", **options: int) -> Flow:
        return Flow(conn, *steps, mode=mode, **options)

    return make


class Work:
    """What workers do, as short calls on whichever connection."""

    @staticmethod
    def poll(conn: Connection, worker: uuid.UUID, tasks: int = 10, seconds: int = 0, ms: int = 20) -> list[Any]:
        """Return the outcomes of a poll as (msg_id, outcome, step, index, attempt, run)."""
        return conn.execute(
            "select msg_id, outcome, step_slug, task_index, attempt, run_id from pgflow.poll_tasks(%s, %s, %s, %s)",
            (worker, tasks, seconds, ms),
        ).fetchall()

    @staticmethod
    def claim(conn: Connection, flow: Flow, step: str, ids: Sequence[int], worker: uuid.UUID) -> list[Any]:
        """Return the outcomes of a claim as (msg_id, outcome, attempt)."""
        return conn.execute(
            "select msg_id, outcome, attempt from pgflow.claim_tasks(%s, %s, %s, %s, %s)",
            (flow.queue(step), flow.slug, step if flow.mode == "step" else None, list(ids), worker),
        ).fetchall()

    @staticmethod
    def complete(conn: Connection, *results: tuple[uuid.UUID, str, int, int | None, Any]) -> list[str]:
        """Complete (run, step, index, attempt, output) and return the statuses."""
        elements = [
            {"run_id": str(run), "step_slug": step, "task_index": index, "attempt": attempt, "output": output}
            for run, step, index, attempt, output in results
        ]
        rows = conn.execute("select status from pgflow.complete_tasks(%s)", (Jsonb(elements),)).fetchall()
        return [status for (status,) in rows]

    @staticmethod
    def fail(conn: Connection, *results: tuple[uuid.UUID, str, int, int | None]) -> list[str]:
        """Fail (run, step, index, attempt) and return the statuses."""
        elements = [
            {"run_id": str(run), "step_slug": step, "task_index": index, "attempt": attempt, "error_message": "broken"}
            for run, step, index, attempt in results
        ]
        rows = conn.execute("select status from pgflow.fail_tasks(%s)", (Jsonb(elements),)).fetchall()
        return [status for (status,) in rows]

    @staticmethod
    def requeue(conn: Connection) -> int:
        row = conn.execute("select pgflow.requeue_stalled_tasks()").fetchone()
        assert row is not None
        return row[0]


@pytest.fixture
def work() -> type[Work]:
    return Work
