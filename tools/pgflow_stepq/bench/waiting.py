"""How long a fast step waits beside a slow one."""

from __future__ import annotations

import time
from typing import ClassVar, Final
from uuid import UUID

from pgflow_stepq.bench.flow import compile_flow, start_one, step
from pgflow_stepq.bench.sessions import Claimed, Session, receive_any, task_session
from pgflow_stepq.bench.workload import Connection, Workload, conninfo_of, value

_SLOW_SECONDS: Final = 0.02
# More than a slow task takes, so that without a backlog the slow worker keeps up.
_INTERVAL_SECONDS: Final = 0.04
_WARM_UP_TASKS: Final = 12


class Wait(Workload):
    """Runs that come in at a steady pace, each with a task of the fast step and one of the slow step.

    Two workers, each in a process of its own, take one task at a time: in step mode one for each step, in flow mode
    both any task. Measured is the time from the return of start_flow(), when the message is there for all, to the
    return of the poll that claimed the fast task.
    """

    unit = "tasks"
    load_is_timed = False
    warms_itself_up = True
    mode: ClassVar[str] = "step"
    _sessions: tuple[Session, ...] = ()

    @property
    def backlog(self) -> int:
        """The number of tasks that wait at the slow step when the first run is started."""
        return self.scale.backlog

    def set_up(self, connection: Connection) -> None:
        """Compile the flow, start the workers, and do some runs until nothing waits."""
        compile_flow(connection, step("slow", step_type="map"), step("fast"), mode=self.mode)
        conninfo = conninfo_of(connection)
        for slug in ("slow", "fast"):
            served = slug if self.mode == "step" else None
            self._sessions += (Session(task_session, conninfo, served, "slow", _SLOW_SECONDS),)
        for session in self._sessions:
            session.backend  # noqa: B018 - waits until it is connected
        self._feed(connection, _WARM_UP_TASKS)
        while value(connection, "select count(*) from pgflow.runs where status = 'started'"):
            time.sleep(_SLOW_SECONDS)

    def load(self, connection: Connection) -> None:
        """Give the slow step its backlog; the run that it belongs to has a fast task too, which isn't counted."""
        self._extra = start_one(connection, [1] * self.backlog) if self.backlog else None

    def work(self, connection: Connection) -> int:
        """Start the runs, and return when every fast task of theirs is claimed."""
        self._waits = self._feed(connection, self.scale.awaited_tasks)
        return len(self._waits)

    def check(self, connection: Connection) -> None:
        """See that every fast task of the runs is completed, and take the percentile of the waits."""
        self.stop()
        done = value(
            connection,
            """
            select count(*)
            from pgflow.step_tasks
            where step_slug = 'fast' and status = 'completed' and run_id = any(%s)
            """,
            list(self._waits),
        )
        self.expect("completed fast tasks", done, self.scale.awaited_tasks)
        if self.backlog and self.mode == "step":
            waiting = value(
                connection,
                "select count(*) from pgflow.step_tasks where run_id = %s and step_slug = 'slow' and status = 'queued'",
                self._extra,
            )
            self.expect("a backlog to the end", waiting > 0, True)
        self.wait = percentile(list(self._waits.values()))

    def close(self) -> None:
        """End the workers."""
        for session in self._sessions:
            session.close()

    def backends(self, connection: Connection) -> list[int]:
        """Return the server processes of the workers."""
        return [session.backend for session in self._sessions]

    def stop(self) -> None:
        """Tell the workers to end after the task that each has in hand, and wait for that."""
        for session in self._sessions:
            session.send("stop")
        for session in self._sessions:
            session.join()

    def _feed(self, connection: Connection, runs: int) -> dict[UUID, float]:
        """Start the runs at their pace and return the seconds that the fast task of each waited."""
        sent: dict[UUID, float] = {}
        claimed: dict[UUID, float] = {}
        begun = time.monotonic()
        while len(sent.keys() & claimed.keys()) < runs:
            due = begun + len(sent) * _INTERVAL_SECONDS
            if len(sent) < runs and time.monotonic() >= due:
                run_id = start_one(connection, [1])
                sent[run_id] = time.monotonic()
            pause = due - time.monotonic() if len(sent) < runs else 1.0
            for said in receive_any(self._sessions, pause):
                if isinstance(said, Claimed):
                    claimed[said.run_id] = said.at
        # A worker may be quicker than the answer to the one who started the run.
        return {run_id: max(claimed[run_id] - at, 0.0) for run_id, at in sent.items()}


class WaitIdle(Wait):
    """No backlog."""

    name = "wait-idle"
    summary = (
        "(g) p95 wait of a fast step's task, a worker at each step, the slow step's tasks of 20 ms never piling up"
    )

    @property
    def backlog(self) -> int:
        """None."""
        return 0


class WaitBacklog(Wait):
    """A backlog at the slow step."""

    name = "wait-backlog"
    summary = "(g) the same beside a backlog at the slow step"
    against: ClassVar[tuple[str, ...]] = ("wait-idle",)


class WaitFlowMode(Wait):
    """A backlog before everything else on the one queue of a flow in flow mode."""

    name = "wait-flow-mode"
    summary = "(g) the same in flow mode: one queue for both steps, two workers that take what comes"
    against: ClassVar[tuple[str, ...]] = ("wait-backlog",)
    mode = "flow"

    @property
    def backlog(self) -> int:
        """The number of tasks that wait in flow mode."""
        return self.scale.flow_backlog


def percentile(values: list[float], share: float = 0.95) -> float:
    """Return the smallest value that at least this share of all does not exceed; of one value or more."""
    ordered = sorted(values)
    return ordered[max(-int(-len(ordered) * share // 1), 1) - 1]
