"""A commit by itself: what every call costs before it does anything."""

from __future__ import annotations

from pgflow_stepq.bench.workload import Connection, Workload, value


class Commit(Workload):
    """Rows inserted one by one, each with a commit of its own."""

    name = "commit"
    summary = "one row inserted, a commit each: what the disk asks for before there is any work"
    unit = "commits"

    def set_up(self, connection: Connection) -> None:
        """Make the table, or empty it."""
        connection.execute("create table if not exists bench_commit (number int not null)")
        connection.execute("truncate bench_commit")

    def load(self, connection: Connection) -> None:
        """Do nothing: there is no queue."""

    def work(self, connection: Connection) -> int:
        """Insert the rows."""
        for number in range(self.scale.single_calls):
            connection.execute("insert into bench_commit values (%s)", [number])
        return self.scale.single_calls

    def check(self, connection: Connection) -> None:
        """See that all rows are there."""
        rows = value(connection, "select count(*) from bench_commit")
        self.expect("inserted rows", rows, self.scale.single_calls)
