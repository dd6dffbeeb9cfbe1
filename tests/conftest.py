"""Databases for the tests: one a module by default, another one for whoever asks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from pgflow_stepq.embedded import Server
from pgflow_stepq.pytest_plugin import Databases

_VARIABLES = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER"}


@pytest.fixture(scope="module")
def database(databases: Databases) -> Iterator[str]:
    """The connection string of this module's own database, with pgmq and pgflow_stepq."""
    with databases.database() as conninfo:
        yield conninfo


@pytest.fixture
def conn(database: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """A connection to the module's database, in autocommit."""
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


@pytest.fixture
def fresh_database(databases: Databases) -> Iterator[str]:
    """The connection string of a database with the extensions that no other test has touched."""
    with databases.database() as conninfo:
        yield conninfo


@pytest.fixture
def empty_database(databases: Databases) -> Iterator[str]:
    """The connection string of a database in which no extension has been created."""
    with databases.empty_database() as conninfo:
        yield conninfo


@pytest.fixture
def server_environment(server: Server) -> dict[str, str]:
    """The environment for a process that is to find the session's server by PGHOST and friends."""
    parameters = conninfo_to_dict(server.conninfo())
    named = {_VARIABLES[key]: str(value) for key, value in parameters.items() if key in _VARIABLES}
    return {**os.environ, **named}
