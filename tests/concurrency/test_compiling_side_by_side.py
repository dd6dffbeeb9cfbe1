"""Many sessions compile at once, as the workers of a deployment do when they start together."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb


@pytest.fixture
def database(fresh_database: str) -> str:
    """The connection string of a database for one test alone: names are what is tested."""
    return fresh_database


def ensure(connection: Any, slug: str, *steps: str, mode: str = "step", allow_data_loss: bool = False) -> str:
    connection.execute("set client_min_messages to warning")
    shape = {"steps": [{"slug": step} for step in steps]}
    query = "select pgflow.ensure_flow_compiled(%s, %s, %s, %s) ->> 'status'"
    return connection.execute(query, (slug, Jsonb(shape), allow_data_loss, mode)).fetchone()[0]


def queues(connection: Any) -> list[str]:
    rows = connection.execute('select queue_name from pgmq.meta order by queue_name collate "C"')
    return [name for (name,) in rows]


@pytest.mark.parametrize(("mode", "names"), [("step", ["f__a", "f__b"]), ("flow", ["f"])])
def test_twenty_first_starts_of_a_flow_compile_it_once(sessions: Any, mode: str, names: list[str]) -> None:
    starts = [lambda own=own: ensure(own, "f", "a", "b", mode=mode) for own in sessions.connections(20)]
    assert Counter(sessions.together(starts)) == {"compiled": 1, "verified": 19}
    assert queues(sessions.observer) == names
    assert sessions.observer.execute("select * from pgflow.check_integrity()").fetchall() == []


def test_twenty_sessions_that_define_a_flow_step_by_step_make_one(sessions: Any) -> None:
    def define(connection: Any) -> str:
        created = connection.execute("select (pgflow.create_flow('f')).flow_slug").fetchone()[0]
        connection.execute("select pgflow.add_step('f', 'a')")
        return created

    defined = sessions.together([lambda own=own: define(own) for own in sessions.connections(20)])
    assert defined == ["f"] * 20
    assert queues(sessions.observer) == ["f"]
    assert sessions.observer.execute("select step_slug, step_index from pgflow.steps").fetchall() == [("a", 0)]


@pytest.mark.parametrize(("before", "after"), [("step", "step"), ("step", "flow"), ("flow", "step")])
def test_twenty_starts_of_a_changed_flow_recompile_it_once(sessions: Any, before: str, after: str) -> None:
    ensure(sessions.observer, "f", "a", "b", mode=before)
    starts = [
        lambda own=own: ensure(own, "f", "a", "c", mode=after, allow_data_loss=True) for own in sessions.connections(20)
    ]
    assert Counter(sessions.together(starts)) == {"recompiled": 1, "verified": 19}
    assert queues(sessions.observer) == (["f__a", "f__c"] if after == "step" else ["f"])
    assert sessions.observer.execute("select generation from pgflow.flows").fetchone() == (2,)
    assert sessions.observer.execute("select * from pgflow.check_integrity()").fetchall() == []


@pytest.mark.parametrize("change", ["compile", "recompile", "delete"])
def test_different_flows_do_not_wait_for_each_other(sessions: Any, change: str) -> None:
    changing, other = sessions.connect(autocommit=False), sessions.connect()
    other.execute("set lock_timeout to '10s'")
    ensure(other, "there", "a", "b")
    ensure(other, "g", "a")

    if change == "delete":
        changing.execute("select pgflow.delete_flow_and_data('there')")
    else:
        ensure(changing, "there" if change == "recompile" else "new", "a", "c", allow_data_loss=True)
    assert ensure(other, "f", "a", "b") == "compiled"
    assert ensure(other, "g", "a") == "verified"
    assert ensure(other, "g", "a", "b", allow_data_loss=True) == "recompiled"
    other.execute("select pgflow.delete_flow_and_data('g')")
    changing.commit()
    assert sessions.observer.execute("select * from pgflow.check_integrity()").fetchall() == []


# Flows that meet in a queue: by case, and where a flow in flow mode has the name of another one's step.
NAMES = ["Orders", "orders", "shop", "shop__cart", "Shop"]


def test_whatever_sessions_do_with_flows_that_meet_ends_with_a_clear_answer(sessions: Any) -> None:
    def live(connection: Any, seed: int) -> Counter[str]:
        dice = random.Random(seed)  # noqa: S311
        seen: Counter[str] = Counter()
        connection.execute("set client_min_messages to error")
        for _ in range(30):
            slug = dice.choice(NAMES)
            mode = "flow" if slug == "shop__cart" else dice.choice(["flow", "step"])
            steps = dice.sample(["cart", "pay", "ship"], dice.randint(1, 3))
            arguments = (slug, Jsonb({"steps": [{"slug": step} for step in steps]}), dice.random() < 0.6, mode)
            deed = dice.choice(["ensure", "ensure", "plan", "delete", "start"])
            try:
                if deed == "delete":
                    connection.execute("select pgflow.delete_flow_and_data(%s)", (slug,))
                elif deed == "start":
                    connection.execute("select pgflow.start_flow(%s, '{}')", (slug,))
                else:
                    call = {"ensure": "ensure_flow_compiled", "plan": "plan_flow_compiled"}[deed]
                    query = f"select pgflow.{call}(%s, %s, %s, %s) ->> 'status'"
                    seen[connection.execute(query, arguments).fetchone()[0]] += 1
            except psycopg.Error as error:
                seen[error.sqlstate or "lost"] += 1
        return seen

    lives = [lambda own=own, seed=seed: live(own, seed) for seed, own in enumerate(sessions.connections(8))]
    seen = sum(sessions.together(lives), Counter())

    # Of errors, those that tell whose the queue is, that the routing differs, or that there is no such flow.
    answers = {"compiled", "verified", "recompiled", "mismatch", "refused", "PF005", "PF007", "PF018"}
    assert set(seen) <= answers, seen
    assert all(seen[answer] for answer in ("compiled", "verified", "recompiled", "PF005")), seen
    assert sessions.observer.execute("select * from pgflow.check_integrity()").fetchall() == []
    left = sessions.observer.execute(
        """
        select queue_name from pgmq.meta
        except
        select queue_name from pgflow.queues
        """
    )
    assert left.fetchall() == []
