"""The worker: one flow's complete shape, one subscription, one handler, so many tasks at once."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any, Literal, LiteralString
from uuid import UUID, uuid4

import psycopg

from pgflow_stepq.worker.errors import (
    CompileMismatchError,
    DrainIncompleteError,
    FatalWorkError,
    RefusedError,
    ToldToStopError,
    UsageError,
    WorkerError,
)
from pgflow_stepq.worker.executor import Executor
from pgflow_stepq.worker.finisher import Finisher
from pgflow_stepq.worker.handlers import ClaimedTask, Handler
from pgflow_stepq.worker.heartbeats import Heartbeats
from pgflow_stepq.worker.log import EventLog
from pgflow_stepq.worker.poller import Poll, Poller
from pgflow_stepq.worker.results import TaskResult
from pgflow_stepq.worker.sessions import Session, explain, may_pass

QueueMode = Literal["flow", "step"]

_COMPILE: LiteralString = """
    select pgflow.ensure_flow_compiled(%(flow_slug)s, %(shape)s::jsonb, queue_mode => %(queue_mode)s)
"""
_REGISTER: LiteralString = """
    select queue_name from pgflow.register_worker(%(worker_id)s, %(function_name)s, %(flow_slug)s, %(step_slug)s)
"""
_EXTEND: LiteralString = """
    select pgflow.extend_task(
             %(run_id)s, %(step_slug)s, %(task_index)s, %(worker_id)s, %(attempt)s, %(seconds)s
           )
"""
_STOPPED: LiteralString = "select pgflow.mark_worker_stopped(%(worker_id)s)"

_CANCEL_AGAIN_SECONDS = 0.2
_SAME_SIGNAL_SECONDS = 0.5


@dataclass(frozen=True)
class _Stop:
    """Stop in good order: `error` is what `run` raises in the end, None for a stop on request."""

    reason: str
    error: BaseException | None = None


@dataclass(frozen=True)
class _PollFailed:
    error: BaseException


@dataclass(frozen=True)
class _FinisherFailed:
    error: BaseException


@dataclass(frozen=True)
class _Handled:
    result: TaskResult


@dataclass(frozen=True)
class _Settled:
    result: TaskResult


_Event = _Stop | _PollFailed | _FinisherFailed | _Handled | _Settled | Poll


class Worker:
    """Works the tasks of one step (queue_mode 'step'), or of a whole flow (queue_mode 'flow').

        Worker(flow_slug="communityThreadsV1", shape=shape, queue_mode="step", step_slug="classify",
               handler=classify, max_concurrent=4).run()

    What may be compiled, claimed, retried or stopped is decided by the database; the worker asks.
    """

    def __init__(
        self,
        *,
        flow_slug: str,
        shape: dict[str, Any],
        handler: Handler,
        queue_mode: QueueMode = "flow",
        step_slug: str | None = None,
        function_name: str | None = None,
        max_concurrent: int = 10,
        poll_seconds: int = 5,
        poll_interval_ms: int = 100,
        heartbeat_seconds: float = 5.0,
        drain_seconds: float = 30.0,
        dsn: str = "",
        log: EventLog | None = None,
    ) -> None:
        """Make a worker; nothing is connected yet.

        `handler` is called as handler(input) or handler(input, context), up to `max_concurrent`
        at once. `function_name` (default: flow_slug/step_slug, or flow_slug) is what the database
        enables and disables. `dsn` is a libpq connection string or URI; what it leaves out comes
        from the environment (PGHOST and friends). Raises UsageError for a handler or a `dsn` that
        can't be used, ValueError for a number out of range.
        """
        if max_concurrent < 1:
            raise ValueError(f"max_concurrent must be at least 1, not {max_concurrent}")
        self.worker_id: UUID = uuid4()
        self.function_name = function_name or (flow_slug if step_slug is None else f"{flow_slug}/{step_slug}")
        self._flow_slug = flow_slug
        self._shape = shape
        self._queue_mode = queue_mode
        self._step_slug = step_slug
        self._max_concurrent = max_concurrent
        self._drain_seconds = drain_seconds
        self._log = log or EventLog(worker=self.worker_id, function=self.function_name)

        # The one place where everything meets that happens: signals, threads and handlers put, run() gets. A
        # SimpleQueue, because its put may interrupt its own get, as a signal handler does.
        self._inbox: SimpleQueue[_Event] = SimpleQueue()
        try:
            self._control = Session(dsn, "control", self._log)
            self._polling_session = Session(dsn, "poll", self._log)
            self._finishing_session = Session(dsn, "finish", self._log)
        except psycopg.ProgrammingError as error:
            raise UsageError(f"The dsn is no connection string or URI: {str(error).strip()}") from error
        put = self._inbox.put
        self._executor = Executor(handler, self.worker_id, self._extend, lambda result: put(_Handled(result)))
        self._poller = Poller(
            session=self._polling_session,
            log=self._log,
            worker_id=self.worker_id,
            poll_seconds=poll_seconds,
            poll_interval_ms=poll_interval_ms,
            done=put,
            failed=lambda error: put(_PollFailed(error)),
        )
        self._finisher = Finisher(
            self._finishing_session,
            self._log,
            settled=lambda result: put(_Settled(result)),
            failed=lambda error: put(_FinisherFailed(error)),
        )
        self._heartbeats = Heartbeats(
            session=self._control,
            log=self._log,
            worker_id=self.worker_id,
            seconds=heartbeat_seconds,
            told_to_stop=lambda reason: put(_Stop(reason, ToldToStopError(f"The database said to stop: {reason}"))),
            failed=lambda error: put(_stop_for("heartbeat", error)),
        )

        self._queue_name = ""
        self._running: set[ClaimedTask] = set()
        self._unsent = 0
        self._is_polling = False
        self._stop: _Stop | None = None
        self._error: BaseException | None = None
        self._deadline = 0.0

    def run(self) -> None:
        """Compile or verify the flow, register, and work until something says stop; then drain.

        Returns when a stop was asked for (by `stop`, SIGTERM or SIGINT) and everything that was
        claimed is finished. In the main thread it handles both signals; a second one ends the
        process at once. Raises CompileMismatchError or RefusedError when the database refuses the
        worker (nothing of it is left there then), FatalWorkError, ToldToStopError,
        DrainIncompleteError, or WorkerError when the database can't be used. Call it once.
        """
        with self._signals():
            try:
                self._enter()
                self._work()
            finally:
                for session in (self._polling_session, self._finishing_session, self._control):
                    session.close()
        if self._error is not None:
            raise self._error

    def stop(self, reason: str = "stop was called") -> None:
        """Ask a running worker to drain and return. Any thread or signal handler may call it."""
        self._inbox.put(_Stop(reason))

    def _enter(self) -> None:
        self._log.info("starting", flow=self._flow_slug, step=self._step_slug, queue_mode=self._queue_mode)
        try:
            # One transaction: a registration that is refused takes back what compiling has made.
            with self._control.transaction():
                [(compiled,)] = self._control.fetch(
                    _COMPILE,
                    {
                        "flow_slug": self._flow_slug,
                        "shape": json.dumps(self._shape),
                        "queue_mode": self._queue_mode,
                    },
                )
                if compiled["status"] == "mismatch":
                    raise CompileMismatchError(self._flow_slug, compiled["differences"])
                [(self._queue_name,)] = self._control.fetch(
                    _REGISTER,
                    {
                        "worker_id": self.worker_id,
                        "function_name": self.function_name,
                        "flow_slug": self._flow_slug,
                        "step_slug": self._step_slug,
                    },
                )
        except WorkerError as error:
            self._log.error("refused", reason=type(error).__name__)
            raise
        except psycopg.Error as error:
            self._log.error("refused", sqlstate=error.sqlstate)
            raise _refusal(error) from error
        self._log.info("registered", queue=self._queue_name, compiled=compiled["status"])

    def _work(self) -> None:
        for part in (self._finisher, self._poller, self._heartbeats):
            part.start()
        while not self._is_done():
            if self._may_poll():
                self._is_polling = True
                self._poller.request(self._max_concurrent - len(self._running))
            event = self._next_event()
            if event is not None:
                self._handle(event)
        self._leave()

    def _may_poll(self) -> bool:
        return (
            self._stop is None
            and not self._is_polling
            and len(self._running) < self._max_concurrent
            # When the database takes no results, more work would only pile them up.
            and self._unsent <= self._max_concurrent
        )

    def _is_done(self) -> bool:
        if self._stop is None:
            return False
        idle = not (self._running or self._unsent or self._is_polling)
        return idle or time.monotonic() >= self._deadline

    def _next_event(self) -> _Event | None:
        if self._stop is None:
            return self._inbox.get()
        # A cancel can come too early, just before the poll that it is for: so it is repeated.
        longest = _CANCEL_AGAIN_SECONDS if self._is_polling else self._drain_seconds
        try:
            return self._inbox.get(timeout=max(0.0, min(longest, self._deadline - time.monotonic())))
        except Empty:
            if self._is_polling:
                self._poller.cancel()
            return None

    def _handle(self, event: _Event) -> None:
        match event:
            case Poll():
                self._is_polling = False
                self._take(event)
            case _Handled(result):
                self._running.discard(result.task)
                self._unsent += 1
                self._finisher.send(result)
            case _Settled():
                self._unsent -= 1
            case _Stop():
                self._begin_drain(event)
            case _PollFailed(error):
                self._is_polling = False
                self._begin_drain(_stop_for("poll", error))
            case _FinisherFailed(error):
                self._begin_drain(_stop_for("finishing", error))
                self._deadline = time.monotonic()

    def _take(self, poll: Poll) -> None:
        if poll.others and not poll.unsupported:
            self._log.info("messages_put_aside", queue=self._queue_name, **poll.others)
        if poll.unsupported:
            self._log.error(
                "fatal_work",
                queue=self._queue_name,
                flow=self._flow_slug,
                step=self._step_slug,
                messages=list(poll.unsupported),
                reasons=sorted(set(poll.unsupported.values())),
            )
            self._begin_drain(_Stop("fatal work", self._fatal_work(poll.unsupported)))
        for task in poll.tasks:
            self._log.info(
                "task_claimed", run=task.run_id, step=task.step_slug, task=task.task_index, attempt=task.attempt
            )
            self._running.add(task)
            self._executor.submit(task)

    def _begin_drain(self, stop: _Stop) -> None:
        # An error that shows up while the worker drains on request still decides how it ends.
        self._error = self._error or stop.error
        if self._stop is not None:
            return
        self._stop = stop
        self._deadline = time.monotonic() + self._drain_seconds
        self._log.info("draining", reason=stop.reason, running=len(self._running), unsent=self._unsent)
        if self._is_polling:
            self._poller.cancel()

    def _leave(self) -> None:
        for part in (self._poller, self._finisher, self._heartbeats, self._executor):
            part.close()
        if self._running or self._unsent:
            self._log.error("drain_incomplete", running=len(self._running), unsent=self._unsent)
            self._error = self._error or DrainIncompleteError(
                f"{len(self._running)} handlers were still running and {self._unsent} results unsent after "
                f"{self._drain_seconds:g} s. Their tasks come back when their leases have run out. Allow more time "
                "with --drain-seconds."
            )
        try:
            self._control.fetch(_STOPPED, {"worker_id": self.worker_id})
        except psycopg.Error as error:
            self._log.warning("not_marked_stopped", error=explain(error))
        self._log.info("stopped", reason=self._stop.reason if self._stop else None)

    def _extend(self, task: ClaimedTask, seconds: int) -> datetime | None:
        params = {
            "run_id": task.run_id,
            "step_slug": task.step_slug,
            "task_index": task.task_index,
            "worker_id": self.worker_id,
            "attempt": task.attempt,
            "seconds": seconds,
        }
        try:
            [(boundary,)] = self._control.fetch(_EXTEND, params)
        except psycopg.Error as error:
            if not may_pass(error):
                raise
            [(boundary,)] = self._control.fetch(_EXTEND, params)
        until: datetime | None = boundary
        return until

    def _fatal_work(self, unsupported: dict[int, str]) -> FatalWorkError:
        whose = f'flow "{self._flow_slug}"'
        if self._step_slug is not None:
            whose = f'step "{self._step_slug}" of {whose}'
        listed = "".join(f"\n  - message {msg_id}: {reason}" for msg_id, reason in unsupported.items())
        ids = ", ".join(str(msg_id) for msg_id in unsupported)
        literals = [self._queue_name, self._flow_slug, self._step_slug, self.function_name]
        queue, flow, step, function = ("null" if text is None else _literal(text) for text in literals)
        look = f"select * from pgflow.classify_messages({queue}, {flow}, {step}, array[{ids}]);"  # noqa: S608
        aside = f"select pgflow.quarantine_message({queue}, msg_id) from unnest(array[{ids}]::bigint[]) as msg_id;"  # noqa: S608
        enable = f"select pgflow.enable_worker_function({function});"
        return FatalWorkError(
            f'Queue "{self._queue_name}" holds what is no work of {whose}:{listed}\n'
            f'Nothing of that batch was claimed, and the function "{self.function_name}" is disabled, so that none of '
            "its workers comes back to it. Look at the messages:\n"
            f"  {look}\n"
            "find out who sent them, move them aside (to the queue's archive), and enable the function again:\n"
            f"  {aside}\n"
            f"  {enable}"
        )

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Drain on the first SIGTERM or SIGINT, end the process on the second.

        One that comes right behind the first is the same wish: `timeout` signals a process and then its group.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        first: float | None = None

        def on_signal(number: int, _frame: FrameType | None) -> None:
            nonlocal first
            if first is not None and time.monotonic() - first < _SAME_SIGNAL_SECONDS:
                return
            if first is not None:
                # Not by the log: the signal may have interrupted it while it held its lock.
                os.write(2, b"pgflow-stepq worker: second signal, ending at once\n")
                os._exit(128 + number)
            first = time.monotonic()
            self.stop(signal.Signals(number).name)

        before = {number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _refusal(error: psycopg.Error) -> WorkerError:
    """Say why a worker could not start."""
    state = error.sqlstate or ""
    if state.startswith(("PF", "22")):
        return RefusedError(explain(error))
    if state in {"3F000", "42883"}:
        return WorkerError(
            f"The database has no pgflow_stepq of this version: {explain(error)}\n"
            "Run: create extension pgflow_stepq cascade; or: alter extension pgflow_stepq update;"
        )
    if not state:
        return WorkerError(f"Can't connect to the database: {explain(error)}")
    return WorkerError(explain(error))


def _stop_for(what: str, error: BaseException) -> _Stop:
    """Stop because `what` met `error`; the log tells what the database said, and of other errors the type."""
    ending = _ending(error)
    said = str(ending) if isinstance(ending, WorkerError) else type(ending).__qualname__
    return _Stop(f"{what}: {said}", ending)


def _ending(error: BaseException) -> BaseException:
    """Say what an error that came up during the work means for the worker."""
    if not isinstance(error, psycopg.Error):
        return error
    if error.sqlstate in {"PF012", "PF013"}:
        return ToldToStopError(explain(error))
    if (error.sqlstate or "").startswith("PF"):
        return RefusedError(explain(error))
    return WorkerError(explain(error))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
