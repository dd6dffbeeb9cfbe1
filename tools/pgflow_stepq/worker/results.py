"""Results of tasks, encoded so that one bad result can't spoil a batch of good ones."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from pgflow_stepq.worker.handlers import ClaimedTask

MAX_OUTPUT_BYTES = 255 * 1024 * 1024
"""What fits into one jsonb value; a larger one can make the server drop the connection."""

MAX_ERROR_CHARACTERS = 10_000

# An escape that stands for NUL, and not the text \u0000, in which the backslash is itself escaped.
_NUL_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


class UnusableOutputError(ValueError):
    """A handler returned what can't be stored as jsonb."""


@dataclass(frozen=True)
class TaskResult:
    """How a task ended: with `output`, which is JSON text, or else with `error`.

    `milliseconds` is how long the handler ran; `cause` and `place` say for the log what was raised
    where, without its text, which may quote the input.
    """

    task: ClaimedTask
    output: str | None
    error: str | None = None
    milliseconds: int = 0
    cause: str | None = None
    place: str | None = None

    @property
    def is_success(self) -> bool:
        """Whether the handler returned something usable."""
        return self.output is not None

    def element(self) -> str:
        """Return the JSON object that complete_tasks or fail_tasks takes for this result."""
        key = json.dumps(
            {
                "run_id": str(self.task.run_id),
                "step_slug": self.task.step_slug,
                "task_index": self.task.task_index,
                "attempt": self.task.attempt,
            }
        )
        name, value = ("output", self.output) if self.output is not None else ("error_message", json.dumps(self.error))
        return f'{key[:-1]}, "{name}": {value}}}'


def encode_output(value: Any) -> str:
    """Return `value` as JSON text that jsonb accepts.

    Raises UnusableOutputError, saying what is wrong with it.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise UnusableOutputError(f"The handler returned what is not JSON: {error}") from error
    if _NUL_ESCAPE.search(text):
        raise UnusableOutputError(
            "The handler returned a string with a NUL character (U+0000), which jsonb can't hold. Remove it."
        )
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise UnusableOutputError(
            f"The handler returned a string with half a surrogate pair (U+{ord(error.object[error.start]):04X}), "
            "which is no character. Remove it."
        ) from error
    if size > MAX_OUTPUT_BYTES:
        raise UnusableOutputError(
            f"The handler returned {size} bytes of JSON; a jsonb value holds at most {MAX_OUTPUT_BYTES}. "
            "Store the data elsewhere and return where it is."
        )
    return text


def clean_error(text: str) -> str:
    """Return `text` as an error message that PostgreSQL can hold, cut when it is very long."""
    if len(text) > MAX_ERROR_CHARACTERS:
        text = f"{text[:MAX_ERROR_CHARACTERS]}… ({len(text) - MAX_ERROR_CHARACTERS} characters cut)"
    return text.replace("\0", "\\u0000").encode("utf-8", "backslashreplace").decode("utf-8")
