"""What a bench prints at its end, and what it writes as JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from pgflow_stepq.bench.figures import Rate, Ratio, rates, ratios
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
        "One client, autocommit. Every measurement had a database of its own, in which the same work was done once in\n"
        f"a small size, then timed and checked. Autovacuum was on.\n{_ANALYZED[plan.analyze]}"
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


def report(machine: Machine, plan: Plan, samples: Sequence[Sample], profiles: Sequence[Profile] = ()) -> str:
    """Return the whole report as text."""
    parts = [
        "\n".join(machine_lines(machine)),
        procedure(plan),
        _rate_table(rates(plan.workloads, samples)),
    ]
    found = ratios(plan.workloads, samples)
    if found:
        parts.append(_ratio_table(found))
    parts += [_profile_text(profile) for profile in profiles]
    return "\n\n".join(parts) + "\n"


def document(
    machine: Machine, plan: Plan, samples: Sequence[Sample], profiles: Sequence[Profile] = ()
) -> dict[str, Any]:
    """Return the same as one JSON object, with every sample.

    Keys: measured_at, machine, scale, rounds, analyze, rates, ratios, samples, profiles.
    """
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {**dataclasses.asdict(machine), "durable": machine.durable},
        "scale": dataclasses.asdict(plan.scale),
        "rounds": plan.rounds,
        "analyze": plan.analyze,
        "rates": [dataclasses.asdict(rate) for rate in rates(plan.workloads, samples)],
        "ratios": [dataclasses.asdict(ratio) for ratio in ratios(plan.workloads, samples)],
        "samples": [dataclasses.asdict(sample) for sample in samples],
        "profiles": [dataclasses.asdict(profile) for profile in profiles],
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
    headings = ("a unit of", "costs", "times one of", "in its rounds", "in server CPU")
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
