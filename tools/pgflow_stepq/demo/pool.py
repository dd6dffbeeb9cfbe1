"""The demo's worker processes: one a step, started as an operator would start them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from pgflow_stepq.errors import StepqError

_DRAIN_SECONDS: Final = 20
_LOG_LINES_SHOWN: Final = 15


class WorkerDiedError(StepqError):
    """A worker process ended by itself; the message has the end of its log."""


@dataclass(frozen=True)
class WorkerSpec:
    """What one worker process works: a step, its handler ("module:function"), and how many tasks at once."""

    step_slug: str
    handler: str
    max_concurrent: int

    def command(self, shape_file: Path) -> list[str]:
        """Return the command line after "pgflow-stepq", as one would type it."""
        return [
            "worker",
            "--shape", str(shape_file),
            "--queue-mode", "step",
            "--step", self.step_slug,
            "--handler", self.handler,
            "--max-concurrent", str(self.max_concurrent),
        ]  # fmt: skip


class WorkerPool:
    """Context manager over worker processes; whatever ends it, no process of it is left."""

    def __init__(self, shape_file: Path, dsn: str, environment: Mapping[str, str]) -> None:
        """Keep what the workers need: they connect with `dsn`, and `environment` is added to what they inherit."""
        self._shape_file = shape_file
        self._dsn = dsn
        self._environment = {**os.environ, **environment}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._logs = tempfile.TemporaryDirectory(prefix="stepq-workers-")

    def start(self, spec: WorkerSpec) -> None:
        """Start the worker of a step, which must not run yet."""
        with self._log(spec.step_slug).open("ab") as log:
            self._processes[spec.step_slug] = subprocess.Popen(
                [sys.executable, "-m", "pgflow_stepq.cli", *spec.command(self._shape_file), "--dsn", self._dsn],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # A Ctrl-C at the terminal is for the demo, which then stops its workers in good order.
                start_new_session=True,
            )

    def stop(self, step_slug: str) -> None:
        """Let the worker of a step finish what it has begun, and wait for its end.

        Raises WorkerDiedError when it ends with anything but success.
        """
        process = self._processes.pop(step_slug)
        process.terminate()
        status = _wait_or_kill(process)
        if status != 0:
            raise self._died(step_slug, status)

    def check(self) -> None:
        """Raise WorkerDiedError if a worker has ended by itself."""
        for step_slug, process in self._processes.items():
            status = process.poll()
            if status is not None:
                raise self._died(step_slug, status)

    def __enter__(self) -> Self:
        """Return the pool, with no worker yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop every worker; one that does not drain in time is killed."""
        # All are told first, so that they drain at the same time.
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            _wait_or_kill(process)
        self._processes.clear()
        self._logs.cleanup()

    def _log(self, step_slug: str) -> Path:
        return Path(self._logs.name) / f"{step_slug}.log"

    def _died(self, step_slug: str, status: int) -> WorkerDiedError:
        tail = self._log(step_slug).read_text(encoding="utf-8", errors="replace").splitlines()
        said = "\n".join(f"  {line}" for line in tail[-_LOG_LINES_SHOWN:])
        return WorkerDiedError(
            f'The worker of step "{step_slug}" ended with status {status}. The end of its log:\n{said}'
        )


def _wait_or_kill(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(_DRAIN_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
