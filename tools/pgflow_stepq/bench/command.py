"""The command `pgflow-stepq bench`."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import psycopg

from pgflow_stepq.bench.databases import ScratchDatabases
from pgflow_stepq.bench.errors import BenchError
from pgflow_stepq.bench.harness import Analyze, Harness, Plan
from pgflow_stepq.bench.machine import describe_machine
from pgflow_stepq.bench.profile import PROFILER_SETTINGS
from pgflow_stepq.bench.report import Outcome, document, document_text, missing_lines, report
from pgflow_stepq.bench.scales import SCALES, Scale
from pgflow_stepq.bench.workload import Workload
from pgflow_stepq.bench.workloads import WORKLOADS
from pgflow_stepq.embedded import EmbeddedServer, Server

_DESCRIPTION = """\
Measure throughput and waits: one client, autocommit, where nothing else is
said, on an embedded PostgreSQL whose commits are durable (PG_BINDIR names other
server programs, 15 to 18). The workloads take turns in rounds; each round begins
with another one. Printed are the medians over the rounds, what a unit of a
workload costs against one of another, as the median of the rounds' own ratios,
and whether those ratios keep the bars that this project has set itself.
Other engines that can't be had on this machine are skipped, with a line why.

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
        help="measure throughput and waits against raw PGMQ and other engines",
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
    add("--chart", type=_file_to_write, metavar="FILE", help="draw the figures to FILE, a PNG (needs matplotlib)")
    add(
        "--profile",
        action="store_true",
        help="run each workload of one session once more and show where its time goes, by function and by statement",
    )
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Start the server and run the bench on it. Raises StepqError, psycopg.Error; a failure leaves no server behind."""
    if args.chart is not None:
        # Said now rather than after minutes of measuring.
        load_chart()
    plan = Plan(args.workloads, SCALES[args.scale], args.rounds, args.analyze)
    settings = PROFILER_SETTINGS if args.profile else {}
    with EmbeddedServer(durable=not args.not_durable, settings=settings) as server:
        run_on(server, plan, json_file=args.json, chart_file=args.chart, profile=args.profile)
    return 0


def run_on(
    server: Server,
    plan: Plan,
    *,
    json_file: Path | None = None,
    chart_file: Path | None = None,
    profile: bool = False,
) -> None:
    """Run the bench on a server of this machine, print its report, and write it to `json_file` and `chart_file`.

    A server that is to be profiled needs PROFILER_SETTINGS. Raises BenchError, psycopg.Error, OSError.
    """
    plan, missing = plan.without_missing()
    for line in missing_lines(missing):
        _progress(line)
    with ScratchDatabases(server, plan.scale) as databases:
        with databases.database() as conninfo, psycopg.connect(conninfo, autocommit=True) as connection:
            machine = describe_machine(connection)
        harness = Harness(databases, plan, _progress)
        samples = harness.measure()
        profiles = harness.profile() if profile else []
    outcome = Outcome(machine, plan, samples, profiles, missing)
    print(report(outcome), end="", flush=True)
    if json_file is not None:
        json_file.write_text(document_text(document(outcome)), encoding="utf-8")
    if chart_file is not None:
        load_chart()(outcome, chart_file)


def load_chart() -> Callable[[Outcome, Path], None]:
    """Return the function that draws an outcome to a file. Raises BenchError where matplotlib is missing."""
    if importlib.util.find_spec("matplotlib") is None:
        raise BenchError("A chart needs the Python package matplotlib. Install the extra: pip install -e '.[bench]'")
    # Imported when it is asked for only: it takes its time.
    draw: Callable[[Outcome, Path], None] = importlib.import_module("pgflow_stepq.bench.chart").draw
    return draw


def _progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _epilog() -> str:
    workloads = "\n".join(f"  {name:<16}{workload.summary}" for name, workload in WORKLOADS.items())
    sizes = "\n".join(
        textwrap.fill(_sizes(scale), 120, initial_indent=f"  {name:<16}", subsequent_indent=" " * 18)
        for name, scale in SCALES.items()
    )
    return f"workloads:\n{workloads}\n\nscales:\n{sizes}\n"


def _sizes(scale: Scale) -> str:
    return (
        f"{scale.messages:,} messages; a map of {scale.map_tasks:,}, pgflow's of {scale.peer_map_tasks:,}; "
        f"{scale.chain_runs:,} chains; {scale.diamond_runs:,} diamonds; {scale.single_calls:,} single tasks; "
        f"{scale.started_runs:,} starts; {scale.session_tasks:,} tasks shared by sessions; {scale.awaited_tasks:,} "
        f"waits beside {scale.backlog:,} tasks, in flow mode {scale.flow_backlog:,}; {scale.growth_tasks:,} tasks of "
        f"maps of each size; a past of {scale.history_tasks:,} tasks and {scale.history_delayed:,} delayed messages a "
        f"queue; {scale.steady_seconds:g} s of what is measured by time; {scale.compiled_steps:,} compiled steps; "
        f"{scale.verifications:,} verifications"
    )


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
