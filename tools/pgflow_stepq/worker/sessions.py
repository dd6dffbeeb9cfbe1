"""Database sessions that come back after a loss, and what an error of one means."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, LiteralString

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgflow_stepq.worker.log import EventLog

Rows = list[tuple[Any, ...]]

# A dead network must be noticed within the 30 s after which a worker no longer counts as live.
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}

# What passes by itself: the connection (08), a rolled-back transaction (40), a lock or an object in use (55), an
# operator's intervention or a cancel (57), trouble of the system around the server (58), what sessions compete for.
_PASSING_CLASSES = {"08", "40", "55", "57", "58"}
_DISK_FULL, _TOO_MANY_CONNECTIONS, _READ_ONLY = "53100", "53300", "25006"


def may_pass(error: psycopg.Error) -> bool:
    """Tell whether the same statement may succeed later, unchanged."""
    state = error.sqlstate
    if state is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return state[:2] in _PASSING_CLASSES or state in {_DISK_FULL, _TOO_MANY_CONNECTIONS, _READ_ONLY}


def explain(error: psycopg.Error) -> str:
    """Return the message of `error` with its detail and hint, a line each.

    Without the context lines, in which PostgreSQL quotes the data that it worked on.
    """
    diag = error.diag
    if diag.message_primary is None:
        return str(error).strip() or type(error).__name__
    lines = [f"{diag.message_primary} ({error.sqlstate})"]
    if diag.message_detail:
        lines.append(f"DETAIL: {diag.message_detail}")
    if diag.message_hint:
        lines.append(f"HINT: {diag.message_hint}")
    return "\n".join(lines)


class Backoff:
    """Growing waits between attempts: half a second at first, doubled each time, 30 s at most."""

    def __init__(self, first_seconds: float = 0.5, most_seconds: float = 30.0) -> None:
        """Begin with `first_seconds` and stay at `most_seconds`."""
        self._first, self._most = first_seconds, most_seconds
        self._next = first_seconds

    def reset(self) -> None:
        """Begin anew: an attempt has succeeded."""
        self._next = self._first

    def wait(self, ended: threading.Event) -> bool:
        """Wait for the next attempt, or until `ended` is set; return whether there should be one."""
        seconds, self._next = self._next, min(self._next * 2, self._most)
        # Spread out, so that workers that lost one server together don't come back in step.
        return not ended.wait(seconds * random.uniform(0.75, 1.25))  # noqa: S311


class Session:
    """One connection in autocommit, opened when it is needed and again after it was lost.

    Threads may share a session: their statements queue up. `purpose` names it in the log.
    """

    def __init__(self, dsn: str, purpose: str, log: EventLog) -> None:
        """Read `dsn`; nothing is connected yet.

        Raises psycopg.ProgrammingError when it is no connection string or URI.
        """
        given = conninfo_to_dict(dsn)
        extra = {key: value for key, value in _DEFAULTS.items() if key not in given}
        extra.setdefault("application_name", given.get("application_name", "pgflow-stepq worker"))
        self._conninfo = make_conninfo(dsn, client_encoding="UTF8", **extra)
        self._purpose = purpose
        self._log = log
        self._lock = threading.RLock()
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._lost = False

    def fetch(self, query: LiteralString, params: dict[str, Any]) -> Rows:
        """Run one statement and return its rows.

        Raises psycopg.Error; after the loss of the connection the next call opens a new one.
        """
        with self._lock:
            try:
                return self._connected().execute(query, params).fetchall()
            except psycopg.Error as error:
                self._drop_if_useless(error)
                raise

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the fetches of a block in one transaction: an exception rolls back all of them."""
        with self._lock, self._connected().transaction():
            yield

    def cancel(self) -> None:
        """Cancel the statement that another thread runs on this session, if it runs one."""
        connection = self._connection
        if connection is None:
            return
        try:
            connection.cancel_safe(timeout=5.0)
        except psycopg.Error as error:
            self._log.warning("cancel_failed", session=self._purpose, error=type(error).__name__)

    def close(self) -> None:
        """Close the connection, unless another thread is busy with it."""
        if self._lock.acquire(blocking=False):
            try:
                if self._connection is not None:
                    self._connection.close()
                    self._connection = None
            finally:
                self._lock.release()

    def _connected(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._connection is None:
            # No prepared statements: they would tie the session to one server behind a pooler in transaction mode.
            connection = psycopg.connect(self._conninfo, autocommit=True, prepare_threshold=None)
            connection.add_notice_handler(self._report)
            # Else the poll of a killed worker waits on in the server, and claims tasks for nobody. Not every platform
            # that a server runs on has it.
            with suppress(psycopg.errors.InvalidParameterValue):
                connection.execute("set client_connection_check_interval = '500ms'")
            self._connection = connection
            if self._lost:
                self._lost = False
                self._log.info("reconnected", session=self._purpose)
        return self._connection

    def _drop_if_useless(self, error: psycopg.Error) -> None:
        connection = self._connection
        if connection is None:
            self._lost = True
        # After a failover the old primary may still answer, but only to readers.
        elif connection.closed or error.sqlstate == _READ_ONLY:
            connection.close()
            self._connection, self._lost = None, True

    def _report(self, notice: psycopg.errors.Diagnostic) -> None:
        write = self._log.warning if notice.severity_nonlocalized == "WARNING" else self._log.info
        write(
            "server_message",
            severity=notice.severity_nonlocalized,
            sqlstate=notice.sqlstate,
            message=notice.message_primary,
            detail=notice.message_detail,
            hint=notice.message_hint,
        )
