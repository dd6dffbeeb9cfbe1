"""Workers in Python: a handler, a flow's complete shape, and the database that decides.

Exit codes of `pgflow-stepq worker`, and the errors that stand for them in `Worker.run`:

| code | means | raised |
|---|---|---|
| 0 | stopped on request, everything claimed is finished | nothing |
| 1 | unexpected: the database can't be used, or the time to drain ran out | WorkerError, DrainIncompleteError |
| 2 | bad usage: an option, the flow file, or the handler can't be used | UsageError |
| 3 | refused by the database: the flow differs, or an error with a PF code | CompileMismatchError, RefusedError |
| 4 | fatal work: the queue holds messages that are not this worker's | FatalWorkError |
| 5 | told to stop: disabled, deprecated, fenced, or of an older generation | ToldToStopError |
| 128 + n | ended at once by a second signal n | nothing: the process ends |
"""

from __future__ import annotations

from pgflow_stepq.worker.command import add_parser, main, run
from pgflow_stepq.worker.errors import (
    CompileMismatchError,
    DrainIncompleteError,
    ExitCode,
    FatalWorkError,
    RefusedError,
    ToldToStopError,
    UsageError,
    WorkerError,
)
from pgflow_stepq.worker.handlers import Handler, TaskContext
from pgflow_stepq.worker.log import EventLog
from pgflow_stepq.worker.worker import Worker

__all__ = [
    "CompileMismatchError",
    "DrainIncompleteError",
    "EventLog",
    "ExitCode",
    "FatalWorkError",
    "Handler",
    "RefusedError",
    "TaskContext",
    "ToldToStopError",
    "UsageError",
    "Worker",
    "WorkerError",
    "add_parser",
    "main",
    "run",
]
