"""What a workload is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from pgflow_stepq.bench.errors import BenchError
from pgflow_stepq.bench.scales import Scale
from pgflow_stepq.bench.templates import STEPQ, Template

Connection = psycopg.Connection[tuple[Any, ...]]


class Workload(ABC):
    """Work that is timed: made for one scale, set up, loaded and worked with the clock on, checked and closed.

    The connection is in autocommit, to a database in which nothing else happens. An object is used for one run only;
    two objects of a class may follow each other in a database, so each remembers what is its own.
    """

    name: ClassVar[str]
    # One sentence for --help: what is done from the start of the clock to its end.
    summary: ClassVar[str]
    # What work() counts, in the plural.
    unit: ClassVar[str]
    # Names of the workloads that a unit's cost is compared with.
    against: ClassVar[tuple[str, ...]] = ()
    # What its databases are copied from.
    template: ClassVar[Template] = STEPQ
    # Whether load() is part of what is measured.
    load_is_timed: ClassVar[bool] = True
    # Whether set_up() brings the sessions that do the work to where they are fast; else the same work is done before.
    warms_itself_up: ClassVar[bool] = False

    def __init__(self, scale: Scale) -> None:
        """Keep the scale; nothing touches a database before set_up()."""
        self.scale = scale
        # What some workloads measure beside the time: the 95th percentile of a wait in seconds, and how many calls
        # ended in a deadlock or a serialization failure. Set when check() has returned.
        self.wait: float | None = None
        self.conflicts: int | None = None

    @classmethod
    def note(cls, scale: Scale) -> str | None:
        """Return what a reader of its figures must know beside the summary; None when there is nothing."""
        del scale
        return None

    @abstractmethod
    def set_up(self, connection: Connection) -> None:
        """Make what the work needs; not timed."""

    @abstractmethod
    def load(self, connection: Connection) -> None:
        """Bring the queues to where they are fullest. Raises BenchError."""

    @abstractmethod
    def work(self, connection: Connection) -> int:
        """Do the work and return how many units it was, those of load() included; timed. Raises BenchError."""

    @abstractmethod
    def check(self, connection: Connection) -> None:
        """Raise BenchError unless the work is truly done; not timed."""

    def close(self) -> None:  # noqa: B027 - most have nothing to let go of
        """Let go of sessions and processes that set_up() started; called in any case, even when it failed."""

    def backends(self, connection: Connection) -> list[int]:
        """Return the process ids of the server processes that do the work, for their processor time."""
        return [connection.info.backend_pid]

    def expect(self, what: str, found: object, wanted: object) -> None:
        """Raise BenchError, naming the workload, unless `found` equals `wanted`."""
        if found != wanted:
            raise BenchError(f'Workload "{self.name}" did not do its work: {what}: {found} instead of {wanted}.')


def value(connection: Connection, query: LiteralString | sql.Composed, *parameters: object) -> Any:
    """Return the first column of the only row that a query gives."""
    row = connection.execute(query, parameters).fetchone()
    if row is None:
        raise BenchError(f"A query of the bench gave no row: {query}")
    return row[0]


def conninfo_of(connection: Connection) -> str:
    """Return a connection string for more sessions like this one."""
    info = connection.info
    # What is libpq's own default is no parameter, and would be taken from the environment.
    said: dict[str, Any] = {"host": info.host, "port": info.port, "password": info.password or None}
    return make_conninfo("", **{**info.get_parameters(), **said})
