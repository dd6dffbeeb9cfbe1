"""Template databases: what a measurement's database is a copy of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import psycopg

from pgflow_stepq.bench.scales import Scale


class Template(ABC):
    """A database that measurements get copies of."""

    # Whether it is copied file by file, which leaves the WAL small but asks for two CHECKPOINTs.
    large: ClassVar[bool] = False

    def refusal(self) -> str | None:
        """Return why it can't be had on this machine, for the one who would install what is missing; else None."""
        return None

    @abstractmethod
    def fill(self, connection: psycopg.Connection[tuple[Any, ...]], scale: Scale) -> None:
        """Make an empty database into the template. Raises BenchError, psycopg.Error."""


class _Stepq(Template):
    """A database with PGMQ and this extension, as `create extension` leaves it."""

    def fill(self, connection: psycopg.Connection[tuple[Any, ...]], scale: Scale) -> None:
        del scale
        connection.execute("create extension pgmq")
        connection.execute("create extension pgflow_stepq")


STEPQ: Template = _Stepq()
