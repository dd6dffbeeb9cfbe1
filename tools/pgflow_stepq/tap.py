"""Read what a pgTAP file prints: the Test Anything Protocol."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_PLAN = re.compile(r"^1\.\.(?P<count>\d+)(?:\s*#\s*(?P<reason>.*))?$")
_ASSERTION = re.compile(
    r"^(?P<not>not )?ok\b(?:\s+(?P<number>\d+))?(?:\s*-)?\s*(?P<description>.*?)"
    r"(?:(?<!\\)#\s*(?P<directive>skip|todo)\b\s*(?P<reason>.*))?$",
    re.IGNORECASE,
)


@dataclass
class Assertion:
    """One line "ok" or "not ok", with the diagnostics ("# ...") that follow it."""

    ok: bool
    number: int | None
    description: str
    directive: str | None
    reason: str | None
    diagnostics: list[str] = field(default_factory=list)


@dataclass
class Tap:
    """The output of one file: its plan (None without one), its assertions, and whether it bailed out."""

    planned: int | None = None
    assertions: list[Assertion] = field(default_factory=list)
    bailed_out: str | None = None

    def problems(self) -> list[str]:
        """Return what keeps the file from passing, as lines to read; empty when it passed.

        An assertion marked SKIP or TODO proves nothing, so it counts as a problem too.
        """
        found: list[str] = []
        if self.bailed_out is not None:
            found.append(f"Bailed out: {self.bailed_out}")
        for assertion in self.assertions:
            name = " - ".join(filter(None, [str(assertion.number or "?"), assertion.description]))
            if assertion.directive:
                found.append(f"{assertion.directive.lower()} {name}: {assertion.reason or 'no reason given'}")
                found.append("  An assertion that is not made proves nothing: make it, or take it out of the plan.")
            elif not assertion.ok:
                found.append(f"not ok {name}")
                found += [f"  {line}" for line in assertion.diagnostics]
        ran = len(self.assertions)
        if self.planned is None:
            found.append(f"No plan: {ran} assertion(s) ran. Start the file with select plan(N).")
        elif ran != self.planned:
            found.append(f"Planned {self.planned} assertion(s), but {ran} ran.")
        if ran == 0 and self.planned in (None, 0):
            found.append("Nothing is asserted. Write at least one assertion.")
        return found


def parse_tap(text: str) -> Tap:
    """Return the parsed output. Lines that aren't TAP (the rows of other queries) are left out."""
    tap = Tap()
    for line in text.splitlines():
        if plan := _PLAN.match(line):
            tap.planned = int(plan["count"])
        elif assertion := _ASSERTION.match(line):
            tap.assertions.append(
                Assertion(
                    ok=assertion["not"] is None,
                    number=int(assertion["number"]) if assertion["number"] else None,
                    description=assertion["description"].strip(),
                    directive=assertion["directive"],
                    reason=assertion["reason"],
                )
            )
        elif line.startswith("Bail out!"):
            tap.bailed_out = line.removeprefix("Bail out!").strip()
        elif line.startswith("#") and tap.assertions:
            tap.assertions[-1].diagnostics.append(line.removeprefix("#").strip("\n")[1:])
    return tap
