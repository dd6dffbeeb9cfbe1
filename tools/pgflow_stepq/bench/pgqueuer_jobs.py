"""PgQueuer, a job queue: flat jobs, and chains that its users make by hand."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from typing import TYPE_CHECKING, Any, ClassVar, Final

import psycopg

from pgflow_stepq.bench.scales import Scale
from pgflow_stepq.bench.templates import Template
from pgflow_stepq.bench.workload import Connection, Workload, value

if TYPE_CHECKING:
    from pgflow_stepq.bench.pgqueuer_client import PgqueuerClient

_CHAIN: Final = ("first", "second", "third")


def _client(connection: Connection) -> PgqueuerClient:
    # Imported when it is measured only: it may be missing, and takes its time.
    module = importlib.import_module("pgflow_stepq.bench.pgqueuer_client")
    info = connection.info
    client: PgqueuerClient = module.PgqueuerClient(info.host, info.port, info.user, info.password or None, info.dbname)
    return client


class Pgqueuer(Template):
    """A database with PgQueuer's tables."""

    def refusal(self) -> str | None:
        """Return how to install the package; None when it is there."""
        for package in ("pgqueuer", "asyncpg"):
            if importlib.util.find_spec(package) is None:
                return f"the Python package {package} is missing; install the extra: pip install -e '.[bench]'"
        return None

    def fill(self, connection: psycopg.Connection[tuple[Any, ...]], scale: Scale) -> None:
        """Make its tables."""
        del scale
        client = _client(connection)
        try:
            client.install()
        finally:
            client.close()


class PgqueuerFlat(Workload):
    """Jobs that have nothing to do with each other."""

    name = "pgqueuer"
    summary = "PgQueuer: flat jobs, sent, taken and logged as done by 50, three calls and three commits a batch"
    unit = "jobs"
    against: ClassVar[tuple[str, ...]] = ("raw",)
    template = Pgqueuer()
    batch: ClassVar[int] = 50
    _client: PgqueuerClient | None = None

    @classmethod
    def note(cls, scale: Scale) -> str:
        """Say which version it is and what its users write by hand."""
        del scale
        version = importlib.metadata.version("pgqueuer")
        return (
            f"PgQueuer is {version}, over asyncpg. It knows no flows: in pgqueuer-chain a handler sends the next job, "
            "in pgqueuer-batch a client does so for a whole batch; a crash between two commits repeats a step."
        )

    def set_up(self, connection: Connection) -> None:
        """Connect, and empty its log."""
        self._connected = self._client = _client(connection)
        connection.execute("truncate pgqueuer_log")

    def load(self, connection: Connection) -> None:
        """Send all jobs, batch by batch, the number of each as its payload."""
        self._send(self.scale.messages)

    def work(self, connection: Connection) -> int:
        """Take and log batches until there are none."""
        return self._drain(_CHAIN[0], None)

    def check(self, connection: Connection) -> None:
        """See that every job is logged as successful and none is left."""
        self._check(connection, {_CHAIN[0]: self.scale.messages})

    def close(self) -> None:
        """Disconnect."""
        if self._client is not None:
            self._client.close()

    def backends(self, connection: Connection) -> list[int]:
        """Return its own server process."""
        return [self._connected.backend]

    def _send(self, jobs: int) -> None:
        payloads = [b"%d" % number for number in range(jobs)]
        for start in range(0, jobs, self.batch):
            self._connected.enqueue(_CHAIN[0], payloads[start : start + self.batch])

    def _drain(self, entrypoint: str, following: str | None) -> int:
        total = 0
        while done := self._work_batch(entrypoint, following):
            total += done
        return total

    def _work_batch(self, entrypoint: str, following: str | None) -> int:
        jobs = self._connected.dequeue(entrypoint, self.batch)
        if jobs:
            if following is not None:
                self._connected.enqueue(following, [b"%d" % (int(job.payload or b"") + 1) for job in jobs])
            self._connected.complete(jobs)
        return len(jobs)

    def _check(self, connection: Connection, wanted: dict[str, int]) -> None:
        done: dict[str, int] = dict(
            connection.execute(
                "select entrypoint, count(*) from pgqueuer_log where status = 'successful' group by entrypoint"
            ).fetchall()
        )
        self.expect("successful jobs", done, wanted)
        self.expect("jobs left", value(connection, "select count(*) from pgqueuer"), 0)


class PgqueuerChain(PgqueuerFlat):
    """Chains of three by hand, under PgQueuer's own manager."""

    name = "pgqueuer-chain"
    summary = "(b) PgQueuer: chains of 3 by hand under its manager, taken by 50: each job's handler sends the next one"
    against = ("chain",)

    def load(self, connection: Connection) -> None:
        """Send the first job of each chain, batch by batch."""
        self._send(self.scale.chain_runs)

    def work(self, connection: Connection) -> int:
        """Let the manager work until all are done."""
        return self._connected.work_chain(_CHAIN, len(_CHAIN) * self.scale.chain_runs, self.batch)

    def check(self, connection: Connection) -> None:
        """See that every job of every chain is logged as successful and none is left."""
        self._check(connection, dict.fromkeys(_CHAIN, self.scale.chain_runs))


class PgqueuerBatch(PgqueuerChain):
    """The same without the manager: a client that takes, sends and logs whole batches."""

    name = "pgqueuer-batch"
    summary = "(b) PgQueuer: the same by its calls alone: 50 taken, 50 sent to the next step, 50 logged, a commit each"

    def work(self, connection: Connection) -> int:
        """Let the three steps take turns, a batch each, until none finds a job."""
        total = 0
        following = [*_CHAIN[1:], None]
        while done := sum(self._work_batch(one, other) for one, other in zip(_CHAIN, following, strict=True)):
            total += done
        return total
