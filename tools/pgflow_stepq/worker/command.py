"""The command `pgflow-stepq worker`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from pgflow_stepq.errors import StepqError
from pgflow_stepq.shapes import read_flow_file
from pgflow_stepq.worker.errors import ExitCode
from pgflow_stepq.worker.handlers import load_handler
from pgflow_stepq.worker.worker import Worker

EXIT_CODES = """\
exit codes:
  0  stopped on request (SIGTERM, SIGINT), everything claimed is finished
  1  unexpected: the database can't be used, or the time to drain ran out
  2  bad usage: an option, the flow file, or the handler can't be used
  3  refused by the database: the flow differs, or an error with a PF code
  4  fatal work: the queue holds messages that are not this worker's
  5  told to stop by the database: disabled, deprecated, fenced, or of an
     older generation of the flow
  128 + n  ended at once by a second signal n; what ran comes back when its
     lease has run out
"""

_DESCRIPTION = """\
Work the tasks of one step of a flow (--queue-mode step), or of all its steps
(--queue-mode flow). The flow is compiled or verified first. One line of log an
event goes to standard error, as key=value pairs, never with what a message or
a result holds.
"""


def add_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
) -> argparse.ArgumentParser:
    """Add the command `worker`, whose `func` default is `run`."""
    parser = subparsers.add_parser(
        "worker",
        help="work the tasks of a step or of a flow",
        description=_DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    return parser


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to `parser`."""
    add = parser.add_argument
    add("--shape", required=True, metavar="FILE", help='flow file: {"slug": …, "shape": {…}}, or a bare shape')
    add("--flow", metavar="SLUG", help="slug of the flow (default: the one in the flow file)")
    add("--queue-mode", choices=("flow", "step"), default="flow", help="one queue a flow or a step (default: flow)")
    add("--step", metavar="STEP", help="the step to work; needed with --queue-mode step, refused without")
    add(
        "--handler",
        required=True,
        metavar="MODULE:FUNCTION",
        help="sync or async function (input) or (input, context); looked up in the current directory first",
    )
    add(
        "--function-name",
        metavar="NAME",
        help="name under which the database enables and disables this worker (default: FLOW/STEP, or FLOW)",
    )
    add(
        "--max-concurrent",
        type=_whole_number(1, 10_000),
        default=10,
        metavar="N",
        help="tasks at once, 1 to 10000 (default: 10)",
    )
    add(
        "--poll-seconds",
        type=_whole_number(0, 60),
        default=5,
        metavar="S",
        help="how long one poll waits for work, in seconds, 0 to 60 (default: 5)",
    )
    add(
        "--poll-interval-ms",
        type=_whole_number(1, 60_000),
        default=100,
        metavar="MS",
        help="how often a waiting poll looks, in milliseconds, 1 to 60000 (default: 100)",
    )
    add(
        "--heartbeat-seconds",
        type=_seconds(0.1, 25),
        default=5.0,
        metavar="S",
        help="time between heartbeats, in seconds, 0.1 to 25, since a worker counts as dead after 30 (default: 5)",
    )
    add(
        "--drain-seconds",
        type=_seconds(0, 86_400),
        default=30.0,
        metavar="S",
        help="how long running handlers may go on after a stop, in seconds, 0 to 86400 (default: 30)",
    )
    add("--dsn", default="", help="connection string or URI (default: the environment, PGHOST and friends)")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Run a worker to its end and return its exit code; see EXIT_CODES."""
    try:
        _make_worker(args).run()
    except StepqError as error:
        print(f"pgflow-stepq worker: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    return ExitCode.OK


def main(argv: list[str] | None = None) -> int:
    """Run the command by itself, without the other commands of the package."""
    parser = argparse.ArgumentParser(
        prog="pgflow-stepq worker",
        description=_DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    return run(parser.parse_args(argv))


def _make_worker(args: argparse.Namespace) -> Worker:
    flow = read_flow_file(args.shape, args.flow)
    return Worker(
        flow_slug=flow.slug,
        shape=flow.shape,
        handler=load_handler(args.handler),
        queue_mode=args.queue_mode,
        step_slug=args.step,
        function_name=args.function_name,
        max_concurrent=args.max_concurrent,
        poll_seconds=args.poll_seconds,
        poll_interval_ms=args.poll_interval_ms,
        heartbeat_seconds=args.heartbeat_seconds,
        drain_seconds=args.drain_seconds,
        dsn=args.dsn,
    )


def _whole_number(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f'"{text}" must be a whole number from {least} to {most}')
        return number

    return parse


def _seconds(least: float, most: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:  # false for nan too
            raise argparse.ArgumentTypeError(f'"{text}" must be a number of seconds from {least:g} to {most:g}')
        return number

    return parse
