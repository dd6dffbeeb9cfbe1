"""What start-up logs show beside the answer: notices, which SQL can't hear itself."""

from __future__ import annotations

import json
import uuid
from typing import Any

import psycopg
import pytest

Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def heard(conn: Connection) -> list[tuple[str | None, str | None, str | None, str | None]]:
    """Every notice that the server sends on `conn`: severity, message, detail and hint."""
    notices: list[tuple[str | None, str | None, str | None, str | None]] = []
    conn.execute("set client_min_messages to notice")
    conn.add_notice_handler(
        lambda said: notices.append(
            (said.severity_nonlocalized, said.message_primary, said.message_detail, said.message_hint)
        )
    )
    return notices


@pytest.fixture
def flow(conn: Connection) -> str:
    """A slug of this test's own."""
    return f"f{uuid.uuid4().hex[:8]}"


def ensure(conn: Connection, flow: str, *steps: str, mode: str = "step", **keys: object) -> Any:
    shape = {"steps": [{"slug": step, **keys} for step in steps]}
    query = "select pgflow.ensure_flow_compiled(%s, %s, queue_mode => %s)"
    row = conn.execute(query, (flow, json.dumps(shape), mode)).fetchone()
    assert row is not None
    return row[0]


def uncovered(flow: str, count: int, steps: str) -> tuple[str, str, str, None]:
    return (
        "NOTICE",
        f'Flow "{flow}": no live worker serves {count} of its steps: {steps}.',
        "Their work waits in its queues until a worker starts.",
        None,
    )


def test_steps_without_a_worker_are_named_at_every_start(conn: Connection, flow: str, heard: list[Any]) -> None:
    assert ensure(conn, flow, "a", "b", "c")["uncovered"] == ["a", "b", "c"]
    conn.execute("select pgflow.register_worker(gen_random_uuid(), %s, %s, 'b')", (f"{flow}/b", flow))
    assert ensure(conn, flow, "a", "b", "c")["uncovered"] == ["a", "c"]
    assert heard == [uncovered(flow, 3, "a, b, c"), uncovered(flow, 2, "a, c")]


def test_nothing_is_said_when_every_step_has_a_worker(conn: Connection, flow: str, heard: list[Any]) -> None:
    ensure(conn, flow, "a")
    conn.execute("select pgflow.register_worker(gen_random_uuid(), %s, %s, 'a')", (f"{flow}/a", flow))
    heard.clear()
    assert ensure(conn, flow, "a") | {"routes": None} == {
        "status": "verified", "differences": [], "queue_mode": "step", "routes": None, "uncovered": [],
    }  # fmt: skip
    assert heard == []


def test_a_log_line_stays_readable_for_a_flow_of_many_steps(conn: Connection, flow: str, heard: list[Any]) -> None:
    steps = [f"s{number}" for number in range(30)]
    assert ensure(conn, flow, *steps, mode="flow")["uncovered"] == steps
    assert heard == [uncovered(flow, 30, ", ".join([*steps[:20], "..."]))]


def test_an_unknown_key_is_mentioned_in_flow_mode_and_refused_in_step_mode(
    conn: Connection, flow: str, heard: list[Any]
) -> None:
    ensure(conn, flow, "a", mode="flow", colour="blue")
    severity, message, detail, _ = heard[0]
    assert severity == "NOTICE"
    assert flow in message
    assert '"colour"' in f"{message} {detail}"
    with pytest.raises(psycopg.Error, match="colour") as refusal:
        ensure(conn, f"{flow}x", "a", colour="blue")
    assert refusal.value.sqlstate == "PF008"


def test_a_queue_that_somebody_made_again_is_left_and_named(conn: Connection, flow: str, heard: list[Any]) -> None:
    ensure(conn, flow, "a")
    queue = f"{flow}__a"
    conn.execute("select pgmq.drop_queue(%s)", (queue,))
    conn.execute("select pgmq.create(%s)", (queue,))
    conn.execute("select pgmq.send(%s, '{}')", (queue,))
    heard.clear()

    conn.execute("select pgflow.delete_flow_and_data(%s)", (flow,))

    (severity, message, _, hint) = heard[0]
    assert severity == "NOTICE"
    assert message == f'Queue "{queue}" was made again outside of flow "{flow}".'
    assert conn.execute("select queue_length from pgmq.metrics(%s)", (queue,)).fetchone() == (1,)
    # The way out is a call that can be pasted.
    conn.execute(hint[hint.index("select pgmq.drop_queue") :].rstrip("."))
    assert conn.execute("select count(*) from pgmq.meta where queue_name = %s", (queue,)).fetchone() == (0,)
