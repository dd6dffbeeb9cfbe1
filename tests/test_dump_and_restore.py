"""A dump holds all that a flow is: restored elsewhere, runs in flight go on where they were."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb

from pgflow_stepq.embedded import Server

Connection = psycopg.Connection[tuple[Any, ...]]

LONG = "a_step_whose_slug_leaves_no_room_for_a_readable_name"
SHAPES: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "Orders": (
        "step",
        [
            {"slug": "pick", "stepType": "map"},
            {"slug": "Pack", "stepType": "map", "dependencies": ["pick"]},
            {"slug": LONG, "dependencies": ["Pack"]},
            {"slug": "fragile", "options": {"maxAttempts": 1}},
            {"slug": "later", "options": {"startDelay": 3600}},
        ],
    ),
    "Plain": ("flow", [{"slug": "a"}, {"slug": "b", "dependencies": ["a"]}]),
    "deleted": ("step", [{"slug": "a"}]),
}


def compiled(conn: Connection, slug: str, *more: dict[str, Any], data_loss: bool = False) -> str:
    mode, steps = SHAPES[slug]
    shape = {"steps": [*steps, *more], "options": {"baseDelay": 600}}
    query = "select pgflow.ensure_flow_compiled(%s, %s, %s, %s) ->> 'status'"
    return str(conn.execute(query, (slug, Jsonb(shape), data_loss, mode)).fetchone()[0])  # type: ignore[index]


def register(conn: Connection, slug: str, step: str | None = None) -> uuid.UUID:
    worker = uuid.uuid4()
    conn.execute("select pgflow.register_worker(%s, %s, %s, %s)", (worker, f"{slug}/{step}", slug, step))
    return worker


def claim(conn: Connection, worker: uuid.UUID, tasks: int) -> list[tuple[Any, ...]]:
    """Return (run, step, index, attempt) of the tasks that a worker gets."""
    query = """
        select run_id, step_slug, task_index, attempt from pgflow.poll_tasks(%s, %s, 0) where outcome = 'claimed'
    """
    return conn.execute(query, (worker, tasks)).fetchall()


def complete(conn: Connection, tasks: list[tuple[Any, ...]]) -> list[str]:
    keys = ("run_id", "step_slug", "task_index", "attempt")
    results = [{**dict(zip(keys, task, strict=True)), "run_id": str(task[0]), "output": task[2]} for task in tasks]
    rows = conn.execute("select status from pgflow.complete_tasks(%s)", (Jsonb(results),))
    return [status for (status,) in rows]


def fail(conn: Connection, task: tuple[Any, ...]) -> None:
    conn.execute("select pgflow.fail_task(%s, %s, %s, 'broken')", task[:3])


def visible(conn: Connection) -> None:
    """Let time pass for what is hidden: retries and delays."""
    for (queue,) in conn.execute("select queue_name from pgflow.queues").fetchall():
        conn.execute(sql.SQL("update pgmq.{} set vt = now()").format(sql.Identifier(f"q_{queue}")))


def everything(conn: Connection) -> dict[str, Any]:
    """Return all rows, sequences and indexes of both extensions, and how the tables of the queues are made."""
    tables = conn.execute(
        """
        select class.relnamespace::regnamespace::text, class.relname
        from pg_class as class
        where class.relnamespace in ('pgflow'::regnamespace, 'pgmq'::regnamespace)
          and class.relkind = 'r'
        order by 1, 2
        """
    ).fetchall()
    found: dict[str, Any] = {}
    for schema, table in tables:
        name = sql.Identifier(schema, table)
        rows = conn.execute(sql.SQL("select to_jsonb(row_seen)::text from {} as row_seen order by 1").format(name))
        found[f"{schema}.{table}"] = [row for (row,) in rows]
    found["sequences"] = conn.execute(
        """
        select sequencename, last_value
        from pg_sequences
        where schemaname in ('pgflow', 'pgmq')
        order by sequencename
        """
    ).fetchall()
    found["columns"] = conn.execute(
        """
        select table_name, column_name, data_type, column_default, is_identity
        from information_schema.columns
        where table_schema = 'pgmq'
        order by 1, 2
        """
    ).fetchall()
    found["indexes"] = conn.execute(
        "select indexdef from pg_indexes where schemaname in ('pgflow', 'pgmq') order by 1"
    ).fetchall()
    found["settings"] = conn.execute(
        "select relname, reloptions from pg_class where relnamespace = 'pgmq'::regnamespace order by 1"
    ).fetchall()
    return found


@pytest.fixture
def source(fresh_database: str) -> Iterator[Connection]:
    """A database with runs in every state, their tasks queued, delayed, in progress, retrying, ended."""
    with psycopg.connect(fresh_database, autocommit=True) as conn:
        conn.execute("set client_min_messages to warning")
        for slug in SHAPES:
            assert compiled(conn, slug) == "compiled"
        pick, fragile = register(conn, "Orders", "pick"), register(conn, "Orders", "fragile")
        plain = register(conn, "Plain")
        for run_input in ([1, 2, 3, 4], [], ["x"]):
            conn.execute("select pgflow.start_flow('Orders', %s)", (Jsonb(run_input),))
        for _ in range(3):
            conn.execute("select pgflow.start_flow('Plain', '{}')")
        conn.execute("select pgflow.start_flow('deleted', '{}')")
        conn.execute("select pgflow.delete_flow_and_data('deleted')")

        # Of a map: one done, one to be tried again, one in progress, one queued; of another run, all failed.
        done, retried, *_ = claim(conn, pick, 3)
        assert complete(conn, [done]) == ["completed"]
        fail(conn, retried)
        fail(conn, claim(conn, fragile, 3)[2])
        # A completed run, one whose second step is in progress, one that nobody touched.
        first, second = claim(conn, plain, 2)
        assert complete(conn, [first, second]) == ["completed"] * 2
        conn.execute("update pgmq.q_plain set vt = vt + interval '1 hour' where msg_id = 3")
        assert complete(conn, claim(conn, plain, 2)[:1]) == ["completed"]
        conn.execute("update pgmq.q_plain set vt = now() where msg_id = 3")

        conn.execute("select pgflow.disable_worker_function('Orders/fragile', 'for the night')")
        conn.execute("select pgflow.fence_flow('Plain', 'for the move')")
        # An id that was used up and is in no table any more.
        conn.execute("select pgmq.delete('plain', pgmq.send('plain', '{}'))")
        yield conn


def by_psql(server: Server, source: str, target: str, directory: Path) -> None:
    script = directory / "dump.sql"
    run(server, "pg_dump", "-f", str(script), "-d", source)
    run(server, "psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-f", str(script), "-d", target)


def by_pg_restore(server: Server, source: str, target: str, directory: Path) -> None:
    archive = directory / "dump.archive"
    run(server, "pg_dump", "-Fc", "-f", str(archive), "-d", source)
    run(server, "pg_restore", "--exit-on-error", "-d", target, str(archive))


def by_parallel_pg_restore(server: Server, source: str, target: str, directory: Path) -> None:
    # The tables of an extension have their foreign keys from the start, and pg_restore -j fills tables in any order:
    # so all but the data is restored by several jobs.
    archive = directory / "dump.archive"
    run(server, "pg_dump", "-Fd", "-j", "2", "-f", str(archive), "-d", source)
    for section, jobs in (("pre-data", "2"), ("data", "1"), ("post-data", "2")):
        run(server, "pg_restore", "--exit-on-error", "--section", section, "-j", jobs, "-d", target, str(archive))


def run(server: Server, program: str, *arguments: str) -> None:
    command = [str(server.psql().with_name(program)), *arguments]
    result = subprocess.run(command, check=False, capture_output=True, encoding="utf-8")
    assert not result.stderr, result.stderr
    assert result.returncode == 0


@pytest.fixture(params=[by_psql, by_pg_restore, by_parallel_pg_restore])
def restored(
    request: pytest.FixtureRequest, server: Server, source: Connection, empty_database: str, tmp_path: Path
) -> Iterator[Connection]:
    """A database that was empty, with all that a dump of the source brought."""
    restore: Callable[[Server, str, str, Path], None] = request.param
    restore(server, server.conninfo(source.info.dbname), empty_database, tmp_path)
    with psycopg.connect(empty_database, autocommit=True) as conn:
        conn.execute("set client_min_messages to warning")
        yield conn


def test_runs_in_flight_go_on_in_a_restored_database(source: Connection, restored: Connection) -> None:
    conn = restored
    assert everything(conn) == everything(source)
    assert conn.execute("select * from pgflow.check_integrity()").fetchall() == []

    # The definitions, and what stood in the way of work.
    assert [compiled(conn, slug) for slug in ("Orders", "Plain")] == ["verified"] * 2
    with pytest.raises(psycopg.Error, match="fenced"):
        register(conn, "Plain")
    conn.execute("select pgflow.unfence_flow('Plain')")
    with pytest.raises(psycopg.Error, match="for the night"):
        register(conn, "Orders", "fragile")
    conn.execute("select pgflow.enable_worker_function('Orders/fragile')")

    # A worker from before finishes what it has and goes on; others come.
    in_progress = conn.execute(
        """
        select run_id, step_slug, task_index, attempts_count
        from pgflow.step_tasks
        where status = 'started' and step_slug in ('pick', 'b', 'fragile')
        order by step_slug
        """
    ).fetchall()
    assert [task[1] for task in in_progress] == ["b", "fragile", "fragile", "pick"]
    assert complete(conn, in_progress) == ["completed"] * 4
    workers = [register(conn, "Orders", step["slug"]) for step in SHAPES["Orders"][1]] + [register(conn, "Plain")]
    visible(conn)
    while sum(len(complete(conn, claim(conn, worker, 100))) for worker in workers):
        visible(conn)
    ends = "select flow_slug, status, count(*) from pgflow.runs group by 1, 2 order by 1, 2"
    assert conn.execute(ends).fetchall() == [
        ("Orders", "completed", 2),
        ("Orders", "failed", 1),
        ("Plain", "completed", 3),
    ]
    assert conn.execute("select * from pgflow.check_integrity()").fetchall() == []

    # No generation comes twice, not even that of a flow which had been deleted.
    assert compiled(conn, "deleted") == "compiled"
    assert conn.execute("select max(generation) from pgflow.flows").fetchone() == (4,)
