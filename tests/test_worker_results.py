"""Results: what a handler may return, and what becomes of what it may not."""

from __future__ import annotations

import json
import math
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgflow_stepq.worker.handlers import ClaimedTask
from pgflow_stepq.worker.results import (
    MAX_ERROR_CHARACTERS,
    TaskResult,
    UnusableOutputError,
    clean_error,
    encode_output,
)

TASK = ClaimedTask(UUID(int=7), "orders", 'ship "it"', 3, 2, "null", None)

# Strings that jsonb can hold: neither NUL nor surrogates.
text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text
json_values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(text, inner), max_leaves=20)


@settings(deadline=None)
@given(json_values)
def test_json_comes_out_as_it_went_in(value: Any) -> None:
    assert json.loads(encode_output(value)) == value


@settings(deadline=None)
@given(json_values)
def test_a_result_is_one_json_object_with_its_fencing_token(value: Any) -> None:
    assert json.loads(TaskResult(TASK, encode_output(value)).element()) == {
        "run_id": str(TASK.run_id),
        "step_slug": 'ship "it"',
        "task_index": 3,
        "attempt": 2,
        "output": value,
    }


def test_a_failure_carries_its_message() -> None:
    element = json.loads(TaskResult(TASK, None, error='ValueError: "x"\n').element())
    assert element["error_message"] == 'ValueError: "x"\n'
    assert "output" not in element


def circular() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({1, 2}, "set is not JSON serializable"),
        (b"bytes", "bytes is not JSON serializable"),
        ({("a", "b"): 1}, "keys must be"),
        (math.nan, "not JSON compliant"),
        ([math.inf], "not JSON compliant"),
        (circular(), "Circular reference"),
        (deep(), "recursion"),
        (10**5000, "limit"),
        ("a\0b", "NUL character"),
        ({"key\0": [1]}, "NUL character"),
        ({"a": ["\\\0"]}, "NUL character"),
        ("\ud83d", r"U\+D83D"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isascii() and value.isprintable() else "value",
)
def test_what_jsonb_can_not_hold_is_refused_with_the_reason(value: Any, says: str) -> None:
    with pytest.raises(UnusableOutputError, match=says):
        encode_output(value)


@pytest.mark.parametrize("value", ["\\u0000", "a\\\\u0000", ["\\\\\\u0000"]])
def test_text_that_only_looks_like_an_escaped_nul_is_fine(value: Any) -> None:
    assert json.loads(encode_output(value)) == value


def test_an_error_message_is_made_fit_for_postgresql() -> None:
    assert clean_error("a\0b \ud800 ü") == "a\\u0000b \\ud800 ü"


def test_a_very_long_error_message_is_cut_and_says_so() -> None:
    cleaned = clean_error("x" * (MAX_ERROR_CHARACTERS + 5))
    assert cleaned.startswith("x" * MAX_ERROR_CHARACTERS + "…")
    assert "5 characters cut" in cleaned
