"""Sessions that take one queue name at the same moment: one has it, the others are told whose it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import psycopg
import pytest

from .conftest import PATIENCE, Connection, Sessions

CATALOG = """
    select
      (select jsonb_agg(flow_slug order by flow_slug) from pgflow.flows),
      (select jsonb_agg(queue_name order by queue_name) from pgflow.queues),
      (select jsonb_agg(queue_name order by queue_name) from pgmq.meta),
      (select jsonb_agg(relname order by relname) from pg_class where relnamespace = 'pgmq'::regnamespace)
"""


@pytest.fixture
def database(fresh_database: str) -> str:
    """The connection string of a database for one test alone: names are what is tested."""
    return fresh_database


def compile_steps(conn: Connection, slug: str, *steps: str) -> Any:
    shape = json.dumps({"steps": [{"slug": step} for step in steps]})
    return conn.execute("select pgflow.ensure_flow_compiled(%s, %s, false, 'step')", (slug, shape)).fetchone()


def refusal(call: Future[Any]) -> tuple[str | None, str | None]:
    with pytest.raises(psycopg.Error) as refused:
        call.result(PATIENCE)
    return refused.value.sqlstate, refused.value.diag.message_primary


def test_a_queue_made_by_hand_under_another_spelling_meanwhile_is_named(sessions: Sessions) -> None:
    other, ours = sessions.connect(autocommit=False), sessions.connect()
    other.execute("select pgmq.create('RACE')")
    call = sessions.start(lambda: ours.execute("select pgflow.create_flow('race')"))
    sessions.wait_until_blocked(ours, by=other)
    other.commit()

    assert refusal(call) == ("PF004", 'Queue "race", which flow "race" needs, exists already and belongs to no flow.')
    left = sessions.observer.execute(CATALOG).fetchone()
    assert left is not None
    assert left[:3] == (None, None, ["RACE"])


def test_a_queue_that_was_not_made_after_all_is_no_obstacle(sessions: Sessions) -> None:
    other, ours = sessions.connect(autocommit=False), sessions.connect()
    other.execute("select pgmq.create('RACE')")
    call = sessions.start(lambda: ours.execute("select pgflow.create_flow('race')"))
    sessions.wait_until_blocked(ours, by=other)
    other.rollback()

    call.result(PATIENCE)
    left = sessions.observer.execute(CATALOG).fetchone()
    assert left is not None
    assert left[:3] == (["race"], ["race"], ["race"])


def test_a_queue_made_by_hand_after_the_check_is_not_taken(sessions: Sessions) -> None:
    holder, ours = sessions.connect(autocommit=False), sessions.connect()
    holder.execute("select pgmq.create('RACE__FIRST')")
    call = sessions.start(lambda: compile_steps(ours, "race", "first", "second"))
    # By now every name was found free, and the first is being made.
    sessions.wait_until_blocked(ours, by=holder)
    sessions.observer.execute("select pgmq.create('RACE__SECOND')")
    before = sessions.observer.execute(CATALOG).fetchone()
    holder.rollback()

    assert refusal(call) == (
        "PF004",
        'Queue "race__second", which flow "race" needs, exists already and belongs to no flow.',
    )
    assert sessions.observer.execute(CATALOG).fetchone() == before


DEFINITIONS: dict[str, list[Callable[[Connection], Any]]] = {
    "spellings of a flow": [
        lambda conn: conn.execute("select pgflow.create_flow('Meet')"),
        lambda conn: conn.execute("select pgflow.create_flow('meet')"),
        lambda conn: conn.execute("select pgflow.create_flow('MEET')"),
    ],
    "flows and steps": [
        lambda conn: conn.execute("select pgflow.create_flow('a__b__c')"),
        lambda conn: compile_steps(conn, "a", "first", "b__c"),
        lambda conn: compile_steps(conn, "a__b", "c", "last"),
    ],
}


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_of_flows_that_need_one_name_one_has_it(sessions: Sessions, kind: str) -> None:
    connections = sessions.connections(9)

    def define(number: int) -> str | None:
        try:
            DEFINITIONS[kind][number % 3](connections[number])
        except psycopg.Error as error:
            return error.sqlstate
        return "done"

    ends = sessions.together([lambda number=number: define(number) for number in range(9)])  # type: ignore[misc]

    # The three who define the flow that came first all succeed.
    assert sorted(str(end) for end in ends) == ["PF005"] * 6 + ["done"] * 3
    flows = sessions.observer.execute("select count(*) from pgflow.flows").fetchone()
    assert flows == (1,)
    faults = "select count(*) from pgflow.check_integrity()"
    assert sessions.observer.execute(faults).fetchone() == (0,)
