"""Two versions of a flow live beside each other, each on its own queues, until the old one has drained."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest


class Version:
    """One concrete flow with a worker for each of its routes."""

    def __init__(self, conn: Any, slug: str, mode: str, *steps: str) -> None:
        self.conn = conn
        self.slug = slug
        chain = [
            {"slug": step, "dependencies": list(steps[at - 1 : at]) if at else []} for at, step in enumerate(steps)
        ]
        conn.execute("set client_min_messages to warning")
        query = "select pgflow.ensure_flow_compiled(%s, %s, queue_mode => %s)"
        report = conn.execute(query, (slug, json.dumps({"steps": chain}), mode)).fetchone()[0]
        self.queues = list(dict.fromkeys(route["queue_name"] for route in report["routes"]))
        self.steps = len(steps)
        self.workers = []
        for step in steps if mode == "step" else [None]:
            self.workers.append(uuid.uuid4())
            conn.execute(
                "select pgflow.register_worker(%s, %s, %s, %s)", (self.workers[-1], f"{slug}_{step}", slug, step)
            )

    def start(self, runs: int) -> None:
        self.conn.execute("select pgflow.start_flow(%s, '{}') from generate_series(1, %s)", (self.slug, runs))

    def work(self, connection: Any) -> set[str]:
        """Let every worker poll once and finish what it got; return the flows of the tasks."""
        flows = set()
        for worker in self.workers:
            rows = connection.execute(
                """
                select task.flow_slug, done.status
                from pgflow.poll_tasks(%s, 10, 0) as task
                cross join lateral pgflow.complete_task(task.run_id, task.step_slug, task.task_index, '1') as done
                where task.outcome = 'claimed'
                """,
                (worker,),
            )
            flows |= {flow for flow, _ in rows}
        return flows

    def open_runs(self) -> int:
        query = "select count(*) from pgflow.runs where flow_slug = %s and status = 'started'"
        return self.conn.execute(query, (self.slug,)).fetchone()[0]


@pytest.mark.parametrize("new_mode", ["step", "flow"])
@pytest.mark.parametrize("old_mode", ["step", "flow"])
def test_an_old_version_drains_while_the_new_one_starts(sessions: Any, conn: Any, old_mode: str, new_mode: str) -> None:
    name = f"threads_{old_mode}_{new_mode}"
    old = Version(conn, f"{name}_V1", old_mode, "classify", "deliver")
    old.start(20)
    # The same steps in another order, and one more.
    new = Version(conn, f"{name}_V2", new_mode, "deliver", "classify", "report")
    assert set(old.queues) & set(new.queues) == set()

    def drain(version: Version, connection: Any) -> set[str]:
        seen: set[str] = set()
        while version.open_runs():
            seen |= version.work(connection)
        return seen

    new.start(20)
    seen = sessions.together([lambda: drain(old, sessions.connect()), lambda: drain(new, sessions.connect())])
    assert seen == [{old.slug}, {new.slug}]

    # The old one goes; the new one does not notice.
    new.start(3)
    before = conn.execute("select to_jsonb(run) from pgflow.runs as run where flow_slug = %s order by 1", (new.slug,))
    picture = before.fetchall()
    conn.execute("select pgflow.delete_flow_and_data(%s)", (old.slug,))
    left = conn.execute("select queue_name from pgmq.meta where queue_name = any(%s)", (old.queues + new.queues,))
    assert {queue for (queue,) in left} == set(new.queues)
    after = conn.execute("select to_jsonb(run) from pgflow.runs as run where flow_slug = %s order by 1", (new.slug,))
    assert after.fetchall() == picture
    assert drain(new, conn) == {new.slug}
    assert conn.execute("select * from pgflow.check_integrity(%s)", (new.slug,)).fetchall() == []


def test_an_old_worker_never_gets_work_of_the_new_version(conn: Any) -> None:
    old = Version(conn, "alone_V1", "step", "a", "b")
    new = Version(conn, "alone_V2", "step", "a", "b")
    new.start(5)
    assert old.work(conn) == set()
    old.start(5)
    assert new.work(conn) == {new.slug}
    assert old.work(conn) == {old.slug}
