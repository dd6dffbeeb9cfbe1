"""Start a run for every thread, in batches, however long the file is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from psycopg.types.json import Jsonb

from pgflow_stepq.demo.figures import Connection

_BATCH_RUNS: Final = 500
# So many characters of text a call, that a few very long posts don't make one statement of a gigabyte.
_BATCH_CHARACTERS: Final = 4_000_000

RunInput = Mapping[str, Any]


def start_runs(connection: Connection, flow_slug: str, inputs: Iterable[RunInput]) -> Iterator[int]:
    """Start a run for every input; yield, after each batch, how many were started in it."""
    for batch in batches(inputs):
        started = connection.execute(
            "select count(*) from pgflow.start_flows(%s, %s::jsonb[])",
            [flow_slug, [Jsonb(run_input) for run_input in batch]],
        ).fetchone()
        yield started[0] if started else 0


def batches(inputs: Iterable[RunInput]) -> Iterator[list[RunInput]]:
    """Cut the inputs into lists of at most _BATCH_RUNS and, but for a single one, _BATCH_CHARACTERS."""
    batch: list[RunInput] = []
    characters = 0
    for run_input in inputs:
        size = sum(len(value) for value in run_input.values() if isinstance(value, str))
        if batch and (len(batch) == _BATCH_RUNS or characters + size > _BATCH_CHARACTERS):
            yield batch
            batch, characters = [], 0
        batch.append(run_input)
        characters += size
    if batch:
        yield batch
