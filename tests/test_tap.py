"""What pgTAP prints is understood, and whatever keeps a file from proving its promise is named."""

from __future__ import annotations

import pytest

from pgflow_stepq.tap import parse_tap


def test_a_kept_plan_has_no_problems() -> None:
    assert parse_tap("1..2\nok 1 - the first\nok 2 - with a \\# in it\n").problems() == []


def test_rows_of_other_queries_are_left_out() -> None:
    assert parse_tap("1..1\n17\nokay\n\nok 1 - it\n{a}\n").problems() == []


def test_a_failed_assertion_brings_its_diagnostics() -> None:
    output = """1..2
not ok 1 - it is two
# Failed test 1: "it is two"
#         have: 1
#         want: 2
ok 2
"""
    assert parse_tap(output).problems() == [
        "not ok 1 - it is two",
        '  Failed test 1: "it is two"',
        "          have: 1",
        "          want: 2",
    ]


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        ("1..3\nok 1\nok 2\n", "Planned 3 assertion(s), but 2 ran."),
        ("1..1\nok 1\nok 2\n", "Planned 1 assertion(s), but 2 ran."),
        ("ok 1\n", "No plan: 1 assertion(s) ran. Start the file with select plan(N)."),
        ("1..0\n", "Nothing is asserted. Write at least one assertion."),
        ("", "Nothing is asserted. Write at least one assertion."),
        ("1..1\nok 1 # SKIP not on this server\n", "skip 1: not on this server"),
        ("1..1\nnot ok 1 - later # TODO one day\n", "todo 1 - later: one day"),
        ("1..1\nok 1\nBail out! no table\n", "Bailed out: no table"),
    ],
    ids=["too few", "too many", "no plan", "plan of none", "no output", "skipped", "to do", "bailed out"],
)
def test_what_proves_nothing_is_a_problem(output: str, problem: str) -> None:
    assert problem in parse_tap(output).problems()
