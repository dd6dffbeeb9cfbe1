# ruff: noqa: RUF001 -- letters and marks of many languages are meant as they stand
"""Plain text work that the handlers share: folding, visible text, and cutting a body into sentences."""

from __future__ import annotations

import re
import unicodedata

# A digest of a very long post is not made better by its hundredth sentence.
MAX_SENTENCES = 100
MAX_SENTENCE_CHARS = 280
# Handlers read so much of a body and no more, so that the time they take has a limit too.
MAX_READ_CHARS = 50_000

_CODE_BLOCK = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_TAG = re.compile(r"<[/!]?[A-Za-z-][^<>]*>")
_LINK = re.compile(r"https?://\S+")
# Chinese and Japanese sentences end without a space after the mark; the others need one, else
# "3.0" and "example.org" would be cut in two.
_SENTENCE_END = re.compile(r"(?<=[。！？])|(?<=[.!?…؟।])(?=[\s\"'»”“’)\]])|\n+")


def fold(text: str) -> str:
    """Return the text in the form in which keywords are compared.

    Compatibility forms become plain ones and case is folded. Turkish dotted capital I folds to "i"
    and a combining dot; the dot is dropped, and a dotless i counts as "i", so that Turkish capitals and
    small letters meet.
    """
    return unicodedata.normalize("NFKC", text).casefold().replace("i\u0307", "i").replace("ı", "i")


def prose(text: str) -> str:
    """Return the text without code blocks, HTML tags and links: what its author says in words."""
    for pattern in (_CODE_BLOCK, _TAG, _LINK):
        text = pattern.sub(" ", text)
    return text


def has_code_block(text: str) -> bool:
    """Tell whether the text holds a fenced code block."""
    return _CODE_BLOCK.search(text) is not None


def link_count(text: str) -> int:
    """Return the number of web links in the text."""
    return len(_LINK.findall(text))


def visible(text: str) -> str:
    """Return the text on one line: white space collapsed, control and format characters gone.

    A Slack message, a log line or a table cell must not be changed by what someone typed in a forum.
    Joiners stay: without them a family emoji falls apart into its members.
    """
    joiners = "\u200c\u200d"
    shown = (
        " " if char.isspace() else char
        for char in text
        if char.isspace() or char in joiners or unicodedata.category(char) not in ("Cc", "Cf")
    )
    return " ".join("".join(shown).split())


def clip(text: str, limit: int) -> str:
    """Return at most `limit` characters of the text, with an ellipsis where something was cut off."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def sentences(body: str) -> list[str]:
    """Cut a body into sentences, in order.

    Code blocks, tags and links are left out. The result has at most MAX_SENTENCES elements of at most
    MAX_SENTENCE_CHARS characters each, from the first MAX_READ_CHARS of the body; it is empty for a body
    without any letter or digit.
    """
    found: list[str] = []
    for piece in _SENTENCE_END.split(prose(body[:MAX_READ_CHARS])):
        sentence = visible(piece)
        if any(char.isalnum() for char in sentence):
            found.append(clip(sentence, MAX_SENTENCE_CHARS))
            if len(found) == MAX_SENTENCES:
                break
    return found
