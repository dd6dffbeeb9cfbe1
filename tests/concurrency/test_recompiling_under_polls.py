"""A flow is compiled anew in every direction while its workers poll, finish and register, and runs are started."""

from __future__ import annotations

import json
import uuid
from typing import Any

import psycopg
import pytest

LONG = "x" * 40

# Each is another one than the last: other steps, another order (so that an index name moves), another mode.
DEFINITIONS: list[tuple[str, list[str]]] = [
    ("step", ["a", "b"]),
    ("flow", ["a", "b"]),
    ("step", ["a", "b"]),
    ("step", ["b"]),
    ("step", ["b", LONG, "a"]),
    ("step", ["a", "b", LONG]),
    ("step", [LONG, "c"]),
    ("flow", ["c"]),
    ("flow", ["c", "d"]),
    ("step", ["d"]),
]


def ensure(connection: Any, slug: str, mode: str, steps: list[str]) -> str:
    shape = json.dumps({"steps": [{"slug": step} for step in steps]})
    query = "select pgflow.ensure_flow_compiled(%s, %s, true, %s) ->> 'status'"
    return connection.execute(query, (slug, shape, mode)).fetchone()[0]


@pytest.mark.parametrize("seconds", [0, 1])
def test_no_worker_ever_gets_a_task_of_another_generation(sessions: Any, work: Any, seconds: int) -> None:
    """Every run carries the generation that it was started in, and every worker knows its own."""
    slug = f"recompiled{seconds}"
    operator, starter = sessions.connect(), sessions.connect()
    operator.execute("set client_min_messages to warning")
    ensure(operator, slug, *DEFINITIONS[0])
    is_over = [False]

    def labour(connection: Any) -> list[tuple[int, int]]:
        """Register for whichever step there is, work until told to stop, and begin again."""
        claimed: list[tuple[int, int]] = []
        connection.execute("set client_min_messages to warning")
        while not is_over[0]:
            worker = uuid.uuid4()
            route = connection.execute(
                """
                select queue_mode, step_slug
                from pgflow.queue_coverage
                where flow_slug = %s
                order by random()
                limit 1
                """,
                (slug,),
            ).fetchone()
            try:
                generation = connection.execute(
                    "select generation from pgflow.register_worker(%s, %s, %s, %s)",
                    (worker, f"{slug}_{route[1]}", slug, route[1] if route[0] == "step" else None),
                ).fetchone()[0]
                for _ in range(20):
                    rows = connection.execute(
                        """
                        select
                          task.run_id, task.step_slug, task.task_index, task.attempt,
                          (task.flow_input ->> 'generation')::int
                        from pgflow.poll_tasks(%s, 5, %s, 10) as task
                        where task.outcome = 'claimed'
                        """,
                        (worker, seconds),
                    ).fetchall()
                    claimed += [(generation, row[4]) for row in rows]
                    work.complete(connection, *[(row[0], row[1], row[2], row[3], 1) for row in rows])
            except psycopg.Error as error:
                # Between its look at the routes and its registration the flow may have changed: told so as well.
                assert error.sqlstate in ("PF013", "PF014"), error
        return claimed

    def change(connection: Any) -> None:
        try:
            for mode, steps in DEFINITIONS[1:] + DEFINITIONS[:1]:
                connection.execute("select pg_sleep(0.05)")
                assert ensure(connection, slug, mode, steps) == "recompiled"
        finally:
            is_over[0] = True

    results = sessions.together(
        [lambda own=own: labour(own) for own in sessions.connections(6)]
        + [lambda: start_stamped(starter, slug, is_over), lambda: change(operator)]
    )
    claimed = [pair for share in results[:6] for pair in share]
    assert len({generation for generation, _ in claimed}) > len(DEFINITIONS) // 2
    assert [pair for pair in claimed if pair[0] != pair[1]] == []

    # What is left drains, and nothing contradicts.
    for step in DEFINITIONS[0][1]:
        worker = uuid.uuid4()
        operator.execute("select pgflow.register_worker(%s, 'drain', %s, %s)", (worker, slug, step))
        while rows := work.poll(operator, worker, 100):
            work.complete(operator, *[(row[5], row[2], row[3], row[4], 1) for row in rows if row[1] == "claimed"])
    open_runs = operator.execute(
        "select count(*) from pgflow.runs where flow_slug = %s and status = 'started'", (slug,)
    )
    assert open_runs.fetchone() == (0,)
    assert operator.execute("select * from pgflow.check_integrity(%s)", (slug,)).fetchall() == []


def start_stamped(connection: Any, slug: str, is_over: list[bool]) -> None:
    """Start runs whose input says in which generation they were started: looked up under the lock that keeps it."""
    while not is_over[0]:
        with connection.transaction():
            connection.execute("select pg_advisory_xact_lock_shared(pgflow.flow_key(%s))", (slug,))
            connection.execute(
                """
                select pgflow.start_flow(flow.flow_slug, jsonb_build_object('generation', flow.generation))
                from pgflow.flows as flow
                where flow.flow_slug = %s
                """,
                (slug,),
            )
