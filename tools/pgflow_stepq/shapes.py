"""Flow files: a flow's complete shape as JSON, with or without its slug."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from pgflow_stepq.errors import StepqError


class FlowFileError(StepqError):
    """A flow file that can't be read or does not hold a flow."""

    exit_code = 2


@dataclass(frozen=True)
class FlowFile:
    """A flow's slug and its complete shape, as the file has them.

    Whether they make a valid flow is for the database to say.
    """

    slug: str
    shape: dict[str, Any]


def read_flow_file(path: str | Path, slug: str | None = None) -> FlowFile:
    """Read `{"slug": …, "shape": {…}}`, or a bare shape when `slug` is given.

    Raises FlowFileError, naming the file, when it can't be read, is not such JSON, or carries no
    slug or another one than `slug`.
    """
    document = _parse(Path(path))
    if "shape" not in document:
        if slug is None:
            raise FlowFileError(
                f'{path} is a bare shape, without the slug of its flow. Wrap it as {{"slug": …, '
                '"shape": …}, or name the flow with --flow.'
            )
        return FlowFile(slug, document)

    own_slug, shape = document.get("slug", slug), document["shape"]
    if not isinstance(own_slug, str):
        raise FlowFileError(f'{path}: "slug" must be a string. Set it, or name the flow with --flow.')
    if not isinstance(shape, dict):
        raise FlowFileError(f'{path}: "shape" must be an object with the key "steps".')
    if slug not in (None, own_slug):
        raise FlowFileError(
            f'{path} holds the flow "{own_slug}", but --flow says "{slug}". Leave --flow out, or '
            "name the file of that flow."
        )
    return FlowFile(own_slug, shape)


def _parse(path: Path) -> dict[str, Any]:
    try:
        # utf-8-sig, because editors on Windows put a byte order mark in front.
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FlowFileError(f"Can't read the flow file {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise FlowFileError(f"{path} is not UTF-8 text (byte {error.start}).") from error
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise FlowFileError(f"{path} is not JSON: line {error.lineno}, column {error.colno}: {error.msg}.") from error
    except (ValueError, RecursionError) as error:
        raise FlowFileError(f"{path} is not usable JSON: {error}.") from error
    if not isinstance(document, dict):
        raise FlowFileError(f"{path} must hold a JSON object, not {type(document).__name__}.")
    return document


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
