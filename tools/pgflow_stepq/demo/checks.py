"""The demo's check of itself: what must be true when everything has run."""

from __future__ import annotations

from dataclasses import dataclass

from pgflow_stepq.demo import figures
from pgflow_stepq.demo.figures import Connection
from pgflow_stepq.demo.isolation import HeldBack
from pgflow_stepq.demo.slack_sink import SlackSink


@dataclass(frozen=True)
class Check:
    """One promise with the figures that keep or break it."""

    passed: bool
    text: str


def check_all(
    connection: Connection, flow_slug: str, sink: SlackSink, *, runs_wanted: int, held_back: HeldBack
) -> list[Check]:
    """Return every check, passed or not. `runs_wanted` is how many runs the demo meant to start."""
    runs = figures.runs_by_status(connection, flow_slug)
    steps = {step.step_slug: step for step in figures.steps(connection, flow_slug)}
    queues = figures.queues(connection, flow_slug)
    total = sum(runs.values())
    left = sum(queue.left for queue in queues)
    sent, archived = sum(queue.sent for queue in queues), sum(queue.archived for queue in queues)
    tasks = sum(step.tasks for step in steps.values())
    delivered, received = steps["deliverSlack"].tasks_completed, len(sink.accepted)
    uncovered = [queue.step_slug for queue in figures.coverage(connection, flow_slug) if not queue.is_covered]
    return [
        Check(total == runs_wanted, f"{total:,} runs in the database, {runs_wanted:,} were to be started"),
        Check(runs["started"] == 0, f"every run ended ({runs['started']:,} still open)"),
        Check(runs["failed"] == 0, f"no run failed ({runs['failed']:,} did)"),
        Check(left == 0, f"no message is left on a queue ({left:,} are)"),
        Check(
            sent == archived == tasks,
            f"every task had one message, now archived ({tasks:,} tasks, {sent:,} sent, {archived:,} archived)",
        ),
        Check(
            received == delivered,
            f"the sink accepted {received:,} deliveries, deliverSlack completed {delivered:,} tasks",
        ),
        Check(
            held_back.waiting > 0 and held_back.gaps == [held_back.step_slug],
            f"without its worker {held_back.step_slug} waited ({held_back.waiting:,} messages), and no other step did",
        ),
        Check(not uncovered, f"every queue has a live worker (gaps: {', '.join(uncovered) or 'none'})"),
    ]
