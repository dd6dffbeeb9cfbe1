"""Tell the database that the worker is alive, and hear from it whether it should stop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import LiteralString
from uuid import UUID

import psycopg

from pgflow_stepq.worker.log import EventLog
from pgflow_stepq.worker.sessions import Session, explain, may_pass

_HEARTBEAT: LiteralString = "select should_stop, reason from pgflow.heartbeat(%(worker_id)s)"


class Heartbeats:
    """A thread that sends a heartbeat every `seconds`.

    `told_to_stop` is called once, with the database's reason; after it the beats go on, since a
    draining worker is alive. An error that may pass is logged; any other goes to `failed`.
    """

    def __init__(
        self,
        *,
        session: Session,
        log: EventLog,
        worker_id: UUID,
        seconds: float,
        told_to_stop: Callable[[str], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        """Make the thread; `start` starts it."""
        self._session = session
        self._log = log
        self._worker_id = worker_id
        self._seconds = seconds
        self._told_to_stop = told_to_stop
        self._failed = failed
        self._told = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeats", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._ended.set()

    def _run(self) -> None:
        try:
            while not self._ended.wait(self._seconds):
                self._beat()
        except BaseException as error:  # noqa: BLE001 -- whoever runs the worker must hear of it
            self._failed(error)

    def _beat(self) -> None:
        try:
            rows = self._session.fetch(_HEARTBEAT, {"worker_id": self._worker_id})
        except psycopg.Error as error:
            if not may_pass(error):
                raise
            self._log.warning("heartbeat_failed", error=explain(error), retry=True)
            return
        for should_stop, reason in rows:
            if should_stop and not self._told:
                self._told = True
                self._told_to_stop(reason or "the database gave no reason")
