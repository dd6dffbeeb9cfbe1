"""PgQueuer, driven by its own calls over asyncpg. Importing this module needs the packages pgqueuer and asyncpg.

Over psycopg, which PgQueuer offers too, its manager holds the one connection for up to a second at a time while it
listens, and the jobs wait for that.
"""

from __future__ import annotations

import asyncio
import importlib
import uuid
from collections.abc import Coroutine, Sequence
from datetime import timedelta
from typing import Any, Final, TypeVar

from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.qm import QueueManager
from pgqueuer.queries import EntrypointExecutionParameter, Queries
from pgqueuer.types import QueueEntrypoint, QueueManagerId

from pgflow_stepq.bench.errors import BenchError

_Result = TypeVar("_Result")

_HEARTBEAT: Final = timedelta(seconds=30)
_PATIENCE_SECONDS: Final = 600


class PgqueuerClient:
    """A connection with an event loop of its own; close() ends both."""

    def __init__(self, host: str, port: int, user: str, password: str | None, database: str) -> None:
        """Connect; `host` may be the directory of a Unix socket."""
        self._runner = asyncio.Runner()
        # asyncpg carries no types.
        connect = importlib.import_module("asyncpg").connect
        self._connection: Any = self._run(
            connect(host=host, port=port, user=user, password=password, database=database)
        )
        self._queries = Queries(self._run(_driver(self._connection)))
        self._id = QueueManagerId(uuid.uuid4())

    @property
    def backend(self) -> int:
        """The process id of its server process."""
        return int(self._connection.get_server_pid())

    def close(self) -> None:
        """Disconnect."""
        self._run(self._connection.close())
        self._runner.close()

    def install(self) -> None:
        """Make PgQueuer's tables."""
        self._run(self._queries.install())

    def enqueue(self, entrypoint: str, payloads: Sequence[bytes]) -> None:
        """Send jobs in one call."""
        self._run(self._queries.enqueue([entrypoint] * len(payloads), list(payloads), [0] * len(payloads)))

    def dequeue(self, entrypoint: str, batch: int) -> list[Job]:
        """Take a batch of jobs in one call."""
        wanted = {QueueEntrypoint(entrypoint): EntrypointExecutionParameter(concurrency_limit=0)}
        return self._run(self._queries.dequeue(batch, wanted, self._id, None, _HEARTBEAT))

    def complete(self, jobs: Sequence[Job]) -> None:
        """Log a batch of jobs as successful in one call."""
        self._run(self._queries.log_jobs([(job, "successful", None) for job in jobs]))

    def work_chain(self, entrypoints: Sequence[str], jobs: int, batch: int) -> int:
        """Let PgQueuer's own manager work until so many jobs are done; return how many were handled.

        The handler of each entrypoint sends one job with the next payload to the entrypoint after it. Raises BenchError
        when the jobs don't come.
        """
        return self._run(self._work_chain(entrypoints, jobs, batch))

    async def _work_chain(self, entrypoints: Sequence[str], jobs: int, batch: int) -> int:
        manager = QueueManager(self._queries)
        handled = 0

        def register(entrypoint: str, following: str | None) -> None:
            async def handle(job: Job) -> None:
                nonlocal handled
                if following is not None:
                    await self._queries.enqueue(following, b"%d" % (int(job.payload or b"") + 1))
                handled += 1
                if handled == jobs:
                    manager.shutdown.set()

            manager.entrypoint(entrypoint)(handle)

        for entrypoint, following in zip(entrypoints, [*entrypoints[1:], None], strict=True):
            register(entrypoint, following)
        try:
            # Aggregating its log is left out: that is work of the background.
            await asyncio.wait_for(
                manager.run(batch_size=batch, log_aggregation_interval=timedelta(0)), timeout=_PATIENCE_SECONDS
            )
        except TimeoutError as error:
            raise BenchError(f"PgQueuer handled {handled} of {jobs} jobs and no more.") from error
        return handled

    def _run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        return self._runner.run(work)


async def _driver(connection: Any) -> AsyncpgDriver:
    """Return PgQueuer's driver, which must be made where a loop runs."""
    return AsyncpgDriver(connection)
