"""Log lines: one an event, `key=value` pairs, never what a message or a result holds."""

from __future__ import annotations

import json
import re
import sys
import threading
from contextlib import suppress
from datetime import UTC, datetime
from typing import TextIO

_PLAIN = re.compile(r"[^\s\"=\\\x00-\x1f\x7f]+")


class EventLog:
    """Writes events, each as one flushed line.

    `fixed` pairs end every line. Safe to share between threads.
    """

    def __init__(self, stream: TextIO | None = None, **fixed: object) -> None:
        """Write to `stream`; None is standard error as it is at each line."""
        self._stream = stream
        self._fixed = fixed
        self._lock = threading.Lock()

    def info(self, event: str, **fields: object) -> None:
        """Write what is part of a worker's normal life."""
        self._write("info", event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Write what an operator may want to look at."""
        self._write("warning", event, fields)

    def error(self, event: str, **fields: object) -> None:
        """Write what an operator must look at."""
        self._write("error", event, fields)

    def _write(self, level: str, event: str, fields: dict[str, object]) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        pairs = {"ts": now, "level": level, "event": event, **fields, **self._fixed}
        line = " ".join(f"{key}={_value(value)}" for key, value in pairs.items() if value is not None)
        stream = sys.stderr if self._stream is None else self._stream
        # A reader of the log that went away must not cost results.
        with self._lock, suppress(OSError):
            stream.write(line + "\n")
            stream.flush()


def _value(value: object) -> str:
    if isinstance(value, list | tuple):
        value = ",".join(str(item) for item in value)
    text = str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text)
