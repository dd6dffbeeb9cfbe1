"""Sessions in processes of their own: threads of one interpreter would wait for each other instead of the server."""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from multiprocessing.connection import wait
from typing import Any, Final, TypeVar, cast
from uuid import UUID

import psycopg

from pgflow_stepq.bench.errors import BenchError
from pgflow_stepq.bench.step_worker import StepWorker, Task

_Result = TypeVar("_Result")

# How long a process may take for its part before the bench gives up.
_PATIENCE_SECONDS: Final = 900
# A queue is taken for empty when it was so often in a row: others may have had everything locked for a moment.
_LOOKS: Final = 3
_PAUSE_SECONDS: Final = 0.002


@dataclass(frozen=True)
class Drained:
    """What a session did: tasks completed, and calls that ended in a deadlock or a serialization failure."""

    tasks: int
    conflicts: int


@dataclass(frozen=True)
class Claimed:
    """A task was claimed at a moment of the machine's monotonic clock."""

    run_id: UUID
    step_slug: str
    at: float


class RetryingStepWorker(StepWorker):
    """A worker that repeats a call that ended in a deadlock or a serialization failure, and counts those."""

    conflicts = 0

    def claim(self) -> list[Task]:
        """Read and claim one batch."""
        return self.repeated(super().claim)

    def complete(self, tasks: Sequence[Task]) -> None:
        """Complete a batch."""
        whole = super().complete
        self.repeated(lambda: whole(tasks))

    def repeated(self, call: Callable[[], _Result]) -> _Result:
        """Return what the call gives in the end."""
        while True:
            try:
                return call()
            except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure):
                self.conflicts += 1


def double(element: Any, _flow_input: Any) -> Any:
    """Return twice the element."""
    return element * 2


class Session:
    """A process with a connection of its own, which does what it is told through a pipe."""

    def __init__(self, target: Callable[..., None], *arguments: Any) -> None:
        """Start a process that runs target(pipe, *arguments); it is to send its server process's id first."""
        # Processes that are forked from one that has imported everything start quickly, and have nothing of this one.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        self.pipe, theirs = context.Pipe()
        # The end of this process takes it along.
        self._process = context.Process(target=_guarded, args=(target, theirs, *arguments), daemon=True)
        self._process.start()
        theirs.close()
        self._pid: int | None = None

    @property
    def backend(self) -> int:
        """The process id of its server process; waits until it is connected."""
        if self._pid is None:
            self._pid = cast(int, self.receive())
        return self._pid

    def send(self, message: object) -> None:
        """Tell the process something."""
        self.pipe.send(message)

    def receive(self) -> Any:
        """Return what the process says next. Raises BenchError when it failed or says nothing for long."""
        if not self.pipe.poll(_PATIENCE_SECONDS):
            raise BenchError(f"A session of the bench said nothing for {_PATIENCE_SECONDS} seconds.")
        try:
            said = self.pipe.recv()
        except EOFError as error:
            raise BenchError("A session of the bench ended by itself.") from error
        if isinstance(said, Failed):
            raise BenchError(f"A session of the bench failed: {said.text}")
        return said

    def join(self) -> None:
        """Wait until the process has ended by itself. Raises BenchError when it doesn't."""
        self._process.join(timeout=_PATIENCE_SECONDS)
        if self._process.exitcode != 0:
            raise BenchError(f"A session of the bench ended with {self._process.exitcode}.")

    def close(self) -> None:
        """End the process, whatever it does."""
        self.pipe.close()
        self._process.join(timeout=5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()


@dataclass(frozen=True)
class Failed:
    """What a process says at its end when an error ended it."""

    text: str


def receive_any(sessions: Sequence[Session], seconds: float) -> Iterator[Any]:
    """Give what the sessions have said, after waiting at most so long for the first of it. Raises BenchError."""
    ready = wait([session.pipe for session in sessions], timeout=max(seconds, 0.0))
    for session in sessions:
        if session.pipe in ready:
            yield session.receive()


def drain_session(pipe: Pipe, conninfo: str, step_slugs: Sequence[str], batch: int) -> None:
    """Be a session that empties the queues of these steps, in turn, each time that it is told to; until told None."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        workers = [RetryingStepWorker(connection, slug, double, batch) for slug in step_slugs]
        pipe.send(connection.info.backend_pid)
        while pipe.recv() is not None:
            before = sum(worker.conflicts for worker in workers)
            tasks = _drain(workers)
            pipe.send(Drained(tasks, sum(worker.conflicts for worker in workers) - before))


def task_session(pipe: Pipe, conninfo: str, step_slug: str | None, slow_step: str, task_seconds: float) -> None:
    """Be a session that works one task at a time and reports each claim; a task of `slow_step` takes its time.

    It ends when anything is sent.
    """

    def handle(_input: Any, _flow_input: Any) -> Any:
        return 1

    with psycopg.connect(conninfo, autocommit=True) as connection:
        worker = RetryingStepWorker(connection, step_slug, handle, 1)
        pipe.send(connection.info.backend_pid)
        while not pipe.poll(0):
            tasks = worker.claim()
            now = time.monotonic()
            for task in tasks:
                if task.step_slug == slow_step:
                    time.sleep(task_seconds)
                else:
                    pipe.send(Claimed(task.run_id, task.step_slug, now))
            if tasks:
                worker.complete(tasks)
            else:
                time.sleep(_PAUSE_SECONDS)


def _drain(workers: Sequence[StepWorker]) -> int:
    total = 0
    empty = 0
    while empty < _LOOKS:
        done = sum(worker.work() for worker in workers)
        total += done
        if done:
            empty = 0
        else:
            empty += 1
            time.sleep(_PAUSE_SECONDS)
    return total


def _guarded(target: Callable[..., None], pipe: Pipe, *arguments: Any) -> None:
    """Run target; an error of it goes to the one who started the process, whose end ends this quietly."""
    try:
        target(pipe, *arguments)
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told on the other side
        with contextlib.suppress(OSError):
            pipe.send(Failed(f"{type(error).__name__}: {error}"))
