"""What a fatal claim says, and to whom: one warning with ids and never a body, and rows that survive it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg.pq import DiagnosticField
from psycopg.types.json import Jsonb

from pgflow_stepq.embedded import EmbeddedServer, create_database

SECRET = "correct horse battery staple"

Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True)
class Notice:
    """What the server sent beside an answer; libpq keeps it no longer than the handler runs."""

    severity: str | None
    sqlstate: str | None
    message: str
    hint: str
    everything: str

    @classmethod
    def of(cls, diagnostic: psycopg.errors.Diagnostic) -> Notice:
        parts = [
            getattr(diagnostic, field.name.lower())
            for field in DiagnosticField
            if hasattr(diagnostic, field.name.lower())
        ]
        return cls(
            diagnostic.severity_nonlocalized,
            diagnostic.sqlstate,
            diagnostic.message_primary or "",
            diagnostic.message_hint or "",
            "\n".join(str(part) for part in parts if part),
        )


@pytest.fixture
def notices(conn: Connection) -> list[Notice]:
    """Every warning that the server sends on `conn`."""
    heard: list[Notice] = []
    conn.execute("set client_min_messages to warning")
    conn.add_notice_handler(lambda diagnostic: heard.append(Notice.of(diagnostic)))
    return heard


@pytest.fixture
def meet_junk(conn: Connection) -> Callable[[str, str | None], tuple[str, list[int], uuid.UUID]]:
    """Give meet_junk(flow, step): compile the flow, register a worker, start two runs with a stranger's messages."""

    def make(flow: str, step: str | None) -> tuple[str, list[int], uuid.UUID]:
        shape = {"steps": [{"slug": "a", "dependencies": []}]}
        conn.execute(
            "select pgflow.ensure_flow_compiled(%s, %s, false, %s)", (flow, Jsonb(shape), "step" if step else "flow")
        )
        worker = uuid.uuid4()
        queue = conn.execute(
            "select queue_name from pgflow.register_worker(%s, %s, %s, %s)", (worker, f"{flow}_fn", flow, step)
        ).fetchone()[0]  # type: ignore[index]
        conn.execute("select pgflow.start_flow(%s, %s)", (flow, Jsonb({"secret": SECRET})))
        body = {"flow_slug": flow, "run_id": str(uuid.uuid4()), "step_slug": "a", "task_index": 0, "secret": SECRET}
        ids = [
            conn.execute("select pgmq.send(%s, %s, %s)", (queue, Jsonb(body), Jsonb({"header": SECRET}))).fetchone()[0]  # type: ignore[index]
            for _ in range(2)
        ]
        return queue, ids, worker

    return make


@pytest.mark.parametrize(("flow", "step"), [("warned", "a"), ("warned_flow", None)])
def test_one_warning_names_queue_flow_step_and_ids_and_no_body(
    conn: Connection, notices: list[Notice], meet_junk: Any, flow: str, step: str | None
) -> None:
    queue, ids, worker = meet_junk(flow, step)

    rows = conn.execute("select msg_id, outcome from pgflow.poll_tasks(%s, 10, 0)", (worker,)).fetchall()

    assert rows == [(1, "released"), (ids[0], "unsupported"), (ids[1], "unsupported")]
    [warning] = notices
    assert (warning.severity, warning.sqlstate) == ("WARNING", "PF011")
    assert f'queue "{queue}"' in warning.message
    assert f'flow "{flow}"' in warning.message
    assert f'function "{flow}_fn"' in warning.message
    assert f"{ids[0]}, {ids[1]}" in warning.message
    assert ('step "a"' in warning.message) == (step is not None)
    assert SECRET not in warning.everything
    assert "run_id" not in warning.everything
    assert "enable_worker_function" in warning.hint


def test_the_hint_can_be_run_as_it_stands(conn: Connection, notices: list[Notice], meet_junk: Any) -> None:
    _, ids, worker = meet_junk("hinted", "a")
    conn.execute("select from pgflow.poll_tasks(%s, 10, 0)", (worker,))

    hint = notices[0].hint
    look = hint[hint.index("select * from pgflow.classify_messages") :].split(";")[0]
    assert [row[:2] for row in conn.execute(look)] == [(msg_id, "unsupported") for msg_id in ids]


def test_what_a_fatal_batch_did_survives_the_commit(conn: Connection, database: str, meet_junk: Any) -> None:
    _, ids, worker = meet_junk("surviving", "a")
    with psycopg.connect(database) as claiming:
        claiming.execute("select from pgflow.claim_tasks('surviving__a', 'surviving', 'a', %s, %s)", (ids, worker))
    assert conn.execute(
        "select enabled from pgflow.worker_functions where function_name = 'surviving_fn'"
    ).fetchone() == (False,)


def test_what_is_stored_and_raised_later_holds_no_body(conn: Connection, meet_junk: Any) -> None:
    _, _, worker = meet_junk("logged", "a")
    conn.execute("select from pgflow.poll_tasks(%s, 10, 0)", (worker,))
    stored = conn.execute(
        """
        select concat_ws(' ', function.disabled_reason, worker.stop_reason)
        from pgflow.workers as worker
        inner join pgflow.worker_functions as function using (function_name)
        where worker.worker_id = %s
        """,
        (worker,),
    ).fetchone()
    assert stored is not None
    assert SECRET not in stored[0]
    with pytest.raises(psycopg.Error) as refusal:
        conn.execute("select from pgflow.poll_tasks(%s, 10, 0)", (worker,))
    assert refusal.value.sqlstate == "PF012"
    assert SECRET not in str(refusal.value)


def test_a_batch_of_thousands_is_refused_with_one_warning(
    conn: Connection, notices: list[Notice], meet_junk: Any
) -> None:
    queue, _, worker = meet_junk("thousands", "a")
    conn.execute("select pgmq.send_batch(%s, (select array_agg('{}'::jsonb) from generate_series(1, 3000)))", (queue,))

    rows = conn.execute("select outcome, count(*) from pgflow.poll_tasks(%s, 5000, 0) group by 1", (worker,)).fetchall()

    assert dict(rows) == {"released": 1, "unsupported": 3002}
    assert len(notices) == 1
    assert conn.execute(f"select count(*) from pgmq.q_{queue} where vt <= clock_timestamp()").fetchone() == (3003,)


def test_the_server_log_holds_no_body_at_the_most_talkative_level() -> None:
    """Everything that a server writes at debug5, with verbose errors, about polls that are refused, then disabled."""
    with EmbeddedServer() as server:
        conninfo = create_database(server, "talkative")
        with psycopg.connect(conninfo, autocommit=True) as conn:
            conn.execute(
                "select pgflow.ensure_flow_compiled('f', '{\"steps\": [{\"slug\": \"a\"}]}', queue_mode => 'step')"
            )
            worker = uuid.uuid4()
            conn.execute("select pgflow.register_worker(%s, 'fn', 'f', 'a')", (worker,))
            conn.execute("select pgflow.start_flow('f', %s)", (Jsonb({"secret": SECRET}),))
            conn.execute("select pgmq.send('f__a', %s)", (Jsonb({"secret": SECRET}),))
            for setting in (
                "log_min_messages = debug5",
                "log_error_verbosity = verbose",
                "log_min_error_statement = debug5",
            ):
                conn.execute(f"alter database talkative set {setting}")
        with psycopg.connect(conninfo, autocommit=True) as conn:
            outcomes = conn.execute("select outcome from pgflow.poll_tasks(%s, 10, 0)", (worker,)).fetchall()
            assert outcomes == [("released",), ("unsupported",)]
            with pytest.raises(psycopg.Error):
                conn.execute("select outcome from pgflow.poll_tasks(%s, 10, 0)", (worker,))
        log = server.log_tail(1_000_000)

    assert "PF011" in log
    assert "PF012" in log
    assert "DEBUG:  " in log
    assert SECRET not in log
