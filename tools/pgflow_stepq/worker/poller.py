"""Poll for tasks in a thread of its own, so that a long poll keeps nothing else waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import LiteralString
from uuid import UUID

import psycopg

from pgflow_stepq.worker.handlers import ClaimedTask
from pgflow_stepq.worker.log import EventLog
from pgflow_stepq.worker.sessions import Backoff, Session, explain, may_pass

# The inputs come as text: what Python can't hold must fail its own task, not the poll that claimed it with others.
_POLL: LiteralString = """
    select msg_id, outcome, reason, flow_slug, run_id, step_slug, task_index, attempt, input::text, flow_input::text
      from pgflow.poll_tasks(%(worker_id)s, %(max_tasks)s, %(max_poll_seconds)s, %(poll_interval_ms)s)
"""


@dataclass
class Poll:
    """What one poll brought.

    `unsupported` maps ids of messages that make the batch fatal to the reason; `others` maps each
    further outcome to how many messages had it.
    """

    tasks: list[ClaimedTask] = field(default_factory=list)
    unsupported: dict[int, str] = field(default_factory=dict)
    others: dict[str, int] = field(default_factory=dict)


class Poller:
    """A thread that polls once for each request and hands the outcome to `done`.

    An error that may pass is waited out and ends as an empty poll; any other goes to `failed`.
    """

    def __init__(
        self,
        *,
        session: Session,
        log: EventLog,
        worker_id: UUID,
        poll_seconds: int,
        poll_interval_ms: int,
        done: Callable[[Poll], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        """Make the thread; `start` starts it."""
        self._session = session
        self._log = log
        self._worker_id = worker_id
        self._poll_seconds = poll_seconds
        self._poll_interval_ms = poll_interval_ms
        self._done = done
        self._failed = failed
        self._requests: SimpleQueue[int | None] = SimpleQueue()
        self._stopping = threading.Event()
        self._backoff = Backoff()
        self._thread = threading.Thread(target=self._run, name="poller", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def request(self, max_tasks: int) -> None:
        """Ask for one poll for at most `max_tasks` tasks."""
        self._requests.put(max_tasks)

    def cancel(self) -> None:
        """Cut the wait of the current poll short. What it has claimed by then still comes.

        A cancelled poll is rolled back by the server, so that no task is claimed and lost.
        """
        self._stopping.set()
        self._session.cancel()

    def close(self) -> None:
        """End the thread after its current poll."""
        self._stopping.set()
        self._requests.put(None)

    def _run(self) -> None:
        try:
            while (max_tasks := self._requests.get()) is not None:
                self._done(Poll() if self._stopping.is_set() else self._poll(max_tasks))
        except BaseException as error:  # noqa: BLE001 -- whoever runs the worker must hear of it
            self._failed(error)

    def _poll(self, max_tasks: int) -> Poll:
        try:
            rows = self._session.fetch(
                _POLL,
                {
                    "worker_id": self._worker_id,
                    "max_tasks": max_tasks,
                    "max_poll_seconds": self._poll_seconds,
                    "poll_interval_ms": self._poll_interval_ms,
                },
            )
        except psycopg.Error as error:
            if not may_pass(error):
                raise
            if not self._stopping.is_set():
                self._log.warning("poll_failed", error=explain(error), retry=True)
                self._backoff.wait(self._stopping)
            return Poll()

        self._backoff.reset()
        if not rows and self._poll_seconds == 0:
            # The server did not wait, so the pause between two looks is ours to make.
            self._stopping.wait(self._poll_interval_ms / 1000)
        poll = Poll()
        for msg_id, outcome, reason, flow_slug, run_id, step_slug, task_index, attempt, value, flow_input in rows:
            if outcome == "claimed":
                # Of a claimed task, the reason is why it has no input.
                poll.tasks.append(
                    ClaimedTask(run_id, flow_slug, step_slug, task_index, attempt, value, flow_input, flaw=reason)
                )
            elif outcome == "unsupported":
                poll.unsupported[msg_id] = reason
            else:
                poll.others[outcome] = poll.others.get(outcome, 0) + 1
        return poll
