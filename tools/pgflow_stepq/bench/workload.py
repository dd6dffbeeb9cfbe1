"""What a workload is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, LiteralString

import psycopg
from psycopg import sql

from pgflow_stepq.bench.errors import BenchError
from pgflow_stepq.bench.scales import Scale

Connection = psycopg.Connection[tuple[Any, ...]]


class Workload(ABC):
    """Work that one client does: made for one scale, set up, loaded and worked with the clock on, and checked.

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

    def __init__(self, scale: Scale) -> None:
        """Keep the scale; nothing touches a database before set_up()."""
        self.scale = scale

    @abstractmethod
    def set_up(self, connection: Connection) -> None:
        """Make what the work needs; not timed."""

    @abstractmethod
    def load(self, connection: Connection) -> None:
        """Bring the queues to where they are fullest; timed. Raises BenchError."""

    @abstractmethod
    def work(self, connection: Connection) -> int:
        """Do the work and return how many units it was, those of load() included; timed. Raises BenchError."""

    @abstractmethod
    def check(self, connection: Connection) -> None:
        """Raise BenchError unless the work is truly done; not timed."""

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
