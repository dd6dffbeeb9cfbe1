"""A session is lost at any moment of its work: nothing is lost with it, and what it had taken is not counted twice."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest


def kill(sessions: Any, connection: Any) -> None:
    """End a session as a crash of its client does, and wait until the server has cleaned up after it."""
    pid = connection.info.backend_pid
    sessions.observer.execute("select pg_terminate_backend(%s)", (pid,))
    sessions.wait_until("select not exists (select from pg_stat_activity where pid = %s)", pid)
    connection.close()


@pytest.mark.parametrize("max_attempts", [1, 3])
def test_a_session_that_is_lost_before_it_commits_has_used_no_attempt(
    sessions: Any, make_flow: Any, work: Any, max_attempts: int
) -> None:
    flow = make_flow({"slug": "a", "stepType": "map"}, maxAttempts=max_attempts)
    worker = flow.worker("a")
    run = flow.run([1, 2])
    lost, other = sessions.connect(autocommit=False), sessions.connect()

    assert [row[1] for row in work.poll(lost, worker, 1)] == ["claimed"]
    kill(sessions, lost)
    assert [flow.status(run, "a", index) for index in range(2)] == ["queued 0", "queued 0"]
    assert work.requeue(other) == 0
    # Nothing has to pass before the next one gets it.
    assert [row[1:5] for row in work.poll(other, worker)] == [("claimed", "a", 0, 1), ("claimed", "a", 1, 1)]
    assert flow.faults() == []


def test_a_session_that_is_lost_while_it_waits_for_work_takes_none(sessions: Any, make_flow: Any, work: Any) -> None:
    flow = make_flow({"slug": "a"})
    worker = flow.worker("a")
    lost, other = sessions.connect(), sessions.connect()

    polled = sessions.start(lambda: work.poll(lost, worker, 1, 60))
    sessions.wait_until_asleep(lost)
    kill(sessions, lost)
    with pytest.raises(psycopg.OperationalError):
        polled.result()
    run = flow.run()
    assert flow.status(run, "a") == "queued 0"
    assert [row[1:5] for row in work.poll(other, worker)] == [("claimed", "a", 0, 1)]


def test_a_reader_of_messages_that_is_lost_has_used_no_attempt(sessions: Any, make_flow: Any, work: Any) -> None:
    # As workers of pgflow 0.14 do it: read, commit, and then claim.
    flow = make_flow({"slug": "a"}, mode="flow")
    worker = flow.worker(None)
    run = flow.run()
    lost, other = sessions.connect(), sessions.connect()

    assert len(lost.execute("select from pgmq.read(%s, 1800, 10)", (flow.slug,)).fetchall()) == 1
    kill(sessions, lost)
    assert work.requeue(other) == 0
    assert flow.status(run, "a") == "queued 0"
    # Until the time of the read is over, nobody sees the message.
    assert work.poll(other, worker) == []
    flow.conn.execute(f"update pgmq.q_{flow.slug} set vt = vt - interval '1800 s'")
    assert [row[1:5] for row in work.poll(other, worker)] == [("claimed", "a", 0, 1)]


@pytest.mark.parametrize("exhausted", ["fail", "skip", "skip-cascade"])
def test_the_last_attempt_is_lost_and_the_task_ends_and_nothing_else_is_held_up(
    sessions: Any, make_flow: Any, work: Any, exhausted: str
) -> None:
    flow = make_flow(
        {"slug": "a", "whenExhausted": exhausted}, {"slug": "b"}, {"slug": "c", "dependencies": ["a"]}, maxAttempts=1
    )
    worker, beside = flow.worker("a"), flow.worker("b")
    run, other_run = flow.run(), flow.run()
    lost, other = sessions.connect(), sessions.connect()

    assert [row[5] for row in work.poll(lost, worker, 1)] == [run]
    kill(sessions, lost)
    # The lease is not over yet: the task is its own, all beside it goes on.
    assert work.requeue(other) == 0
    assert flow.status(run, "a") == "started 1"
    assert [row[5] for row in work.poll(other, worker)] == [other_run]
    assert work.complete(other, (other_run, "a", 0, 1, 1)) == ["completed"]
    assert {row[5] for row in work.poll(other, beside)} == {run, other_run}

    # The worker beside is alive.
    flow.conn.execute("update pgflow.step_tasks set lease_extended_until = 'infinity' where step_slug = 'b'")
    flow.age(run)
    work.requeue(other)
    assert flow.status(run, "a") == "failed 1"
    ends = {"fail": ("failed", "failed"), "skip": ("skipped", "started"), "skip-cascade": ("skipped", "started")}
    assert (flow.steps(run)["a"], flow.run_status(run)) == ends[exhausted]
    assert flow.steps(run)["c"] == {"fail": "created", "skip": "started", "skip-cascade": "skipped"}[exhausted]
    assert work.complete(other, (other_run, "b", 0, 1, 1)) == ["completed"]
    assert flow.faults() == []


@pytest.mark.parametrize("ending", ["complete", "fail"])
def test_a_result_that_is_lost_before_it_commits_can_be_given_again(
    sessions: Any, make_flow: Any, work: Any, ending: str
) -> None:
    flow = make_flow({"slug": "a"}, {"slug": "b", "dependencies": ["a"]}, maxAttempts=2, baseDelay=0)
    run = flow.run()
    work.poll(flow.conn, flow.worker("a"))
    lost, other = sessions.connect(autocommit=False), sessions.connect()

    def finish(conn: Any) -> Any:
        return work.complete(conn, (run, "a", 0, 1, 1)) if ending == "complete" else work.fail(conn, (run, "a", 0, 1))

    answer = finish(lost)
    kill(sessions, lost)
    assert flow.status(run, "a") == "started 1"
    assert finish(other) == answer
    # A client that doesn't know whether its result arrived asks once more.
    assert finish(other) == [{"complete": "ended", "fail": "superseded"}[ending]]
    assert flow.count("b") == {"complete": 1, "fail": 0}[ending]
    assert flow.faults() == []
