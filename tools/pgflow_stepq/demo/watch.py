"""Wait for work to end, showing how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from pgflow_stepq.console import WIDTH, Console, fit
from pgflow_stepq.demo import figures
from pgflow_stepq.demo.figures import Connection, StepFigures
from pgflow_stepq.demo.pool import WorkerPool
from pgflow_stepq.errors import StepqError

# Nothing in this flow waits longer than one retry's delay; when nothing moves for so long, nothing will.
STALL_SECONDS: Final = 60
_TERMINAL_PAUSE: Final = 0.15
_PLAIN_PAUSE: Final = 2.0


class StalledError(StepqError):
    """Work that should move does not; the message tells where it stands."""


class Watch:
    """Shows the progress of a flow's runs and notices a dead worker or a standstill."""

    def __init__(self, console: Console, connection: Connection, flow_slug: str, pool: WorkerPool) -> None:
        """Watch the runs of `flow_slug` and the processes of `pool`."""
        self._console = console
        self._connection = connection
        self._flow_slug = flow_slug
        self._pool = pool
        self._line = ""
        self._shown = ""
        self._moved_at = time.monotonic()
        self._shown_at = 0.0

    def tick(self) -> list[StepFigures]:
        """Look once: show the progress if it changed and is due, and return the figures of the steps.

        Raises WorkerDiedError, or StalledError when nothing has changed for STALL_SECONDS.
        """
        self._pool.check()
        steps = figures.steps(self._connection, self._flow_slug)
        line = _progress(figures.runs_by_status(self._connection, self._flow_slug), steps)
        now = time.monotonic()
        if line != self._line:
            self._line, self._moved_at = line, now
            if now - self._shown_at >= (_TERMINAL_PAUSE if self._console.is_terminal else _PLAIN_PAUSE):
                self._console.status(line)
                self._shown, self._shown_at = line, now
        elif now - self._moved_at > STALL_SECONDS:
            raise StalledError(f"Nothing has moved for {STALL_SECONDS} s. It stands at: {line}")
        return steps

    def until(self, done: Callable[[list[StepFigures]], bool]) -> None:
        """Tick until `done` says so of the steps' figures, then show where it ended."""
        self._moved_at = time.monotonic()
        while True:
            looked_at = time.monotonic()
            if done(self.tick()):
                break
            # The figures count every task: on a long file they must not become the load themselves.
            time.sleep(max(_TERMINAL_PAUSE, 4 * (time.monotonic() - looked_at)))
        if self._console.is_terminal or self._shown != self._line:
            self._console.line(fit(self._line, WIDTH - 2))
            self._shown = self._line


def _progress(runs: dict[str, int], steps: list[StepFigures]) -> str:
    ended = runs["completed"] + runs["failed"]
    parts = [f"runs {ended:,}/{ended + runs['started']:,}"]
    parts += [f"{step.step_slug} {step.tasks_completed:,}" for step in steps]
    open_tasks = sum(step.tasks_open for step in steps)
    return " · ".join(parts) + (f" · open {open_tasks:,}" if open_tasks else "")
