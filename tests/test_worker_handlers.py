"""Handlers: which function is found, how it is called, and what a failure of it is called."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pgflow_stepq.worker import UsageError
from pgflow_stepq.worker.handlers import describe, is_async, load_handler, takes_context, where


@pytest.fixture
def in_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def test_a_handler_is_found_in_the_current_directory(in_directory: Path) -> None:
    (in_directory / "stepq_here.py").write_text(
        "class Tasks:\n    @staticmethod\n    def one(input): return input + 1\n"
    )
    assert load_handler("stepq_here:Tasks.one")(1) == 2


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("classify", "must be module:function"),
        (":classify", "must be module:function"),
        ("stepq_no_such_module:classify", "No module named 'stepq_no_such_module'"),
        ("json:no_such_function", "no attribute 'no_such_function'"),
        ("json:__name__", "is not callable"),
    ],
)
def test_a_handler_that_is_not_there_is_named(reference: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        load_handler(reference)


def test_a_module_that_breaks_on_import_is_named_with_the_place(in_directory: Path) -> None:
    (in_directory / "stepq_broken.py").write_text("x = 1\ny = x / 0\n")
    with pytest.raises(UsageError, match=r"ZeroDivisionError: .*stepq_broken\.py:2"):
        load_handler("stepq_broken:classify")


def test_a_module_that_exits_on_import_is_named(in_directory: Path) -> None:
    (in_directory / "stepq_exits.py").write_text("import sys\nsys.exit(7)\n")
    with pytest.raises(UsageError, match=r"SystemExit: 7 .*stepq_exits\.py:2"):
        load_handler("stepq_exits:classify")


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_generator_is_no_handler(in_directory: Path, kind: str) -> None:
    (in_directory / "stepq_yields.py").write_text(f"{kind} classify(input): yield input\n")
    with pytest.raises(UsageError, match="it yields values, and a handler returns one"):
        load_handler("stepq_yields:classify")
    sys.modules.pop("stepq_yields")


def divide_by_zero() -> float:
    return 1 / 0


def one(value: Any) -> Any: ...
def two(value: Any, context: Any) -> Any: ...
def own_default(value: Any, factor: int = 2) -> Any: ...
def context_with_default(value: Any, context: Any = None) -> Any: ...
def none() -> Any: ...
def three(value: Any, context: Any, more: Any) -> Any: ...
async def coroutine(value: Any) -> Any: ...


class Callables:
    async def __call__(self, value: Any) -> Any: ...


@pytest.mark.parametrize(
    ("handler", "expected"),
    [(one, False), (two, True), (own_default, False), (context_with_default, True), (str, False), (coroutine, False)],
)
def test_the_context_is_passed_to_handlers_that_ask_for_it(handler: Callable[..., Any], expected: bool) -> None:
    assert takes_context(handler) is expected


@pytest.mark.parametrize("handler", [none, three])
def test_a_handler_that_can_not_be_called_is_refused(handler: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match=f'"{handler.__name__}" can\'t be called'):
        takes_context(handler)


@pytest.mark.parametrize(
    ("handler", "expected"),
    [(one, False), (coroutine, True), (Callables(), True), (functools.partial(coroutine), True), (str, False)],
)
def test_async_handlers_are_recognized(handler: Callable[..., Any], expected: bool) -> None:
    assert is_async(handler) is expected


def test_a_failure_reads_as_type_and_text() -> None:
    assert describe(ValueError("no route")) == "ValueError: no route"
    assert describe(KeyError()) == "KeyError"


def test_a_failure_that_can_not_be_printed_has_its_type() -> None:
    class UnprintableError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert describe(UnprintableError()).endswith("UnprintableError")


def test_the_place_of_a_failure_is_where_it_was_raised() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        divide_by_zero()
    line = divide_by_zero.__code__.co_firstlineno + 1
    assert where(caught.value) == f"{__file__}:{line}"
