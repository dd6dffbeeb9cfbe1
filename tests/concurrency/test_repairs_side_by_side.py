"""A repair of all flows meets flows that are made and deleted meanwhile."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_repair_of_all_touches_only_the_flows_that_it_took(sessions: Any, make_flow: Any, is_lost: bool) -> None:
    first = make_flow({"slug": "a"})
    holding, repairing, deleting = (
        sessions.connect(autocommit=False),
        sessions.connect(),
        sessions.connect(autocommit=False),
    )

    holding.execute("select pgflow.take_flow(%s)", (first.slug,))
    repaired = sessions.start(lambda: repairing.execute("select * from pgflow.repair_queues()").fetchall())
    sessions.wait_until_blocked(repairing, holding)
    # It has seen which flows there are; this one comes, and is just going away when the repair goes on.
    second = make_flow({"slug": "a"})
    if is_lost:
        second.conn.execute("select pgmq.drop_queue(%s)", (second.queue("a"),))
    deleting.execute("select pgflow.delete_flow_and_data(%s)", (second.slug,))
    holding.commit()
    assert repaired.result() == []
    deleting.commit()
    left = first.conn.execute("select count(*) from pgmq.meta where queue_name = %s", (second.queue("a"),)).fetchone()
    assert left == (0,)
    assert first.faults() == []


@pytest.mark.parametrize("call", ["classify_messages(%s, 'f', 'a', array[1])", "quarantine_message(%s, 1)"])
def test_looking_at_a_queue_that_is_being_deleted_ends_with_a_clear_error(
    sessions: Any, make_flow: Any, call: str
) -> None:
    flow = make_flow({"slug": "a"})
    deleting, looking = sessions.connect(autocommit=False), sessions.connect()

    deleting.execute("select pgflow.delete_flow_and_data(%s)", (flow.slug,))
    looked = sessions.start(lambda: looking.execute(f"select * from pgflow.{call}", (flow.queue("a"),)))
    sessions.wait_until_blocked(looking, deleting)
    deleting.commit()
    with pytest.raises(psycopg.Error, match="There is no queue") as refusal:
        looked.result()
    assert refusal.value.sqlstate == "PF019"


def test_a_poll_with_an_old_snapshot_is_told_to_begin_anew(sessions: Any, make_flow: Any, work: Any) -> None:
    flow = make_flow({"slug": "a"})
    worker = flow.worker("a")
    polling = sessions.connect(autocommit=False)
    polling.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    polling.execute("select from pgflow.runs")

    flow.recompile(flow.conn, [{"slug": "b"}])
    with pytest.raises(psycopg.Error) as refusal:
        work.poll(polling, worker)
    assert refusal.value.sqlstate == "PF013"
