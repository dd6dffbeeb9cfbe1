"""Sending results: many at a time, and a bad one among them harms no other."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from pgflow_stepq.worker import EventLog
from pgflow_stepq.worker.finisher import MAX_BATCH, Finisher
from pgflow_stepq.worker.handlers import ClaimedTask
from pgflow_stepq.worker.results import TaskResult
from pgflow_stepq.worker.sessions import Session

Connection = psycopg.Connection[tuple[Any, ...]]

SHAPE = {"steps": [{"slug": "only", "stepType": "single", "dependencies": [], "options": {"maxAttempts": 1}}]}

# JSON by its grammar, but no numeric of PostgreSQL: only the server can tell.
REFUSED_BY_SERVER = "1" + "0" * 140_000


class Sending:
    """A finisher, its log, and what it has settled."""

    def __init__(self, conninfo: str) -> None:
        self.log = io.StringIO()
        self.settled: SimpleQueue[TaskResult] = SimpleQueue()
        self.failures: list[BaseException] = []
        events = EventLog(self.log)
        self.session = Session(conninfo, "finish", events)
        self.finisher = Finisher(self.session, events, self.settled.put, self.failures.append)

    def send(self, results: list[TaskResult]) -> None:
        """Send all in as few batches as may be, and wait for the answers."""
        for result in results:
            self.finisher.send(result)
        self.finisher.start()
        for _ in results:
            self.settled.get(timeout=60)


@pytest.fixture
def sending(database: str) -> Iterator[Sending]:
    sending = Sending(database)
    yield sending
    sending.finisher.close()
    sending.session.close()
    assert sending.failures == []


def claim(conn: Connection, slug: str, count: int) -> list[ClaimedTask]:
    """Start `count` runs of a flow with one step and claim their tasks."""
    conn.execute("select pgflow.ensure_flow_compiled(%s, %s::jsonb, queue_mode => 'step')", (slug, json.dumps(SHAPE)))
    worker_id = uuid4()
    conn.execute("select pgflow.register_worker(%s, %s, %s, 'only')", (worker_id, f"{slug}/only", slug))
    conn.execute("select pgflow.start_flows(%s, array_fill('{}'::jsonb, array[%s]))", (slug, count))
    rows = conn.execute(
        "select run_id, attempt from pgflow.poll_tasks(%s, %s, 0) where outcome = 'claimed'", (worker_id, count)
    ).fetchall()
    assert len(rows) == count
    return [ClaimedTask(run_id, slug, "only", 0, attempt, "{}", None) for run_id, attempt in rows]


def statuses(conn: Connection, slug: str) -> dict[UUID, tuple[str, Any]]:
    rows = conn.execute("select run_id, status, output from pgflow.runs where flow_slug = %s", (slug,)).fetchall()
    return {run_id: (status, output) for run_id, status, output in rows}


def test_results_that_wait_are_sent_together(conn: Connection, sending: Sending) -> None:
    tasks = claim(conn, "together", MAX_BATCH)
    sending.send([TaskResult(task, '"done"') for task in tasks])
    assert set(statuses(conn, "together")) == {task.run_id for task in tasks}
    assert set(map(str, statuses(conn, "together").values())) == {"('completed', {'only': 'done'})"}
    finished_at = conn.execute(
        "select count(distinct xmin::text) from pgflow.runs where flow_slug = 'together'"
    ).fetchone()
    assert finished_at == (1,)


def test_one_result_that_the_server_refuses_fails_alone(conn: Connection, sending: Sending) -> None:
    tasks = claim(conn, "poisoned", 5)
    outputs = ["1", "2", REFUSED_BY_SERVER, "4", "5"]
    sending.send([TaskResult(task, output) for task, output in zip(tasks, outputs, strict=True)])
    found = statuses(conn, "poisoned")
    assert [found[task.run_id][0] for task in tasks] == ["completed", "completed", "failed", "completed", "completed"]
    message = conn.execute(
        "select error_message from pgflow.step_tasks where run_id = %s", (tasks[2].run_id,)
    ).fetchone()
    assert message is not None
    assert "The database can't store the handler's output" in message[0]
    assert "event=batch_refused" in sending.log.getvalue()


def test_endings_of_both_kinds_go_out_in_one_batch(conn: Connection, sending: Sending) -> None:
    good, bad = claim(conn, "mixed", 2)
    sending.send([TaskResult(bad, None, error="ValueError: no"), TaskResult(good, "true")])
    assert statuses(conn, "mixed") == {good.run_id: ("completed", {"only": True}), bad.run_id: ("failed", None)}


def test_a_result_that_was_already_sent_changes_nothing(conn: Connection, sending: Sending) -> None:
    [task] = claim(conn, "again", 1)
    sending.send([TaskResult(task, "1"), TaskResult(task, "2"), TaskResult(task, None, error="late")])
    assert statuses(conn, "again") == {task.run_id: ("completed", {"only": 1})}


def test_a_result_of_an_older_attempt_is_superseded(conn: Connection, sending: Sending) -> None:
    [task] = claim(conn, "fenced", 1)
    conn.execute("update pgflow.step_tasks set attempts_count = 2 where run_id = %s", (task.run_id,))
    sending.send([TaskResult(task, "1")])
    assert "status=superseded" in sending.log.getvalue()
    assert statuses(conn, "fenced") == {task.run_id: ("started", None)}


def test_results_survive_a_cut_connection(conn: Connection, sending: Sending) -> None:
    [task] = claim(conn, "cutOff", 1)
    [(pid,)] = sending.session.fetch("select pg_backend_pid()", {})
    conn.execute("select pg_terminate_backend(%s)", (pid,))
    sending.send([TaskResult(task, "1")])
    assert statuses(conn, "cutOff") == {task.run_id: ("completed", {"only": 1})}
    assert "event=reconnected" in sending.log.getvalue()
