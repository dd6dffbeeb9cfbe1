"""The console command pgflow-stepq: one subcommand a module."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence

import psycopg

from pgflow_stepq import __version__
from pgflow_stepq.errors import StepqError

# Each module offers add_parser(subparsers), which adds its command and sets `func`: func(args) -> exit status.
COMMANDS = ("worker", "status", "demo", "bench", "embedded", "pgtap", "render", "stage", "dist")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    top = argparse.ArgumentParser(
        prog="pgflow-stepq",
        description="Typed DAG workflows on PGMQ, with a private queue and worker pool for every step.",
    )
    top.add_argument("--version", action="version", version=f"pgflow-stepq {__version__}")
    subparsers = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in COMMANDS:
        importlib.import_module(f"pgflow_stepq.{name}").add_parser(subparsers)
    return top


def describe(error: psycopg.Error) -> str:
    """Return a PostgreSQL error as psql shows it: SQLSTATE and message, then detail and hint where there are any."""
    if error.diag.message_primary is None:  # not from the server: no connection, or a lost one
        return f"ERROR:  {str(error).strip()}"
    lines = [f"ERROR:  {error.sqlstate}: {error.diag.message_primary}"]
    for label, text in (("DETAIL", error.diag.message_detail), ("HINT", error.diag.message_hint)):
        if text:
            lines.append(f"{label}:  {text}")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, 1 (refused or failed), 2 (wrong usage), 130 or 143 (stopped)."""
    args = parser().parse_args(argv)
    run: Callable[[argparse.Namespace], int] = args.func
    try:
        return run(args)
    except StepqError as error:
        print(f"pgflow-stepq: {error}", file=sys.stderr)
        return error.exit_code
    except psycopg.Error as error:
        print(describe(error), file=sys.stderr)
        return 1
    except KeyboardInterrupt as stopped:
        return 128 + getattr(stopped, "signum", 2)


if __name__ == "__main__":
    sys.exit(main())
