"""The command `pgflow-stepq bench`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import get_args

import psycopg

from pgflow_stepq.bench.databases import ScratchDatabases
from pgflow_stepq.bench.harness import Analyze, Harness, Plan
from pgflow_stepq.bench.machine import describe_machine
from pgflow_stepq.bench.profile import PROFILER_SETTINGS
from pgflow_stepq.bench.report import document, document_text, report
from pgflow_stepq.bench.scales import SCALES
from pgflow_stepq.bench.workload import Workload
from pgflow_stepq.bench.workloads import WORKLOADS
from pgflow_stepq.embedded import EmbeddedServer, Server

_DESCRIPTION = """\
Measure throughput: one client, autocommit, on an embedded PostgreSQL whose
commits are durable (PG_BINDIR names other server programs, 15 to 18).
The workloads take turns in rounds; each round begins with another one. Printed
are the medians over the rounds, and what a unit of a workload costs against one
of another, as the median of the rounds' own ratios.

Every measurement gets a database of its own. There the same work is first done
in a small size, untimed; after a CHECKPOINT it is timed, and checked that it is
truly done. Autovacuum is on, as on any server. Figures depend much on when
ANALYZE is run, those of raw PGMQ too:
  loaded    when the queues are fullest: all is sent or started and the map has
            its tasks, but none of them is claimed; the clock stops meanwhile
  drained   after the untimed work: the planner takes the queues for empty, as
            on a server where autovacuum came by before a burst of work
  never     not at all: the planner guesses, as in a new database
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `bench`."""
    parser = subparsers.add_parser(
        "bench",
        help="measure throughput against raw PGMQ",
        description=_DESCRIPTION,
        epilog=_epilog(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--scale", choices=tuple(SCALES), default="small", help="how much work a measurement does (default: small)")
    add("--rounds", type=_positive, default=3, metavar="N", help="how often each workload is measured (default: 3)")
    add(
        "--workloads",
        type=_workloads,
        default=tuple(WORKLOADS.values()),
        metavar="A,B",
        help="the workloads to measure, by name (default: all)",
    )
    add(
        "--analyze",
        choices=get_args(Analyze),
        default="loaded",
        help="when ANALYZE is run, as said above (default: loaded)",
    )
    add(
        "--not-durable",
        action="store_true",
        help="turn fsync off, to see what the work itself costs where the disk is slow or shared; the report says so",
    )
    add("--json", type=_file_to_write, metavar="FILE", help="write every figure to FILE too")
    add(
        "--profile",
        action="store_true",
        help="run each workload once more and show where its time goes, by function and by statement",
    )
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Start the server and run the bench on it. Raises StepqError, psycopg.Error; a failure leaves no server behind."""
    plan = Plan(args.workloads, SCALES[args.scale], args.rounds, args.analyze)
    settings = PROFILER_SETTINGS if args.profile else {}
    with EmbeddedServer(durable=not args.not_durable, settings=settings) as server:
        run_on(server, plan, json_file=args.json, profile=args.profile)
    return 0


def run_on(server: Server, plan: Plan, *, json_file: Path | None = None, profile: bool = False) -> None:
    """Run the bench on a server of this machine, print its report, and write it to `json_file`.

    A server that is to be profiled needs PROFILER_SETTINGS. Raises BenchError, psycopg.Error, OSError.
    """
    with ScratchDatabases(server) as databases:
        with databases.database() as conninfo, psycopg.connect(conninfo, autocommit=True) as connection:
            machine = describe_machine(connection)
        harness = Harness(databases, plan, _progress)
        samples = harness.measure()
        profiles = harness.profile() if profile else []
    print(report(machine, plan, samples, profiles), end="", flush=True)
    if json_file is not None:
        json_file.write_text(document_text(document(machine, plan, samples, profiles)), encoding="utf-8")


def _progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _epilog() -> str:
    workloads = "\n".join(f"  {name:<12}{workload.summary}" for name, workload in WORKLOADS.items())
    sizes = "\n".join(
        f"  {name:<12}{scale.messages:,} messages; a map of {scale.map_tasks:,}; {scale.chain_runs:,} chains; "
        f"{scale.single_calls:,} single tasks; {scale.started_runs:,} starts; {scale.compiled_steps:,} compiled steps; "
        f"{scale.verifications:,} verifications"
        for name, scale in SCALES.items()
    )
    return f"workloads:\n{workloads}\n\nscales:\n{sizes}\n"


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'"{text}" must be a whole number, 1 or more')
    return int(text)


def _workloads(text: str) -> tuple[type[Workload], ...]:
    names = dict.fromkeys(name.strip() for name in text.split(","))
    unknown = [name for name in names if name not in WORKLOADS]
    if unknown:
        raise argparse.ArgumentTypeError(f'there is no workload "{unknown[0]}"; there are {", ".join(WORKLOADS)}')
    return tuple(WORKLOADS[name] for name in names)


def _file_to_write(text: str) -> Path:
    path = Path(text)
    # Said now rather than after minutes of measuring.
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise argparse.ArgumentTypeError(f'"{text}" can\'t be written: its directory must exist, and it must be a file')
    return path
