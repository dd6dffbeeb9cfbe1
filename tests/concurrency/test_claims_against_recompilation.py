"""A flow is compiled anew or deleted while workers poll, finish, extend and recover: no deadlock, no missing table."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb


def refused(call: Any) -> str | None:
    """Return the SQLSTATE with which a call is refused; any other error is raised."""
    try:
        call()
    except psycopg.Error as error:
        if not (error.sqlstate or "").startswith("PF"):
            raise
        return error.sqlstate
    return None


def delete(flow: Any, connection: Any) -> None:
    connection.execute("select pgflow.delete_flow_and_data(%s)", (flow.slug,))


def recompile(flow: Any, connection: Any) -> None:
    assert flow.recompile(connection) == "recompiled"


@pytest.mark.parametrize("end", [delete, recompile])
@pytest.mark.parametrize("mode", ["step", "flow"])
def test_polls_of_a_flow_that_goes_away_are_told_to_stop(
    sessions: Any, make_flow: Any, work: Any, end: Any, mode: str
) -> None:
    connections = sessions.connections(8)
    for round_number in range(3):
        flow = make_flow({"slug": "a", "stepType": "map"}, {"slug": "b"}, mode=mode, baseDelay=0, maxAttempts=3)
        for _ in range(10):
            flow.run(list(range(10)))
        steps = ["a", "b"] if mode == "step" else [None, None]

        def labour(connection: Any, worker: Any, seconds: int, flow: Any = flow) -> str | None:
            while True:
                try:
                    outcomes = work.poll(connection, worker, 3, seconds, 5)
                except psycopg.Error as error:
                    return error.sqlstate
                claimed = [row for row in outcomes if row[1] == "claimed"]
                # A claim that the recompilation came after has nothing to finish.
                statuses = work.complete(connection, *[(row[5], row[2], row[3], row[4], 1) for row in claimed])
                assert set(statuses) <= {"completed", "unknown", "ended", "superseded"}

        def sweep(connection: Any, flow: Any = flow) -> None:
            for _ in range(10):
                connection.execute(
                    """
                    update pgflow.step_tasks
                    set queued_at = queued_at - interval '1 day', started_at = started_at - interval '1 day'
                    where (run_id, step_slug, task_index) in (
                      select run_id, step_slug, task_index
                      from pgflow.step_tasks
                      where flow_slug = %s and status = 'started'
                      for no key update skip locked
                    )
                    """,
                    (flow.slug,),
                )
                work.requeue(connection)

        workers = [flow.worker(step) for step in steps * 3]
        labours = [
            lambda connection=connection, worker=worker, seconds=number % 2: labour(connection, worker, seconds)
            for number, (connection, worker) in enumerate(zip(connections[:6], workers, strict=True))
        ]
        answers = sessions.together(
            [*labours, lambda: sweep(connections[6]), lambda flow=flow: end(flow, connections[7])]
        )

        assert answers[:6] == ["PF013"] * 6, f"round {round_number}"


@pytest.mark.parametrize("end", [delete, recompile])
def test_a_poll_that_meets_the_change_half_way_waits_and_is_told_to_stop(
    sessions: Any, make_flow: Any, work: Any, end: Any
) -> None:
    flow = make_flow({"slug": "a"})
    worker = flow.worker("a")
    flow.run()
    changing, polling = sessions.connect(autocommit=False), sessions.connect()

    end(flow, changing)
    polled = sessions.start(lambda: refused(lambda: work.poll(polling, worker)))
    sessions.wait_until_blocked(polling, changing)
    changing.commit()
    # The queue that it looks at may be the new one, where there is nothing yet.
    assert polled.result() in (None, "PF013")
    flow.conn.execute("select pgflow.ensure_flow_compiled(%s, %s, true, 'step')", (flow.slug, Jsonb(flow.shape)))
    flow.run()
    assert refused(lambda: work.poll(polling, worker)) == "PF013"


@pytest.mark.parametrize("end", [delete, recompile])
def test_a_poll_goes_on_when_the_change_is_given_up(sessions: Any, make_flow: Any, work: Any, end: Any) -> None:
    flow = make_flow({"slug": "a"})
    worker = flow.worker("a")
    flow.run()
    changing, polling = sessions.connect(autocommit=False), sessions.connect()

    end(flow, changing)
    polled = sessions.start(lambda: work.poll(polling, worker))
    sessions.wait_until_blocked(polling, changing)
    changing.rollback()
    assert [row[1] for row in polled.result()] == ["claimed"]


@pytest.mark.parametrize("end", [delete, recompile])
def test_the_change_waits_for_a_poll_in_progress_and_lets_it_give_way(
    sessions: Any, make_flow: Any, work: Any, end: Any
) -> None:
    flow = make_flow({"slug": "a"})
    worker = flow.worker("a")
    polling, changing = sessions.connect(), sessions.connect()

    polled = sessions.start(lambda: refused(lambda: work.poll(polling, worker, 1, 2)))
    sessions.wait_until_asleep(polling)
    changed = sessions.start(lambda: end(flow, changing))
    sessions.wait_until_blocked(changing, polling)
    # Empty, or already too late; never an error of another kind.
    assert polled.result() in (None, "PF013")
    changed.result()
    assert refused(lambda: work.poll(polling, worker)) == "PF013"


@pytest.mark.parametrize("end", [delete, recompile])
def test_the_change_waits_for_a_claim_in_progress(sessions: Any, make_flow: Any, work: Any, end: Any) -> None:
    flow = make_flow({"slug": "a"})
    worker = flow.worker("a")
    run = flow.run()
    claiming, changing = sessions.connect(autocommit=False), sessions.connect()

    assert [row[1] for row in work.poll(claiming, worker)] == ["claimed"]
    changed = sessions.start(lambda: end(flow, changing))
    sessions.wait_until_blocked(changing, claiming)
    assert work.complete(claiming, (run, "a", 0, 1, 1)) == ["completed"]
    claiming.commit()
    changed.result()
    assert work.complete(claiming, (run, "a", 0, 1, 1)) == ["unknown"]


def test_a_poll_gives_way_to_whoever_holds_the_flow(sessions: Any, make_flow: Any, work: Any) -> None:
    # What a recompilation, a deletion or a repair does first.
    flow = make_flow({"slug": "a"})
    worker = flow.worker("a")
    run = flow.run()
    holding, working = sessions.connect(autocommit=False), sessions.connect()
    working.execute("set lock_timeout to '10s'")
    holding.execute("select pgflow.take_flow(%s)", (flow.slug,))

    assert work.poll(working, worker, 1, 0) == []
    assert work.claim(working, flow, "a", [flow.message(run, "a")], worker) == [(1, "deferred", None)]
    assert flow.status(run, "a") == "queued 0"
    holding.rollback()
    assert [row[1] for row in work.poll(working, worker)] == ["claimed"]


WORK_IN_PROGRESS = {
    "requeue": lambda work, conn, flow, run, worker: work.requeue(conn),
    "extend": lambda work, conn, flow, run, worker: conn.execute(
        "select pgflow.extend_task(%s, 'a', 0, %s, 1, 60)", (run, worker)
    ),
    "complete": lambda work, conn, flow, run, worker: work.complete(conn, (run, "a", 0, 1, 1)),
    "fail": lambda work, conn, flow, run, worker: work.fail(conn, (run, "a", 0, 1)),
    "claim": lambda work, conn, flow, run, worker: work.claim(conn, flow, "a", [1, 2], worker),
    "poll": lambda work, conn, flow, run, worker: work.poll(conn, worker),
    "heartbeat": lambda work, conn, flow, run, worker: conn.execute("select pgflow.heartbeat(%s)", (worker,)),
}


@pytest.mark.parametrize("action", WORK_IN_PROGRESS)
@pytest.mark.parametrize("end", [delete, recompile])
def test_no_deadlock_with_a_change_that_holds_the_queues_already(
    sessions: Any, make_flow: Any, work: Any, action: str, end: Any
) -> None:
    flow = make_flow({"slug": "a", "stepType": "map"})
    worker, other = flow.worker("a"), flow.worker("a")
    run = flow.run([1, 2])
    work.claim(flow.conn, flow, "a", [1], worker)
    flow.age(run)
    holding, changing, working = sessions.connect(autocommit=False), sessions.connect(), sessions.connect()

    # The change has the flow and its queues, and is held up at a worker's row before it gets to the tasks.
    holding.execute("select from pgflow.workers where worker_id = %s for update", (other,))
    changed = sessions.start(lambda: end(flow, changing))
    sessions.wait_until_blocked(changing, holding)
    acted = sessions.start(lambda: refused(lambda: WORK_IN_PROGRESS[action](work, working, flow, run, worker)))
    sessions.wait_until_blocked_or_done(working)
    holding.rollback()

    changed.result()
    assert acted.result() in (None, "PF013")


def test_registering_waits_for_the_change(sessions: Any, make_flow: Any, work: Any) -> None:
    flow = make_flow({"slug": "a"})
    changing, registering = sessions.connect(autocommit=False), sessions.connect()
    recompile(flow, changing)
    flow.conn = registering

    registered = sessions.start(lambda: flow.worker("a"))
    sessions.wait_until_blocked(registering, changing)
    changing.commit()
    worker = registered.result()
    run = flow.run()
    assert [row[1] for row in work.poll(registering, worker)] == ["claimed"]
    assert flow.status(run, "a") == "started 1"


@pytest.mark.parametrize("end", [delete, recompile])
def test_the_change_is_not_kept_waiting_by_a_stream_of_work(sessions: Any, make_flow: Any, work: Any, end: Any) -> None:
    """Claims and results overlap without a gap; were they to pass the one who waits, all work would be done first."""
    flow = make_flow({"slug": "a", "stepType": "map"})
    tasks = 4000
    flow.run(list(range(tasks)))
    workers = [flow.worker("a") for _ in range(8)]
    completed = [0] * len(workers)

    def labour(connection: Any, number: int) -> None:
        try:
            while rows := work.poll(connection, workers[number], 2):
                results = [(row[5], "a", row[3], row[4], 1) for row in rows if row[1] == "claimed"]
                completed[number] += work.complete(connection, *results).count("completed")
        except psycopg.Error as error:
            assert error.sqlstate == "PF013", error

    streams = [
        sessions.start(lambda connection=connection, number=number: labour(connection, number))
        for number, connection in enumerate(sessions.connections(len(workers)))
    ]
    sessions.wait_until(
        "select count(*) > 100 from pgflow.step_tasks where flow_slug = %s and status = 'completed'", flow.slug
    )
    end(flow, sessions.connect())
    for stream in streams:
        stream.result()
    assert 100 < sum(completed) < tasks
