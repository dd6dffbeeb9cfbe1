"""A flow is deleted while others use it: all of it goes, or none of it; nobody deadlocks and nothing is left over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

# Everything that belongs to a flow, by the slug it was made under.
REMAINS = """
    select
      (select count(*) from pgflow.flows where flow_slug = %(slug)s),
      (select count(*) from pgflow.steps where flow_slug = %(slug)s),
      (select count(*) from pgflow.deps where flow_slug = %(slug)s),
      (select count(*) from pgflow.queues where flow_slug = %(slug)s),
      (select count(*) from pgflow.runs where flow_slug = %(slug)s),
      (select count(*) from pgflow.step_states where flow_slug = %(slug)s),
      (select count(*) from pgflow.step_tasks where flow_slug = %(slug)s),
      (select count(*) from pgflow.workers where flow_slug = %(slug)s and stop_reason is null),
      (select count(*) from pgmq.meta where queue_name ~ format('^%%s(__|$)', %(slug)s)),
      (
        select count(*)
        from pg_class
        where relnamespace = 'pgmq'::regnamespace
          and relname ~ format('^[qa]_%%s(__|$)', %(slug)s)
      )
"""


def remains(flow: Any) -> Any:
    return flow.conn.execute(REMAINS, {"slug": flow.slug}).fetchone()


def delete(flow: Any, conn: Any) -> None:
    conn.execute("select pgflow.delete_flow_and_data(%s)", (flow.slug,))


class Scene:
    """A flow with runs queued, in progress, stalled and ended, and everything that is done to flows from outside."""

    def __init__(self, make_flow: Any, work: Any, mode: str = "step") -> None:
        self.work = work
        self.flow = make_flow({"slug": "a", "stepType": "map"}, {"slug": "b", "dependencies": ["a"]}, mode=mode)
        self.worker = self.flow.worker("a" if mode == "step" else None)
        # Without elements of a the runs have only b to do.
        ended = [self.flow.run([]) for _ in range(3)]
        polled = work.poll(self.flow.conn, self.flow.worker("b") if mode == "step" else self.worker)
        assert work.complete(self.flow.conn, *[(row[5], "b", 0, row[4], 1) for row in polled]) == ["completed"] * 3
        assert {self.flow.run_status(run) for run in ended} == {"completed"}
        self.run = self.flow.run([1, 2, 3, 4])
        self.claimed = [row for row in work.poll(self.flow.conn, self.worker, 3) if row[1] == "claimed"]
        self.stalled = self.flow.run([1, 2])
        work.poll(self.flow.conn, self.worker, 3)
        self.flow.age(self.stalled)

    def complete(self, conn: Any) -> None:
        self.work.complete(conn, *[(row[5], row[2], row[3], row[4], 1) for row in self.claimed[:2]])

    def fail(self, conn: Any) -> None:
        self.work.fail(conn, *[(row[5], row[2], row[3], row[4]) for row in self.claimed[2:]])

    def sweep(self, conn: Any) -> None:
        self.work.requeue(conn)

    def prune(self, conn: Any) -> None:
        conn.execute("select * from pgflow.prune_data_older_than('0')")

    def start(self, conn: Any) -> None:
        conn.execute("select pgflow.start_flow(%s, '[1]')", (self.flow.slug,))

    def start_many(self, conn: Any) -> None:
        conn.execute(
            "select pgflow.start_flows(%s, array(select '[1, 2]'::jsonb from generate_series(1, 5)))", (self.flow.slug,)
        )

    def start_with_states(self, conn: Any) -> None:
        conn.execute("select pgflow.start_flow_with_states(%s, '[1]')", (self.flow.slug,))

    def start_tasks(self, conn: Any) -> None:
        conn.execute("select pgflow.start_tasks(%s, array[1, 2, 3, 4, 5], %s)", (self.flow.slug, self.worker))

    def register(self, conn: Any) -> None:
        step = "a" if self.flow.mode == "step" else None
        conn.execute("select pgflow.register_worker(gen_random_uuid(), 'late', %s, %s)", (self.flow.slug, step))

    def repair(self, conn: Any) -> None:
        conn.execute("select * from pgflow.repair_queues(%s)", (self.flow.slug,))

    def fence(self, conn: Any) -> None:
        conn.execute("select pgflow.fence_flow(%s, 'for the test')", (self.flow.slug,))

    def stop(self, conn: Any) -> None:
        conn.execute("select pgflow.mark_worker_stopped(%s)", (self.worker,))

    def look(self, conn: Any) -> None:
        conn.execute("select * from pgflow.stuck_work")
        conn.execute("select * from pgflow.queue_coverage")
        conn.execute("select * from pgflow.queue_sizes")

    def quarantine(self, conn: Any) -> None:
        conn.execute("select pgflow.quarantine_message(%s, 100000)", (self.flow.queue("a"),))

    def delete_again(self, conn: Any) -> None:
        delete(self.flow, conn)


ACTIONS: dict[str, Callable[[Scene, Any], None]] = {
    "complete": Scene.complete,
    "fail": Scene.fail,
    "sweep": Scene.sweep,
    "prune": Scene.prune,
    "start": Scene.start,
    "start many": Scene.start_many,
    "start with states": Scene.start_with_states,
    "register": Scene.register,
    "repair": Scene.repair,
    "fence": Scene.fence,
    "stop": Scene.stop,
    "look": Scene.look,
    "quarantine": Scene.quarantine,
    "delete again": Scene.delete_again,
}
# Refusals of who comes too late: the flow or the queue is not known any more, or the flow was fenced meanwhile.
TOO_LATE = {"PF012", "PF018", "PF019"}


def refused(call: Callable[[], None]) -> str | None:
    """Return the SQLSTATE with which a call that came too late is refused; any other error is raised."""
    try:
        call()
    except psycopg.Error as error:
        if error.sqlstate not in TOO_LATE:
            raise
        return error.sqlstate
    return None


@pytest.mark.parametrize("is_given_up", [False, True], ids=["deleted", "given up"])
@pytest.mark.parametrize("action", ACTIONS)
def test_whoever_comes_during_a_deletion_finds_all_of_the_flow_or_nothing(
    sessions: Any, make_flow: Any, work: Any, action: str, is_given_up: bool
) -> None:
    scene = Scene(make_flow, work)
    deleting, acting = sessions.connect(autocommit=False), sessions.connect()

    delete(scene.flow, deleting)
    acted = sessions.start(lambda: refused(lambda: ACTIONS[action](scene, acting)))
    sessions.wait_until_blocked_or_done(acting)
    if is_given_up:
        deleting.rollback()
        assert acted.result() is None
        assert sessions.observer.execute("select * from pgflow.check_integrity()").fetchall() == []
        delete(scene.flow, deleting)
    deleting.commit()
    acted.result()
    assert remains(scene.flow) == (0,) * 10


@pytest.mark.parametrize("is_given_up", [False, True], ids=["done", "given up"])
@pytest.mark.parametrize("action", [action for action in ACTIONS if action != "delete again"])
def test_a_deletion_that_comes_later_takes_what_was_done_with_it(
    sessions: Any, make_flow: Any, work: Any, action: str, is_given_up: bool
) -> None:
    scene = Scene(make_flow, work)
    acting, deleting = sessions.connect(autocommit=False), sessions.connect()

    ACTIONS[action](scene, acting)
    deleted = sessions.start(lambda: delete(scene.flow, deleting))
    sessions.wait_until_blocked_or_done(deleting)
    if is_given_up:
        acting.rollback()
    else:
        acting.commit()
    deleted.result()
    assert remains(scene.flow) == (0,) * 10


@pytest.mark.parametrize("mode", ["step", "flow"])
def test_all_at_once(sessions: Any, make_flow: Any, work: Any, mode: str) -> None:
    actions = dict(ACTIONS)
    if mode == "flow":
        actions["start tasks"] = Scene.start_tasks
    connections = sessions.connections(len(actions) + 1)
    for _ in range(6):
        scene = Scene(make_flow, work, mode)
        sessions.together(
            [
                *[
                    lambda connection=connection, action=action, scene=scene: refused(lambda: action(scene, connection))
                    for connection, action in zip(connections[1:], actions.values(), strict=True)
                ],
                lambda scene=scene: delete(scene.flow, connections[0]),
            ]
        )
        assert remains(scene.flow) == (0,) * 10
        assert sessions.observer.execute("select * from pgflow.check_integrity()").fetchall() == []
