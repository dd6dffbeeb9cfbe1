"""The command `status`: who serves which queue and what waits there, for people, scripts and health checks."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any, Final

import psycopg
from psycopg import IsolationLevel

from pgflow_stepq.console import Console, fit
from pgflow_stepq.errors import StepqError

_DESCRIPTION = """\
Show every route: the step, the workers that serve its queue, and what waits
there. The figures are those of the views pgflow.queue_coverage and
pgflow.fences and of pgflow.coverage_gaps().
"""

_EPILOG = """\
JSON: one object a line with the keys
  at      when it was looked, as an ISO timestamp of the server
  routes  rows of pgflow.queue_coverage; oldest_message_seconds is the age of
          the oldest message of the queue, heartbeat_seconds how long ago a
          worker of it was last heard of
  gaps    rows of pgflow.coverage_gaps(): queues on which work waits and that
          no live worker serves
  fences  functions that are fenced, with the flow, since when and why

exit codes:
  0  every queue with waiting work has a worker
  1  the database can't be used, or has no such flow
  2  bad usage
  3  work waits on a queue that no live worker serves
  130, 143  stopped by Ctrl-C, by SIGTERM (--watch)
"""

_UNSERVED: Final = 3
# So that a row fits into 100 columns; longer slugs are cut, and whole in the JSON.
_SLUG_COLUMNS: Final = 18
_LEAST_PAUSE, _LONGEST_PAUSE = 0.1, 3_600

_QUERY: Final = """
    select jsonb_build_object(
      'at', clock_timestamp(),
      'routes', coalesce(
        (
          select jsonb_agg(
            to_jsonb(route) - 'oldest_message_age' || jsonb_build_object(
              'oldest_message_seconds', extract(epoch from route.oldest_message_age),
              'heartbeat_seconds', extract(epoch from clock_timestamp() - route.last_heartbeat_at)
            )
            order by route.flow_slug collate "C", route.step_index
          )
          from pgflow.queue_coverage as route
          where %(flow)s::text is null or route.flow_slug = %(flow)s
        ),
        '[]'
      ),
      'gaps', coalesce(
        (
          select jsonb_agg(
            to_jsonb(gap) - 'oldest_message_age' || jsonb_build_object(
              'oldest_message_seconds', extract(epoch from gap.oldest_message_age)
            )
            order by gap.flow_slug collate "C", gap.step_slug collate "C"
          )
          from pgflow.coverage_gaps(%(flow)s) as gap
        ),
        '[]'
      ),
      'fences', coalesce(
        (
          select jsonb_agg(
            jsonb_build_object(
              'flow_slug', fence.flow_slug,
              'function_name', fence.function_name,
              'fenced_at', fence.fenced_at,
              'reason', fence.reason
            )
            order by fence.flow_slug collate "C", fence.function_name collate "C"
          )
          from pgflow.fences as fence
          where fence.restored_at is null
            and (%(flow)s::text is null or fence.flow_slug = %(flow)s)
        ),
        '[]'
      )
    )
"""


def look(connection: psycopg.Connection[Any], flow_slug: str | None = None) -> dict[str, Any]:
    """Return the state of all flows, or of one, with the keys that --help lists.

    Raises psycopg.Error; SQLSTATE PF018 for a flow that does not exist.
    """
    row = connection.execute(_QUERY, {"flow": flow_slug}).fetchone()
    connection.rollback()
    assert row is not None  # noqa: S101 - a query without a FROM gives one row
    state: dict[str, Any] = row[0]
    return state


def show(console: Console, state: dict[str, Any]) -> None:
    """Write a state for people: a row a route, then what needs attention."""
    if not state["routes"]:
        console.line("There is no flow yet. Start a worker, or call pgflow.ensure_flow_compiled().")
        return
    headings = ("flow", "step", "workers", "heard", "ready", "running", "later", "oldest", "")
    console.table(headings, [_row(route) for route in state["routes"]])
    if any(route["queue_mode"] == "flow" and route["step_index"] for route in state["routes"]):
        console.line()
        console.line(
            "Steps of a flow in flow mode share one queue: its workers and messages are shown at each of them."
        )
    if state["fences"]:
        console.heading("Fenced")
        for fence in state["fences"]:
            console.line(f"{fence['flow_slug']}: function {fence['function_name']}, {fence['reason']}")
    if state["gaps"]:
        console.heading("Work waits and nobody comes")
        for gap in state["gaps"]:
            where = gap["flow_slug"] if gap["step_slug"] is None else f"{gap['flow_slug']}, step {gap['step_slug']}"
            console.line(f"{where}: {gap['reason']}")


def _row(route: dict[str, Any]) -> tuple[object, ...]:
    return (
        fit(route["flow_slug"], _SLUG_COLUMNS),
        fit(route["step_slug"], _SLUG_COLUMNS),
        route["live_workers"],
        _ago(route["heartbeat_seconds"]),
        _count(route["messages_visible"]),
        _count(route["messages_in_flight"]),
        _count(route["messages_delayed"]),
        _ago(route["oldest_message_seconds"]),
        _remark(route),
    )


def _remark(route: dict[str, Any]) -> str:
    if route["messages_total"] is None:
        return "no queue"
    return "" if route["is_covered"] else "no worker"


def _count(number: int | None) -> object:
    return "-" if number is None else number


def _ago(seconds: float | None) -> str:
    """Return an age in its largest unit, of two digits at most up to 99 days."""
    if seconds is None:
        return "-"
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def run(args: argparse.Namespace) -> int:
    """Look once, or again and again with --watch, and return the exit code; see --help."""
    console = Console(sys.stdout)
    with psycopg.connect(args.dsn) as connection:
        # All figures of one moment, and a promise to change nothing.
        connection.isolation_level = IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        _check_installed(connection)
        while True:
            state = look(connection, args.flow)
            if args.json:
                print(json.dumps(state, ensure_ascii=False), flush=True)
            else:
                if args.watch is not None and console.is_terminal:
                    console.clear()
                show(console, state)
            if args.watch is None:
                return _UNSERVED if state["gaps"] else 0
            time.sleep(args.watch)


def _check_installed(connection: psycopg.Connection[Any]) -> None:
    if connection.execute("select from pg_extension where extname = 'pgflow_stepq'").fetchone() is None:
        raise StepqError(
            f'Database "{connection.info.dbname}" has no extension pgflow_stepq. Connect to another one (--dsn, or '
            "PGDATABASE), or run there: create extension pgflow_stepq cascade"
        )
    connection.rollback()


def _pause(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not _LEAST_PAUSE <= seconds <= _LONGEST_PAUSE:  # false for nan too
        raise argparse.ArgumentTypeError(f'"{text}" must be a number of seconds from 0.1 to 3600')
    return seconds


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `status`."""
    parser = subparsers.add_parser(
        "status",
        help="show who serves which queue and what waits there",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--flow", metavar="SLUG", help="only this flow")
    add("--json", action="store_true", help="print JSON instead of a table")
    add(
        "--watch",
        nargs="?",
        type=_pause,
        const=2.0,
        metavar="S",
        help="look again every S seconds, 0.1 to 3600 (default: 2), until Ctrl-C",
    )
    add("--dsn", default="", help="connection string or URI (default: the environment, PGHOST and friends)")
    parser.set_defaults(func=run)
