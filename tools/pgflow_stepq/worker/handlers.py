"""Handlers: the user's functions that work a step's tasks, sync or async."""

from __future__ import annotations

import importlib
import inspect
import json
import sys
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from pgflow_stepq.worker.errors import UsageError

Handler = Callable[..., Any]
"""`handler(input)` or `handler(input, context)`; it returns JSON, or an awaitable of it."""


@dataclass(frozen=True)
class TaskContext:
    """What a handler may know about its task, beside the input.

    `flow_input` is the run's input for a root single step, else None. `attempt` counts from 1.
    """

    run_id: UUID
    flow_slug: str
    step_slug: str
    task_index: int
    attempt: int
    flow_input: Any
    worker_id: UUID
    _extend: Callable[[int], datetime | None] = field(repr=False, compare=False)

    def extend(self, seconds: int) -> datetime | None:
        """Keep the task for `seconds` more, counted from now, and return when it would be lost.

        None when the task is no longer this worker's: its result would change nothing, so the
        handler should give up. Blocks for one round trip: an async handler calls it as
        `await asyncio.to_thread(context.extend, 60)`. Raises psycopg.Error when the database
        refuses or can't be reached.
        """
        return self._extend(seconds)


class UnusableInputError(Exception):
    """The database could not put the input of a task together; the message says why."""


@dataclass(frozen=True)
class ClaimedTask:
    """A task that the database gave to this worker; the inputs are JSON text.

    `flaw` says why there is no input: the outputs of the dependencies are more than PostgreSQL can hold together.
    """

    run_id: UUID
    flow_slug: str
    step_slug: str
    task_index: int
    attempt: int
    input: str | None
    flow_input: str | None
    flaw: str | None = None

    def arguments(self, worker_id: UUID, extend: Callable[[int], datetime | None]) -> tuple[Any, TaskContext]:
        """Return the input and the context for the handler.

        Raises ValueError or RecursionError when Python can't hold the JSON: a number of too many
        digits, or too many levels; UnusableInputError when there is a flaw.
        """
        if self.flaw is not None:
            raise UnusableInputError(self.flaw)
        context = TaskContext(
            run_id=self.run_id,
            flow_slug=self.flow_slug,
            step_slug=self.step_slug,
            task_index=self.task_index,
            attempt=self.attempt,
            flow_input=_parse(self.flow_input),
            worker_id=worker_id,
            _extend=extend,
        )
        return _parse(self.input), context


def load_handler(reference: str) -> Handler:
    """Import the handler that `module:function` names, looking in the current directory first.

    Raises UsageError when the module can't be imported, or the name is missing or not callable.
    """
    module_name, _, path = reference.partition(":")
    if not module_name or not path:
        raise UsageError(f'--handler "{reference}" must be module:function, such as tasks:classify.')
    directory = str(Path.cwd())
    if directory not in sys.path:
        sys.path.insert(0, directory)
    try:
        found: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise UsageError(
            f'Can\'t import the module "{module_name}" of --handler: {describe(error)} '
            f"({where(error)}). Modules are looked up in {directory} and in PYTHONPATH."
        ) from error
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError as error:
            raise UsageError(f'"{reference}" does not exist: {error}.') from error
    if not callable(found):
        raise UsageError(f'"{reference}" is not callable; it is of type {type(found).__name__}.')
    if inspect.isgeneratorfunction(found) or inspect.isasyncgenfunction(found):
        raise UsageError(f'"{reference}" is a generator: it yields values, and a handler returns one.')
    handler: Handler = found
    takes_context(handler)
    return handler


def takes_context(handler: Handler) -> bool:
    """Tell whether `handler` is called as (input, context) rather than as (input).

    A second parameter with a default of its own is the handler's, unless it is named context.
    Raises UsageError when it can be called in neither way.
    """
    try:
        signature = inspect.signature(handler)
    except ValueError:  # some built-in functions have none
        return False
    positional = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    ]
    wanted = len(positional) > 1 and (
        positional[1].default is inspect.Parameter.empty or positional[1].name == "context"
    )
    try:
        signature.bind(*([None] * (2 if wanted else 1)))
    except TypeError as error:
        name = getattr(handler, "__qualname__", repr(handler))
        raise UsageError(
            f'The handler "{name}" can\'t be called as handler(input) or handler(input, context): {error}.'
        ) from error
    return wanted


def is_async(handler: Handler) -> bool:
    """Tell whether calling `handler` gives a coroutine."""
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
        getattr(handler, "__call__", None)  # noqa: B004 -- its kind is asked, not whether it is there
    )


async def resolve(value: Awaitable[Any]) -> Any:
    """Await `value`: some awaitables are no coroutines, which event loops insist on."""
    return await value


def describe(error: BaseException) -> str:
    """Say what was raised, as `type: text`."""
    name = type(error).__qualname__
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 -- a broken __str__ must not hide the failure that it belongs to
        text = ""
    return f"{name}: {text}" if text else name


def where(error: BaseException) -> str | None:
    """Return `file:line` of the place that raised `error`, if it is known."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else None


def _parse(text: str | None) -> Any:
    return None if text is None else json.loads(text)
