"""Scratch databases: every measurement has one of its own, so that none sees what another left."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from pgflow_stepq.embedded import Server, create_database


class ScratchDatabases:
    """A template with the extensions and copies of it on a server; leaving the context drops the template."""

    def __init__(self, server: Server) -> None:
        """Work on `server`; nothing is made before the context is entered."""
        self._server = server
        self._template = f"pgflow_bench_{secrets.token_hex(4)}"
        self._count = 0

    def __enter__(self) -> ScratchDatabases:
        """Make the template. Raises psycopg.Error."""
        try:
            create_database(self._server, self._template)
        except BaseException:
            self._drop(self._template)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Drop the template."""
        self._drop(self._template)

    @contextmanager
    def database(self) -> Iterator[str]:
        """Give the connection string of a fresh copy; it is dropped afterwards."""
        self._count += 1
        name = f"{self._template}_{self._count}"
        try:
            self._execute("create database {} template {}", name, self._template)
            yield self._server.conninfo(name)
        finally:
            self._drop(name)

    def _drop(self, name: str) -> None:
        self._execute("drop database if exists {} with (force)", name)

    def _execute(self, statement: str, *names: str) -> None:
        with psycopg.connect(self._server.conninfo(), autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
