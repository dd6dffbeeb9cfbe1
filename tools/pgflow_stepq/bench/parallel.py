"""Several sessions at one flow: on one map, and on the queues of several steps."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from pgflow_stepq.bench.flow import check_runs, compile_flow, start_one, step
from pgflow_stepq.bench.sessions import Session, double, drain_session
from pgflow_stepq.bench.step_worker import StepWorker, drain
from pgflow_stepq.bench.workload import Connection, Workload, conninfo_of, value

_QUEUES: Final = 8
# For each session, until it has settled on its plans.
_WARM_UP_BATCHES: Final = 8
_DEADLOCKS: Final = "select deadlocks from pg_stat_database where datname = current_database()"


class Sessions(Workload):
    """Sessions share the tasks of maps; what comes before and after the maps is not timed."""

    unit = "tasks"
    load_is_timed = False
    warms_itself_up = True
    sessions: ClassVar[int]
    # How many maps there are, each with a queue of its own.
    maps: ClassVar[int]
    batch: ClassVar[int] = 50
    _sessions: tuple[Session, ...] = ()

    def set_up(self, connection: Connection) -> None:
        """Compile the flow, start the sessions, and let them do a small run."""
        self._slugs = [f"each{number}" for number in range(self.maps)]
        maps = [step(slug, "split", step_type="map") for slug in self._slugs]
        compile_flow(connection, step("split"), *maps, step("total", *self._slugs))
        self._split = StepWorker(connection, "split", lambda _, elements: list(range(elements)), 1)
        self._total = StepWorker(connection, "total", self._sum, 1)
        conninfo = conninfo_of(connection)
        for number in range(self.sessions):
            # Each queue has the same number of sessions, or each session the same number of queues.
            slugs = [slug for at, slug in enumerate(self._slugs) if (at - number) % min(self.sessions, self.maps) == 0]
            self._sessions += (Session(drain_session, conninfo, slugs, self.batch),)
        for session in self._sessions:
            session.backend  # noqa: B018 - waits until it is connected
        self._deadlocks_before = value(connection, _DEADLOCKS)
        self._begin(connection, min(_WARM_UP_BATCHES * self.batch * self.sessions, 2 * self.scale.session_tasks))
        self._drain()
        self._end(connection)

    def load(self, connection: Connection) -> None:
        """Start the run and do its first task, which queues those of the maps."""
        self._begin(connection, self.scale.session_tasks)

    def work(self, connection: Connection) -> int:
        """Let all sessions work until the queues are empty."""
        return self._drain()

    def check(self, connection: Connection) -> None:
        """Do the last task and see that the run completed with the right sum; count deadlocks, the server's too."""
        self._end(connection)
        deadlocks = value(connection, _DEADLOCKS) - self._deadlocks_before
        self.conflicts = max(self._conflicts, deadlocks)

    def close(self) -> None:
        """End the sessions."""
        for session in self._sessions:
            session.close()

    def backends(self, connection: Connection) -> list[int]:
        """Return the server processes of the sessions."""
        return [session.backend for session in self._sessions]

    def _begin(self, connection: Connection, tasks: int) -> None:
        self._elements = tasks // self.maps
        self._run_id = start_one(connection, self._elements)
        self.expect("first tasks", drain(self._split), 1)

    def _drain(self) -> int:
        for session in self._sessions:
            session.send("go")
        answers = [session.receive() for session in self._sessions]
        self._conflicts = sum(answer.conflicts for answer in answers)
        return sum(answer.tasks for answer in answers)

    def _end(self, connection: Connection) -> None:
        self.expect("last tasks", drain(self._total), 1)
        total = sum(double(element, None) for element in range(self._elements)) * self.maps
        check_runs(self, connection, {self._run_id: {"total": total}}, self._elements * self.maps + 2)

    @staticmethod
    def _sum(outputs: Any, _flow_input: Any) -> int:
        return sum(sum(output) for output in outputs.values())


class OneSessionOneMap(Sessions):
    """One session on one map."""

    name = "sessions-1"
    summary = "(f) the tasks of one map by one session in a process of its own: poll_tasks and complete_tasks by 50"
    sessions = 1
    maps = 1


class EightSessionsOneMap(Sessions):
    """Eight sessions on one map."""

    name = "sessions-8"
    summary = "(f) the same by 8 sessions"
    against: ClassVar[tuple[str, ...]] = ("sessions-1",)
    sessions = 8
    maps = 1


class OneSessionEightQueues(Sessions):
    """One session that serves the queues of eight maps."""

    name = "queues-1"
    summary = "(f) as many tasks of 8 maps, each with a queue of its own, by one session"
    sessions = 1
    maps = _QUEUES


class EightSessionsEightQueues(Sessions):
    """Eight sessions, each at the queue of one of eight maps."""

    name = "queues-8"
    summary = "(f) the same by 8 sessions, one at each queue"
    against: ClassVar[tuple[str, ...]] = ("queues-1",)
    sessions = 8
    maps = _QUEUES
