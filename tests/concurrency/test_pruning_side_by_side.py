"""Pruning meets claims, results, sweeps, new runs, deletion, recompilation and itself: in each order, and at once."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

STEPS = [{"slug": "a", "stepType": "map"}, {"slug": "b", "dependencies": ["a"]}]
NOTHING = {"workers": 0, "runs": 0, "step_states": 0, "step_tasks": 0, "messages": 0}
# What one run over two elements leaves behind, when it went well.
ONE_RUN = {"workers": 0, "runs": 1, "step_states": 2, "step_tasks": 3, "messages": 3}

both_ends = pytest.mark.parametrize("is_given_up", [False, True], ids=["committed", "given up"])
both_changes = pytest.mark.parametrize("change", ["delete", "recompile"])


@pytest.fixture(autouse=True)
def clean(conn: Any) -> Iterator[None]:
    """Each test leaves sound data, and then none: the next one is to prune what it made itself."""
    yield
    faults = conn.execute("select * from pgflow.check_integrity()").fetchall()
    conn.execute("select pgflow.delete_flow_and_data(flow_slug) from pgflow.flows")
    conn.execute("delete from pgflow.workers")
    assert faults == []


def prune(connection: Any, retention: str = "30 days", batch_size: int = 1000) -> dict[str, int]:
    rows = connection.execute("select * from pgflow.prune_data_older_than(%s, %s)", (retention, batch_size))
    return dict(rows.fetchall())


def end(connection: Any, is_given_up: bool) -> None:
    if is_given_up:
        connection.rollback()
    else:
        connection.commit()


def finish(flow: Any, work: Any) -> None:
    """Work until the flow has nothing left to do."""
    workers = {step["slug"]: flow.worker(step["slug"] if flow.mode == "step" else None) for step in flow.shape["steps"]}
    progress = True
    while progress:
        progress = False
        for worker in workers.values():
            while rows := work.poll(flow.conn, worker, 100):
                progress = True
                work.complete(flow.conn, *[(row[5], row[2], row[3], row[4], 1) for row in rows if row[1] == "claimed"])


def age(flow: Any, *runs: uuid.UUID) -> None:
    flow.conn.execute(
        """
        update pgflow.runs
        set
          started_at = started_at - interval '40 days',
          completed_at = completed_at - interval '40 days',
          failed_at = failed_at - interval '40 days'
        where run_id = any(%s)
        """,
        (list(runs),),
    )


def old_runs(flow: Any, work: Any, count: int = 1) -> list[uuid.UUID]:
    """Runs over two elements that ended long ago."""
    runs = [flow.run([1, 2]) for _ in range(count)]
    finish(flow, work)
    age(flow, *runs)
    return runs


def old_run(flow: Any, work: Any) -> uuid.UUID:
    (run,) = old_runs(flow, work)
    return run


def stale_worker(flow: Any, step: str, days: int = 40) -> uuid.UUID:
    """Register a worker that was last heard of so long ago, and a successor."""
    worker: uuid.UUID = flow.worker(step)
    flow.worker(step)
    flow.conn.execute(
        """
        update pgflow.workers
        set
          started_at = started_at - make_interval(days => %(days)s),
          last_heartbeat_at = last_heartbeat_at - make_interval(days => %(days)s)
        where worker_id = %(worker)s
        """,
        {"days": days, "worker": worker},
    )
    return worker


def leave_a_message(flow: Any, run: uuid.UUID, step: str = "a") -> int:
    """Put the message of an ended task back on its queue, as if it had never left."""
    message: int = flow.message(run, step)
    queue = flow.queue(step)
    flow.conn.execute(
        f"""
        with archived as (
          delete from pgmq.a_{queue} where msg_id = %s returning msg_id, message
        )
        insert into pgmq.q_{queue} (msg_id, vt, message)
        overriding system value
        select msg_id, now(), message
        from archived
        """,
        (message,),
    )
    return message


def runs_of(flow: Any) -> list[uuid.UUID]:
    rows = flow.conn.execute("select run_id from pgflow.runs where flow_slug = %s order by run_id", (flow.slug,))
    return [run for (run,) in rows]


def messages_of(flow: Any) -> dict[str, int]:
    """How many messages are on each queue and in each archive of a flow, unless there are none."""
    counts = {
        f"{'a' if archive else 'q'}_{flow.queue(step['slug'])}": flow.count(step["slug"], archive=archive)
        for step in flow.shape["steps"]
        for archive in (False, True)
    }
    return {table: count for table, count in counts.items() if count}


def everything(flow: Any, *runs: uuid.UUID) -> Any:
    """All rows of some runs, and their messages, queued and archived, to the letter."""
    tables = [("q" if queued else "a", flow.queue(step["slug"])) for step in flow.shape["steps"] for queued in (0, 1)]
    messages = " union all ".join(
        f"select '{kind}_{queue}' as place, to_jsonb(message) as row from pgmq.{kind}_{queue} as message"
        for kind, queue in tables
    )
    return flow.conn.execute(
        f"""
        select place, row from (
          select 'runs' as place, run_id::text, to_jsonb(run) as row from pgflow.runs as run
          union all
          select 'states', run_id::text, to_jsonb(state) from pgflow.step_states as state
          union all
          select 'tasks', run_id::text, to_jsonb(task) from pgflow.step_tasks as task
          union all
          select place, row #>> '{{message,run_id}}', row from ({messages}) as message
        ) as every
        where run_id = any(%s)
        order by place, row
        """,
        ([str(run) for run in runs],),
    ).fetchall()


def change_flow(flow: Any, connection: Any, change: str) -> None:
    if change == "delete":
        connection.execute("select pgflow.delete_flow_and_data(%s)", (flow.slug,))
    else:
        assert flow.recompile(connection) == "recompiled"


def exists(flow: Any) -> bool:
    return bool(flow.conn.execute("select from pgflow.flows where flow_slug = %s", (flow.slug,)).fetchall())


def leftovers(conn: Any, slug: str) -> dict[str, int]:
    """What there still is of a flow that was deleted."""
    row = conn.execute(
        """
        select
          (select count(*) from pgflow.runs where flow_slug = %(slug)s),
          (select count(*) from pgflow.step_states where flow_slug = %(slug)s),
          (select count(*) from pgflow.step_tasks where flow_slug = %(slug)s),
          (select count(*) from pgflow.steps where flow_slug = %(slug)s),
          (select count(*) from pgflow.queues where flow_slug = %(slug)s),
          (select count(*) from pgmq.meta where queue_name like lower(%(slug)s) || '\\_\\_%%'),
          (select count(*) from pg_class where relname ~ ('^[qa]_' || lower(%(slug)s) || '__[^_]*$'))
        """,
        {"slug": slug},
    ).fetchone()
    kinds = ("runs", "states", "tasks", "steps", "owners", "queues", "tables")
    return {kind: count for kind, count in zip(kinds, row, strict=True) if count}


# Claims.

CLAIMS: dict[str, Callable[..., list[str]]] = {
    "poll": lambda work, conn, flow, message, worker: [row[1] for row in work.poll(conn, worker)],
    "claim": lambda work, conn, flow, message, worker: [
        row[1] for row in work.claim(conn, flow, "a", [message], worker)
    ],
}


@both_ends
@pytest.mark.parametrize("way", CLAIMS)
def test_a_claim_of_what_an_ended_run_left_waits_for_the_pruning(
    sessions: Any, make_flow: Any, work: Any, way: str, is_given_up: bool
) -> None:
    flow = make_flow(*STEPS)
    run = old_run(flow, work)
    message = leave_a_message(flow, run)
    worker = flow.worker("a")
    pruning, claiming = sessions.connect(autocommit=False), sessions.connect()

    assert prune(pruning) == ONE_RUN
    claimed = sessions.start(lambda: CLAIMS[way](work, claiming, flow, message, worker))
    sessions.wait_until_blocked(claiming, pruning)
    end(pruning, is_given_up)
    assert claimed.result() == ["archived"]
    if is_given_up:
        assert messages_of(flow) == {f"a_{flow.queue('a')}": 2, f"a_{flow.queue('b')}": 1}
        assert prune(claiming) == ONE_RUN
    # An archived message without its run would stay for ever.
    assert (messages_of(flow), runs_of(flow)) == ({}, [])
    assert CLAIMS["claim"](work, claiming, flow, message, worker) == ["gone"]
    assert work.poll(claiming, worker) == []


@both_ends
@pytest.mark.parametrize("way", CLAIMS)
def test_pruning_waits_for_a_claim_of_what_an_ended_run_left(
    sessions: Any, make_flow: Any, work: Any, way: str, is_given_up: bool
) -> None:
    flow = make_flow(*STEPS)
    run = old_run(flow, work)
    message = leave_a_message(flow, run)
    worker = flow.worker("a")
    claiming, pruning = sessions.connect(autocommit=False), sessions.connect()

    assert CLAIMS[way](work, claiming, flow, message, worker) == ["archived"]
    pruned = sessions.start(lambda: prune(pruning))
    sessions.wait_until_blocked(pruning, claiming)
    end(claiming, is_given_up)
    assert pruned.result() == ONE_RUN
    assert (messages_of(flow), runs_of(flow)) == ({}, [])


@both_ends
def test_pruning_finds_what_a_claim_archives_while_it_is_half_way(
    sessions: Any, make_flow: Any, work: Any, is_given_up: bool
) -> None:
    flow = make_flow(*STEPS)
    run = old_run(flow, work)
    leave_a_message(flow, run)
    worker = flow.worker("a")
    holding, claiming = sessions.connect(autocommit=False), sessions.connect(autocommit=False)
    pruning = sessions.connect()

    # Pruning has the tasks of step a, so the claim passes these; it is held up before it gets to any message.
    holding.execute("select from pgflow.step_tasks where run_id = %s and step_slug = 'b' for share", (run,))
    pruned = sessions.start(lambda: prune(pruning))
    sessions.wait_until_blocked(pruning, holding)
    assert [row[1] for row in work.poll(claiming, worker)] == ["archived"]
    holding.rollback()
    sessions.wait_until_blocked(pruning, claiming)
    end(claiming, is_given_up)
    assert pruned.result() == ONE_RUN
    assert (messages_of(flow), runs_of(flow)) == ({}, [])


def test_a_poll_passes_over_the_messages_that_it_read_when_pruning_was_quicker(
    sessions: Any, make_flow: Any, work: Any
) -> None:
    flow = make_flow(*STEPS)
    run = old_run(flow, work)
    leave_a_message(flow, run)
    worker = flow.worker("a")
    holding, polling = sessions.connect(autocommit=False), sessions.connect()

    holding.execute("select from pgflow.workers where worker_id = %s for update", (worker,))
    polled = sessions.start(lambda: work.poll(polling, worker))
    sessions.wait_until_blocked(polling, holding)
    assert prune(flow.conn) == ONE_RUN
    holding.rollback()
    # Without its task it would be foreign work, were it still there.
    assert polled.result() == []
    assert (messages_of(flow), runs_of(flow)) == ({}, [])


def test_a_poll_passes_an_active_task_of_an_ended_run_that_is_being_pruned(
    sessions: Any, make_flow: Any, work: Any
) -> None:
    flow = make_flow(*STEPS)
    run = old_run(flow, work)
    leave_a_message(flow, run)
    revive = """
        update pgflow.step_tasks
        set status = 'queued', output = null, completed_at = null, started_at = null
        where (run_id, step_slug, task_index) = (%s, 'a', 0)
    """
    flow.conn.execute(revive, (run,))
    worker = flow.worker("a")
    pruning, claiming = sessions.connect(autocommit=False), sessions.connect()
    claiming.execute("set lock_timeout to '10s'")

    assert prune(pruning) == ONE_RUN
    assert work.poll(claiming, worker) == []
    pruning.rollback()
    assert [row[1] for row in work.poll(claiming, worker)] == ["archived"]
    assert flow.status(run, "a") == "cancelled 1"
    assert prune(pruning) == ONE_RUN
    pruning.commit()
    assert (messages_of(flow), runs_of(flow)) == ({}, [])


def test_work_in_progress_and_pruning_of_the_same_flow_never_wait_for_each_other(
    sessions: Any, make_flow: Any, work: Any
) -> None:
    flow = make_flow(*STEPS)
    [first, second] = old_runs(flow, work, 2)
    worker = flow.worker("a")
    run = flow.run([1, 2, 3])
    pruning, working = sessions.connect(autocommit=False), sessions.connect(autocommit=False)
    for connection in (pruning, working):
        connection.execute("set lock_timeout to '10s'")
        connection.commit()

    # Pruning first.
    assert prune(pruning, batch_size=1) == ONE_RUN
    assert [row[1] for row in work.poll(working, worker, 2)] == ["claimed"] * 2
    extended = working.execute("select pgflow.extend_task(%s, 'a', 0, %s, 1, 600) is not null", (run, worker))
    assert extended.fetchone() == (True,)
    assert work.complete(working, (run, "a", 0, 1, 1)) == ["completed"]
    assert work.fail(working, (run, "a", 1, 1)) == ["retrying"]
    working.execute("select pgflow.start_flow(%s, '[1]')", (flow.slug,))
    working.execute("select pgflow.heartbeat(%s)", (worker,))
    flow.conn.execute("select pgflow.register_worker(gen_random_uuid(), %s, %s, 'a')", (flow.slug, flow.slug))
    # And pruning while all of that is open.
    pruning.commit()
    assert prune(pruning) == ONE_RUN
    working.commit()
    assert prune(pruning) == NOTHING
    pruning.commit()

    left = runs_of(flow)
    assert run in left
    assert len(left) == 2
    assert {first, second}.isdisjoint(left)
    assert [flow.status(run, "a", index) for index in range(3)] == ["completed 1", "queued 1", "queued 0"]


@both_ends
def test_a_claim_of_a_stale_worker_waits_for_its_pruning(
    sessions: Any, make_flow: Any, work: Any, is_given_up: bool
) -> None:
    flow = make_flow(*STEPS)
    worker = stale_worker(flow, "a")
    run = flow.run([1])
    pruning, claiming = sessions.connect(autocommit=False), sessions.connect()

    assert prune(pruning) == {**NOTHING, "workers": 1}
    claimed = sessions.start(lambda: work.poll(claiming, worker))
    sessions.wait_until_blocked(claiming, pruning)
    end(pruning, is_given_up)
    if is_given_up:
        assert [row[1] for row in claimed.result()] == ["claimed"]
        # Now a task refers to it.
        assert prune(claiming) == NOTHING
        return
    with pytest.raises(psycopg.Error, match="is not known") as refusal:
        claimed.result()
    assert refusal.value.sqlstate == "PF013"
    assert flow.status(run, "a") == "queued 0"


@both_ends
def test_pruning_passes_a_stale_worker_that_claims(sessions: Any, make_flow: Any, work: Any, is_given_up: bool) -> None:
    flow = make_flow(*STEPS)
    worker = stale_worker(flow, "a")
    run = flow.run([1])
    claiming, pruning = sessions.connect(autocommit=False), sessions.connect()
    pruning.execute("set lock_timeout to '10s'")

    assert [row[1] for row in work.poll(claiming, worker)] == ["claimed"]
    assert prune(pruning) == NOTHING
    end(claiming, is_given_up)
    assert prune(pruning) == ({**NOTHING, "workers": 1} if is_given_up else NOTHING)
    assert flow.status(run, "a") == ("queued 0" if is_given_up else "started 1")


@both_ends
def test_a_heartbeat_waits_for_the_pruning_of_its_worker(sessions: Any, make_flow: Any, is_given_up: bool) -> None:
    flow = make_flow(*STEPS)
    worker = stale_worker(flow, "a")
    pruning, beating = sessions.connect(autocommit=False), sessions.connect()
    beat = "select should_stop from pgflow.heartbeat(%s)"

    assert prune(pruning) == {**NOTHING, "workers": 1}
    answered = sessions.start(lambda: beating.execute(beat, (worker,)).fetchone())
    sessions.wait_until_blocked(beating, pruning)
    end(pruning, is_given_up)
    assert answered.result() == (not is_given_up,)
    assert prune(beating) == NOTHING


@both_ends
def test_pruning_passes_a_worker_that_comes_back(sessions: Any, make_flow: Any, is_given_up: bool) -> None:
    flow = make_flow(*STEPS)
    worker = stale_worker(flow, "a")
    beating, pruning = sessions.connect(autocommit=False), sessions.connect()
    pruning.execute("set lock_timeout to '10s'")

    beating.execute("select * from pgflow.heartbeat(%s)", (worker,))
    assert prune(pruning) == NOTHING
    end(beating, is_given_up)
    assert prune(pruning) == ({**NOTHING, "workers": 1} if is_given_up else NOTHING)


# Results.

LATE_RESULTS: dict[str, Callable[..., Any]] = {
    "complete": lambda work, conn, run: work.complete(conn, (run, "a", 0, 1, "late")),
    "fail": lambda work, conn, run: work.fail(conn, (run, "a", 0, 1)),
    "complete, no attempt": lambda work, conn, run: work.complete(conn, (run, "a", 0, None, "late")),
    "fail, no attempt": lambda work, conn, run: work.fail(conn, (run, "a", 0, None)),
}


@both_ends
@pytest.mark.parametrize("result", LATE_RESULTS)
def test_a_late_result_waits_for_the_pruning_of_its_run(
    sessions: Any, make_flow: Any, work: Any, result: str, is_given_up: bool
) -> None:
    flow = make_flow(*STEPS)
    run = old_run(flow, work)
    pruning, finishing = sessions.connect(autocommit=False), sessions.connect()

    assert prune(pruning) == ONE_RUN
    late = sessions.start(lambda: LATE_RESULTS[result](work, finishing, run))
    sessions.wait_until_blocked(finishing, pruning)
    end(pruning, is_given_up)
    assert late.result() == ["ended" if is_given_up else "unknown"]
    assert prune(finishing) == (ONE_RUN if is_given_up else NOTHING)
    assert (messages_of(flow), runs_of(flow)) == ({}, [])


@both_ends
@pytest.mark.parametrize("result", LATE_RESULTS)
def test_pruning_passes_a_run_that_a_late_result_holds(
    sessions: Any, make_flow: Any, work: Any, result: str, is_given_up: bool
) -> None:
    flow = make_flow(*STEPS)
    run = old_run(flow, work)
    before = everything(flow, run)
    finishing, pruning = sessions.connect(autocommit=False), sessions.connect()
    pruning.execute("set lock_timeout to '10s'")

    assert LATE_RESULTS[result](work, finishing, run) == ["ended"]
    assert prune(pruning) == NOTHING
    end(finishing, is_given_up)
    assert everything(flow, run) == before
    assert prune(pruning) == ONE_RUN
    assert (messages_of(flow), runs_of(flow)) == ({}, [])


@pytest.mark.parametrize("call", ["complete_task(%s, 'a', 0, '1')", "fail_task(%s, 'a', 0, 'broken')"])
def test_a_late_call_of_0_14_gives_no_row_once_the_run_is_pruned(
    sessions: Any, make_flow: Any, work: Any, call: str
) -> None:
    flow = make_flow(*STEPS, mode="flow")
    run = old_run(flow, work)
    pruning, finishing = sessions.connect(autocommit=False), sessions.connect()

    assert prune(pruning) == ONE_RUN
    late = sessions.start(lambda: finishing.execute(f"select * from pgflow.{call}", (run,)).fetchall())
    sessions.wait_until_blocked(finishing, pruning)
    pruning.commit()
    assert late.result() == []
    assert (messages_of(flow), runs_of(flow)) == ({}, [])


@both_ends
@pytest.mark.parametrize("ending", ["complete", "fail"])
def test_pruning_passes_a_run_that_is_just_ending(
    sessions: Any, make_flow: Any, work: Any, ending: str, is_given_up: bool
) -> None:
    flow = make_flow({"slug": "a"}, {"slug": "b"}, maxAttempts=1)
    run = flow.run()
    for step in "ab":
        work.poll(flow.conn, flow.worker(step))
    work.complete(flow.conn, (run, "a", 0, 1, 1))
    finishing, pruning = sessions.connect(autocommit=False), sessions.connect()
    pruning.execute("set lock_timeout to '10s'")

    if ending == "complete":
        assert work.complete(finishing, (run, "b", 0, 1, 1)) == ["completed"]
    else:
        assert work.fail(finishing, (run, "b", 0, 1)) == ["failed"]
    assert prune(pruning, "0") == NOTHING
    end(finishing, is_given_up)
    if is_given_up:
        assert prune(pruning, "0") == NOTHING
        assert (flow.run_status(run), flow.status(run, "b")) == ("started", "started 1")
    else:
        assert prune(pruning, "0") == {**NOTHING, "runs": 1, "step_states": 2, "step_tasks": 2, "messages": 2}
        assert (messages_of(flow), runs_of(flow)) == ({}, [])


# Recovery.


def lose(flow: Any, work: Any) -> uuid.UUID:
    """Start a run whose one task is lost with its worker."""
    run: uuid.UUID = flow.run([1])
    work.poll(flow.conn, flow.worker("a"))
    flow.age(run)
    return run


@pytest.mark.parametrize("attempts", [3, 1], ids=["queued again", "given up"])
def test_the_sweep_never_waits_for_pruning(sessions: Any, make_flow: Any, work: Any, attempts: int) -> None:
    flow = make_flow(*STEPS, maxAttempts=attempts)
    old_run(flow, work)
    lost = lose(flow, work)
    pruning, sweeping = sessions.connect(autocommit=False), sessions.connect()
    sweeping.execute("set lock_timeout to '10s'")

    assert prune(pruning) == ONE_RUN
    assert work.requeue(sweeping) == (1 if attempts > 1 else 0)
    assert flow.status(lost, "a") == ("queued 1" if attempts > 1 else "failed 1")
    pruning.commit()
    assert runs_of(flow) == [lost]


@both_ends
@pytest.mark.parametrize("attempts", [3, 1], ids=["queued again", "given up"])
def test_pruning_never_waits_for_the_sweep(
    sessions: Any, make_flow: Any, work: Any, attempts: int, is_given_up: bool
) -> None:
    flow = make_flow(*STEPS, maxAttempts=attempts)
    old_run(flow, work)
    lost = lose(flow, work)
    sweeping, pruning = sessions.connect(autocommit=False), sessions.connect()
    pruning.execute("set lock_timeout to '10s'")

    work.requeue(sweeping)
    # The one that the sweep is just failing has not ended yet, for anybody else.
    assert prune(pruning, "0") == ONE_RUN
    end(sweeping, is_given_up)
    failed = attempts == 1 and not is_given_up
    assert prune(pruning, "0")["runs"] == (1 if failed else 0)
    assert runs_of(flow) == ([] if failed else [lost])


def test_neither_the_sweep_nor_pruning_waits_over_a_started_task_of_an_ended_run(
    sessions: Any, make_flow: Any, work: Any
) -> None:
    flow = make_flow(*STEPS)
    run = lose(flow, work)
    work.complete(flow.conn, (run, "a", 0, 1, 1))
    leave_a_message(flow, run)
    flow.conn.execute(
        "update pgflow.step_tasks set status = 'started', output = null, completed_at = null where run_id = %s"
        " and step_slug = 'a'",
        (run,),
    )
    flow.conn.execute(
        "update pgflow.runs set status = 'failed', failed_at = clock_timestamp() where run_id = %s", (run,)
    )
    age(flow, run)
    first, second = sessions.connect(autocommit=False), sessions.connect()
    second.execute("set lock_timeout to '10s'")

    assert prune(first)["runs"] == 1
    assert work.requeue(second) == 0
    first.rollback()
    assert work.requeue(first) == 0
    assert prune(second) == {**NOTHING, "runs": 1, "step_states": 2, "step_tasks": 2, "messages": 2}
    first.commit()
    assert (messages_of(flow), runs_of(flow)) == ({}, [])


# New runs.


@both_ends
def test_a_run_that_is_just_starting_is_not_seen_by_pruning(
    sessions: Any, make_flow: Any, work: Any, is_given_up: bool
) -> None:
    flow = make_flow(*STEPS)
    old_run(flow, work)
    starting, pruning = sessions.connect(autocommit=False), sessions.connect()
    pruning.execute("set lock_timeout to '10s'")

    starting.execute("select pgflow.start_flow(%s, '[1, 2]')", (flow.slug,))
    assert prune(pruning, "0") == ONE_RUN
    end(starting, is_given_up)
    assert prune(pruning, "0") == NOTHING
    assert len(runs_of(flow)) == (0 if is_given_up else 1)


@both_ends
def test_a_new_run_under_the_id_of_an_old_one_waits_for_its_pruning(
    sessions: Any, make_flow: Any, work: Any, is_given_up: bool
) -> None:
    flow = make_flow(*STEPS)
    run = old_run(flow, work)
    pruning, starting = sessions.connect(autocommit=False), sessions.connect()
    before = everything(flow, run)

    assert prune(pruning) == ONE_RUN
    started = sessions.start(
        lambda: starting.execute("select status from pgflow.start_flow(%s, '[1]', %s)", (flow.slug, run)).fetchone()
    )
    sessions.wait_until_blocked(starting, pruning)
    end(pruning, is_given_up)
    if is_given_up:
        with pytest.raises(psycopg.errors.UniqueViolation):
            started.result()
        assert everything(flow, run) == before
    else:
        assert started.result() == ("started",)
        assert messages_of(flow) == {f"q_{flow.queue('a')}": 1}
        finish(flow, work)
        assert flow.run_status(run) == "completed"


def test_pruning_leaves_a_new_run_under_the_id_of_an_old_one(sessions: Any, make_flow: Any, work: Any) -> None:
    flow = make_flow(*STEPS)
    run = old_run(flow, work)
    changing, pruning = sessions.connect(autocommit=False), sessions.connect()
    pruning.execute("set lock_timeout to '10s'")

    assert prune(changing) == ONE_RUN
    changing.execute("select pgflow.start_flow(%s, '[1, 2]', %s)", (flow.slug, run))
    assert prune(pruning) == NOTHING
    changing.commit()
    assert prune(pruning, "0") == NOTHING
    assert flow.steps(run) == {"a": "started", "b": "created"}
    finish(flow, work)
    assert flow.run_status(run) == "completed"


# Deletion and recompilation.


@both_ends
@both_changes
def test_the_change_of_a_flow_waits_for_pruning(
    sessions: Any, make_flow: Any, work: Any, change: str, is_given_up: bool
) -> None:
    flow = make_flow(*STEPS)
    old_run(flow, work)
    flow.run([1])
    pruning, changing = sessions.connect(autocommit=False), sessions.connect()

    assert prune(pruning) == ONE_RUN
    changed = sessions.start(lambda: change_flow(flow, changing, change))
    sessions.wait_until_blocked(changing, pruning)
    end(pruning, is_given_up)
    changed.result()
    assert runs_of(flow) == []
    if change == "delete":
        assert leftovers(flow.conn, flow.slug) == {}
    else:
        assert messages_of(flow) == {}
        run = flow.run([1])
        finish(flow, work)
        assert flow.run_status(run) == "completed"


@both_ends
@both_changes
def test_pruning_passes_a_flow_that_is_being_changed(
    sessions: Any, make_flow: Any, work: Any, change: str, is_given_up: bool
) -> None:
    flow, other = make_flow(*STEPS), make_flow(*STEPS)
    old_run(flow, work)
    old_run(other, work)
    changing, pruning = sessions.connect(autocommit=False), sessions.connect()
    pruning.execute("set lock_timeout to '10s'")

    shape = flow.shape
    change_flow(flow, changing, change)
    assert prune(pruning) == ONE_RUN
    assert (messages_of(other), runs_of(other)) == ({}, [])
    end(changing, is_given_up)
    if is_given_up:
        flow.shape = shape
        assert prune(pruning) == ONE_RUN
        assert (messages_of(flow), runs_of(flow)) == ({}, [])
    else:
        assert prune(pruning) == NOTHING
        assert exists(flow) is (change == "recompile")


@both_changes
def test_a_stale_worker_of_a_flow_that_is_being_changed_is_passed(
    sessions: Any, make_flow: Any, work: Any, change: str
) -> None:
    flow = make_flow(*STEPS)
    stale_worker(flow, "a")
    changing, pruning = sessions.connect(autocommit=False), sessions.connect()
    pruning.execute("set lock_timeout to '10s'")

    change_flow(flow, changing, change)
    assert prune(pruning) == NOTHING
    changing.commit()
    assert prune(pruning) == {**NOTHING, "workers": 1}


@both_changes
def test_the_change_of_a_flow_waits_for_the_pruning_of_its_stale_worker(
    sessions: Any, make_flow: Any, change: str
) -> None:
    flow = make_flow(*STEPS)
    stale_worker(flow, "a")
    pruning, changing = sessions.connect(autocommit=False), sessions.connect()

    assert prune(pruning) == {**NOTHING, "workers": 1}
    changed = sessions.start(lambda: change_flow(flow, changing, change))
    sessions.wait_until_blocked(changing, pruning)
    pruning.commit()
    changed.result()
    told = flow.conn.execute("select stop_reason is not null from pgflow.workers where flow_slug = %s", (flow.slug,))
    assert told.fetchall() == [(True,)]


RACERS: dict[str, Callable[..., Any]] = {
    "complete": lambda work, conn, flow, run, worker: work.complete(conn, (run, "a", 0, 1, 1)),
    "fail": lambda work, conn, flow, run, worker: work.fail(conn, (run, "a", 0, 1)),
    "sweep": lambda work, conn, flow, run, worker: work.requeue(conn),
    "claim": lambda work, conn, flow, run, worker: work.poll(conn, worker),
    "prune": lambda work, conn, flow, run, worker: prune(conn),
    "start": lambda work, conn, flow, run, worker: conn.execute(
        "select pgflow.start_flow(%s, '[1, 2]')", (flow.slug,)
    ).fetchall(),
}


@pytest.mark.parametrize("racer", RACERS)
def test_a_deletion_is_whole_whoever_comes_at_the_same_moment(
    sessions: Any, make_flow: Any, work: Any, racer: str
) -> None:
    connections = sessions.connections(4)
    for _ in range(5):
        flow = make_flow(*STEPS)
        old_run(flow, work)
        run = flow.run([1, 2, 3])
        worker = flow.worker("a")
        work.poll(flow.conn, worker, 1)
        flow.age(run)

        def race(connection: Any, flow: Any = flow, run: Any = run, worker: Any = worker) -> None:
            try:
                RACERS[racer](work, connection, flow, run, worker)
            except psycopg.Error as error:
                assert error.sqlstate in ("PF013", "PF018"), error

        sessions.together(
            [lambda connection=connection: race(connection) for connection in connections[1:]]
            + [lambda flow=flow: change_flow(flow, connections[0], "delete")]
        )
        assert not exists(flow)
        assert leftovers(flow.conn, flow.slug) == {}


# Pruning itself.


@both_ends
def test_two_prunings_share_the_work(sessions: Any, make_flow: Any, work: Any, is_given_up: bool) -> None:
    flow = make_flow(*STEPS)
    runs = old_runs(flow, work, 5)
    first, second = sessions.connect(autocommit=False), sessions.connect()
    second.execute("set lock_timeout to '10s'")

    assert prune(first, batch_size=2) == {**NOTHING, "runs": 2, "step_states": 4, "step_tasks": 6, "messages": 6}
    assert prune(second) == {**NOTHING, "runs": 3, "step_states": 6, "step_tasks": 9, "messages": 9}
    end(first, is_given_up)
    assert len(runs_of(flow)) == (2 if is_given_up else 0)
    assert set(runs_of(flow)) <= set(runs)
    assert prune(second)["runs"] == (2 if is_given_up else 0)
    assert (messages_of(flow), runs_of(flow)) == ({}, [])


@both_ends
def test_two_prunings_keep_the_last_worker_of_each_subscription(
    sessions: Any, make_flow: Any, is_given_up: bool
) -> None:
    flow = make_flow(*STEPS)
    workers = [stale_worker(flow, "a", days) for days in (50, 60, 70, 80)]
    # Nobody is live: those that were registered as successors fell silent, too, the last one of them later.
    flow.conn.execute(
        """
        update pgflow.workers
        set started_at = started_at - interval '90 days', last_heartbeat_at = last_heartbeat_at - interval '45 days'
        where worker_id <> all(%s)
        """,
        (workers,),
    )
    first, second = sessions.connect(autocommit=False), sessions.connect()
    second.execute("set lock_timeout to '10s'")

    assert prune(first, batch_size=3)["workers"] == 3
    assert prune(second)["workers"] == 4
    end(first, is_given_up)
    assert prune(second)["workers"] == (3 if is_given_up else 0)
    left = flow.conn.execute("select clock_timestamp() - last_heartbeat_at < interval '46 days' from pgflow.workers")
    assert left.fetchall() == [(True,)]


def test_many_prunings_at_once_delete_each_thing_once_and_nothing_else(
    sessions: Any, make_flow: Any, work: Any
) -> None:
    flows = [make_flow(*STEPS), make_flow(*STEPS), make_flow(*STEPS, mode="flow")]
    kept: list[tuple[Any, list[uuid.UUID]]] = []
    for flow in flows:
        old_runs(flow, work, 40)
        # Their messages have the same ids on each queue, among those of the old runs' messages on other queues.
        young = flow.run([1, 2])
        finish(flow, work)
        started, queued = flow.run([1, 2, 3]), flow.run([1, 2, 3])
        rows = work.poll(flow.conn, flow.worker("a" if flow.mode == "step" else None), 2)
        work.complete(flow.conn, (rows[0][5], "a", rows[0][3], 1, 1))
        kept.append((flow, [young, started, queued]))
    before = [everything(flow, *runs) for flow, runs in kept]

    def prune_all(connection: Any) -> Counter[str]:
        deleted: Counter[str] = Counter()
        while (batch := prune(connection, batch_size=7)) != NOTHING:
            deleted.update(batch)
        return deleted

    total: Counter[str] = Counter()
    for deleted in sessions.together([lambda conn=conn: prune_all(conn) for conn in sessions.connections(8)]):
        total.update(deleted)
    assert total == {"workers": 0, "runs": 120, "step_states": 240, "step_tasks": 360, "messages": 360}
    assert prune(sessions.connect()) == NOTHING
    assert [everything(flow, *runs) for flow, runs in kept] == before


# Everything at once.

LABOURERS = 8
PRUNERS = 2


class Storm:
    """What workers, clients, operators and schedulers do to a few flows, by dice."""

    def __init__(self, flows: list[Any], work: Any) -> None:
        self.flows = flows
        self.work = work
        self.labouring = [True] * LABOURERS

    def labour(self, connection: Any, seed: int) -> Counter[str]:
        """Do each thing so many times, in an order of one's own; return what could be done, and what was refused."""
        dice = random.Random(seed)  # noqa: S311
        acts = [self.serve] * 40 + [self.start] * 15 + [self.come_late, self.leave_messages, self.sweep] * 15
        acts.append(self.change)
        dice.shuffle(acts)
        done: Counter[str] = Counter()
        try:
            for act in acts:
                try:
                    act(connection, dice.choice(self.flows), dice)
                    done[act.__name__] += 1
                except psycopg.Error as error:
                    # The flow is being changed, or was.
                    assert error.sqlstate in ("PF013", "PF018"), error
                    done[error.sqlstate] += 1
        finally:
            self.labouring.pop()
        return done

    def start(self, connection: Any, flow: Any, dice: random.Random) -> None:
        inputs = [Jsonb(list(range(dice.randint(0, 4)))) for _ in range(dice.randint(1, 4))]
        connection.execute("select pgflow.start_flows(%s, %s)", (flow.slug, inputs))

    def serve(self, connection: Any, flow: Any, dice: random.Random) -> None:
        step = dice.choice("ab") if flow.mode == "step" else None
        worker = uuid.uuid4()
        register = "select pgflow.register_worker(%s, %s, %s, %s)"
        connection.execute(register, (worker, f"{flow.slug}_{step}", flow.slug, step))
        # As good as silent for a month, for those who prune: even at work.
        connection.execute(
            """
            update pgflow.workers
            set started_at = started_at - interval '40 days', last_heartbeat_at = last_heartbeat_at - interval '40 days'
            where worker_id = %s
            """,
            (worker,),
        )
        for _ in range(3):
            rows = self.work.poll(connection, worker, dice.randint(1, 12))
            fates = [(row, dice.choice("cccfl")) for row in rows if row[1] == "claimed"]
            tasks = {fate: [(row[5], row[2], row[3], row[4]) for row, its in fates if its == fate] for fate in "cfl"}
            self.work.complete(connection, *[(*task, 1) for task in tasks["c"]])
            self.work.fail(connection, *tasks["f"])

    def come_late(self, connection: Any, flow: Any, dice: random.Random) -> None:
        tasks = connection.execute(
            """
            select run_id, step_slug, task_index
            from pgflow.step_tasks
            where flow_slug = %s and status in ('completed', 'failed', 'cancelled')
            order by md5(run_id::text || %s)
            limit 8
            """,
            (flow.slug, str(dice.random())),
        ).fetchall()
        if dice.random() < 0.5:
            statuses = self.work.complete(connection, *[(*task, None, "late") for task in tasks])
        else:
            statuses = self.work.fail(connection, *[(*task, None) for task in tasks])
        assert set(statuses) <= {"ended", "unknown"}

    def leave_messages(self, connection: Any, flow: Any, dice: random.Random) -> None:
        """Put messages of ended tasks back on their queue."""
        queue = flow.queue(dice.choice("ab"))
        # No queue: the flow is just deleted.
        with suppress(psycopg.errors.UndefinedTable):
            connection.execute(
                f"""
                with ended as materialized (
                  select message_id
                  from pgflow.step_tasks
                  where queue_name = %s and status in ('completed', 'failed')
                  limit 3
                  for key share skip locked
                )
                insert into pgmq.q_{queue} (msg_id, vt, message)
                overriding system value
                select message_id, now(), '{{}}'
                from ended
                on conflict do nothing
                """,
                (queue,),
            )

    def sweep(self, connection: Any, flow: Any, dice: random.Random) -> None:
        del dice
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
        self.work.requeue(connection)

    def change(self, connection: Any, flow: Any, dice: random.Random) -> None:
        connection.execute("set client_min_messages to warning")
        shape = dice.choice([flow.shape, flow.changed_shape()])
        if dice.random() < 0.5:
            connection.execute("select pgflow.delete_flow_and_data(%s)", (flow.slug,))
        compile_flow = "select pgflow.ensure_flow_compiled(%s, %s, true, %s)"
        connection.execute(compile_flow, (flow.slug, Jsonb(shape), flow.mode))

    def prune(self, connection: Any, seed: int) -> Counter[str]:
        dice = random.Random(seed)  # noqa: S311
        connection.execute("set pruning.by to 'prune'")
        deleted: Counter[str] = Counter()
        while self.labouring:
            deleted.update(prune(connection, "0", dice.choice([1, 3, 10, 1000])))
            connection.execute("select pg_sleep(0.01)")
        return deleted

    def pass_by(self) -> None:
        """Do what is left to be done, once nobody else is at it."""
        for flow in self.flows:
            while True:
                finish(flow, self.work)
                rows = flow.conn.execute(
                    "select from pgflow.runs where flow_slug = %s and status = 'started'", (flow.slug,)
                ).fetchall()
                if not rows:
                    break
                self.sweep(flow.conn, flow, random.Random(0))  # noqa: S311


def test_a_storm_of_all_of_these_touches_nothing_in_flight_and_leaves_nothing(
    sessions: Any, make_flow: Any, work: Any
) -> None:
    options = {"baseDelay": 0, "maxAttempts": 2}
    storm = Storm([make_flow(*STEPS, mode=mode, **options) for mode in ("step", "step", "flow")], work)
    # Nobody in the storm works on this flow; its runs are at different points.
    calm = make_flow(*STEPS)
    in_flight = [calm.run([1, 2, 3]) for _ in range(3)]
    rows = work.poll(calm.conn, calm.worker("a"), 5)
    work.complete(calm.conn, *[(row[5], "a", row[3], 1, row[3]) for row in rows[:4]])
    before = everything(calm, *in_flight)
    calm.conn.execute(
        """
        create table public.deleted_runs (run_id uuid, status text, deleted_by text);
        create function public.note_deleted_run() returns trigger language plpgsql as $$
        begin
          insert into public.deleted_runs values (old.run_id, old.status, current_setting('pruning.by', true));
          return old;
        end $$;
        create trigger note_deleted_run after delete on pgflow.runs
        for each row execute function public.note_deleted_run();
        """
    )

    calls = [storm.labour] * LABOURERS + [storm.prune] * PRUNERS
    conns = sessions.connections(len(calls))
    done = sessions.together(
        [
            lambda call=call, conn=conn, seed=seed: call(conn, seed)
            for seed, (call, conn) in enumerate(zip(calls, conns, strict=True))
        ]
    )

    acts: Counter[str] = sum(done, Counter())
    named = ("serve", "start", "come_late", "leave_messages", "sweep", "change", "workers", "runs", "messages")
    assert all(acts[name] for name in named), acts
    assert everything(calm, *in_flight) == before
    # No run that was going on was pruned, and none twice.
    pruned = calm.conn.execute("select run_id, status from public.deleted_runs where deleted_by = 'prune'").fetchall()
    assert {status for _, status in pruned} == {"completed", "failed"}
    assert len(dict(pruned)) == len(pruned) == sum(deleted["runs"] for deleted in done[LABOURERS:])
    # No message was taken for foreign work.
    assert calm.conn.execute("select function_name from pgflow.worker_functions where not enabled").fetchall() == []

    # What is left is sound: it gets done, and then goes without a trace.
    storm.pass_by()
    assert calm.conn.execute("select * from pgflow.check_integrity()").fetchall() == []
    while prune(calm.conn, "0") != NOTHING:
        pass
    for flow in storm.flows:
        assert (messages_of(flow), runs_of(flow)) == ({}, [])
    assert everything(calm, *in_flight) == before
