"""pytest: one server for the whole session, and the pgTAP files as tests of their own."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import psycopg
import pytest
from pytest_postgresql.executors.noop import NoopExecutor
from pytest_postgresql.janitor import DatabaseJanitor

from pgflow_stepq.embedded import Server, any_server
from pgflow_stepq.tap import parse_tap

EXTENSIONS = ("pgmq", "pgflow_stepq")


class Databases:
    """The databases of a test session: a template with the extensions, and copies of it."""

    def __init__(self, server: Server) -> None:
        """Work on `server`; nothing is created before it is asked for."""
        self.server = server
        self._held = contextlib.ExitStack()
        with psycopg.connect(server.conninfo()) as connection:
            info = connection.info
            # Unique names, since a server that the environment names is shared with others.
            self._executor = NoopExecutor(
                host=info.host, port=info.port, user=info.user, password=info.password or None, options="",
                dbname=f"stepq_test_{secrets.token_hex(4)}", maintenance_dbname=info.dbname,
            )  # fmt: skip
        self._template: str | None = None
        self._pgtap: str | None = None
        self._count = 0

    @contextlib.contextmanager
    def database(self, template: str | None = None) -> Iterator[str]:
        """Give the connection string of a fresh database with pgmq and pgflow_stepq; it is dropped afterwards."""
        template = template or self._template_database()
        self._count += 1
        janitor = self._janitor(f"{self._executor.dbname}_{self._count}", template)
        with janitor:
            yield self.server.conninfo(janitor.dbname)

    @contextlib.contextmanager
    def empty_database(self) -> Iterator[str]:
        """Give the connection string of a fresh database without any extension; it is dropped afterwards."""
        with self.database("template1") as conninfo:
            yield conninfo

    def pgtap_database(self) -> str:
        """Return the connection string of the one database that all pgTAP files run in."""
        if self._pgtap is None:
            self.server.provide("pgtap")
            self._pgtap = self._held.enter_context(self.database())
            with psycopg.connect(self._pgtap, autocommit=True) as connection:
                connection.execute("create extension pgtap")
        return self._pgtap

    def close(self) -> None:
        """Drop what is still held."""
        self._held.close()

    def _template_database(self) -> str:
        if self._template is None:
            janitor = self._janitor(self._executor.template_dbname, None, as_template=True)
            self._held.enter_context(janitor)
            with psycopg.connect(self.server.conninfo(janitor.dbname), autocommit=True) as connection:
                for extension in EXTENSIONS:
                    connection.execute(f"create extension {extension}")
            self._template = janitor.dbname
        return self._template

    def _janitor(self, dbname: str, template: str | None, *, as_template: bool = False) -> DatabaseJanitor:
        return DatabaseJanitor(
            user=self._executor.user, host=self._executor.host, port=self._executor.port,
            password=self._executor.password, maintenance_dbname=self._executor.maintenance_dbname,
            dbname=dbname, template_dbname=template, as_template=as_template,
        )  # fmt: skip


_stack = pytest.StashKey[contextlib.ExitStack]()
_databases = pytest.StashKey[Databases]()
_missing = pytest.StashKey[dict[str, str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Prepare what the session keeps; the server itself is started by the first test that needs it."""
    config.stash[_stack] = contextlib.ExitStack()
    config.stash[_missing] = {}


def pytest_unconfigure(config: pytest.Config) -> None:
    """Drop the databases and stop the server, however the session ended."""
    config.stash[_stack].close()


def session_databases(config: pytest.Config) -> Databases:
    """Return the databases of this session, starting the server when nobody has yet."""
    if _databases not in config.stash:
        stack = config.stash[_stack]
        databases = Databases(stack.enter_context(any_server()))
        stack.callback(databases.close)
        config.stash[_databases] = databases
    return config.stash[_databases]


@pytest.fixture(scope="session")
def databases(pytestconfig: pytest.Config) -> Databases:
    """Databases on the session's server, as many as a test wants."""
    return session_databases(pytestconfig)


@pytest.fixture(scope="session")
def server(databases: Databases) -> Server:
    """Give the session's server: the one that PGHOST names, else an embedded one."""
    return databases.server


@pytest.fixture(scope="session")
def lacks(pytestconfig: pytest.Config) -> Callable[..., NoReturn]:
    """Give a function that skips a test for something that is missing; the end of the run says what brings it.

    It is called with the thing and the command that installs it. On CI (the variable CI is set) nothing may be missing,
    and the test fails; `optional=True` is for what a server can't have at all.
    """

    def skip(thing: str, command: str, *, optional: bool = False) -> NoReturn:
        pytestconfig.stash[_missing][thing] = command
        reason = f"{thing} is missing; to have it: {command}"
        if os.environ.get("CI") and not optional:
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)

    return skip


@pytest.fixture(scope="session")
def needs(lacks: Callable[..., NoReturn]) -> Callable[[str, str], Path]:
    """Give a function that finds a program by its name, or skips the test as `lacks` does."""

    def find(program: str, command: str) -> Path:
        found = shutil.which(program)
        if found is None:
            lacks(program, command)
        return Path(found)

    return find


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Name in one line each what this machine lacks for some tests."""
    for thing, command in sorted(config.stash[_missing].items()):
        line = f"Some tests were skipped, since {thing} is missing. To run them too: {command}"
        terminalreporter.write_line(line, yellow=True)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect every SQL file below a directory pgtap as one test."""
    if file_path.suffix == ".sql" and "pgtap" in file_path.relative_to(parent.config.rootpath).parts[:-1]:
        return PgtapFile.from_parent(parent, path=file_path)
    return None


class PgtapError(Exception):
    """A pgTAP file did not keep its promise; the text is what the report shows."""


class PgtapFile(pytest.File):
    """A pgTAP file."""

    def collect(self) -> Iterator[pytest.Item]:
        """Give the one test that the file is."""
        yield PgtapItem.from_parent(self, name=self.path.stem)


class PgtapItem(pytest.Item):
    """One run of a pgTAP file by psql, as pg_prove does it."""

    def runtest(self) -> None:
        """Run the file; raise PgtapError unless every planned assertion holds."""
        databases = session_databases(self.config)
        psql = [str(databases.server.psql()), "-XAtq", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose"]
        result = subprocess.run(
            [*psql, "-f", str(self.path), "-d", databases.pgtap_database()],
            check=False, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace",
            env={**os.environ, "PGCLIENTENCODING": "UTF8", "LC_ALL": "C"},
        )  # fmt: skip
        problems = parse_tap(result.stdout).problems()
        if result.returncode:
            problems.append(f"psql ended with {result.returncode}.")
        if problems:
            raise PgtapError("\n".join([*problems, *_block("psql said:", result.stderr)]))
        self.add_report_section("call", "stderr", result.stderr)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show a failed file by its assertions, not by a Python traceback."""
        if isinstance(excinfo.value, PgtapError):
            return f"{excinfo.value}\n({self.path})"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return how the test is called in reports."""
        return self.path, 0, f"pgtap: {self.path.parent.name}/{self.name}"


def _block(title: str, text: str) -> list[str]:
    return [title, *(f"  {line}" for line in text.strip().splitlines())] if text.strip() else []
