"""Medians and ratios of samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pgflow_stepq.bench.harness import Sample
from pgflow_stepq.bench.workload import Workload


@dataclass(frozen=True)
class Rate:
    """Units a second of one workload over all rounds, and the median cost of a unit in milliseconds.

    `server_ms` is what of it is processor time of the session's server process; None where that isn't known.
    """

    workload: str
    unit: str
    units: int
    rounds: int
    median: float
    slowest: float
    fastest: float
    unit_ms: float
    server_ms: float | None


@dataclass(frozen=True)
class Ratio:
    """How many times the cost of a unit of another workload a unit costs; below 1 it is cheaper.

    `median` is that of `rounds`, the ratio in each round: the two of a round were measured close together, so that it
    suffers less than the ratio of two medians when the machine is busy for a while. `server_median` is the same for
    the processor time of the server process, None where that isn't known.
    """

    workload: str
    against: str
    median: float
    rounds: list[float]
    server_median: float | None


def rates(workloads: Sequence[type[Workload]], samples: Sequence[Sample]) -> list[Rate]:
    """Return a Rate for each workload, in their order."""
    found = []
    for workload in workloads:
        own = [sample for sample in samples if sample.workload == workload.name]
        speeds = [sample.units / sample.seconds for sample in own]
        server = [sample.server_seconds / sample.units for sample in own if sample.server_seconds is not None]
        found.append(
            Rate(
                workload=workload.name,
                unit=workload.unit,
                units=own[0].units,
                rounds=len(own),
                median=median(speeds),
                slowest=min(speeds),
                fastest=max(speeds),
                unit_ms=1000 / median(speeds),
                server_ms=1000 * median(server) if server else None,
            )
        )
    return found


def ratios(workloads: Sequence[type[Workload]], samples: Sequence[Sample]) -> list[Ratio]:
    """Return a Ratio for each workload and each that it is compared with, as far as both were measured."""
    taken = {(sample.workload, sample.round): sample for sample in samples}
    numbers = sorted({sample.round for sample in samples})
    names = [workload.name for workload in workloads]
    found = []
    for workload in workloads:
        for other in workload.against:
            if other in names:
                pairs = [(taken[workload.name, number], taken[other, number]) for number in numbers]
                each = [(one.seconds / one.units) / (base.seconds / base.units) for one, base in pairs]
                server = [
                    (one.server_seconds / one.units) / (base.server_seconds / base.units)
                    for one, base in pairs
                    if one.server_seconds is not None and base.server_seconds  # too short to be seen: no ratio
                ]
                found.append(Ratio(workload.name, other, median(each), each, median(server) if server else None))
    return found
