"""The command `demo`: communityThreadsV1 from start to end, with real worker processes."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pgflow_stepq.demo.threads import BUNDLED, read_threads
from pgflow_stepq.demo.walkthrough import walk_through


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `demo`."""
    parser = subparsers.add_parser(
        "demo",
        help="run the flow communityThreadsV1 over community posts, with a queue and workers for every step",
        description=(
            "Run the flow communityThreadsV1 over a file of community posts: every step has its own PGMQ queue and its "
            "own worker process. Shows what happened, checks it, and exits with 1 when anything is not as it must be. "
            "Uses an embedded PostgreSQL, or, when PGHOST is set, a scratch database on that server."
        ),
    )
    parser.add_argument(
        "--input",
        type=Path,
        default=BUNDLED,
        metavar="FILE",
        help='JSON lines to use instead of the bundled posts, each {"id": …, "title": …, "body": …, "author": …} '
        "(author may be left out)",
    )
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Run the demo; return 0, or 1 when its own check fails. Raises StepqError and psycopg.Error."""
    threads = read_threads(args.input)
    # A terminal that can't show a script is no reason to stop.
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")

    return walk_through(threads, args.input)
