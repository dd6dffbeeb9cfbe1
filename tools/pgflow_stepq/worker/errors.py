"""What a worker can end with: one error class for each exit code but success."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from pgflow_stepq.errors import StepqError


class ExitCode(IntEnum):
    """The exit codes of `pgflow-stepq worker`."""

    OK = 0
    UNEXPECTED = 1
    USAGE = 2
    REFUSED = 3
    FATAL_WORK = 4
    TOLD_TO_STOP = 5


class WorkerError(StepqError):
    """Base of the errors that end a worker."""

    exit_code: ClassVar[ExitCode] = ExitCode.UNEXPECTED


class UsageError(WorkerError):
    """The command was given something that it can't use: a file, an option, a handler."""

    exit_code = ExitCode.USAGE


class RefusedError(WorkerError):
    """The database refused the worker: its flow, its route, its function or its rights."""

    exit_code = ExitCode.REFUSED


class CompileMismatchError(RefusedError):
    """The shape that the worker carries is not the one that the database holds.

    `differences` are the database's sentences, one a difference.
    """

    def __init__(self, flow_slug: str, differences: list[str]) -> None:
        """List `differences` in the message."""
        self.differences = differences
        listed = "".join(f"\n  - {difference}" for difference in differences)
        super().__init__(
            f'Flow "{flow_slug}" in the database differs from the shape of this worker:{listed}\n'
            "Deploy the worker that belongs to the stored flow, or give the changed flow a new slug."
        )


class FatalWorkError(WorkerError):
    """The worker read messages that its subscription does not cover."""

    exit_code = ExitCode.FATAL_WORK


class ToldToStopError(WorkerError):
    """The database told a running worker to stop."""

    exit_code = ExitCode.TOLD_TO_STOP


class DrainIncompleteError(WorkerError):
    """The time to drain ran out while handlers were running or results were unsent."""
