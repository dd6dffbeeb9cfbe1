"""Names are the same in a database of any locale: slugs are ASCII, so folding is too."""

from __future__ import annotations

import json
import secrets
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import psycopg
import pytest

from pgflow_stepq.embedded import EmbeddedServer, Server
from pgflow_stepq.pytest_plugin import EXTENSIONS
from pgflow_stepq.tap import parse_tap

Connection = psycopg.Connection[tuple[Any, ...]]

PGTAP = Path(__file__).parent.parent / "pgtap"

# By name: how the database is made, and what brings the locale where it is missing.
LOCALES = {
    "C": ("locale 'C'", ""),
    "tr_TR": ("locale 'tr_TR.UTF-8'", "apt-get install locales && localedef -i tr_TR -f UTF-8 tr_TR.UTF-8"),
    "ICU tr-TR": ("locale_provider icu icu_locale 'tr-TR' locale 'C'", "make test on a server with ICU (see PGHOST)"),
    "ICU und": ("locale_provider icu icu_locale 'und' locale 'C'", "make test on a server with ICU (see PGHOST)"),
}
TURKISH = ("tr_TR", "ICU tr-TR")

# What a Turkish lower() makes of I is no ASCII letter, and what an upper() makes of i isn't either.
FLOW = "INVOICING_It"
STEPS = ["Import", "iNSPECT", "FILL_IN", "X" * 20 + "I" * 20]
QUEUES = ["invoicing_it__import", "invoicing_it__inspect", "invoicing_it__fill_in", "invoicing_it__3"]


@pytest.fixture(scope="module", params=LOCALES)
def locale(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def localized(server: Server, locale: str, lacks: Callable[..., NoReturn]) -> Iterator[str]:
    """The connection string of a database in that locale, with all extensions."""
    options, command = LOCALES[locale]
    name = f"stepq_locale_{secrets.token_hex(4)}"
    server.provide("pgtap")
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        try:
            connection.execute(f"create database {name} template template0 encoding 'UTF8' {options}")
        except (psycopg.errors.WrongObjectType, psycopg.errors.FeatureNotSupported):
            # The embedded server takes the operating system's locales and has no ICU.
            lacks(f"the locale {locale}", command, optional=isinstance(server, EmbeddedServer))
        try:
            with psycopg.connect(server.conninfo(name), autocommit=True) as created:
                for extension in (*EXTENSIONS, "pgtap"):
                    created.execute(f"create extension {extension}")
            yield server.conninfo(name)
        finally:
            connection.execute(f"drop database {name} with (force)")


@pytest.fixture
def conn(localized: str) -> Iterator[Connection]:
    """A connection to that database; what a test does is rolled back."""
    with psycopg.connect(localized) as connection:
        yield connection
        connection.rollback()


def ensure(conn: Connection, slug: str, steps: list[str], mode: str = "step") -> dict[str, Any]:
    shape = {"steps": [{"slug": step} for step in steps]}
    row = conn.execute("select pgflow.ensure_flow_compiled(%s, %s, queue_mode => %s)", (slug, json.dumps(shape), mode))
    report: dict[str, Any] = row.fetchall()[0][0]
    return report


def test_the_database_folds_by_its_own_rules(conn: Connection, locale: str) -> None:
    lower = conn.execute("select lower('I'), lower('I' collate \"C\")").fetchone()
    assert lower == ("\u0131" if locale in TURKISH else "i", "i")


def test_names_are_folded_as_ascii(conn: Connection) -> None:
    names = conn.execute("select queue_name from pgflow.resolve_step_queues(%s, %s)", (FLOW, STEPS)).fetchall()
    assert [name for (name,) in names] == QUEUES


@pytest.mark.parametrize("mode", ["step", "flow"])
def test_a_flow_is_compiled_worked_recovered_and_deleted(conn: Connection, mode: str) -> None:
    queues = QUEUES if mode == "step" else ["invoicing_it"] * len(STEPS)
    report = ensure(conn, FLOW, STEPS, mode)
    assert [route["queue_name"] for route in report["routes"]] == queues
    assert ensure(conn, FLOW, STEPS, mode)["status"] == "verified"

    conn.execute("select pgflow.start_flow(%s, '{}')", (FLOW,))
    workers = []
    for step in STEPS if mode == "step" else [None]:
        workers.append(uuid.uuid4())
        conn.execute("select pgflow.register_worker(%s, %s, %s, %s)", (workers[-1], f"F_{step}", FLOW, step))
    covered = conn.execute("select distinct is_covered from pgflow.queue_coverage where flow_slug = %s", (FLOW,))
    assert covered.fetchall() == [(True,)]

    taken = "select step_slug from pgflow.poll_tasks(%s, 10, 0) where outcome = 'claimed'"
    claimed = {step for worker in workers for (step,) in conn.execute(taken, (worker,))}
    assert claimed == set(STEPS)
    conn.execute(
        """
        update pgflow.step_tasks
        set
          started_at = started_at - interval '1 hour',
          queued_at = queued_at - interval '1 hour'
        """
    )
    assert conn.execute("select pgflow.requeue_stalled_tasks()").fetchone() == (len(STEPS),)
    conn.execute(
        """
        select pgflow.complete_task(task.run_id, task.step_slug, task.task_index, '1')
        from unnest(%s::uuid[]) as worker
        cross join lateral pgflow.poll_tasks(worker, 10, 0) as task
        """,
        (workers,),
    )
    assert conn.execute("select status from pgflow.runs").fetchall() == [("completed",)]
    assert conn.execute("select * from pgflow.check_integrity()").fetchall() == []

    conn.execute("select pgflow.delete_flow_and_data(%s)", (FLOW,))
    assert conn.execute("select count(*) from pgmq.meta").fetchone() == (0,)


@pytest.mark.parametrize(
    ("slug", "steps", "mode", "code"),
    [
        ("other", ["item", "ITEM"], "step", "PF003"),
        ("other", ["i" * 60, "I" * 60], "step", "PF003"),
        (FLOW.lower(), STEPS, "step", "PF005"),
        (FLOW.upper(), STEPS, "step", "PF005"),
        ("INVOICING_IT__IMPORT", ["any"], "flow", "PF005"),
        ("LISTING", ["any"], "flow", "PF004"),
        ("\u0131tem", ["any"], "step", "PF008"),
        ("other", ["\u0130tem"], "step", "PF008"),
    ],
)
def test_what_differs_by_the_case_of_ascii_letters_alone_meets(
    conn: Connection, slug: str, steps: list[str], mode: str, code: str
) -> None:
    ensure(conn, FLOW, STEPS)
    conn.execute("select pgmq.create('listing')")
    with pytest.raises(psycopg.Error) as refusal:
        ensure(conn, slug, steps, mode)
    assert refusal.value.sqlstate == code


@pytest.mark.parametrize("locale", TURKISH, indirect=True, scope="module")
@pytest.mark.parametrize(
    "file",
    [
        file.relative_to(PGTAP).as_posix()
        for room in ("routing", "compiling")
        for file in sorted(PGTAP.glob(f"{room}/*.sql"))
    ],
)
def test_the_promises_of_routing_and_compiling_hold(localized: str, server: Server, file: str) -> None:
    result = subprocess.run(
        [server.psql(), "-XAtq", "-v", "ON_ERROR_STOP=1", "-f", PGTAP / file, "-d", localized],
        check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert parse_tap(result.stdout).problems() == []
