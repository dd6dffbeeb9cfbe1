"""Where the time of a workload goes inside the server: by function, and by statement inside functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from psycopg.rows import class_row

from pgflow_stepq.bench.workload import Connection

# What a server must be started with to be profiled; the statements are only counted in a session that asks for it.
PROFILER_SETTINGS: Final = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.max": "10000",
    "pg_stat_statements.track": "none",
}


@dataclass(frozen=True)
class FunctionTime:
    """Time spent in a function, in milliseconds over the whole of it; `self_ms` is without the functions it called."""

    function: str
    calls: int
    self_ms: float
    total_ms: float


@dataclass(frozen=True)
class StatementTime:
    """Time spent in a statement inside functions, in milliseconds; what its own function calls took is part of it."""

    statement: str
    calls: int
    rows: int
    total_ms: float


@dataclass(frozen=True)
class Profile:
    """One measurement, done with the profiler on, which makes it slower. Both lists begin with the most expensive."""

    workload: str
    unit: str
    units: int
    seconds: float
    functions: list[FunctionTime]
    statements: list[StatementTime]

    @property
    def outside_ms(self) -> float:
        """Milliseconds outside of all functions: commits, planning of the calls, the way to the client, the client."""
        return self.seconds * 1000 - sum(function.self_ms for function in self.functions)


def start_profiler(connection: Connection) -> None:
    """Count functions and statements of this session from now on; needs PROFILER_SETTINGS. Raises psycopg.Error."""
    connection.execute("create extension pg_stat_statements")
    connection.execute("set pg_stat_statements.track = 'all'")
    connection.execute("set track_functions = 'all'")


def read_profiler(connection: Connection) -> tuple[list[FunctionTime], list[StatementTime]]:
    """Stop counting and return what this session's database was busy with since start_profiler()."""
    connection.execute("set track_functions = 'none'")
    connection.execute("set pg_stat_statements.track = 'none'")
    connection.execute("select pg_stat_force_next_flush()")
    with connection.cursor(row_factory=class_row(FunctionTime)) as cursor:
        functions = cursor.execute(
            """
            select
              schemaname || '.' || funcname as function,
              sum(calls)::int as calls,
              sum(self_time) as self_ms,
              sum(total_time) as total_ms
            from pg_stat_user_functions
            group by schemaname, funcname
            order by self_ms desc
            """
        ).fetchall()
    with connection.cursor(row_factory=class_row(StatementTime)) as statement_cursor:
        statements = statement_cursor.execute(
            """
            select
              regexp_replace(btrim(query, E' \\n'), '\\s+', ' ', 'g') as statement,
              sum(calls)::int as calls,
              sum(rows)::int as rows,
              sum(total_exec_time) as total_ms
            from pg_stat_statements
            where not toplevel
              and dbid = (select oid from pg_database where datname = current_database())
            group by statement
            order by total_ms desc
            """
        ).fetchall()
    return functions, statements
