"""A flow of many queues needs many locks at once: what fits, and what a server whose lock table is full says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from pgflow_stepq.embedded import EmbeddedServer, create_database

Connection = psycopg.Connection[tuple[Any, ...]]

CATALOG = """
    select jsonb_build_array(
      (select jsonb_agg(flow order by flow.flow_slug) from pgflow.flows as flow),
      (select jsonb_agg(step order by step.flow_slug, step.step_index) from pgflow.steps as step),
      (select jsonb_agg(owner order by owner.queue_name) from pgflow.queues as owner),
      (select jsonb_agg(run order by run.run_id) from pgflow.runs as run),
      (select jsonb_agg(worker order by worker.worker_id) from pgflow.workers as worker),
      (select jsonb_agg(meta order by meta.queue_name) from pgmq.meta as meta),
      (select jsonb_agg(relname order by relname) from pg_class where relnamespace = 'pgmq'::regnamespace)
    )
"""


def shape(steps: int) -> str:
    return json.dumps({"steps": [{"slug": f"step{number}"} for number in range(steps)]})


def ensure(conn: Connection, slug: str, steps: int, *, allow_data_loss: bool = False) -> Any:
    query = "select pgflow.ensure_flow_compiled(%s, %s, %s, 'step')"
    row = conn.execute(query, (slug, shape(steps), allow_data_loss)).fetchone()
    assert row is not None
    return row[0]


def own_server(**settings: str) -> Iterator[Connection]:
    with (
        EmbeddedServer(settings=settings) as server,
        psycopg.connect(create_database(server, "locks"), autocommit=True) as conn,
    ):
        yield conn


@pytest.fixture(scope="module")
def narrow() -> Iterator[Connection]:
    """A connection to a server whose lock table is as small as it gets."""
    yield from own_server(max_locks_per_transaction="10", max_connections="20")


@pytest.fixture(scope="module")
def wide() -> Iterator[Connection]:
    """A connection to a server with eight times the usual lock table."""
    yield from own_server(max_locks_per_transaction="512")


@pytest.fixture
def filled(narrow: Connection) -> Iterator[Connection]:
    """Another session of the narrow server that leaves room for some hundred locks: fewer than twenty queues take."""
    with psycopg.connect(narrow.info.dsn, autocommit=True) as greedy:
        with pytest.raises(psycopg.errors.OutOfMemory):
            greedy.execute("select pg_advisory_lock(number) from generate_series(1, 1000000) as number")
        # What the failed statement got, it keeps: these locks are the session's.
        greedy.execute(
            """
            select pg_advisory_unlock(held.objid::int)
            from (
              select objid from pg_locks where pid = pg_backend_pid() and locktype = 'advisory' limit 300
            ) as held
            """
        )
        yield greedy


CHANGES: dict[str, tuple[Callable[[Connection], Any], str, str]] = {
    "a new flow": (
        lambda conn: ensure(conn, "fresh", 20),
        'flow "fresh"',
        "There are 20 queues to make and 0 to drop, which takes about 480 locks",
    ),
    "a recompilation": (
        lambda conn: ensure(conn, "there", 19, allow_data_loss=True),
        'flow "there"',
        "There are 19 queues to make and 20 to drop, which takes about 1256 locks",
    ),
    "a deletion": (
        lambda conn: conn.execute("select pgflow.delete_flow_and_data('there')"),
        'flow "there"',
        "There are 0 queues to make and 20 to drop, which takes about 800 locks",
    ),
    "a repair": (
        lambda conn: conn.execute("select * from pgflow.repair_queues('lost')"),
        'flow "lost"',
        "There are 20 queues to make and 0 to drop, which takes about 480 locks",
    ),
    "a repair of all": (
        lambda conn: conn.execute("select * from pgflow.repair_queues()"),
        "all flows",
        "There are 40 queues to make and 0 to drop, which takes about 960 locks",
    ),
}


@pytest.fixture(scope="module")
def flows(narrow: Connection) -> None:
    """A flow with a run and a worker, and one whose queues are gone."""
    ensure(narrow, "there", 20)
    narrow.execute("select pgflow.start_flow('there', '{}')")
    narrow.execute("select pgflow.register_worker(gen_random_uuid(), 'w', 'there', 'step0')")
    ensure(narrow, "lost", 20)
    narrow.execute("select pgmq.drop_queue(queue_name) from pgflow.queues where flow_slug = 'lost'")


@pytest.mark.usefixtures("flows")
@pytest.mark.parametrize("change", CHANGES)
def test_a_full_lock_table_is_named_and_nothing_is_left_behind(
    narrow: Connection, filled: Connection, change: str
) -> None:
    do, subject, figures = CHANGES[change]
    before = narrow.execute(CATALOG).fetchone()

    with pytest.raises(psycopg.Error) as refusal:
        do(narrow)

    diag = refusal.value.diag
    assert diag.sqlstate == "PF017"
    assert diag.message_primary == f"The server's lock table is too small for the queues of {subject}."
    assert diag.message_detail is not None
    assert diag.message_detail.startswith(figures)
    assert "max_locks_per_transaction, 10, promises 200 in all, for 20 connections: out of shared memory" in (
        diag.message_detail
    )
    assert diag.message_hint is not None
    assert diag.message_hint.startswith("Set max_locks_per_transaction to ")
    assert narrow.execute(CATALOG).fetchone() == before

    filled.close()
    with narrow.transaction(force_rollback=True):
        do(narrow)
        assert narrow.execute(CATALOG).fetchone() != before


def test_fifteen_hundred_steps_are_compiled_verified_worked_and_deleted(wide: Connection) -> None:
    steps = 1500
    compiled = ensure(wide, "huge", steps)
    assert (compiled["status"], len(compiled["routes"])) == ("compiled", steps)
    assert ensure(wide, "huge", steps)["status"] == "verified"
    assert wide.execute("select count(*) from pgmq.meta").fetchone() == (steps,)

    run = wide.execute("select run_id from pgflow.start_flow('huge', '{}')").fetchone()
    assert run is not None
    worker = "00000000-0000-4000-8000-000000000001"
    wide.execute("select pgflow.register_worker(%s, 'w', 'huge', 'step1499')", (worker,))
    wide.execute(
        """
        select pgflow.complete_task(task.run_id, task.step_slug, task.task_index, '"done"')
        from pgflow.poll_tasks(%s, 10, 0) as task
        """,
        (worker,),
    )
    done = "select status, output from pgflow.step_states where run_id = %s and step_slug = 'step1499'"
    assert wide.execute(done, run).fetchone() == ("completed", "done")

    wide.execute("select pgflow.delete_flow_and_data('huge')")
    left = "select (select count(*) from pgmq.meta), (select count(*) from pgflow.queues)"
    assert wide.execute(left).fetchone() == (0, 0)


def test_the_locks_that_a_queue_takes_are_what_the_refusal_counts_with(wide: Connection) -> None:
    held = "select count(*) from pg_locks where pid = pg_backend_pid() and not fastpath"

    def locks_of(change: Callable[[], object]) -> int:
        with wide.transaction():
            change()
            row = wide.execute(held).fetchone()
            assert row is not None
            return int(row[0])

    made = [locks_of(lambda steps=steps: ensure(wide, f"count{steps}", steps)) for steps in (40, 80)]
    dropped = [
        locks_of(lambda steps=steps: wide.execute("select pgflow.delete_flow_and_data(%s)", (f"count{steps}",)))
        for steps in (40, 80)
    ]

    # Linear, so that the figures hold for any number of steps.
    assert 22 <= (made[1] - made[0]) / 40 <= 24
    assert 38 <= (dropped[1] - dropped[0]) / 40 <= 40
