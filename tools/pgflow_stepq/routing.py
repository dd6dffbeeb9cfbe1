"""The queues of a step-mode flow, told without a database.

pgflow.resolve_step_queues() decides. This is its rule once more, refusals included, so that a bad flow is refused
where it is written; whatever compiles a flow still asks the database.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar, Literal, TypeGuard

from pgflow_stepq.errors import StepqError

MAX_QUEUE_NAME_LENGTH = 47  # pgflow.max_queue_name_length()

_SLUG = re.compile("[a-zA-Z_][a-zA-Z0-9_]{0,127}")  # pgflow.is_valid_slug()
_RESERVED_SLUG = "run"

# What lower(x collate "C") does; str.lower() would fold letters that are not ASCII, too.
_FOLDED = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


@dataclass(frozen=True)
class StepRoute:
    """The queue of one step.

    `step_index` counts from 0. `resolution` is readable (<flow>__<step>) or fallback (<flow>__<index>).
    """

    step_index: int
    step_slug: str
    queue_name: str
    resolution: Literal["readable", "fallback"]


@dataclass(frozen=True)
class StepCandidates:
    """The two names that the queue of a step could have: by slug and by zero-based index. Either may be too long."""

    step_index: int
    step_slug: str
    readable: str
    fallback: str


class RoutingError(StepqError):
    """A flow that can't have step queues, refused in the words of the database.

    `sqlstate`, `message`, `detail` and `hint` are those that pgflow.resolve_step_queues() raises. `flow_slug`,
    `step_slug` and `step_index` (from 0) tell what is refused, `readable` and `fallback` the names that this step's
    queue could have, `readable_length`, `fallback_length` and `maximum` count characters. What a refusal is not about
    is None.
    """

    sqlstate: ClassVar[str]
    maximum: ClassVar[int] = MAX_QUEUE_NAME_LENGTH

    def __init__(
        self,
        *,
        message: str,
        detail: str,
        hint: str,
        flow_slug: str | None,
        step_slug: str | None = None,
        step_index: int | None = None,
        readable: str | None = None,
        fallback: str | None = None,
    ) -> None:
        """Keep all parts; as text the error is message, detail and hint, a line each."""
        super().__init__(f"{message} ({self.sqlstate})\nDETAIL: {detail}\nHINT: {hint}")
        self.message, self.detail, self.hint = message, detail, hint
        self.flow_slug, self.step_slug, self.step_index = flow_slug, step_slug, step_index
        self.readable, self.fallback = readable, fallback
        self.readable_length = None if readable is None else len(readable)
        self.fallback_length = None if fallback is None else len(fallback)


class FlowQueueNameError(RoutingError):
    """Even the shortest index suffix does not fit behind the flow's slug. The step is the first one."""

    sqlstate = "PF001"

    def __init__(self, flow_slug: str, first: StepCandidates) -> None:
        """Tell the length of the shortest name, that of index 0."""
        super().__init__(
            message=f'Flow "{flow_slug}" cannot use per-step queues.',
            detail=f'The shortest required queue "{first.fallback}" is {len(first.fallback)} characters; '
            f"PGMQ allows at most {self.maximum}.",
            hint="Shorten the concrete flow slug or use the default single queue.",
            flow_slug=flow_slug,
            **asdict(first),
        )


class StepQueueNameError(RoutingError):
    """Neither the readable name of a step fits nor its index fallback. The step is the first such one."""

    sqlstate = "PF002"

    def __init__(self, flow_slug: str, step: StepCandidates) -> None:
        """Tell the lengths of both names."""
        super().__init__(
            message=f'Cannot derive a queue for step "{step.step_slug}" at index {step.step_index} '
            f'in flow "{flow_slug}".',
            detail=f"The readable name is {len(step.readable)} characters and the index fallback is "
            f"{len(step.fallback)}; PGMQ allows at most {self.maximum}.",
            hint="Shorten the concrete flow slug, shorten the step slug enough for the readable name, or use the "
            "default single queue.",
            flow_slug=flow_slug,
            **asdict(step),
        )


class DuplicateQueueNameError(RoutingError):
    """Two slugs are equal, or equal but for case. The step is the later one, `other_step_slug` the earlier one."""

    sqlstate = "PF003"

    def __init__(self, flow_slug: str, earlier: StepCandidates, later: StepCandidates) -> None:
        """Tell both slugs and where they are."""
        super().__init__(
            message=f'Steps "{earlier.step_slug}" and "{later.step_slug}" of flow "{flow_slug}" cannot both have a '
            "queue.",
            detail=f"They are at index {earlier.step_index} and {later.step_index}; queue names are lower case, so "
            "both slugs stand for the same name.",
            hint="Give the steps slugs that differ in more than case.",
            flow_slug=flow_slug,
            **asdict(later),
        )
        self.other_step_slug, self.other_step_index = earlier.step_slug, earlier.step_index


class EmptyFlowError(RoutingError):
    """The flow has no steps."""

    sqlstate = "PF006"

    def __init__(self, flow_slug: str | None) -> None:
        """Name the flow, of which nothing else is known."""
        super().__init__(
            message=f'Flow "{flow_slug or ""}" has no steps, so it cannot use per-step queues.',
            detail="Per-step queues need at least one step; 0 were given.",
            hint="Add a step, or use the default single queue.",
            flow_slug=flow_slug,
        )


class BadSlugError(RoutingError):
    """A slug breaks the rules or is None: the flow's, where `step_index` is None, else that step's."""

    sqlstate = "PF008"

    def __init__(self, flow_slug: str | None, step_slug: str | None = None, step_index: int | None = None) -> None:
        """Quote the slug as JSON, so that what can't be seen in it can."""
        if step_index is None:
            subject, slug, place = "Flow", flow_slug, ""
        else:
            subject, slug, place = "Step", step_slug, f' at index {step_index} in flow "{flow_slug}"'
        super().__init__(
            message=f"{subject} slug {json.dumps(slug, ensure_ascii=False)}{place} is not valid.",
            detail=f"It has {len(slug or '')} characters.",
            hint='Use 1 to 128 letters, digits or underscores, not starting with a digit; "run" is reserved.',
            flow_slug=flow_slug,
            step_slug=step_slug,
            step_index=step_index,
        )


def resolve_step_queues(flow_slug: str | None, step_slugs: Sequence[str | None] | None) -> tuple[StepRoute, ...]:
    """Return the route of every step of a complete flow, which is given by the slugs of its steps in order.

    A queue is called <flow>__<step> where that fits 47 characters, else <flow>__<index>, in lower case; no name is cut.
    None is refused as a slug and taken for no steps, as in SQL. Raises the first that applies of EmptyFlowError,
    BadSlugError (the flow's slug, then the steps'), DuplicateQueueNameError, FlowQueueNameError and
    StepQueueNameError; TypeError when `step_slugs` is a single string.
    """
    if isinstance(step_slugs, str):
        raise TypeError("step_slugs must be a sequence of slugs, not a single string")
    if not step_slugs:
        raise EmptyFlowError(flow_slug)
    if not _is_valid_slug(flow_slug):
        raise BadSlugError(flow_slug)
    steps: list[StepCandidates] = []
    for index, slug in enumerate(step_slugs):
        if not _is_valid_slug(slug):
            raise BadSlugError(flow_slug, slug, index)
        steps.append(StepCandidates(index, slug, _name(flow_slug, slug), _name(flow_slug, str(index))))
    # Before any naming: long twins would get different index names, and nobody would notice them.
    _check_twins(flow_slug, steps)
    if len(steps[0].fallback) > MAX_QUEUE_NAME_LENGTH:
        raise FlowQueueNameError(flow_slug, steps[0])
    return tuple(_route(flow_slug, step) for step in steps)


def _is_valid_slug(slug: str | None) -> TypeGuard[str]:
    return slug is not None and _SLUG.fullmatch(slug) is not None and slug != _RESERVED_SLUG


def _name(flow_slug: str, suffix: str) -> str:
    return f"{flow_slug}__{suffix}".translate(_FOLDED)


def _check_twins(flow_slug: str, steps: Sequence[StepCandidates]) -> None:
    earliest: dict[str, StepCandidates] = {}
    for step in steps:
        earlier = earliest.setdefault(step.readable, step)
        if earlier is not step:
            raise DuplicateQueueNameError(flow_slug, earlier, step)


def _route(flow_slug: str, step: StepCandidates) -> StepRoute:
    if len(step.readable) <= MAX_QUEUE_NAME_LENGTH:
        return StepRoute(step.step_index, step.step_slug, step.readable, "readable")
    if len(step.fallback) <= MAX_QUEUE_NAME_LENGTH:
        return StepRoute(step.step_index, step.step_slug, step.fallback, "fallback")
    raise StepQueueNameError(flow_slug, step)
