"""The figures of a bench as a picture. Importing this module needs the package matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from pgflow_stepq.bench.bars import Verdict
from pgflow_stepq.bench.figures import Rate, Wait, rates, waits
from pgflow_stepq.bench.report import Outcome

_OURS, _FLOOR, _PGFLOW, _PGQUEUER = "#2a6fbb", "#8a8a8a", "#d9822b", "#8e5ea2"
_MET, _MISSED = "#3a923a", "#c03d3e"
_ENGINES: Final = {
    "pgflow_stepq": _OURS,
    "raw PGMQ, bare commits": _FLOOR,
    "pgflow's SQL core (@pgflow/core 0.8.1)": _PGFLOW,
    "PgQueuer": _PGQUEUER,
}
# Inches: of a bar, and of what stands around them.
_BAR_HEIGHT: Final = 0.27
_FRAME_HEIGHT: Final = 1.3
_WIDTH: Final = 11.0


def draw(outcome: Outcome, file: Path) -> None:
    """Write a PNG: the median throughput of each workload, the waits, and how far each bar is met. Raises OSError."""
    found = rates(outcome.plan.workloads, outcome.samples)
    # A count of zero has no place among ratios; the report has it.
    judged = [verdict for verdict in outcome.verdicts if verdict.bar.against is not None]
    waited = waits(outcome.plan.workloads, outcome.samples)
    heights = [_FRAME_HEIGHT + _BAR_HEIGHT * len(rows) for rows in (found, waited, judged) if rows]
    figure = Figure(figsize=(_WIDTH, sum(heights, 0.7)), layout="constrained")
    machine = outcome.machine
    durable = "" if machine.durable else "; commits NOT durable"
    figure.suptitle(
        f"{machine.cores} cores, {machine.processor}; PostgreSQL {machine.postgresql}, pgmq {machine.pgmq}; "
        f"rounds: {outcome.plan.rounds}{durable}",
        fontsize=9,
    )
    grid = figure.add_gridspec(max(len(heights), 1), 1, height_ratios=heights or None)
    axes = [figure.add_subplot(grid[row]) for row in range(len(heights))]
    if found:
        _draw_rates(axes.pop(0), found)
    if waited:
        _draw_waits(axes.pop(0), waited)
    if judged:
        _draw_bars(axes.pop(0), judged)
    figure.savefig(file, format="png", dpi=120)


def _draw_rates(axes: Axes, found: Sequence[Rate]) -> None:
    places = range(len(found))
    medians = [rate.median for rate in found]
    errors = [
        [rate.median - rate.slowest for rate in found],
        [rate.fastest - rate.median for rate in found],
    ]
    colours = [_engine_colour(rate.workload) for rate in found]
    axes.barh(places, medians, color=colours, xerr=errors, error_kw={"elinewidth": 0.8, "ecolor": "#333333"})
    for place, rate in zip(places, found, strict=True):
        axes.annotate(
            f"{rate.median:,.0f} {rate.unit}/s", (rate.fastest, place), xytext=(5, 0),
            textcoords="offset points", va="center", fontsize=8,
        )  # fmt: skip
    _label_places(axes, [rate.workload for rate in found])
    axes.set_xscale("log")
    axes.set_xlim(right=max(rate.fastest for rate in found) * 6)
    axes.set_xlabel("units a second, logarithmic; the line spans the slowest and the fastest round")
    axes.set_title("Throughput, medians (longer is better)", loc="left", fontsize=11)
    used = {name: colour for name, colour in _ENGINES.items() if colour in colours}
    axes.legend(handles=[Patch(color=colour, label=name) for name, colour in used.items()], loc="best", fontsize=8)


def _draw_waits(axes: Axes, waited: Sequence[Wait]) -> None:
    axes.barh(range(len(waited)), [wait.median_ms for wait in waited], color=_OURS)
    for place, wait in enumerate(waited):
        axes.annotate(
            f"{wait.median_ms:,.1f} ms", (wait.median_ms, place), xytext=(5, 0),
            textcoords="offset points", va="center", fontsize=8,
        )  # fmt: skip
    _label_places(axes, [wait.workload for wait in waited])
    axes.set_xscale("log")
    axes.set_xlim(left=1, right=max(wait.median_ms for wait in waited) * 6)
    axes.set_xlabel("milliseconds, logarithmic")
    axes.set_title(
        "What a fast step's task waits beside a slow step, 95th percentile (shorter is better)",
        loc="left", fontsize=11,
    )  # fmt: skip


def _draw_bars(axes: Axes, judged: Sequence[Verdict]) -> None:
    places = range(len(judged))
    shares = [_share(verdict) for verdict in judged]
    axes.barh(places, shares, color=[_MET if verdict.met else _MISSED for verdict in judged])
    axes.axvline(1, color="#333333", linewidth=1, linestyle="--")
    for place, verdict, share in zip(places, judged, shares, strict=True):
        axes.annotate(
            f"{verdict.measured:.2f} (bar: {verdict.bar.limit_text})", (share, place), xytext=(5, 0),
            textcoords="offset points", va="center", fontsize=8,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )  # fmt: skip
    _label_places(axes, [verdict.bar.what for verdict in judged])
    axes.set_xlim(0, max([*shares, 1]) * 1.35)
    axes.set_xlabel("share of the bar; the dashed line is the bar")
    axes.set_title(
        "Ratios against their bars (right of the line is better)",
        loc="left", fontsize=11,
    )  # fmt: skip
    handles = [
        Patch(color=_MET, label="met"),
        Patch(color=_MISSED, label="not met"),
        Line2D([], [], color="#333333", linestyle="--", linewidth=1, label="bar"),
    ]
    axes.legend(handles=handles, loc="best", fontsize=8)


def _share(verdict: Verdict) -> float:
    """Return 1 where the bar is just met, and more the better it is."""
    measured = verdict.measured or 0.0
    if verdict.bar.at_least:
        return measured / verdict.bar.limit
    return verdict.bar.limit / measured if measured else 0.0


def _label_places(axes: Axes, labels: Sequence[str]) -> None:
    axes.set_yticks(range(len(labels)), labels=list(labels), fontsize=8)
    axes.invert_yaxis()
    axes.margins(y=0.01)
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(axis="x", linewidth=0.4, alpha=0.6)
    axes.set_axisbelow(True)


def _engine_colour(workload: str) -> str:
    if workload.startswith(("raw", "commit")):
        return _FLOOR
    if workload.startswith("pgflow-"):
        return _PGFLOW
    return _PGQUEUER if workload.startswith("pgqueuer") else _OURS
