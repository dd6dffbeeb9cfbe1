# ruff: noqa: RUF001 -- letters and marks of many languages are meant as they stand
"""The demo: what it prints is what happened, and what it can't run it refuses before anything starts."""

from __future__ import annotations

import http.client
import io
import json
import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from pgflow_stepq.console import WIDTH, Console, display_width, fit
from pgflow_stepq.demo import handlers, text, walkthrough
from pgflow_stepq.demo.classifier import classify_text
from pgflow_stepq.demo.pool import WorkerDiedError
from pgflow_stepq.demo.slack_sink import SlackMessage, SlackSink, is_flaky
from pgflow_stepq.demo.starter import batches
from pgflow_stepq.demo.threads import BUNDLED, InputError, Thread, read_threads
from pgflow_stepq.pytest_plugin import Databases
from pgflow_stepq.worker.handlers import TaskContext

TOOLS = Path(__file__).resolve().parents[1] / "tools"
SERVER_VARIABLES = ("PGHOST", "PGHOSTADDR", "PGSERVICE", "PGPORT", "PGUSER", "PGDATABASE", "PGPASSWORD")

# What a reader of the posts would say, written by hand.
ROUTES = {
    "help": "en-001 en-002 de-001 fr-001 es-001 pt-001 pl-001 ja-001 zh-001 ar-001 hi-001 tr-001 ru-001 ko-001 it-001 "
    "he-001 awk-sqli awk-backslash awk-code awk-traceback awk-noauthor",
    "showcase": "en-010 de-010 fr-010 es-010 ja-010 pt-010",
    "jobs": "en-020 de-020 pl-020 zh-020 tr-020",
    "announcement": "en-030 en-031 de-030 fr-030 hi-030 ar-030",
    "spam": "spam-001 spam-002 spam-003",
    "chat": "en-040 en-041 de-040 fr-040 pl-040 ja-040 awk-empty awk-space awk-emoji awk-html awk-quotes awk-4byte "
    "awk-rtl awk-controls awk-oneword awk-json en-050 zh-050",
}


def context_of(thread: Thread) -> TaskContext:
    return TaskContext(
        run_id=uuid.UUID(int=1),
        flow_slug="communityThreadsV1",
        step_slug="classify",
        task_index=0,
        attempt=1,
        flow_input=thread.as_input(),
        worker_id=uuid.UUID(int=2),
        _extend=lambda _seconds: None,
    )


class Expected:
    """What a run of the demo over these threads must come to, from the handlers alone."""

    def __init__(self, threads: Sequence[Thread]) -> None:
        routes = [handlers.classify(None, context_of(thread))["route"] for thread in threads]
        sentences = [len(handlers.extract(None, context_of(thread))) for thread in threads]
        delivered = [thread for thread, route in zip(threads, routes, strict=True) if route == "help"]
        self.runs = len(threads)
        self.helped = len(delivered)
        self.retries = sum(is_flaky(thread.id) for thread in delivered)
        self.sentences = sum(sentences)
        self.empty = sentences.count(0)
        self.routes = {route: routes.count(route) for route in set(routes)}
        self.more_runs = min(12, self.helped) + min(12, self.runs - self.helped)
        self.waiting = min(12, self.helped) or self.more_runs


def demo(
    *arguments: str, environment: dict[str, str] | None = None, timeout: int = 300
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        env=clean_environment(environment),
        capture_output=True,
        encoding="utf-8",
        timeout=timeout,
        check=False,
    )


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pgflow_stepq.cli", "demo", *arguments]


def clean_environment(more: dict[str, str] | None = None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in SERVER_VARIABLES}
    return {**kept, "PYTHONPATH": str(TOOLS), **(more or {})}


def table(output: str, heading: str) -> list[dict[str, str]]:
    """Return the rows of the first table under the heading, by column heading."""
    lines = output.split(f"\n{heading}\n", 1)[1].split("\n")
    start = next(at for at, line in enumerate(lines) if len(re.split(r"\s{2,}", line.strip())) > 1)
    columns = re.split(r"\s{2,}", lines[start].strip())
    rows = []
    for line in lines[start + 1 :]:
        cells = re.split(r"\s{2,}", line.strip())
        if len(cells) != len(columns):
            break
        rows.append(dict(zip(columns, cells, strict=True)))
    return rows


def check_report(output: str, expected: Expected) -> None:
    [runs] = table(output, "Runs")
    assert (runs["total"], runs["completed"], runs["failed"], runs["started"]) == (
        f"{expected.runs:,}",
        f"{expected.runs:,}",
        "0",
        "0",
    )

    steps = {row["step"]: row for row in table(output, "Steps")}
    figures = {
        slug: tuple(int(row[key].replace(",", "")) for key in ("completed", "skipped", "failed", "tasks", "retries"))
        for slug, row in steps.items()
    }
    assert figures == {
        "classify": (expected.runs, 0, 0, expected.runs, 0),
        "deliverSlack": (expected.helped, expected.runs - expected.helped, 0, expected.helped, expected.retries),
        "extract": (expected.runs, 0, 0, expected.runs, 0),
        "digest": (expected.runs, 0, 0, expected.sentences, 0),
    }
    assert steps["digest"]["type"] == "map"

    queues = {
        row["queue"]: tuple(int(row[key].replace(",", "")) for key in ("sent", "archived", "left"))
        for row in table(output, "Queues")
    }
    assert queues == {
        "communitythreadsv1__classify": (expected.runs, expected.runs, 0),
        "communitythreadsv1__deliverslack": (expected.helped, expected.helped, 0),
        "communitythreadsv1__extract": (expected.runs, expected.runs, 0),
        "communitythreadsv1__digest": (expected.sentences, expected.sentences, 0),
    }

    assert f"Maps over an empty array, completed without a task: {expected.empty:,}\n" in output
    for route, count in expected.routes.items():
        assert re.search(rf"routes .*\b{route} {count:,}\b", output)
    assert f"{expected.helped:,} deliveries accepted; {expected.retries:,} of them refused once with 503" in output
    assert re.search(r"```mermaid\n(flowchart|graph) .*communitythreadsv1__digest.*\n```", output, re.DOTALL)
    assert f"was stopped, and {expected.more_runs:,} more runs were started" in output
    assert "FAIL" not in output
    assert f"ok    {expected.runs + expected.more_runs:,} runs in the database" in output
    too_wide = [line for line in output.split("\n") if display_width(line) > WIDTH and "-->" not in line]
    assert not too_wide
    assert "\x1b" not in output


def check_isolation(output: str, held: str, waiting: int) -> None:
    coverage = {row["step"]: row for row in table(output, f"Isolation: {held} has no worker for a while")}
    assert coverage[held]["live workers"] == "0"
    assert coverage[held]["waiting"] == f"{waiting:,}"
    assert coverage[held]["covered"] == "NO"
    said = output.split("pgflow.coverage_gaps('communityThreadsV1') says:\n", 1)[1].split("\n\n", 1)[0]
    assert said.startswith(f"  {held}  {waiting:,} messages wait and no live worker serves this queue")
    assert re.findall(r"(?m)^  (\w+)  ", said) == [held]
    for step, row in coverage.items():
        if step != held:
            assert (row["live workers"], row["waiting"], row["covered"]) == ("1", "0", "yes"), step


def test_the_demo_over_the_bundled_posts_prints_what_the_handlers_say() -> None:
    expected = Expected(read_threads(BUNDLED))
    result = demo()
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stderr == ""
    assert expected.retries > 0, "no delivery of the bundled posts shows a retry"
    assert expected.empty > 0, "no bundled post shows an empty map"
    check_report(result.stdout, expected)
    check_isolation(result.stdout, "deliverSlack", expected.waiting)
    assert table(result.stdout, "Skips") == [
        {"step": "deliverSlack", "reason": "condition_unmet", "runs": str(expected.runs - expected.helped)}
    ]


def test_the_demo_over_a_file_of_ones_own_uses_the_server_that_the_environment_names(
    databases: Databases, server_environment: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "own.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"id": "1", "title": "How do I begin?", "body": "Please help me. It fails."}\r\n\r\n'
        + json.dumps({"id": "2", "title": "'; drop table x; --", "body": "", "author": None}).encode()
        + b"\r\n"
        + json.dumps({"id": "3", "title": "Hi", "body": "One. Two. Three!", "author": "me", "more": [1, "\0"]}).encode()
    )
    before = database_names(databases)
    expected = Expected(read_threads(path))
    result = demo("--input", str(path), environment=server_environment)
    assert result.returncode == 0, result.stdout + result.stderr
    assert (expected.runs, expected.helped, expected.sentences, expected.empty) == (3, 1, 5, 1)
    check_report(result.stdout, expected)
    assert "3 threads from own.jsonl" in result.stdout
    assert database_names(databases) == before


def test_a_file_without_anything_to_deliver_holds_another_step_back(
    server_environment: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text('{"id": "1", "title": "Good morning", "body": "Nice day."}\n', encoding="utf-8")
    result = demo("--input", str(path), environment=server_environment)
    assert result.returncode == 0, result.stdout + result.stderr
    check_report(result.stdout, Expected(read_threads(path)))
    check_isolation(result.stdout, "classify", 1)


def test_a_long_file_is_started_in_batches(server_environment: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number in range(601):
            title = "How do I begin?" if number % 40 == 0 else "Good morning"
            file.write(json.dumps({"id": str(number), "title": title, "body": "Hello." * (number % 3 == 0)}) + "\n")
    result = demo("--input", str(path), environment=server_environment)
    assert result.returncode == 0, result.stdout + result.stderr
    check_report(result.stdout, Expected(read_threads(path)))


GOOD = b'{"id": "a", "title": "t", "body": "b"}\n'
BAD_INPUT = {
    "malformed JSON": (GOOD + b'{"id": "b", "title": \n', 2, "not valid JSON"),
    "an object over two lines": (b'{"id": "b",\n"title": "t", "body": "b"}\n', 1, "one line"),
    "a literal that JSON lacks": (GOOD + b'{"id": "b", "title": "t", "body": NaN}\n', 2, '"body" must be a string'),
    "two values": (GOOD + GOOD.strip() + b" " + GOOD, 2, "not valid JSON"),
    "an array": (b'\n["id", "title", "body"]\n', 2, "expected an object, found an array"),
    "a number": (b"17\n", 1, "expected an object, found a number"),
    "a string": (GOOD + b'"id"\n', 2, "expected an object, found a string"),
    "null": (b"null\n", 1, "expected an object, found null"),
    "a missing key": (GOOD + b'{"id": "b", "title": "t"}\n', 2, 'missing "body"'),
    "two missing keys": (b'{"id": "b"}\n', 1, 'missing "title", "body"'),
    "a number for an id": (b'{"id": 7, "title": "t", "body": "b"}\n', 1, '"id" must be a string, found a number'),
    "a blank id": (b'{"id": " ", "title": "t", "body": "b"}\n', 1, '"id" is blank'),
    "null for a body": (b'{"id": "b", "title": "t", "body": null}\n', 1, '"body" must be a string, found null'),
    "an array for a title": (
        b'{"id": "b", "title": ["t"], "body": ""}\n',
        1,
        '"title" must be a string, found an array',
    ),
    "a boolean for an author": (
        b'{"id": "b", "title": "t", "body": "", "author": true}\n',
        1,
        '"author" must be a string, found a boolean',
    ),
    "a NUL character": (b'{"id": "b", "title": "t", "body": "x\\u0000y"}\n', 1, '"body" holds a NUL character'),
    "half a surrogate pair": (b'{"id": "b", "title": "\\ud83d", "body": ""}\n', 1, '"title" holds half of a surrogate'),
    "a text without end": (
        b'{"id": "b", "title": "t", "body": "' + b"x" * 1_000_001 + b'"}\n',
        1,
        '"body" is 1,000,001 characters long; at most 1,000,000 are taken',
    ),
    "a repeated id": (GOOD + b"\n" + GOOD, 3, 'the id "a" was used on line 1 already'),
    "bytes that are not UTF-8": (
        GOOD + b'{"id": "b", "title": "caf\xe9", "body": ""}\n',
        2,
        "byte 26 of the line (0xe9)",
    ),
    "UTF-16": ('{"id": "b"}\n'.encode("utf-16"), 1, "is not UTF-8"),
    "nesting without end": (b"[" * 100_000 + b"\n", 1, "nested too deeply"),
    "a number without end": (b"9" * 5_000 + b"\n", 1, "a number is too long"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_gives_one_error_that_names_file_and_line(case: str, tmp_path: Path) -> None:
    content, line, problem = BAD_INPUT[case]
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError) as refused:
        read_threads(path)
    first, *remedy = str(refused.value).split("\n")
    assert first.startswith(f"{path}, line {line}: ")
    assert problem in str(refused.value)
    assert len(remedy) == 1
    assert remedy[0]


EMPTY_INPUT = {"an empty file": b"", "a byte order mark alone": b"\xef\xbb\xbf", "only blank lines": b"\n \n\r\n\t\n"}


@pytest.mark.parametrize("case", EMPTY_INPUT)
def test_a_file_without_a_thread_is_refused(case: str, tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_bytes(EMPTY_INPUT[case])
    with pytest.raises(InputError, match="holds no thread") as refused:
        read_threads(path)
    assert str(refused.value).startswith(f"{path}: ")


def refusals(directory: Path) -> Iterator[tuple[Path, str]]:
    """Yield files that can't be run, and a part of the error."""
    malformed = directory / "malformed.jsonl"
    malformed.write_bytes(GOOD + b"{\n")
    yield malformed, "malformed.jsonl, line 2: not valid JSON"
    empty = directory / "empty.jsonl"
    empty.touch()
    yield empty, "empty.jsonl: the file holds no thread"
    yield directory / "missing.jsonl", "missing.jsonl: can't read the file: No such file or directory"
    yield directory, "can't read the file: Is a directory"


def test_the_command_refuses_bad_input_with_status_2_before_a_server_starts(tmp_path: Path) -> None:
    # With these programs a server can't start: trying to would be another error.
    broken = {"PG_BINDIR": str(tmp_path / "no-programs")}
    for path, problem in refusals(tmp_path):
        result = demo("--input", str(path), environment=broken)
        assert result.returncode == 2, result.stderr
        assert result.stdout == ""
        assert problem in result.stderr
        assert "Traceback" not in result.stderr
    good = tmp_path / "good.jsonl"
    good.write_bytes(GOOD)
    result = demo("--input", str(good), environment=broken)
    assert result.returncode == 1
    assert "no-programs" in result.stderr


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_workers_and_server(number: int, status: int) -> None:
    mark = f"DEMO_TEST_MARK={uuid.uuid4()}"
    process = subprocess.Popen(
        command(),
        env=clean_environment(dict([mark.split("=")])),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line == "Running\n":
            break
    assert len(processes_with(mark)) > 5, "the demo, four workers and a server"
    os.killpg(process.pid, number)  # as a terminal does it: the whole group gets it
    said, complaint = process.communicate(timeout=60)
    assert process.returncode == status
    assert said.endswith("Stopped: the workers and the database are gone.\n")
    assert complaint == ""
    assert processes_with(mark) == []


def test_a_reader_who_goes_away_ends_the_demo_quietly(server_environment: dict[str, str]) -> None:
    process = subprocess.Popen(
        command(),
        env=clean_environment(server_environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    complaint = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 1
    assert complaint == ""


def processes_with(mark: str) -> list[int]:
    """Return the processes whose environment holds the mark."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:  # it ended meanwhile, or belongs to someone else
            continue
    return found


@pytest.fixture
def server_environment(databases: Databases) -> dict[str, str]:
    """The session's server, as the variables of libpq name it."""
    with psycopg.connect(databases.server.conninfo()) as connection:
        info = connection.info
        named = {"PGHOST": info.host, "PGPORT": str(info.port), "PGUSER": info.user, "PGDATABASE": info.dbname}
        return {**named, "PGPASSWORD": info.password} if info.password else named


@pytest.fixture
def in_process(server_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """The demo over two posts in this process, against the session's server."""
    for name, value in server_environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", str(TOOLS))
    posts = [post for post in read_threads(BUNDLED) if post.id in ("en-001", "en-040")]
    return lambda: walkthrough.walk_through(posts, BUNDLED)


def database_names(databases: Databases) -> set[str]:
    with psycopg.connect(databases.server.conninfo()) as connection:
        return {name for (name,) in connection.execute("select datname from pg_database")}


def test_a_worker_that_dies_ends_the_demo_with_its_log(
    in_process: Callable[[], int], databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = database_names(databases)
    broken = replace(walkthrough.WORKERS[2], handler="pgflow_stepq.demo.handlers:no_such_handler")
    monkeypatch.setattr(walkthrough, "WORKERS", (*walkthrough.WORKERS[:2], broken, *walkthrough.WORKERS[3:]))
    with pytest.raises(WorkerDiedError, match=r'(?s)step "extract" ended with status 2.*no_such_handler'):
        in_process()
    assert database_names(databases) == before


def test_a_delivery_that_got_lost_fails_the_check(
    in_process: Callable[[], int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class LosingSink(SlackSink):
        @property
        def accepted(self) -> list[SlackMessage]:
            return super().accepted[:-1]

    monkeypatch.setattr(walkthrough, "SlackSink", LosingSink)
    assert in_process() == 1
    said = capsys.readouterr()
    assert "FAIL  the sink accepted 1 deliveries, deliverSlack completed 2 tasks" in said.out
    assert "1 of the demo's" in said.err


def test_the_bundled_posts_go_where_a_reader_would_put_them() -> None:
    posts = read_threads(BUNDLED)
    wanted = {thread_id: route for route, ids in ROUTES.items() for thread_id in ids.split()}
    found = {post.id: classify_text(post.title, post.body).route for post in posts}
    assert found == wanted


def test_the_bundled_posts_are_many_varied_and_awkward() -> None:
    posts = read_threads(BUNDLED)
    languages = {classify_text(post.title, post.body).language for post in posts}
    bodies = [post.body for post in posts]
    everything = "".join(post.title + post.body for post in posts)
    assert len(posts) >= 40
    assert languages >= {"en", "de", "fr", "es", "pt", "pl", "it", "tr", "ru", "ja", "zh", "ko", "ar", "he", "hi"}
    assert "" in bodies
    assert any(body and not body.strip() for body in bodies)
    assert max(map(len, bodies)) > 4_000
    assert any(ord(char) > 0xFFFF for char in everything)
    for piece in ('"', "'", "\\", "<script>", "DROP TABLE", "```", "\u202b", "\u200d", "\x1b"):
        assert piece in everything, piece


@pytest.mark.parametrize(
    ("body", "sentences"),
    [
        ("", []),
        (" \t\u3000\n", []),
        ("?! 🎉", []),
        ("One. Two!  Three?", ["One.", "Two!", "Three?"]),
        ("Version 3.0 of example.org is here", ["Version 3.0 of example.org is here"]),
        ("一。二！三", ["一。", "二！", "三"]),
        ("पहला। दूसरा।", ["पहला।", "दूसरा।"]),
        ("أولا؟ ثانيا.", ["أولا؟", "ثانيا."]),
        ("Before.\n```\nselect 1; -- Not. A. Sentence.\n```\nAfter.", ["Before.", "After."]),
        ("<p>Hello <b>you</b></p>", ["Hello you"]),
        ("a < b and c > d", ["a < b and c > d"]),
        ("Bell\x07 and \x1b[31mred", ["Bell and [31mred"]),
        ("See https://example.org/a.b?c=d for more", ["See for more"]),
    ],
)
def test_a_body_is_cut_into_sentences(body: str, sentences: list[str]) -> None:
    assert text.sentences(body) == sentences


def test_a_digest_is_bounded_however_long_the_body_is() -> None:
    found = text.sentences("word " * 1_000 + ". " + "Short one. " * 1_000)
    assert len(found) == text.MAX_SENTENCES
    assert max(map(len, found)) == text.MAX_SENTENCE_CHARS
    assert text.sentences("." * text.MAX_READ_CHARS + "Unread.") == []
    assert classify_text("", "." * text.MAX_READ_CHARS + "Error: how do I? Please help me!").route == "chat"


def test_a_handler_gives_the_same_answer_every_time() -> None:
    for post in read_threads(BUNDLED):
        once, again = (handlers.classify(None, context_of(post)) for _ in range(2))
        assert once == again
        assert json.loads(json.dumps(once)) == once
        for sentence in handlers.extract(None, context_of(post)):
            assert set(handlers.digest(sentence)) == {"text", "language", "words", "question"}


@pytest.mark.parametrize(
    ("sentence", "language", "words", "question"),
    [
        ("Is it the one that you have?", "en", 7, True),
        ("你好，世界。", "zh", 4, False),
        ('She said "why?"', "und", 3, True),
        ("12 34", "und", 2, False),
    ],
)
def test_a_sentence_is_digested(sentence: str, language: str, words: int, question: bool) -> None:
    assert handlers.digest(sentence) == {"text": sentence, "language": language, "words": words, "question": question}


def test_a_slack_message_can_not_be_forged_by_a_title() -> None:
    post = Thread("x", "<!channel> & <http://a|b>\n\x1b[31m", "1 < 2", "a\nb")
    sent = handlers.slack_text(handlers.classify(None, context_of(post)))
    assert sent == "[und] &lt;!channel&gt; &amp; &lt;http://a|b&gt; [31m\nby a b\n1 &lt; 2"


def test_the_sink_refuses_a_flaky_thread_once_and_counts_a_delivery_once() -> None:
    flaky = next(f"t{number}" for number in range(100) if is_flaky(f"t{number}"))
    steady = next(f"t{number}" for number in range(100) if not is_flaky(f"t{number}"))
    with SlackSink() as sink:
        assert [post(sink, {"key": "1", "thread_id": flaky, "text": "x"}) for _ in range(3)] == [503, 200, 200]
        assert post(sink, {"key": "2", "thread_id": flaky, "text": "x"}) == 503
        assert [post(sink, {"key": "3", "thread_id": steady, "text": "y"}) for _ in range(2)] == [200, 200]
        assert [post(sink, bad) for bad in ([], {}, {"key": "4"}, "text", None)] == [400] * 5
        assert [message.key for message in sink.accepted] == ["1", "3"]
        assert [message.key for message in sink.refused] == ["1", "2"]


def post(sink: SlackSink, message: Any) -> int:
    target = urlsplit(sink.url)
    connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=10)
    try:
        connection.request("POST", target.path, body=json.dumps(message))
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_delivery_that_is_refused_raises_and_is_accepted_at_the_next_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    flaky = next(f"t{number}" for number in range(100) if is_flaky(f"t{number}"))
    context = context_of(Thread(flaky, "How do I?", "Please help me."))
    step_input = {"classify": handlers.classify(None, context)}
    with SlackSink() as sink:
        monkeypatch.setenv(handlers.SINK_URL_VARIABLE, sink.url)
        with pytest.raises(handlers.DeliveryError, match="503"):
            handlers.deliver_slack(step_input, context)
        assert handlers.deliver_slack(step_input, replace(context, attempt=2)) == {"delivered": flaky, "attempt": 2}
        assert [message.thread_id for message in sink.accepted] == [flaky]


def test_runs_are_started_in_batches_by_number_and_by_size() -> None:
    assert [len(batch) for batch in batches({"body": ""} for _ in range(1_001))] == [500, 500, 1]
    big = {"body": "x" * 3_000_000}
    assert [len(batch) for batch in batches([big, big, {"body": "y"}])] == [1, 2]
    assert [len(batch) for batch in batches([{"body": "x" * 9_000_000}])] == [1]
    assert list(batches([])) == []


@pytest.mark.parametrize(
    ("shown", "columns"),
    [("abc", 3), ("日本", 4), ("e\u0301", 1), ("👍", 2), ("👩\u200d👩", 4), ("", 0)],
)
def test_the_width_of_a_text_on_a_terminal(shown: str, columns: int) -> None:
    assert display_width(shown) == columns


def test_a_wide_text_is_cut_to_fit() -> None:
    assert fit("日本語", 6) == "日本語"
    assert fit("日本語", 5) == "日本…"
    assert fit("abcdef", 4) == "abc…"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_and_the_updating_line_are_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for stream, is_terminal in ((io.StringIO(), False), (Terminal(), True)):
        console = Console(stream)
        console.status("one")
        console.status("two")
        console.heading("Done")
        assert ("\x1b[" in stream.getvalue()) is is_terminal
        assert stream.getvalue().count("\r") == (3 if is_terminal else 0)

    monkeypatch.setenv("COLUMNS", "20")
    stream = Terminal()
    Console(stream).status("x" * 50)
    assert re.sub(r"\x1b\[\d*\w|\r", "", stream.getvalue()) == "  " + "x" * 16 + "…"

    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    Console(stream).heading("Done")
    assert stream.getvalue() == "\nDone\n"


def test_a_table_aligns_wide_letters_and_numbers() -> None:
    stream = io.StringIO()
    Console(stream).table(("name", "count"), [("日本", 5), ("abcd", 1_234), ("x", 12)])
    assert stream.getvalue() == "  name  count\n  日本      5\n  abcd  1,234\n  x        12\n"
