"""The demo from start to end."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import psycopg
from psycopg.types.json import Jsonb

from pgflow_stepq.console import Console
from pgflow_stepq.demo.checks import Check, check_all
from pgflow_stepq.demo.figures import Connection
from pgflow_stepq.demo.handlers import SINK_URL_VARIABLE
from pgflow_stepq.demo.isolation import hold_one_step_back
from pgflow_stepq.demo.place import interruptible, scratch_database
from pgflow_stepq.demo.pool import WorkerPool, WorkerSpec
from pgflow_stepq.demo.report import show_report
from pgflow_stepq.demo.slack_sink import SlackSink
from pgflow_stepq.demo.starter import start_runs
from pgflow_stepq.demo.threads import Thread
from pgflow_stepq.demo.watch import Watch
from pgflow_stepq.shapes import FlowFile, read_flow_file

SHAPE_FILE: Final = Path(__file__).with_name("community_threads_v1.json")
_HANDLERS: Final = "pgflow_stepq.demo.handlers"
WORKERS: Final = (
    WorkerSpec("classify", f"{_HANDLERS}:classify", 4),
    WorkerSpec("deliverSlack", f"{_HANDLERS}:deliver_slack", 1),
    WorkerSpec("extract", f"{_HANDLERS}:extract", 4),
    WorkerSpec("digest", f"{_HANDLERS}:digest", 16),
)


def walk_through(threads: Sequence[Thread], source: Path) -> int:
    """Run the flow over the threads, report, and check; return the exit status, 0 or 1.

    Raises StepqError when a worker dies or nothing moves any more, psycopg.Error, or KeyboardInterrupt;
    the workers, the sink and the server are gone then too.
    """
    console = Console(sys.stdout)
    try:
        checks = _walk(console, threads, source)
    except KeyboardInterrupt:
        console.line("Stopped: the workers and the database are gone.")
        raise
    except BrokenPipeError:
        # Whoever read the report has gone away, as `head` does. The interpreter would complain once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    failed = sum(not check.passed for check in checks)
    if failed:
        print(f"pgflow-stepq: {failed} of the demo's {len(checks)} checks failed; see above.", file=sys.stderr)
    return 1 if failed else 0


def _walk(console: Console, threads: Sequence[Thread], source: Path) -> list[Check]:
    flow = read_flow_file(SHAPE_FILE)
    with (
        interruptible(),
        scratch_database() as conninfo,
        # Not the connection's own context, which would try to roll back a statement that a Ctrl-C left running.
        closing(psycopg.connect(conninfo, autocommit=True)) as connection,
        SlackSink() as sink,
        WorkerPool(SHAPE_FILE, conninfo, {SINK_URL_VARIABLE: sink.url}) as pool,
    ):
        _introduce(console, connection, len(threads), source)
        _compile(console, connection, flow)
        for worker in WORKERS:
            pool.start(worker)
        _run_all(console, connection, flow, threads, pool)
        show_report(console, connection, flow.slug, sink)
        held_back = hold_one_step_back(console, connection, flow, pool, WORKERS)

        console.heading("Check")
        checks = check_all(connection, flow.slug, sink, runs_wanted=len(threads) + held_back.runs, held_back=held_back)
        for check in checks:
            console.check(check.passed, check.text)
    return checks


def _introduce(console: Console, connection: Connection, threads: int, source: Path) -> None:
    row = connection.execute(
        """
        select current_setting('server_version'),
               max(extversion) filter (where extname = 'pgmq'),
               max(extversion) filter (where extname = 'pgflow_stepq')
        from pg_extension
        """
    ).fetchone()
    server, pgmq, own = row if row else ("?", "?", "?")
    console.heading("pgflow_stepq: one flow, with a private queue and a worker for every step")
    console.line(f"PostgreSQL {server}, PGMQ {pgmq}, pgflow_stepq {own}")
    console.line(f"{threads:,} threads from {source.name}")


def _compile(console: Console, connection: Connection, flow: FlowFile) -> None:
    row = connection.execute(
        "select pgflow.ensure_flow_compiled(%s, %s, queue_mode => 'step')", [flow.slug, Jsonb(flow.shape)]
    ).fetchone()
    result = row[0] if row else {}
    at_once = {worker.step_slug: worker.max_concurrent for worker in WORKERS}
    console.heading(f"{flow.slug}: {result['status']}, queue mode {result['queue_mode']}")
    console.table(
        ("step", "queue", "tasks at once"),
        [(route["step_slug"], route["queue_name"], at_once[route["step_slug"]]) for route in result["routes"]],
    )


def _run_all(
    console: Console, connection: Connection, flow: FlowFile, threads: Sequence[Thread], pool: WorkerPool
) -> None:
    console.heading("Running")
    watch = Watch(console, connection, flow.slug, pool)
    for _ in start_runs(connection, flow.slug, (thread.as_input() for thread in threads)):
        watch.tick()
    watch.until(lambda steps: all(step.open == 0 for step in steps))
