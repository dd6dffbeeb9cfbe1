"""The bars: which ratios the product is to keep, at the scale "full"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Bar:
    """A limit on what a unit of `workload` costs, as a multiple of a unit of `against`.

    Where the two measure a wait, it is one on the wait. With `relative_to`, two more workloads, the ratio of the first
    two is divided by that of these. Without `against` it is one on the deadlocks and serialization failures of
    `workload` in all rounds together. The value may be at most `limit`, or with `at_least` must be that much.
    """

    what: str
    workload: str
    against: str | None
    limit: float
    at_least: bool = False
    relative_to: tuple[str, str] | None = None

    def is_met(self, measured: float) -> bool:
        """Tell whether a measured value keeps the limit."""
        return measured >= self.limit if self.at_least else measured <= self.limit

    @property
    def limit_text(self) -> str:
        """The limit in words."""
        if self.against is None:
            return f"{self.limit:g}"
        return f"{'at least' if self.at_least else 'at most'} {self.limit:g}"


@dataclass(frozen=True)
class Verdict:
    """What was measured for a bar: the median of `rounds`, or their sum for a count; None where nothing was."""

    bar: Bar
    measured: float | None
    rounds: list[float]
    met: bool | None


BARS: Final = (
    Bar("(a) a map's task, times raw PGMQ's send, read and archive", "map", "raw", 2.5),
    Bar("(a) times faster than pgflow's SQL core", "pgflow-map", "map", 15, at_least=True),
    Bar("(b) times faster than pgflow's SQL core", "pgflow-chain", "chain", 10, at_least=True),
    Bar("(b) times faster than PgQueuer's chain by hand", "pgqueuer-chain", "chain", 1, at_least=True),
    Bar("(d) single calls, times faster than pgflow's", "pgflow-single", "single", 3, at_least=True),
    Bar("(f) 8 sessions on one map, times faster than 1", "sessions-1", "sessions-8", 1.5, at_least=True),
    Bar("(f) 8 sessions at 8 queues, times faster than 1", "queues-1", "queues-8", 1.5, at_least=True),
    Bar("(f) 8 sessions on one map: deadlocks and such", "sessions-8", None, 0),
    Bar("(f) 8 sessions at 8 queues: deadlocks and such", "queues-8", None, 0),
    Bar("(g) fast step's p95 wait, times that without backlog", "wait-backlog", "wait-idle", 1.5),
    Bar("(h) a map's task beside a long past, times without", "map-history", "map", 1.2),
    Bar("(h) a chain's task beside a long past, times without", "chain-history", "chain", 1.2),
    Bar("(h) a diamond's task beside a long past, times without", "diamond-history", "diamond", 1.2),
    Bar("(h) a single call's task beside a long past, times without", "single-history", "single", 1.2),
    Bar("(h) a task of a map of 10,000, times one of 100", "map-10000", "map-100", 1.2),
    Bar(
        "(i) a map's slowdown by an old snapshot, times raw PGMQ's",
        "map-snapshot",
        "map-steady",
        1.3,
        relative_to=("raw-snapshot", "raw-steady"),
    ),
    Bar(
        "(i) a chain's slowdown by an old snapshot, times raw PGMQ's",
        "chain-snapshot",
        "chain-steady",
        1.3,
        relative_to=("raw-snapshot", "raw-steady"),
    ),
)
