"""Send results to the database in batches, and lose none of them to a bad neighbour or a bad network."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import LiteralString

import psycopg

from pgflow_stepq.worker.log import EventLog
from pgflow_stepq.worker.results import TaskResult, clean_error
from pgflow_stepq.worker.sessions import Backoff, Session, explain, may_pass

_COMPLETE: LiteralString = "select status from pgflow.complete_tasks(%(results)s::jsonb)"
_FAIL: LiteralString = "select status from pgflow.fail_tasks(%(results)s::jsonb)"

MAX_BATCH = 100
MAX_BATCH_CHARACTERS = 8 * 1024 * 1024


class Finisher:
    """A thread that sends results as they come: whatever came while a batch was on its way makes the next one.

    `settled` is called with each result that is off this worker's hands, and `failed` once when
    the thread itself breaks.
    """

    def __init__(
        self,
        session: Session,
        log: EventLog,
        settled: Callable[[TaskResult], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        """Make the thread; `start` starts it."""
        self._session = session
        self._log = log
        self._settled = settled
        self._failed = failed
        self._results: SimpleQueue[TaskResult | None] = SimpleQueue()
        self._abandoned = threading.Event()
        self._backoff = Backoff()
        self._thread = threading.Thread(target=self._run, name="finisher", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def send(self, result: TaskResult) -> None:
        """Hand over a result; it is kept and sent again until the database has answered for it."""
        self._results.put(result)

    def close(self) -> None:
        """End the thread; what was not sent is given up."""
        self._abandoned.set()
        self._results.put(None)

    def _run(self) -> None:
        try:
            while batch := self._next_batch():
                self._deliver(batch)
        except BaseException as error:  # noqa: BLE001 -- whoever runs the worker must hear of it
            self._failed(error)

    def _next_batch(self) -> list[TaskResult]:
        """Wait for a result and take those that stand behind it; an empty batch is the end."""
        batch: list[TaskResult] = []
        result = self._results.get()
        characters = 0
        while result is not None:
            batch.append(result)
            characters += len(result.output or "")
            if len(batch) == MAX_BATCH or characters >= MAX_BATCH_CHARACTERS:
                break
            try:
                result = self._results.get_nowait()
            except Empty:
                break
        return [] if self._abandoned.is_set() else batch

    def _deliver(self, batch: list[TaskResult]) -> None:
        groups = deque(_by_ending(batch))
        while groups:
            group = groups.popleft()
            try:
                statuses = self._send(group)
            except psycopg.Error as error:
                passing = may_pass(error)
                # Whatever the server minds in a batch may be one element: the others must not share its fate.
                parts = [group] if len(group) == 1 or error.sqlstate is None else [[result] for result in group]
                if passing:
                    self._log.warning("sending_failed", results=len(group), sqlstate=error.sqlstate, retry=True)
                    groups.extendleft(reversed(parts))
                    if not self._backoff.wait(self._abandoned):
                        return
                elif len(parts) > 1:
                    self._log.warning("batch_refused", results=len(group), sqlstate=error.sqlstate, retry="one by one")
                    groups.extendleft(reversed(parts))
                else:
                    groups.extendleft(self._refused(group[0], error))
            else:
                self._backoff.reset()
                for result, status in zip(group, statuses, strict=True):
                    self._report(result, status)
                    self._settled(result)

    def _send(self, group: list[TaskResult]) -> list[str]:
        query = _COMPLETE if group[0].is_success else _FAIL
        elements = ", ".join(result.element() for result in group)
        return [status for (status,) in self._session.fetch(query, {"results": f"[{elements}]"})]

    def _refused(self, result: TaskResult, error: psycopg.Error) -> Iterator[list[TaskResult]]:
        """Turn an output that the server can't take into a failure of its task, and give up on a failure."""
        reason = explain(error)
        if result.is_success:
            yield [
                replace(
                    result,
                    output=None,
                    error=clean_error(f"The database can't store the handler's output: {reason}"),
                    cause=type(error).__name__,
                )
            ]
            return
        self._log.error(
            "result_lost",
            sqlstate=error.sqlstate,
            reason=reason,
            **_names(result),
            returns="when its lease has run out",
        )
        self._settled(result)

    def _report(self, result: TaskResult, status: str) -> None:
        write = self._log.info if status == "completed" else self._log.warning
        write(
            "task_finished",
            status=status,
            **_names(result),
            ms=result.milliseconds,
            error=result.cause,
            at=result.place,
        )


def _by_ending(batch: list[TaskResult]) -> Iterator[list[TaskResult]]:
    for ending in (True, False):
        group = [result for result in batch if result.is_success is ending]
        if group:
            yield group


def _names(result: TaskResult) -> dict[str, object]:
    task = result.task
    return {"run": task.run_id, "step": task.step_slug, "task": task.task_index, "attempt": task.attempt}
