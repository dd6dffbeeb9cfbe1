"""Medians and ratios of samples, and what they say about the bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pgflow_stepq.bench.bars import Bar, Verdict
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
class Wait:
    """The 95th percentile of what a task waited, in milliseconds: its median, smallest and largest over all rounds."""

    workload: str
    unit: str
    units: int
    rounds: int
    median_ms: float
    smallest_ms: float
    largest_ms: float


@dataclass(frozen=True)
class Ratio:
    """How many times the cost of a unit of another workload a unit costs; below 1 it is cheaper.

    Where both measured a wait, it is the ratio of the waits.

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
    """Return a Rate for each workload, in their order; those that measured a wait have none."""
    found = []
    for workload in workloads:
        own = [sample for sample in samples if sample.workload == workload.name and sample.wait is None]
        if not own:
            continue
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


def waits(workloads: Sequence[type[Workload]], samples: Sequence[Sample]) -> list[Wait]:
    """Return a Wait for each workload that measured one, in their order."""
    found = []
    for workload in workloads:
        own = [sample for sample in samples if sample.workload == workload.name and sample.wait is not None]
        if own:
            each = [1000 * sample.cost for sample in own]
            found.append(Wait(workload.name, workload.unit, own[0].units, len(own), median(each), min(each), max(each)))
    return found


def ratios(workloads: Sequence[type[Workload]], samples: Sequence[Sample]) -> list[Ratio]:
    """Return a Ratio for each workload and each that it is compared with, as far as both were measured."""
    taken = _by_round(samples)
    numbers = sorted({sample.round for sample in samples})
    names = [workload.name for workload in workloads]
    found = []
    for workload in workloads:
        for other in workload.against:
            if other in names:
                pairs = [(taken[workload.name, number], taken[other, number]) for number in numbers]
                each = [one.cost / base.cost for one, base in pairs]
                server = [
                    (one.server_seconds / one.units) / (base.server_seconds / base.units)
                    for one, base in pairs
                    # Too short to be seen, or not what the ratio is about: none.
                    if one.wait is None and one.server_seconds is not None and base.server_seconds
                ]
                found.append(Ratio(workload.name, other, median(each), each, median(server) if server else None))
    return found


def verdicts(bars: Sequence[Bar], samples: Sequence[Sample]) -> list[Verdict]:
    """Return a Verdict for each bar, in their order; measured is None where a workload of it is missing."""
    return [_verdict(bar, samples) for bar in bars]


def _verdict(bar: Bar, samples: Sequence[Sample]) -> Verdict:
    if bar.against is None:
        conflicts = [sample.conflicts for sample in samples if sample.workload == bar.workload]
        known = [float(count) for count in conflicts if count is not None]
        measured = sum(known) if known else None
        return Verdict(bar, measured, known, None if measured is None else bar.is_met(measured))
    taken = _by_round(samples)
    names = [bar.workload, bar.against, *(bar.relative_to or ())]
    numbers = sorted({sample.round for sample in samples})
    each = []
    for number in numbers:
        costs = [taken[name, number].cost for name in names if (name, number) in taken]
        if len(costs) == len(names):
            ratio = costs[0] / costs[1]
            each.append(ratio / (costs[2] / costs[3]) if bar.relative_to else ratio)
    if not each:
        return Verdict(bar, None, [], None)
    return Verdict(bar, median(each), each, bar.is_met(median(each)))


def _by_round(samples: Sequence[Sample]) -> dict[tuple[str, int], Sample]:
    return {(sample.workload, sample.round): sample for sample in samples}
