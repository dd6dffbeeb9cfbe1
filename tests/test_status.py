"""The command `status`: what it shows, and its exit code as a health check."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from pgflow_stepq import cli

Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def conn(fresh_database: str) -> Any:
    """A connection to a database in which there is nothing yet."""
    with psycopg.connect(fresh_database, autocommit=True) as connection:
        yield connection


def ensure(conn: Connection, flow: str, *steps: str, mode: str = "step") -> None:
    shape = json.dumps({"steps": [{"slug": step} for step in steps]})
    conn.execute("select pgflow.ensure_flow_compiled(%s, %s, queue_mode => %s)", (flow, shape, mode))


def register(conn: Connection, flow: str, step: str | None = None) -> None:
    name = f"{flow}/{step}"
    conn.execute("select pgflow.register_worker(gen_random_uuid(), %s, %s, %s)", (name, flow, step))


def start(conn: Connection, flow: str, runs: int = 1) -> None:
    conn.execute("select pgflow.start_flow(%s, '{}') from generate_series(1, %s)", (flow, runs))


def status(conn: Connection, *options: str) -> int:
    return cli.main(["status", "--dsn", conn.info.dsn, *options])


def table(printed: str) -> list[list[str]]:
    return [line.split() for line in printed.splitlines()[1:] if line.startswith("  ")]


def test_a_route_is_shown_with_its_workers_and_what_waits(conn: Connection, capsys: pytest.CaptureFixture[str]) -> None:
    ensure(conn, "Orders_v2", "reserve", "ship")
    register(conn, "Orders_v2", "reserve")
    register(conn, "Orders_v2", "reserve")
    register(conn, "Orders_v2", "ship")
    start(conn, "Orders_v2", 3)
    conn.execute("select from pgflow.workers as w, pgflow.poll_tasks(w.worker_id, 1, 0) where w.step_slug = 'ship'")
    conn.execute("select pgmq.set_vt('orders_v2__reserve', 2, 3600)")

    assert status(conn) == 0
    assert table(capsys.readouterr().out) == [
        ["Orders_v2", "reserve", "2", "0", "s", "2", "0", "1", "0", "s"],
        ["Orders_v2", "ship", "1", "0", "s", "2", "1", "0", "0", "s"],
    ]


def test_waiting_work_without_a_worker_is_3_and_told(conn: Connection, capsys: pytest.CaptureFixture[str]) -> None:
    ensure(conn, "f", "a", "b")
    register(conn, "f", "a")
    assert status(conn) == 0  # nobody for b, but nothing waits there
    assert ["f", "b", "0", "-", "0", "0", "0", "-", "no", "worker"] in table(capsys.readouterr().out)

    start(conn, "f")
    assert status(conn) == 3
    printed = capsys.readouterr().out
    assert "Work waits and nobody comes\n  f, step b: 1 messages wait" in printed
    assert "step a:" not in printed

    register(conn, "f", "b")
    assert status(conn) == 0
    assert "nobody comes" not in capsys.readouterr().out


def test_a_worker_that_has_gone_silent_is_none(conn: Connection, capsys: pytest.CaptureFixture[str]) -> None:
    ensure(conn, "f", "a", mode="flow")
    register(conn, "f")
    start(conn, "f")
    assert status(conn) == 0
    conn.execute("update pgflow.workers set last_heartbeat_at = clock_timestamp() - interval '200 seconds'")
    assert status(conn) == 3
    printed = capsys.readouterr().out
    assert ["f", "a", "0", "3", "min", "1"] in [row[:6] for row in table(printed)]


def test_one_flow_is_asked_for(conn: Connection, capsys: pytest.CaptureFixture[str]) -> None:
    ensure(conn, "f", "a")
    ensure(conn, "g", "a")
    register(conn, "f", "a")
    start(conn, "g")
    assert status(conn, "--flow", "f") == 0
    assert status(conn, "--flow", "g") == 3
    assert status(conn) == 3
    capsys.readouterr()
    assert status(conn, "--flow", "F") == 1
    assert capsys.readouterr().err.startswith('ERROR:  PF018: Flow "F" is not known.\n')


def test_fences_and_lost_queues_are_shown(conn: Connection, capsys: pytest.CaptureFixture[str]) -> None:
    ensure(conn, "f", "a", "b")
    register(conn, "f", "a")
    conn.execute("select pgflow.fence_flow('f', 'deploy')")
    conn.execute("select pgmq.drop_queue('f__b')")
    assert status(conn) == 0
    printed = capsys.readouterr().out
    assert "Fenced\n  f: function f/a, deploy\n" in printed
    assert ["f", "b", "0", "-", "-", "-", "-", "-", "no", "queue"] in table(printed)


def test_steps_that_share_a_queue_are_said_to(conn: Connection, capsys: pytest.CaptureFixture[str]) -> None:
    ensure(conn, "f", "a", "b")
    assert status(conn) == 0
    assert "share one queue" not in capsys.readouterr().out
    ensure(conn, "g", "a", "b", mode="flow")
    assert status(conn) == 0
    assert "share one queue" in capsys.readouterr().out


def test_long_slugs_leave_the_figures_in_sight(conn: Connection, capsys: pytest.CaptureFixture[str]) -> None:
    ensure(conn, "f" * 44, "s" * 100, mode="flow")
    register(conn, "f" * 44)
    assert status(conn) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[1].split()[2:] == ["1", "0", "s", "0", "0", "0", "-"]


def test_json_is_one_object_with_every_figure(conn: Connection, capsys: pytest.CaptureFixture[str]) -> None:
    ensure(conn, "f", "a", "b")
    register(conn, "f", "a")
    start(conn, "f", 2)
    assert status(conn, "--json") == 3
    (line,) = capsys.readouterr().out.splitlines()
    state = json.loads(line)
    assert set(state) == {"at", "routes", "gaps", "fences"}
    assert [(route["step_slug"], route["is_covered"], route["messages_visible"]) for route in state["routes"]] == [
        ("a", True, 2),
        ("b", False, 2),
    ]
    assert [(gap["queue_name"], gap["messages_total"]) for gap in state["gaps"]] == [("f__b", 2)]
    assert state["routes"][0]["heartbeat_seconds"] >= 0
    assert state["routes"][1]["heartbeat_seconds"] is None
    assert state["gaps"][0]["oldest_message_seconds"] >= 0


def test_an_empty_database_and_one_without_the_extension(
    conn: Connection, empty_database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(conn) == 0
    assert capsys.readouterr().out.startswith("  There is no flow yet.")
    assert status(conn, "--json") == 0
    assert json.loads(capsys.readouterr().out)["routes"] == []
    assert cli.main(["status", "--dsn", empty_database]) == 1
    assert "has no extension pgflow_stepq" in capsys.readouterr().err


@pytest.mark.parametrize("pause", ["0", "nan", "-1", "x", "3601"])
def test_a_bad_pause_is_2(pause: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["status", "--watch", pause])
    assert end.value.code == 2
    assert "must be a number of seconds from 0.1 to 3600" in capsys.readouterr().err


def command(conn: Connection, *options: str) -> Sequence[str]:
    return [sys.executable, "-m", "pgflow_stepq.cli", "status", "--dsn", conn.info.dsn, *options]


def test_watching_looks_again_and_ends_with_ctrl_c(conn: Connection) -> None:
    ensure(conn, "f", "a")
    with subprocess.Popen(command(conn, "--watch", "0.1", "--json"), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["routes"][0]["messages_total"] == 0
        start(conn, "f")
        assert any(json.loads(line)["routes"][0]["messages_total"] == 1 for line in process.stdout)
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.wait() == 130


def test_a_terminal_is_cleared_between_two_looks(conn: Connection) -> None:
    ensure(conn, "f", "a")
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(command(conn, "--watch", "0.1"), stdout=theirs, env=environment) as process:
        os.close(theirs)
        seen = b""
        while seen.count(b"\x1b[H\x1b[2J") < 3:
            seen += os.read(ours, 4096)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    os.close(ours)
    assert seen.startswith(b"\x1b[H\x1b[2J")
    assert b"no worker" in seen
