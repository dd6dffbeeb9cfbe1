"""What this package raises itself when it can't do what was asked."""

from __future__ import annotations

from typing import ClassVar


class StepqError(Exception):
    """A refusal that names the thing and the way out: its user sees the text alone, no traceback."""

    exit_code: ClassVar[int] = 1
