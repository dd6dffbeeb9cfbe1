"""Fatal batches that meet each other and everything else."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest


def send_junk(flow: Any, step: str) -> int:
    return flow.conn.execute("select pgmq.send(%s, '{}')", (flow.queue(step),)).fetchone()[0]


def stop_reasons(flow: Any, *workers: Any) -> list[bool]:
    rows = flow.conn.execute(
        "select stop_reason is not null from unnest(%s::uuid[]) with ordinality as w (id, n) "
        "inner join pgflow.workers on worker_id = id order by n",
        (list(workers),),
    )
    return [row[0] for row in rows]


def enabled(flow: Any, function: str) -> bool:
    return flow.conn.execute(
        "select enabled from pgflow.worker_functions where function_name = %s", (function,)
    ).fetchone()[0]


@pytest.mark.parametrize("workers", [1, 2])
def test_two_sessions_meet_the_same_message_at_once(sessions: Any, make_flow: Any, work: Any, workers: int) -> None:
    # As one worker with two connections, and as two workers of one function.
    flow = make_flow({"slug": "a", "stepType": "map"})
    function = f"{flow.slug}_fn"
    first = flow.worker("a", function)
    second = first if workers == 1 else flow.worker("a", function)
    run = flow.run([1])
    junk = send_junk(flow, "a")
    holding, *pair = sessions.connect(autocommit=False), *sessions.connections(2)

    # Both have classified the batch before either can write.
    holding.execute(f"select from pgmq.q_{flow.queue('a')} where msg_id = %s for update", (junk,))

    def call(connection: Any, worker: Any) -> Any:
        try:
            return work.claim(connection, flow, "a", [1, junk], worker)
        except psycopg.Error as error:
            return error.sqlstate

    batches = [
        sessions.start(lambda connection=connection, worker=worker: call(connection, worker))
        for connection, worker in zip(pair, (first, second), strict=True)
    ]
    for connection in pair:
        sessions.wait_until_blocked_or_done(connection)
    holding.rollback()

    # Whoever is late finds the function disabled, before it has looked at a message.
    fatal = [(1, "released", None), (junk, "unsupported", None)]
    outcomes = [batch.result() for batch in batches]
    assert fatal in outcomes
    assert all(outcome == fatal or outcome in ("PF012", "PF013") for outcome in outcomes)
    assert not enabled(flow, function)
    assert any(stop_reasons(flow, first, second))
    assert flow.status(run, "a") == "queued 0"


def test_many_sessions_meet_the_same_message_at_once(sessions: Any, make_flow: Any, work: Any) -> None:
    connections = sessions.connections(6)
    for _ in range(8):
        flow = make_flow({"slug": "a", "stepType": "map"})
        flow.run(list(range(5)))
        ids = [send_junk(flow, "a"), *range(1, 6)]
        functions = [f"{flow.slug}_{number % 3}" for number in range(6)]
        workers = [flow.worker("a", function) for function in functions]
        # Some share a worker, some a function.
        workers[5] = workers[2]

        def call(connection: Any, worker: Any, flow: Any = flow, ids: list[int] = ids) -> Any:
            try:
                return [row[1] for row in work.claim(connection, flow, "a", ids, worker)]
            except Exception as error:
                if getattr(error, "sqlstate", None) != "PF012":
                    raise
                return "PF012"

        answers = sessions.together(
            [
                lambda connection=connection, worker=worker: call(connection, worker)
                for connection, worker in zip(connections, workers, strict=True)
            ]
        )
        fatal = ["unsupported", *["released"] * 5]
        assert all(answer in (fatal, "PF012") for answer in answers)
        assert not any(enabled(flow, function) for function in set(functions))
        assert flow.conn.execute(
            "select sum(attempts_count) from pgflow.step_tasks where flow_slug = %s", (flow.slug,)
        ).fetchone() == (0,)


def test_a_fatal_batch_and_the_sweep_never_deadlock_over_messages(sessions: Any, make_flow: Any, work: Any) -> None:
    # The sweep gives back the tasks of messages 1 and 2 and ends that of 4, which has no attempts left. The batch has
    # messages 2 to 4.
    flow = make_flow({"slug": "a", "stepType": "map", "whenExhausted": "skip"}, maxAttempts=2)
    worker = flow.worker("a")
    runs = [flow.run([1]), flow.run([1])]
    junk = send_junk(flow, "a")
    runs.append(flow.run([1]))
    ids = [flow.message(run, "a") for run in runs]
    work.claim(flow.conn, flow, "a", ids, worker)
    for run in runs:
        flow.age(run)
    flow.conn.execute("update pgflow.step_tasks set attempts_count = 2 where run_id = %s", (runs[2],))
    holding, sweeping, claiming = sessions.connect(autocommit=False), sessions.connect(), sessions.connect()

    # The sweep has archived message 4, waits for message 1, and wants 2 next.
    holding.execute(f"select from pgmq.q_{flow.queue('a')} where msg_id = %s for update", (ids[0],))
    swept = sessions.start(lambda: work.requeue(sweeping))
    sessions.wait_until_blocked(sweeping, holding)
    # The batch gets message 2 and 3 and comes to 4.
    refused = sessions.start(lambda: work.claim(claiming, flow, "a", [ids[1], junk, ids[2]], worker))
    sessions.wait_until_blocked_or_done(claiming)
    holding.rollback()

    assert [row[1] for row in refused.result()] == ["released", "unsupported", "released"]
    assert swept.result() == 2
    assert [flow.status(run, "a") for run in runs] == ["queued 1", "queued 1", "failed 2"]
    assert flow.steps(runs[2]) == {"a": "skipped"}


def test_disabling_and_fatal_batches_and_heartbeats_never_deadlock(sessions: Any, make_flow: Any, work: Any) -> None:
    flow = make_flow({"slug": "a"})
    function = f"{flow.slug}_fn"

    def fatal(connection: Any) -> None:
        for _ in range(12):
            try:
                worker = flow.worker("a", function)
                work.poll(connection, worker)
            except Exception as error:
                if getattr(error, "sqlstate", None) not in ("PF012", "PF013"):
                    raise

    def operate(connection: Any) -> None:
        for number in range(25):
            connection.execute("select pgflow.enable_worker_function(%s)", (function,))
            for (worker,) in connection.execute(
                "select worker_id from pgflow.workers where flow_slug = %s", (flow.slug,)
            ):
                connection.execute("select pgflow.heartbeat(%s)", (worker,))
            if number % 3 == 0:
                connection.execute("select pgflow.disable_worker_function(%s, 'by hand')", (function,))

    flow.worker("a", function)
    send_junk(flow, "a")
    sessions.together(
        [lambda connection=connection: fatal(connection) for connection in sessions.connections(3)]
        + [lambda connection=connection: operate(connection) for connection in sessions.connections(2)]
    )
    assert flow.count("a") == 1


def test_registering_anew_and_a_fatal_batch_of_the_same_worker_never_deadlock(
    sessions: Any, make_flow: Any, work: Any
) -> None:
    flow = make_flow({"slug": "a"})
    worker = flow.worker("a")
    function = f"{flow.slug}_a"
    junk = send_junk(flow, "a")
    holding, registering, claiming = sessions.connect(autocommit=False), *sessions.connections(2)

    # Both want the worker's row and its function's; the one who comes first waits for the second row.
    holding.execute("select from pgflow.worker_functions where function_name = %s for update", (function,))
    registered = sessions.start(
        lambda: registering.execute("select pgflow.register_worker(%s, %s, %s, 'a')", (worker, function, flow.slug))
    )
    sessions.wait_until_blocked(registering, holding)
    batch = sessions.start(lambda: work.claim(claiming, flow, "a", [junk], worker))
    sessions.wait_until_blocked_or_done(claiming)
    holding.rollback()

    registered.result()
    assert batch.result() == [(junk, "unsupported", None)]
    assert not enabled(flow, function)
