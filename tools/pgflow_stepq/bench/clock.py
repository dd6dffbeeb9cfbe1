"""The clock on the wall, and the processor time of server processes, which a busy machine changes less."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


class Clock:
    """Adds up the blocks during which it runs.

    `seconds` is wall-clock time. `server_seconds` is processor time of the server processes `pids` on this machine, in
    steps of a hundredth; None where there is no /proc to tell it, or when one of them ended meanwhile.
    """

    def __init__(self, pids: Sequence[int]) -> None:
        """Start at zero, not running."""
        self.seconds = 0.0
        self.server_seconds: float | None = None
        self._pids = pids

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let the clock run for a block."""
        used = self._used()
        started = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - started
        used_now = self._used()
        if used is not None and used_now is not None:
            self.server_seconds = (self.server_seconds or 0.0) + used_now - used

    def _used(self) -> float | None:
        each = [processor_seconds(pid) for pid in self._pids]
        known = [seconds for seconds in each if seconds is not None]
        return sum(known) if len(known) == len(each) else None


def processor_seconds(pid: int) -> float | None:
    """Return the seconds of processor time that a process has used; None where /proc doesn't tell."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name of the program, in parentheses, may hold anything; user and system time are the 14th and 15th field.
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
