"""Scratch databases: every measurement has one of its own, so that none sees what another left."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from pgflow_stepq.bench.scales import Scale
from pgflow_stepq.bench.templates import STEPQ, Template
from pgflow_stepq.embedded import Server


class ScratchDatabases:
    """Templates and copies of them on a server; leaving the context drops the templates.

    A template is made when the first copy of it is asked for, and holds what `scale` says.
    """

    def __init__(self, server: Server, scale: Scale) -> None:
        """Work on `server`; nothing is made yet."""
        self._server = server
        self._scale = scale
        self._prefix = f"pgflow_bench_{secrets.token_hex(4)}"
        self._templates: dict[Template, str] = {}
        self._count = 0

    def __enter__(self) -> ScratchDatabases:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Drop the templates."""
        for name in self._templates.values():
            self._drop(name)

    @contextmanager
    def database(self, template: Template = STEPQ) -> Iterator[str]:
        """Give the connection string of a fresh copy; it is dropped afterwards. Raises BenchError, psycopg.Error."""
        source = self._made(template)
        self._count += 1
        name = f"{self._prefix}_{self._count}"
        try:
            strategy = "file_copy" if template.large else "wal_log"
            self._execute(f"create database {{}} template {{}} strategy {strategy}", name, source)
            yield self._server.conninfo(name)
        finally:
            self._drop(name)

    def _made(self, template: Template) -> str:
        if template in self._templates:
            return self._templates[template]
        name = f"{self._prefix}_t{len(self._templates)}"
        try:
            self._execute("create database {}", name)
            with psycopg.connect(self._server.conninfo(name), autocommit=True) as connection:
                connection.execute("set client_min_messages to warning")
                template.fill(connection, self._scale)
        except BaseException:
            self._drop(name)
            raise
        self._templates[template] = name
        return name

    def _drop(self, name: str) -> None:
        self._execute("drop database if exists {} with (force)", name)

    def _execute(self, statement: str, *names: str) -> None:
        with psycopg.connect(self._server.conninfo(), autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
