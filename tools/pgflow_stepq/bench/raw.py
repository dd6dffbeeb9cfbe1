"""Raw PGMQ without any flow: what a message costs at least."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import uuid4

from psycopg import sql
from psycopg.types.json import Jsonb

from pgflow_stepq.bench.workload import Connection, Workload, value

_QUEUE = "bench_raw"
_LEASE_SECONDS = 300


class Raw(Workload):
    """Messages of the size of a task's, all sent, then read and archived batch by batch."""

    name = "raw"
    summary = "raw PGMQ: send_batch, then read and archive, in batches of 50 (the floor of map and chain)"
    unit = "messages"
    batch: ClassVar[int] = 50

    @property
    def size(self) -> int:
        """The number of messages."""
        return self.scale.messages

    def set_up(self, connection: Connection) -> None:
        """Make the queue."""
        self._sent: list[int] = []
        connection.execute("select pgmq.create(%s)", [_QUEUE])

    def load(self, connection: Connection) -> None:
        """Send all."""
        bodies = [_body(index) for index in range(self.size)]
        for start in range(0, self.size, self.batch):
            self._sent += self.send(connection, bodies[start : start + self.batch])

    def work(self, connection: Connection) -> int:
        """Read and archive until the queue is empty."""
        archived = 0
        while read := self.read(connection):
            archived += self.archive(connection, read)
        return archived

    def send(self, connection: Connection, bodies: list[Jsonb]) -> list[int]:
        """Send one batch and return its ids."""
        return _ids(connection.execute("select * from pgmq.send_batch(%s, %s::jsonb[])", [_QUEUE, bodies]))

    def read(self, connection: Connection) -> list[int]:
        """Read one batch, bodies included, and return its ids."""
        return _ids(connection.execute("select * from pgmq.read(%s, %s, %s)", [_QUEUE, _LEASE_SECONDS, self.batch]))

    def archive(self, connection: Connection, ids: list[int]) -> int:
        """Archive one batch and return how many messages of it were there."""
        return len(_ids(connection.execute("select * from pgmq.archive(%s, %s::bigint[])", [_QUEUE, ids])))

    def check(self, connection: Connection) -> None:
        """See that every message is in the archive and none on the queue."""
        self.check_sent(connection, self.size)

    def check_sent(self, connection: Connection, messages: int) -> None:
        """Raise BenchError unless so many messages were sent, are in the archive, and none is on the queue."""
        archived = value(
            connection,
            sql.SQL("select count(*) from {} where msg_id = any(%s)").format(sql.Identifier("pgmq", f"a_{_QUEUE}")),
            self._sent,
        )
        self.expect("messages in the archive", archived, messages)
        left = value(connection, "select queue_length from pgmq.metrics(%s)", _QUEUE)
        self.expect("messages left on the queue", left, 0)


class RawByHundred(Raw):
    """The same in batches of 100."""

    name = "raw-100"
    summary = "the same in batches of 100 (the floor of map-claim)"
    batch = 100


class RawSingle(Raw):
    """The same one by one, each call a commit of its own."""

    name = "raw-1"
    summary = "the same by single calls, a commit each: send, read by 1, archive (the floor of single)"
    against = ("commit",)
    batch = 1

    @property
    def size(self) -> int:
        """The number of messages."""
        return self.scale.single_calls

    def send(self, connection: Connection, bodies: list[Jsonb]) -> list[int]:
        """Send one message and return its id."""
        return _ids(connection.execute("select * from pgmq.send(%s, %s)", [_QUEUE, *bodies]))

    def archive(self, connection: Connection, ids: list[int]) -> int:
        """Archive one message and return 1 when it was there."""
        return int(value(connection, "select pgmq.archive(%s, %s::bigint)", _QUEUE, *ids))


def _body(index: int) -> Jsonb:
    """Return a body with the keys, and so the size, of a task's message."""
    return Jsonb({"flow_slug": "bench", "run_id": str(uuid4()), "step_slug": "each", "task_index": index})


def _ids(cursor: Any) -> list[int]:
    return [row[0] for row in cursor]
