# ruff: noqa: RUF001 -- letters and marks of many languages are meant as they stand
"""The handlers of communityThreadsV1, one a step: what the worker processes run."""

from __future__ import annotations

import http.client
import json
import os
from typing import Any, Final
from urllib.parse import urlsplit

from pgflow_stepq.demo.classifier import classify_text
from pgflow_stepq.demo.language import detect
from pgflow_stepq.demo.text import MAX_READ_CHARS, clip, sentences, visible
from pgflow_stepq.worker.handlers import TaskContext

SINK_URL_VARIABLE: Final = "PGFLOW_DEMO_SINK_URL"
_SINK_TIMEOUT_SECONDS: Final = 10
_TITLE_CHARS: Final = 150
_EXCERPT_CHARS: Final = 300


class DeliveryError(Exception):
    """The sink did not take the message; the task will be tried again."""


def classify(_: Any, context: TaskContext) -> dict[str, Any]:
    """Return {"route", "score", "language", "reasons", "thread"} for the run's thread.

    `thread` is what later steps need of it: {"id", "title", "author", "excerpt"}, each fit for one line.
    """
    thread = context.flow_input
    verdict = classify_text(thread["title"], thread["body"])
    return {
        "route": verdict.route,
        "score": verdict.score,
        "language": verdict.language,
        "reasons": list(verdict.reasons),
        "thread": {
            "id": thread["id"],
            "title": clip(visible(thread["title"]), _TITLE_CHARS),
            "author": thread.get("author"),
            "excerpt": clip(visible(thread["body"][:MAX_READ_CHARS]), _EXCERPT_CHARS),
        },
    }


def deliver_slack(step_input: dict[str, Any], context: TaskContext) -> dict[str, Any]:
    """Post the thread to the sink; return {"delivered": thread id, "attempt": n}.

    The run's id is the key of the delivery: whoever gets it twice, since a worker died before it could
    say that it was done, can tell. Raises DeliveryError when the sink answers with anything but 200, and
    OSError when it can't be reached.
    """
    verdict = step_input["classify"]
    thread = verdict["thread"]
    message = {"key": str(context.run_id), "thread_id": thread["id"], "text": slack_text(verdict)}
    status, answer = _post(os.environ[SINK_URL_VARIABLE], message)
    if status != http.client.OK:
        raise DeliveryError(f"the sink answered {status}: {clip(answer, 200)}")
    return {"delivered": thread["id"], "attempt": context.attempt}


def extract(_: Any, context: TaskContext) -> list[str]:
    """Return the sentences of the thread's body; none for a body without words."""
    return sentences(context.flow_input["body"])


def digest(sentence: str) -> dict[str, Any]:
    """Return {"text", "language", "words", "question"} for one sentence of a body.

    A word is what white space separates: one long word in Chinese or Japanese, which is why the number
    of letters counts there.
    """
    language = detect(sentence)
    unspaced = language in ("zh", "ja")
    words = sum(map(str.isalpha, sentence)) if unspaced else len(sentence.split())
    return {
        "text": clip(sentence, 120),
        "language": language,
        "words": words,
        "question": sentence.rstrip("\"'»”’)] ").endswith(("?", "？", "؟")),
    }


def slack_text(verdict: dict[str, Any]) -> str:
    """Return the message for the channel, with Slack's three control characters escaped."""
    thread = verdict["thread"]
    author = visible(thread["author"]) if thread["author"] else "someone"
    lines = (f"[{verdict['language']}] {thread['title']}", f"by {author}", thread["excerpt"])
    text = "\n".join(line for line in lines if line)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _post(url: str, message: dict[str, str]) -> tuple[int, str]:
    """Send the message as JSON; return (HTTP status, body of the answer)."""
    target = urlsplit(url)
    # Not urllib.request: it would send a request for 127.0.0.1 through a proxy that the environment names.
    connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=_SINK_TIMEOUT_SECONDS)
    try:
        connection.request(
            "POST",
            target.path,
            body=json.dumps(message).encode("utf-8"),
            headers={"Content-Type": "application/json"},
        )
        response = connection.getresponse()
        return response.status, response.read().decode("utf-8", "replace")
    finally:
        connection.close()
