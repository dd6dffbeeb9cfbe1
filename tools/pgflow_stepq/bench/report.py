"""What a bench prints at its end, and what it writes as JSON."""

from __future__ import annotations

import dataclasses
import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from pgflow_stepq.bench.bars import BARS, Verdict
from pgflow_stepq.bench.figures import Rate, Ratio, Wait, rates, ratios, verdicts, waits
from pgflow_stepq.bench.harness import Plan, Sample
from pgflow_stepq.bench.machine import Machine
from pgflow_stepq.bench.profile import Profile

_FUNCTIONS_SHOWN = 15
_STATEMENTS_SHOWN = 15
_WIDTH = 120
_STATEMENT_WIDTH = 88


_ANALYZED: Final = {
    "loaded": "ANALYZE ran where its queues were fullest, with the clock stopped: the planner knew what was there.",
    "drained": "ANALYZE ran between the two: the planner took the queues, filled afterwards, for empty.",
    "never": "ANALYZE never ran: the planner guessed.",
}


def procedure(plan: Plan) -> str:
    """Return how a measurement is done under this plan, in words."""
    return (
        "One client, autocommit, where nothing else is said. Every measurement had a database of its own, in which\n"
        "the same work was done once in a small size, then timed and checked. Autovacuum was on.\n"
        f"{_ANALYZED[plan.analyze]}"
    )


def machine_lines(machine: Machine) -> list[str]:
    """Return the machine and the server, line by line."""
    load = "" if machine.load is None else f", load {machine.load} before the start"
    settings = [f"{name} = {setting}" for name, setting in machine.settings.items()]
    lines = [
        f"{machine.cores} cores ({machine.processor}){load}; {machine.system}",
        f"PostgreSQL {machine.postgresql}, data on {machine.filesystem}; pgmq {machine.pgmq}, "
        f"pgflow_stepq {machine.pgflow_stepq}; Python {machine.python}, psycopg {machine.psycopg}",
        *_wrapped(settings),
    ]
    if not machine.durable:
        lines.append("Commits of this server are NOT durable, so these figures say nothing about one that is.")
    return lines


@dataclass(frozen=True)
class Outcome:
    """All that a bench found out.

    `missing` has the names of the workloads that could not be measured here, with the reasons.
    """

    machine: Machine
    plan: Plan
    samples: Sequence[Sample]
    profiles: Sequence[Profile] = ()
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def verdicts(self) -> list[Verdict]:
        """The bars of which something was measured."""
        return [verdict for verdict in verdicts(BARS, self.samples) if verdict.measured is not None]

    @property
    def notes(self) -> list[str]:
        """What a reader must know beside the summaries, each once: the longest of those that begin alike."""
        found = {note for kind in self.plan.workloads if (note := kind.note(self.plan.scale)) is not None}
        return sorted(note for note in found if not any(other != note and other.startswith(note) for other in found))


def missing_lines(missing: Mapping[str, str]) -> list[str]:
    """Return a line for each reason why workloads could not be measured."""
    reasons: dict[str, list[str]] = {}
    for name, reason in missing.items():
        reasons.setdefault(reason, []).append(name)
    return [f"Skipped {', '.join(names)}: {reason}." for reason, names in reasons.items()]


def report(outcome: Outcome) -> str:
    """Return the whole report as text."""
    plan, samples = outcome.plan, outcome.samples
    parts = ["\n".join(machine_lines(outcome.machine)), procedure(plan)]
    remarks = [*missing_lines(outcome.missing), *outcome.notes]
    if remarks:
        parts.append("\n".join(textwrap.fill(remark, _WIDTH, break_on_hyphens=False) for remark in remarks))
    found_rates, found_waits = rates(plan.workloads, samples), waits(plan.workloads, samples)
    if found_rates:
        parts.append(_rate_table(found_rates))
    if found_waits:
        parts.append(_wait_table(found_waits))
    found_ratios = ratios(plan.workloads, samples)
    if found_ratios:
        parts.append(_ratio_table(found_ratios))
    if outcome.verdicts:
        parts.append(_bar_table(outcome.verdicts))
    parts += [_profile_text(profile) for profile in outcome.profiles]
    return "\n\n".join(parts) + "\n"


def document(outcome: Outcome) -> dict[str, Any]:
    """Return the same as one JSON object, with every sample.

    Keys: measured_at, machine, scale, rounds, analyze, missing, notes, rates, waits, ratios, bars, samples, profiles.
    """
    plan, samples = outcome.plan, outcome.samples
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {**dataclasses.asdict(outcome.machine), "durable": outcome.machine.durable},
        "scale": dataclasses.asdict(plan.scale),
        "rounds": plan.rounds,
        "analyze": plan.analyze,
        "missing": dict(outcome.missing),
        "notes": outcome.notes,
        "rates": [dataclasses.asdict(rate) for rate in rates(plan.workloads, samples)],
        "waits": [dataclasses.asdict(wait) for wait in waits(plan.workloads, samples)],
        "ratios": [dataclasses.asdict(ratio) for ratio in ratios(plan.workloads, samples)],
        "bars": [
            {
                **dataclasses.asdict(verdict.bar),
                "measured": verdict.measured,
                "rounds": verdict.rounds,
                "met": verdict.met,
            }
            for verdict in outcome.verdicts
        ],
        "samples": [dataclasses.asdict(sample) for sample in samples],
        "profiles": [dataclasses.asdict(profile) for profile in outcome.profiles],
    }


def document_text(content: dict[str, Any]) -> str:
    """Return a document as the text of a file."""
    return json.dumps(content, indent=2) + "\n"


def _rate_table(found: Sequence[Rate]) -> str:
    headings = ("workload", "units", "", "median/s", "slowest", "fastest", "ms a unit", "of it server CPU")
    rows = [
        (
            rate.workload,
            f"{rate.units:,}",
            rate.unit,
            f"{rate.median:,.0f}",
            f"{rate.slowest:,.0f}",
            f"{rate.fastest:,.0f}",
            f"{rate.unit_ms:.3f}",
            "" if rate.server_ms is None else f"{rate.server_ms:.3f}",
        )
        for rate in found
    ]
    return _table(headings, rows, "<><>>>>>")


def _ratio_table(found: Sequence[Ratio]) -> str:
    headings = ("a unit (or wait) of", "costs", "times one of", "in its rounds", "in server CPU")
    rows = [
        (
            ratio.workload,
            f"{ratio.median:.2f}",
            ratio.against,
            f"{min(ratio.rounds):.2f} to {max(ratio.rounds):.2f}",
            "" if ratio.server_median is None else f"{ratio.server_median:.2f}",
        )
        for ratio in found
    ]
    return _table(headings, rows, "<><<>")


def _wait_table(found: Sequence[Wait]) -> str:
    headings = ("p95 wait of", "units", "", "median ms", "smallest", "largest")
    rows = [
        (
            wait.workload,
            f"{wait.units:,}",
            wait.unit,
            f"{wait.median_ms:,.1f}",
            f"{wait.smallest_ms:,.1f}",
            f"{wait.largest_ms:,.1f}",
        )
        for wait in found
    ]
    return _table(headings, rows, "<><>>>")


def _bar_table(found: Sequence[Verdict]) -> str:
    headings = ("bar (meant for the scale full)", "measured", "in its rounds", "limit", "met")
    rows = [
        (
            verdict.bar.what,
            f"{verdict.measured:.2f}" if verdict.bar.against else f"{verdict.measured:.0f}",
            f"{min(verdict.rounds):.2f} to {max(verdict.rounds):.2f}" if verdict.bar.against else "",
            verdict.bar.limit_text,
            "yes" if verdict.met else "NO",
        )
        for verdict in found
    ]
    return _table(headings, rows, "<><<<")


def _profile_text(profile: Profile) -> str:
    def per_unit(milliseconds: float) -> str:
        return f"{1000 * milliseconds / profile.units:,.1f}"

    functions = [
        (found.function, f"{found.calls:,}", f"{found.self_ms:,.1f}", per_unit(found.self_ms), f"{found.total_ms:,.1f}")
        for found in profile.functions[:_FUNCTIONS_SHOWN]
    ]
    outside = profile.outside_ms
    functions.append(("outside of functions (commit, client)", "", f"{outside:,.1f}", per_unit(outside), ""))
    statements = [
        (f"{found.calls:,}", f"{found.rows:,}", f"{found.total_ms:,.1f}", found.statement[:_STATEMENT_WIDTH])
        for found in profile.statements[:_STATEMENTS_SHOWN]
    ]
    return "\n".join(
        [
            f"Profile of {profile.workload}: {profile.units:,} {profile.unit} in {profile.seconds:.2f} s, "
            "slowed down by the profiler",
            _table(("function", "calls", "self ms", "us a unit", "total ms"), functions, "<>>>>"),
            "",
            _table(("calls", "rows", "total ms", "statement inside functions"), statements, ">>><"),
        ]
    )


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], alignment: str) -> str:
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, alignment, widths, strict=True)).rstrip()
        for row in (headings, *rows)
    )


def _wrapped(items: Sequence[str]) -> list[str]:
    lines = [""]
    for item in items:
        if len(lines[-1]) + len(item) > _WIDTH - 2:
            lines.append("")
        lines[-1] += f", {item}" if lines[-1] else item
    return lines
