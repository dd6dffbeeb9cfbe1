"""A local HTTP server that stands for Slack's incoming webhook, and remembers what it got."""

from __future__ import annotations

import json
import threading
import zlib
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self

# One thread in so many is refused once, so that a retry can be watched.
_FLAKY_ONE_IN: Final = 4
_MAX_MESSAGE_BYTES: Final = 1_000_000


def is_flaky(thread_id: str) -> bool:
    """Tell whether the sink refuses the first delivery of this thread: the same answer on every run."""
    return zlib.crc32(thread_id.encode("utf-8")) % _FLAKY_ONE_IN == 0


@dataclass(frozen=True)
class SlackMessage:
    """What one request carried: the key of the delivery, the thread's id, and the text to show."""

    key: str
    thread_id: str
    text: str


class SlackSink:
    """Context manager: serves on 127.0.0.1 at a free port until it is left.

    A message is {"key", "thread_id", "text"}. Its answer is 200 with {"ok": true}, 400 for a message that
    can't be read, or 503 for the first try of a delivery (by `key`) whose thread is_flaky(). A delivery
    that comes twice is answered the same and recorded once: workers may repeat a request whose answer
    they lost.
    """

    def __init__(self) -> None:
        """Take a free port; requests are answered once the context is entered."""
        self._lock = threading.Lock()
        self._accepted: dict[str, SlackMessage] = {}
        self._refused: dict[str, SlackMessage] = {}
        sink = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # A stuck client must not keep the sink from closing.
            timeout = 10

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                if length > _MAX_MESSAGE_BYTES:
                    self.close_connection = True
                    self._answer(413, {"ok": False, "error": "message_too_large"})
                    return
                status, answer = sink.receive(self.rfile.read(length))
                self._answer(status, answer)

            def _answer(self, status: int, answer: dict[str, object]) -> None:
                body = json.dumps(answer).encode("utf-8")
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the base class names it so)
                """Say nothing: the demo's report tells what the sink received."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """The address that deliveries go to."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/services/demo"

    @property
    def accepted(self) -> list[SlackMessage]:
        """The deliveries that were accepted, in order of arrival."""
        with self._lock:
            return list(self._accepted.values())

    @property
    def refused(self) -> list[SlackMessage]:
        """The deliveries that were answered 503 once, in order of arrival."""
        with self._lock:
            return list(self._refused.values())

    def receive(self, body: bytes) -> tuple[int, dict[str, object]]:
        """Take one request's body; return (HTTP status, answer)."""
        try:
            value = json.loads(body)
            message = SlackMessage(str(value["key"]), str(value["thread_id"]), str(value["text"]))
        except (ValueError, KeyError, TypeError):
            return 400, {"ok": False, "error": "invalid_payload"}
        with self._lock:
            if is_flaky(message.thread_id) and message.key not in self._refused:
                self._refused[message.key] = message
                return 503, {"ok": False, "error": "service_unavailable"}
            self._accepted.setdefault(message.key, message)
        return 200, {"ok": True}

    def __enter__(self) -> Self:
        """Begin to answer."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop to answer, and give the port back."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
