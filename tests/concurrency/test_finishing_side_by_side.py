"""Results of several sessions at once: each task ends once, each step once, each dependent starts once."""

from __future__ import annotations

import random
from typing import Any

import pytest


def test_a_fan_in_is_released_once_when_its_last_two_steps_complete_at_once(
    sessions: Any, make_flow: Any, work: Any
) -> None:
    flow = make_flow({"slug": "a"}, {"slug": "b"}, {"slug": "c", "dependencies": ["a", "b"]})
    pair = sessions.connections(2)
    runs = [flow.run() for _ in range(25)]
    for step in "ab":
        work.poll(flow.conn, flow.worker(step), 100)

    for run in runs:
        statuses = sessions.together(
            [
                lambda connection=connection, step=step, run=run: work.complete(connection, (run, step, 0, 1, step))
                for connection, step in zip(pair, "ab", strict=True)
            ]
        )
        assert statuses == [["completed"], ["completed"]]

    assert flow.count("c") == len(runs)
    claimed = flow.conn.execute(
        "select distinct input from pgflow.poll_tasks(%s, 100, 0)", (flow.worker("c"),)
    ).fetchall()
    assert claimed == [({"a": "a", "b": "b"},)]
    assert flow.faults() == []


def test_the_second_completion_of_a_fan_in_waits_for_the_first(sessions: Any, make_flow: Any, work: Any) -> None:
    flow = make_flow({"slug": "a"}, {"slug": "b"}, {"slug": "c", "dependencies": ["a", "b"]})
    run = flow.run()
    for step in "ab":
        work.poll(flow.conn, flow.worker(step))
    first, second = sessions.connect(autocommit=False), sessions.connect()

    work.complete(first, (run, "a", 0, 1, 1))
    finished = sessions.start(lambda: work.complete(second, (run, "b", 0, 1, 2)))
    sessions.wait_until_blocked(second, first)
    assert flow.count("c") == 0
    first.commit()
    assert finished.result() == ["completed"]
    assert flow.steps(run) == {"a": "completed", "b": "completed", "c": "started"}
    assert flow.count("c") == 1


def test_the_last_two_tasks_of_a_map_complete_it_once(sessions: Any, make_flow: Any, work: Any) -> None:
    flow = make_flow({"slug": "m", "stepType": "map"}, {"slug": "c", "dependencies": ["m"]})
    pair = sessions.connections(2)
    runs = [flow.run([0, 1]) for _ in range(15)]
    work.poll(flow.conn, flow.worker("m"), 100)

    for run in runs:
        sessions.together(
            [
                lambda connection=connection, index=index, run=run: work.complete(
                    connection, (run, "m", index, 1, index)
                )
                for index, connection in enumerate(pair)
            ]
        )

    inputs = flow.conn.execute("select input from pgflow.poll_tasks(%s, 100, 0)", (flow.worker("c"),)).fetchall()
    assert inputs == [({"m": [0, 1]},)] * len(runs)
    assert flow.faults() == []


@pytest.mark.parametrize("second", ["complete", "fail"])
def test_two_sessions_that_finish_the_same_task_have_one_effect(
    sessions: Any, make_flow: Any, work: Any, second: str
) -> None:
    flow = make_flow({"slug": "a"}, {"slug": "b", "dependencies": ["a"]})
    pair = sessions.connections(2)
    runs = [flow.run() for _ in range(20)]
    work.poll(flow.conn, flow.worker("a"), 100)

    def finish(number: int, run: Any) -> Any:
        if number and second == "fail":
            return work.fail(pair[1], (run, "a", 0, 1))
        return work.complete(pair[number], (run, "a", 0, 1, number))

    for run in runs:
        statuses = sessions.together([lambda n=n, run=run: finish(n, run) for n in range(2)])
        statuses = [status for (status,) in statuses]
        effects = [status for status in statuses if status in ("completed", "retrying")]
        assert len(effects) == 1, statuses
        assert set(statuses) - set(effects) <= {"ended", "superseded"}
        expected = "completed 1" if effects == ["completed"] else "queued 1"
        assert flow.status(run, "a") == expected

    done = [run for run in runs if flow.status(run, "a") == "completed 1"]
    assert flow.count("b") == len(done)
    assert flow.faults() == []


def test_the_second_result_of_a_task_waits_and_then_is_told_so(sessions: Any, make_flow: Any, work: Any) -> None:
    flow = make_flow({"slug": "a"}, {"slug": "b", "dependencies": ["a"]})
    run = flow.run()
    work.poll(flow.conn, flow.worker("a"))
    first, second = sessions.connect(autocommit=False), sessions.connect()

    assert work.complete(first, (run, "a", 0, 1, "first")) == ["completed"]
    late = sessions.start(lambda: work.complete(second, (run, "a", 0, 1, "second")))
    sessions.wait_until_blocked(second, first)
    first.commit()
    assert late.result() == ["ended"]
    assert work.poll(flow.conn, flow.worker("b"))[0][1] == "claimed"
    assert flow.conn.execute(
        "select output from pgflow.step_states where run_id = %s and step_slug = 'a'", (run,)
    ).fetchone() == ("first",)


def test_batches_in_opposite_order_never_deadlock(sessions: Any, make_flow: Any, work: Any) -> None:
    flow = make_flow({"slug": "a", "stepType": "map"}, {"slug": "b", "stepType": "map"})
    runs = [flow.run(list(range(6))) for _ in range(10)]
    for step in "ab":
        work.poll(flow.conn, flow.worker(step), 100)
    results = [(run, step, index, 1, index) for run in runs for step in "ab" for index in range(6)]

    def finish(connection: Any, seed: int) -> list[str]:
        shuffled = random.Random(seed).sample(results, len(results))  # noqa: S311
        return work.complete(connection, *shuffled)

    answers = sessions.together(
        [
            lambda connection=connection, seed=seed: finish(connection, seed)
            for seed, connection in enumerate(sessions.connections(6))
        ]
    )

    assert [answer.count("completed") for answer in answers if "completed" in answer] == [len(results)]
    assert {status for answer in answers for status in answer} == {"completed", "ended"}
    assert {flow.run_status(run) for run in runs} == {"completed"}
    assert flow.faults() == []


def test_requeue_passes_a_task_that_is_being_completed(sessions: Any, make_flow: Any, work: Any) -> None:
    flow = make_flow({"slug": "a"})
    run = flow.run()
    work.poll(flow.conn, flow.worker("a"))
    flow.age(run)
    finishing, sweeping = sessions.connect(autocommit=False), sessions.connect()

    assert work.complete(finishing, (run, "a", 0, 1, 1)) == ["completed"]
    assert work.requeue(sweeping) == 0
    finishing.commit()
    assert work.requeue(sweeping) == 0
    assert flow.status(run, "a") == "completed 1"
    assert flow.faults() == []


def test_requeue_takes_what_a_session_gave_up_completing(sessions: Any, make_flow: Any, work: Any) -> None:
    flow = make_flow({"slug": "a"})
    run = flow.run()
    work.poll(flow.conn, flow.worker("a"))
    flow.age(run)
    finishing, sweeping = sessions.connect(autocommit=False), sessions.connect()

    work.complete(finishing, (run, "a", 0, 1, 1))
    finishing.rollback()
    assert work.requeue(sweeping) == 1
    assert flow.status(run, "a") == "queued 1"


@pytest.mark.parametrize("ending", ["complete", "fail"])
def test_a_result_waits_for_the_sweep_and_comes_too_late(sessions: Any, make_flow: Any, work: Any, ending: str) -> None:
    flow = make_flow({"slug": "a"})
    run = flow.run()
    work.poll(flow.conn, flow.worker("a"))
    flow.age(run)
    sweeping, finishing = sessions.connect(autocommit=False), sessions.connect()

    assert work.requeue(sweeping) == 1
    late = sessions.start(
        lambda: (
            work.complete(finishing, (run, "a", 0, 1, 1))
            if ending == "complete"
            else work.fail(finishing, (run, "a", 0, 1))
        )
    )
    sessions.wait_until_blocked(finishing, sweeping)
    sweeping.commit()
    assert late.result() == ["superseded"]
    assert flow.status(run, "a") == "queued 1"
    assert [row[1:5] for row in work.poll(finishing, flow.worker("a"))] == [("claimed", "a", 0, 2)]


def test_an_extension_waits_for_the_sweep_and_comes_too_late(sessions: Any, make_flow: Any, work: Any) -> None:
    flow = make_flow({"slug": "a"})
    run = flow.run()
    worker = flow.worker("a")
    work.poll(flow.conn, worker)
    flow.age(run)
    sweeping, extending = sessions.connect(autocommit=False), sessions.connect()

    assert work.requeue(sweeping) == 1
    extended = sessions.start(
        lambda: extending.execute("select pgflow.extend_task(%s, 'a', 0, %s, 1, 600)", (run, worker)).fetchone()
    )
    sessions.wait_until_blocked(extending, sweeping)
    sweeping.commit()
    assert extended.result() == (None,)
    assert flow.status(run, "a") == "queued 1"


def test_the_sweep_leaves_a_task_whose_lease_is_being_extended(sessions: Any, make_flow: Any, work: Any) -> None:
    flow = make_flow({"slug": "a"})
    run = flow.run()
    worker = flow.worker("a")
    work.poll(flow.conn, worker)
    flow.age(run)
    extending, sweeping = sessions.connect(autocommit=False), sessions.connect()

    extending.execute("select pgflow.extend_task(%s, 'a', 0, %s, 1, 600)", (run, worker))
    assert work.requeue(sweeping) == 0
    extending.commit()
    assert work.requeue(sweeping) == 0
    assert flow.status(run, "a") == "started 1"


def test_the_sweep_never_waits_for_a_run_that_is_being_worked_on(sessions: Any, make_flow: Any, work: Any) -> None:
    # Its lost task has no attempt left, so ending it needs the run that another session holds.
    flow = make_flow({"slug": "a"}, {"slug": "b"}, maxAttempts=1)
    busy, free = flow.run(), flow.run()
    for step in "ab":
        work.poll(flow.conn, flow.worker(step))
    flow.age(busy)
    flow.age(free)
    flow.conn.execute("update pgflow.step_tasks set lease_extended_until = 'infinity' where step_slug = 'b'")
    finishing, sweeping = sessions.connect(autocommit=False), sessions.connect()
    sweeping.execute("set lock_timeout to '10s'")

    work.complete(finishing, (busy, "b", 0, 1, 1))
    assert work.requeue(sweeping) == 0
    assert (flow.status(busy, "a"), flow.status(free, "a")) == ("started 1", "failed 1")
    finishing.commit()
    work.requeue(sweeping)
    assert flow.status(busy, "a") == "failed 1"
    assert flow.run_status(busy) == "failed"
    assert flow.faults() == []


def test_two_sweeps_at_once_queue_each_task_once(sessions: Any, make_flow: Any, work: Any) -> None:
    flow = make_flow({"slug": "a", "stepType": "map"}, maxAttempts=9)
    run = flow.run(list(range(300)))
    worker = flow.worker("a")
    pair = sessions.connections(2)

    for attempt in range(1, 4):
        assert len(work.poll(flow.conn, worker, 300)) == 300
        flow.age(run)
        counts = sessions.together([lambda connection=connection: work.requeue(connection) for connection in pair])
        counts.append(work.requeue(flow.conn))
        assert sum(counts) == 300
        assert flow.conn.execute(
            "select distinct status, attempts_count, requeued_count from pgflow.step_tasks where run_id = %s", (run,)
        ).fetchall() == [("queued", attempt, attempt)]
    assert flow.count("a") == 300


def test_two_sweeps_at_once_fail_a_task_once(sessions: Any, make_flow: Any, work: Any) -> None:
    flow = make_flow({"slug": "a", "stepType": "map"}, {"slug": "b"}, maxAttempts=1)
    runs = [flow.run([1, 2, 3]) for _ in range(10)]
    work.poll(flow.conn, flow.worker("a"), 100)
    for run in runs:
        flow.age(run)
    pair = sessions.connections(2)

    assert sessions.together([lambda connection=connection: work.requeue(connection) for connection in pair]) == [0, 0]
    work.requeue(flow.conn)
    assert {flow.run_status(run) for run in runs} == {"failed"}
    assert flow.conn.execute(
        "select count(*) from pgflow.step_tasks where flow_slug = %s and permanently_stalled_at is not null",
        (flow.slug,),
    ).fetchone()[0] >= len(runs)
    assert flow.faults() == []


def test_twenty_sessions_finish_a_map_while_others_fail_and_requeue_it(
    sessions: Any, make_flow: Any, work: Any
) -> None:
    size = 200
    flow = make_flow(
        {"slug": "m", "stepType": "map"}, {"slug": "sum", "dependencies": ["m"]}, maxAttempts=1000, baseDelay=0
    )
    run = flow.run([number * 10 for number in range(size)])
    workers = [flow.worker("m") for _ in range(20)]

    def is_over(connection: Any) -> bool:
        return connection.execute(
            "select status <> 'started' from pgflow.step_states where run_id = %s and step_slug = 'm'", (run,)
        ).fetchone()[0]

    def labour(connection: Any, worker: Any, seed: int) -> int:
        dice = random.Random(seed)  # noqa: S311
        completed = 0
        while not is_over(connection):
            outcomes = [row for row in work.poll(connection, worker, dice.randint(1, 8)) if row[1] == "claimed"]
            dice.shuffle(outcomes)
            fate = dice.random()
            if fate < 0.15:
                continue  # dies with what it has
            if fate < 0.35:
                work.fail(connection, *[(run, "m", row[3], row[4]) for row in outcomes])
            else:
                done = work.complete(connection, *[(run, "m", row[3], row[4], row[3]) for row in outcomes])
                completed += done.count("completed")
        return completed

    def sweep(connection: Any) -> int:
        requeued = 0
        while not is_over(connection):
            # Time passes for everybody, the dead and the slow alike; recovery itself may count to three only.
            connection.execute(
                """
                update pgflow.step_tasks as task
                set
                  started_at = task.started_at - interval '1 hour',
                  queued_at = task.queued_at - interval '1 hour',
                  requeued_count = 0
                from (
                  select run_id, step_slug, task_index from pgflow.step_tasks
                  where run_id = %s and status = 'started'
                  order by task_index
                  for no key update skip locked
                ) as slow
                where (task.run_id, task.step_slug, task.task_index) = (slow.run_id, slow.step_slug, slow.task_index)
                """,
                (run,),
            )
            requeued += work.requeue(connection)
        return requeued

    results = sessions.together(
        [
            lambda connection=connection, worker=worker, seed=seed: labour(connection, worker, seed)
            for seed, (connection, worker) in enumerate(zip(sessions.connections(20), workers, strict=True))
        ]
        + [lambda connection=connection: sweep(connection) for connection in sessions.connections(2)]
    )

    assert sum(results[:20]) == size
    state = flow.conn.execute(
        """
        select status, remaining_tasks, initial_tasks, output
        from pgflow.step_states
        where run_id = %s and step_slug = 'm'
        """,
        (run,),
    ).fetchone()
    assert state == ("completed", 0, size, list(range(size)))
    assert (flow.count("m"), flow.count("m", archive=True), flow.count("sum")) == (0, size, 1)
    assert work.complete(
        flow.conn, *[(run, "sum", row[3], row[4], "ok") for row in work.poll(flow.conn, flow.worker("sum"))]
    ) == ["completed"]
    assert flow.run_status(run) == "completed"
    assert flow.faults() == []
