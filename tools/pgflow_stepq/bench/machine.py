"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg

from pgflow_stepq.bench.workload import Connection, value

# The settings that decide what a commit costs, how often the server writes pages back, and how it plans.
SETTINGS: Final = (
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_sync_method",
    "wal_level",
    "shared_buffers",
    "max_wal_size",
    "checkpoint_timeout",
    "autovacuum",
    "work_mem",
    "jit",
    "random_page_cost",
    "default_statistics_target",
    "plan_cache_mode",
)


@dataclass(frozen=True)
class Machine:
    """The machine and the server.

    `load` is the load average of the last minute before the bench began, None where there is none. `filesystem` is the
    type of the one that holds the server's data, "unknown" where that can't be told. `settings` has SETTINGS by name.
    """

    system: str
    processor: str
    cores: int
    load: float | None
    filesystem: str
    postgresql: str
    pgmq: str
    pgflow_stepq: str
    python: str
    psycopg: str
    settings: dict[str, str]

    @property
    def durable(self) -> bool:
        """Whether a commit is on disk when it returns."""
        return self.settings["fsync"] == "on" and self.settings["synchronous_commit"] != "off"


def describe_machine(connection: Connection) -> Machine:
    """Describe this machine and the server of a database with the extensions, taken to be on it."""
    found: dict[str, str] = dict(
        connection.execute(
            "select name, current_setting(name) from pg_settings where name = any(%s)", [list(SETTINGS)]
        ).fetchall()
    )
    versions: dict[str, Any] = dict(connection.execute("select extname, extversion from pg_extension").fetchall())
    return Machine(
        system=platform.platform(),
        processor=_processor(),
        cores=_cores(),
        load=_load(),
        filesystem=_filesystem(Path(value(connection, "show data_directory"))),
        postgresql=str(value(connection, "show server_version")),
        pgmq=str(versions["pgmq"]),
        pgflow_stepq=str(versions["pgflow_stepq"]),
        python=platform.python_version(),
        psycopg=psycopg.__version__,
        settings={name: found[name] for name in SETTINGS},
    )


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor() -> str:
    description = Path("/proc/cpuinfo")
    if description.is_file():
        for line in description.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, model = line.partition(":")
            if name.strip() == "model name":
                return model.strip()
    return platform.processor() or platform.machine()


def _load() -> float | None:
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def _filesystem(directory: Path) -> str:
    """Return the type of the file system that a directory lies on: a sync on tmpfs costs nothing and proves nothing."""
    mounts = Path("/proc/mounts")
    if not mounts.is_file():
        return "unknown"
    fields = [line.split() for line in mounts.read_text(encoding="utf-8").splitlines()]
    # Of those that hold the directory, the deepest; of several at one place, the last, which hides the others.
    holding = [(len(Path(at).parts), kind) for _, at, kind, *_ in fields if directory.is_relative_to(at)]
    deepest = max((depth for depth, _ in holding), default=0)
    return next((kind for depth, kind in reversed(holding) if depth == deepest), "unknown")
