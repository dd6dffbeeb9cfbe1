"""The report: tables of what happened, from the figures that the database gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pgflow_stepq.console import Console
from pgflow_stepq.demo import figures
from pgflow_stepq.demo.figures import Connection, Count
from pgflow_stepq.demo.slack_sink import SlackSink

_DELIVERIES_SHOWN: Final = 6
_FAILURES_SHOWN: Final = 10


def show_report(console: Console, connection: Connection, flow_slug: str, sink: SlackSink) -> None:
    """Write the tables about all runs of the flow so far, and its diagram."""
    show_runs(console, connection, flow_slug)
    show_steps(console, connection, flow_slug)
    show_queues(console, connection, flow_slug)
    show_skips(console, connection, flow_slug)
    show_threads(console, connection, flow_slug)
    show_deliveries(console, sink)
    show_diagram(console, connection, flow_slug)


def show_runs(console: Console, connection: Connection, flow_slug: str) -> None:
    """Write how the runs stand, how long they took, and what failed."""
    runs = figures.runs_by_status(connection, flow_slug)
    console.heading("Runs")
    console.table(
        ("total", *runs, "seconds"),
        [(sum(runs.values()), *runs.values(), figures.elapsed_seconds(connection, flow_slug))],
    )
    failed = figures.failures(connection, flow_slug, _FAILURES_SHOWN)
    if failed:
        console.line()
        console.table(("thread", "failed step", "error"), failed)


def show_steps(console: Console, connection: Connection, flow_slug: str) -> None:
    """Write how each step ended over all runs, and its tasks, retries and times."""
    console.heading("Steps")
    console.table(
        ("step", "type", "completed", "skipped", "failed", "tasks", "retries", "median ms", "p95 ms"),
        [
            (
                step.step_slug,
                step.step_type,
                step.completed,
                step.skipped,
                step.failed,
                step.tasks,
                step.retries,
                step.median_ms or 0.0,
                step.p95_ms or 0.0,
            )
            for step in figures.steps(connection, flow_slug)
        ],
    )


def show_queues(console: Console, connection: Connection, flow_slug: str) -> None:
    """Write what went through each step's queue."""
    console.heading("Queues")
    console.table(
        ("step", "queue", "sent", "archived", "left"),
        [
            (queue.step_slug, queue.queue_name, queue.sent, queue.archived, queue.left)
            for queue in figures.queues(connection, flow_slug)
        ],
    )


def show_skips(console: Console, connection: Connection, flow_slug: str) -> None:
    """Write which steps were skipped and why, and how many maps had nothing to do."""
    console.heading("Skips")
    console.table(("step", "reason", "runs"), figures.skips(connection, flow_slug))
    console.line(f"Maps over an empty array, completed without a task: {figures.empty_maps(connection, flow_slug):,}")


def show_threads(console: Console, connection: Connection, flow_slug: str) -> None:
    """Write what classify found."""
    console.heading("Threads")
    console.paragraph("routes   ", _listed(figures.classified(connection, flow_slug, "route")))
    console.paragraph("languages", _listed(figures.classified(connection, flow_slug, "language")))


def show_deliveries(console: Console, sink: SlackSink) -> None:
    """Write what the sink received: the counts, and the first few messages."""
    accepted, refused = sink.accepted, sink.refused
    console.heading("Slack (a local sink)")
    console.line(
        f"{len(accepted):,} deliveries accepted; {len(refused):,} of them refused once with 503 and tried again."
    )
    if accepted:
        console.table(
            ("thread", "message"),
            [(message.thread_id, message.text.split("\n")[0]) for message in accepted[:_DELIVERIES_SHOWN]],
        )
    if len(accepted) > _DELIVERIES_SHOWN:
        console.line(f"… and {len(accepted) - _DELIVERIES_SHOWN:,} more")


def show_diagram(console: Console, connection: Connection, flow_slug: str) -> None:
    """Write the flow with its queues, ready to be pasted where Mermaid is drawn."""
    console.heading("Flow")
    console.block(f"```mermaid\n{figures.diagram(connection, flow_slug).strip()}\n```")


def _listed(counts: Sequence[Count]) -> str:
    return ", ".join(f"{count.label}\u00a0{count.count:,}" for count in counts)
