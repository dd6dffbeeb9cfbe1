"""Run a handler on claimed tasks: in threads when it is sync, on one event loop when it is async."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Callable
from datetime import datetime
from queue import SimpleQueue
from typing import Any
from uuid import UUID

from pgflow_stepq.worker.handlers import (
    ClaimedTask,
    Handler,
    TaskContext,
    describe,
    is_async,
    resolve,
    takes_context,
    where,
)
from pgflow_stepq.worker.results import TaskResult, UnusableOutputError, clean_error, encode_output

Extend = Callable[[ClaimedTask, int], datetime | None]


class Executor:
    """Starts every task that it is given at once, and hands its result to `done` in any thread.

    How many run together is the caller's to limit. All threads are daemons, so that a handler
    that never ends can't keep the process from ending.
    """

    def __init__(self, handler: Handler, worker_id: UUID, extend: Extend, done: Callable[[TaskResult], None]) -> None:
        """Look at how `handler` is called. Raises UsageError when it takes neither (input) nor (input, context)."""
        self._handler = handler
        self._with_context = takes_context(handler)
        self._is_async = is_async(handler)
        self._worker_id = worker_id
        self._extend = extend
        self._done = done
        self._tasks: SimpleQueue[ClaimedTask | None] = SimpleQueue()
        self._threads = 0
        self._running = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    def submit(self, task: ClaimedTask) -> None:
        """Start the handler on `task`."""
        if self._is_async:
            asyncio.run_coroutine_threadsafe(self._run_async(task), self._event_loop())
            return
        with self._lock:
            self._running += 1
            # Threads are kept, because handlers keep clients and connections in thread-local storage.
            if self._threads < self._running:
                self._threads += 1
                threading.Thread(target=self._serve, name=f"handler-{self._threads}", daemon=True).start()
        self._tasks.put(task)

    def close(self) -> None:
        """Let idle threads and the event loop end. Tasks that still run are left to themselves."""
        with self._lock:
            for _ in range(self._threads):
                self._tasks.put(None)
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._loop.stop)

    def _serve(self) -> None:
        while (task := self._tasks.get()) is not None:
            started = time.monotonic()
            try:
                value = self._handler(*self._arguments(task))
                if inspect.isawaitable(value):
                    # A sync wrapper around an async function: its kind shows only now.
                    value = asyncio.run_coroutine_threadsafe(resolve(value), self._event_loop()).result()
                result = _success(task, value, started)
            except BaseException as error:  # noqa: BLE001 -- sys.exit() in a handler ends its task, not the worker
                result = _failure(task, error, started)
            with self._lock:
                self._running -= 1
            self._done(result)

    async def _run_async(self, task: ClaimedTask) -> None:
        started = time.monotonic()
        try:
            result = _success(task, await self._handler(*self._arguments(task)), started)
        except BaseException as error:  # noqa: BLE001 -- as above; and the event loop is shared with others
            result = _failure(task, error, started)
        self._done(result)

    def _arguments(self, task: ClaimedTask) -> tuple[Any] | tuple[Any, TaskContext]:
        value, context = task.arguments(self._worker_id, lambda seconds: self._extend(task, seconds))
        return (value, context) if self._with_context else (value,)

    def _event_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="handlers", daemon=True).start()
            return self._loop


def _success(task: ClaimedTask, value: Any, started: float) -> TaskResult:
    return TaskResult(task, encode_output(value), milliseconds=_milliseconds_since(started))


def _failure(task: ClaimedTask, error: BaseException, started: float) -> TaskResult:
    message = str(error) if isinstance(error, UnusableOutputError) else describe(error)
    return TaskResult(
        task,
        output=None,
        error=clean_error(message),
        milliseconds=_milliseconds_since(started),
        cause=type(error).__qualname__,
        place=where(error),
    )


def _milliseconds_since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
