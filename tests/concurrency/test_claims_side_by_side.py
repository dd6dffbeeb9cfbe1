"""Several workers on one queue; isolation of steps; polls that wait; transactions of stricter levels."""

from __future__ import annotations

from collections import Counter
from typing import Any

import psycopg
import pytest


def test_eight_sessions_claim_every_task_of_a_queue_exactly_once(sessions: Any, make_flow: Any, work: Any) -> None:
    flow = make_flow({"slug": "a", "stepType": "map"})
    run = flow.run(list(range(1500)))
    workers = [flow.worker("a") for _ in range(8)]

    def drain(connection: Any, worker: Any, tasks: int) -> list[tuple[int, int]]:
        claimed = []
        idle = 0
        # An empty answer can mean that others hold what is left and will claim it, so one is not enough.
        while idle < 3:
            outcomes = work.poll(connection, worker, tasks)
            assert {outcome for _, outcome, *_ in outcomes} <= {"claimed"}
            idle = 0 if outcomes else idle + 1
            claimed += [(index, attempt) for _, _, _, index, attempt, _ in outcomes]
        return claimed

    shares = sessions.together(
        [
            lambda connection=connection, worker=worker, tasks=tasks: drain(connection, worker, tasks)
            for connection, worker, tasks in zip(
                sessions.connections(8), workers, [1, 2, 5, 10, 10, 20, 50, 100], strict=True
            )
        ]
    )

    times = Counter(index for share in shares for index, _ in share)
    assert [index for index, count in times.items() if count > 1] == []
    assert sorted(times) == list(range(1500))
    assert flow.conn.execute(
        "select status, attempts_count, count(*) from pgflow.step_tasks where run_id = %s group by 1, 2", (run,)
    ).fetchall() == [("started", 1, 1500)]
    assert flow.faults() == []


def test_eight_clients_of_0_14_claim_every_task_exactly_once(sessions: Any, make_flow: Any) -> None:
    flow = make_flow({"slug": "a", "stepType": "map"}, mode="flow")
    run = flow.run(list(range(600)))
    workers = [flow.worker(None) for _ in range(8)]

    def drain(connection: Any, worker: Any) -> list[int]:
        claimed: list[int] = []
        while True:
            ids = [row[0] for row in connection.execute("select msg_id from pgmq.read(%s, 60, 25)", (flow.slug,))]
            if not ids:
                return claimed
            rows = connection.execute("select task_index from pgflow.start_tasks(%s, %s, %s)", (flow.slug, ids, worker))
            claimed += [index for (index,) in rows]

    shares = sessions.together(
        [
            lambda connection=connection, worker=worker: drain(connection, worker)
            for connection, worker in zip(sessions.connections(8), workers, strict=True)
        ]
    )

    assert sorted(index for share in shares for index in share) == list(range(600))
    assert flow.conn.execute(
        "select distinct status, attempts_count from pgflow.step_tasks where run_id = %s", (run,)
    ).fetchall() == [("started", 1)]


def test_a_session_passes_tasks_that_another_one_is_claiming(sessions: Any, make_flow: Any, work: Any) -> None:
    flow = make_flow({"slug": "a", "stepType": "map"})
    flow.run(list(range(30)))
    first, second = sessions.connect(autocommit=False), sessions.connect()

    assert [row[3] for row in work.poll(first, flow.worker("a"), 10)] == list(range(10))
    # The first one has not committed; nothing here waits for it.
    assert [row[3] for row in work.poll(second, flow.worker("a"), 10)] == list(range(10, 20))
    first.rollback()
    assert [row[3] for row in work.poll(second, flow.worker("a"), 20)] == [*range(10), *range(20, 30)]


def test_the_same_ids_claimed_by_eight_sessions_are_claimed_by_one(sessions: Any, make_flow: Any, work: Any) -> None:
    flow = make_flow({"slug": "a", "stepType": "map"})
    run = flow.run(list(range(40)))
    ids = [flow.message(run, "a", index) for index in range(40)]
    workers = [flow.worker("a") for _ in range(8)]

    shares = sessions.together(
        [
            lambda connection=connection, worker=worker: work.claim(connection, flow, "a", ids, worker)
            for connection, worker in zip(sessions.connections(8), workers, strict=True)
        ]
    )

    assert all([row[0] for row in share] == ids for share in shares)
    claimed = Counter(row[0] for share in shares for row in share if row[1] == "claimed")
    assert {row[1] for share in shares for row in share} == {"claimed", "deferred"}
    assert claimed == Counter(ids)
    assert {flow.status(run, "a", index) for index in range(40)} == {"started 1"}


def test_a_step_does_not_wait_behind_the_backlog_of_another(make_flow: Any, conn: Any, work: Any) -> None:
    steps = ({"slug": "a", "stepType": "map"}, {"slug": "b"})
    backlog = list(range(5000))

    private = make_flow(*steps)
    run = private.run(backlog)
    [(_, outcome, step, _, attempt, _)] = work.poll(conn, private.worker("b"))
    assert (outcome, step, attempt) == ("claimed", "b", 1)
    assert work.complete(conn, (run, "b", 0, 1, "done")) == ["completed"]
    assert private.steps(run) == {"a": "started", "b": "completed"}

    # The same flow with one queue for all: the task of b comes after all of a.
    shared = make_flow(*steps, mode="flow")
    shared.run(backlog)
    worker = shared.worker(None)
    assert {step for _, _, step, *_ in work.poll(conn, worker, 4900)} == {"a"}
    assert [step for _, _, step, *_ in work.poll(conn, worker, 200)].index("b") == 100


def test_a_flow_does_not_wait_behind_the_backlog_of_another(make_flow: Any, conn: Any, work: Any) -> None:
    # Also in flow mode, where a flow has one queue and one pool of workers for all of its steps.
    flows = [make_flow({"slug": "fan", "stepType": "map"}, {"slug": "end"}, mode="flow") for _ in range(3)]
    workers = [flow.worker(None) for flow in flows]
    for flow in flows[1:]:
        flow.run(list(range(2000)))
    run = flows[0].run([1])

    outcomes = work.poll(conn, workers[0])
    assert [row[1:5] for row in outcomes] == [("claimed", "fan", 0, 1), ("claimed", "end", 0, 1)]
    assert work.complete(conn, *[(row[5], row[2], row[3], row[4], 1) for row in outcomes]) == ["completed"] * 2
    assert flows[0].run_status(run) == "completed"
    # Within a flow, what a fan-out sent first comes first; so does a run that was started before another one.
    later = flows[1].run([])
    assert {row[2] for row in work.poll(conn, workers[1], 2000)} == {"fan"}
    assert [row[5] == later for row in work.poll(conn, workers[1], 10)] == [False, True]


def test_a_poll_that_waits_sees_work_that_comes_later(sessions: Any, make_flow: Any, work: Any) -> None:
    flow = make_flow({"slug": "a"})
    worker = flow.worker("a")
    waiting, starting = sessions.connect(), sessions.connect(autocommit=False)

    polled = sessions.start(lambda: work.poll(waiting, worker, 10, 60))
    sessions.wait_until_asleep(waiting)
    starting.execute("select pgflow.start_flow(%s, '{}')", (flow.slug,))
    sessions.wait_until_asleep(waiting)
    assert not polled.done()
    starting.commit()

    assert [row[1:5] for row in polled.result()] == [("claimed", "a", 0, 1)]


def test_a_poll_that_waits_is_refused_when_its_function_is_disabled(sessions: Any, make_flow: Any, work: Any) -> None:
    flow = make_flow({"slug": "a"})
    worker = flow.worker("a", "paused")
    waiting = sessions.connect()

    polled = sessions.start(lambda: work.poll(waiting, worker, 10, 60))
    sessions.wait_until_asleep(waiting)
    flow.conn.execute("select pgflow.disable_worker_function('paused', 'for the test')")
    run = flow.run()

    with pytest.raises(psycopg.Error) as refusal:
        polled.result()
    assert refusal.value.sqlstate == "PF012"
    assert flow.status(run, "a") == "queued 0"


def test_a_poll_that_waits_is_refused_when_its_worker_is_stopped(sessions: Any, make_flow: Any, work: Any) -> None:
    flow = make_flow({"slug": "a"})
    worker = flow.worker("a")
    waiting = sessions.connect()

    polled = sessions.start(lambda: work.poll(waiting, worker, 10, 60))
    sessions.wait_until_asleep(waiting)
    flow.conn.execute("select pgflow.mark_worker_stopped(%s)", (worker,))
    run = flow.run()

    with pytest.raises(psycopg.Error) as refusal:
        polled.result()
    assert refusal.value.sqlstate == "PF013"
    assert flow.status(run, "a") == "queued 0"


def test_heartbeats_pass_while_a_poll_waits(sessions: Any, make_flow: Any, work: Any) -> None:
    flow = make_flow({"slug": "a"})
    worker = flow.worker("a")
    waiting = sessions.connect()

    polled = sessions.start(lambda: work.poll(waiting, worker, 10, 60))
    sessions.wait_until_asleep(waiting)
    flow.conn.execute("set lock_timeout to '5s'")
    assert flow.conn.execute("select should_stop from pgflow.heartbeat(%s)", (worker,)).fetchone() == (False,)
    flow.run()
    assert len(polled.result()) == 1


@pytest.mark.parametrize("level", [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE])
def test_stricter_levels_look_once(sessions: Any, make_flow: Any, work: Any, level: Any) -> None:
    flow = make_flow({"slug": "a"})
    worker = flow.worker("a")
    connection = sessions.connect(autocommit=False)
    connection.isolation_level = level

    # A poll that waited its minute would be cancelled.
    connection.execute("set local statement_timeout to '30s'")
    assert work.poll(connection, worker, 10, 60) == []
    flow.run()
    assert work.poll(connection, worker, 10, 60) == []
    connection.rollback()

    connection.execute("set local statement_timeout to '30s'")
    assert [row[1] for row in work.poll(connection, worker, 10, 60)] == ["claimed"]
    connection.commit()


def test_a_transaction_older_than_a_task_can_claim_and_finish_it(sessions: Any, make_flow: Any, work: Any) -> None:
    flow = make_flow({"slug": "a"})
    worker = flow.worker("a")
    old = sessions.connect(autocommit=False)
    old.execute("select now()")

    run = flow.run()
    assert [row[1] for row in work.poll(old, worker)] == ["claimed"]
    assert work.complete(old, (run, "a", 0, 1, 1)) == ["completed"]
    old.commit()
    assert flow.run_status(run) == "completed"
    assert flow.faults() == []


def test_a_worker_gets_work_behind_the_open_transactions_of_many_others(
    sessions: Any, make_flow: Any, work: Any
) -> None:
    # Clients that keep the transaction of their claim open while they work.
    flow = make_flow({"slug": "a", "stepType": "map"})
    flow.run(list(range(20)))

    for index in range(20):
        connection = sessions.connect(autocommit=False)
        assert [row[3] for row in work.poll(connection, flow.worker("a"), 1)] == [index]
