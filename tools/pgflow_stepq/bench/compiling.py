"""What a start-up costs: compiling a flow, and verifying one that is there."""

from __future__ import annotations

from typing import ClassVar

from psycopg.types.json import Jsonb

from pgflow_stepq.bench.flow import step
from pgflow_stepq.bench.workload import Connection, Workload, value

# Slugs are the bench's own, so that several workloads can follow each other in a database.
_COMPILE = "select pgflow.ensure_flow_compiled(%s, %s, queue_mode => 'step') ->> 'status'"


def _chain(steps: int) -> Jsonb:
    return Jsonb({"steps": [step(f"s{n}", *([f"s{n - 1}"] if n else [])) for n in range(steps)]})


class Compile(Workload):
    """New flows of 20 steps."""

    name = "compile"
    summary = "new flows of 20 steps, each step with a queue of its own, a commit a flow"
    unit = "steps"
    steps: ClassVar[int] = 20

    def set_up(self, connection: Connection) -> None:
        """Choose slugs that are not there yet, and enough of them."""
        there = value(connection, "select count(*) from pgflow.flows")
        self._steps = min(self.steps, self.scale.compiled_steps)
        self._slugs = [f"compiled{there + number}" for number in range(self.scale.compiled_steps // self._steps)]

    def load(self, connection: Connection) -> None:
        """Do nothing: there is no work on any queue."""

    def work(self, connection: Connection) -> int:
        """Compile the flows."""
        shape = _chain(self._steps)
        for slug in self._slugs:
            self.expect("compiled", value(connection, _COMPILE, slug, shape), "compiled")
        return self._steps * len(self._slugs)

    def check(self, connection: Connection) -> None:
        """See that every step has its queue."""
        queues = value(
            connection,
            """
            select count(*)
            from pgflow.queues as owner
            inner join pgmq.meta as meta on meta.queue_name = owner.queue_name
            where owner.flow_slug = any(%s)
            """,
            self._slugs,
        )
        self.expect("queues", queues, self._steps * len(self._slugs))


class CompileLarge(Compile):
    """The same number of steps in flows of 200."""

    name = "compile-200"
    summary = "the same in flows of 200 steps: a step of a large flow should cost no more"
    against = ("compile",)
    steps: ClassVar[int] = 200


class Verify(Workload):
    """A flow of 20 steps that is there already."""

    name = "verify"
    summary = "start-ups of workers of a flow of 20 steps that is there: verified, nothing written"
    unit = "calls"
    against = ("commit",)

    def set_up(self, connection: Connection) -> None:
        """Compile the flow, or find it."""
        self._shape = _chain(20)
        value(connection, _COMPILE, "verified", self._shape)

    def load(self, connection: Connection) -> None:
        """Do nothing: there is no work on any queue."""

    def work(self, connection: Connection) -> int:
        """Verify the flow again and again."""
        for _ in range(self.scale.verifications):
            self.expect("verified", value(connection, _COMPILE, "verified", self._shape), "verified")
        return self.scale.verifications

    def check(self, connection: Connection) -> None:
        """See that there is one flow only."""
        self.expect("flows", value(connection, "select count(*) from pgflow.flows"), 1)
