"""Where the demo runs: a scratch database on an embedded server, or on the one that the environment names."""

from __future__ import annotations

import secrets
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import psycopg
from psycopg import sql

from pgflow_stepq.embedded import Server, Terminated, any_server, create_database


@contextmanager
def scratch_database() -> Iterator[str]:
    """Give the connection string of a new database with pgmq and pgflow_stepq; it is dropped at the end.

    Raises ServerError when there is no server to be had, psycopg.Error when it refuses the database.
    """
    with any_server() as server:
        name = f"pgflow_demo_{secrets.token_hex(4)}"
        try:
            yield create_database(server, name)
        finally:
            _drop_database(server, name)


def _drop_database(server: Server, name: str) -> None:
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


@contextmanager
def interruptible() -> Iterator[None]:
    """Within it the first Ctrl-C, SIGTERM or SIGHUP raises; later ones are ignored while things are put away.

    Raises KeyboardInterrupt (Terminated, with the signal's number) out of the block.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def stop(number: int, _: FrameType | None) -> None:
        for ignored in signals:
            signal.signal(ignored, signal.SIG_IGN)
        raise Terminated(number)

    before = {number: signal.signal(number, stop) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
