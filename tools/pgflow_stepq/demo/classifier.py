"""Decide where a thread belongs: a small scorer over keywords and patterns, the same answer every time."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pgflow_stepq.demo import language
from pgflow_stepq.demo.rules import (
    DEFAULT_ROUTE,
    KEYWORDS,
    PATTERNS,
    QUESTION_MARKS,
    ROUTES,
    THRESHOLD,
)
from pgflow_stepq.demo.text import MAX_READ_CHARS, fold, has_code_block, link_count, prose

# More links than this in one post is how advertisements look.
_MANY_LINKS = 3


@dataclass(frozen=True)
class Verdict:
    """A route, how many points spoke for it, the language, and the reasons in words."""

    route: str
    score: int
    language: str
    reasons: tuple[str, ...]


def _keyword_regex(keyword: str) -> re.Pattern[str]:
    folded = re.escape(fold(keyword))
    # Scripts that don't put spaces between words, or glue particles to them, have no word borders to ask for.
    spaced = fold(keyword)[0] < "\u0590"
    return re.compile(rf"(?<!\w){folded}(?!\w)" if spaced else folded)


_KEYWORD_REGEX = [
    (route, keyword, _keyword_regex(keyword))
    for route, languages in KEYWORDS.items()
    for keyword in dict.fromkeys(word for words in languages.values() for word in words)
]


def classify_text(title: str, body: str) -> Verdict:
    """Return the verdict on one thread.

    Every keyword found counts one point in the body and two in the title; patterns and question marks
    count what their rule says. The highest score wins if it reaches the threshold, else the thread is
    chat. Nothing but the title and the first MAX_READ_CHARS of the body goes into the answer.
    """
    body = body[:MAX_READ_CHARS]
    signs: list[tuple[str, int, str]] = []
    said_title, said_body = prose(title), prose(body)
    folded_title, folded_body = fold(said_title), fold(said_body)

    for route, keyword, regex in _KEYWORD_REGEX:
        if regex.search(folded_title):
            signs.append((route, 2, f'"{keyword}" in the title'))
        elif regex.search(folded_body):
            signs.append((route, 1, f'"{keyword}"'))

    scopes = {"raw": f"{title}\n{body}", "prose": f"{said_title}\n{said_body}", "title": title}
    signs += [
        (pattern.route, pattern.weight, pattern.reason)
        for pattern in PATTERNS
        if pattern.regex.search(scopes[pattern.scope])
    ]

    if any(mark in said_title for mark in QUESTION_MARKS):
        signs.append(("help", 1, "question in the title"))
    if any(mark in said_body for mark in QUESTION_MARKS):
        signs.append(("help", 1, "question"))
    if has_code_block(body):
        signs.append(("help", 1, "code block"))
    if link_count(body) >= _MANY_LINKS:
        signs.append(("spam", 2, f"{_MANY_LINKS} links or more"))

    score = {route: sum(weight for of, weight, _ in signs if of == route) for route in ROUTES}
    # max() keeps the first of equals, and ROUTES is in order of precedence.
    best = max(ROUTES, key=lambda route: score[route])
    spoken = language.detect(f"{said_title}\n{said_body}")
    if score[best] < THRESHOLD:
        reason = "no clear sign of another route" if said_body.strip() else "nothing to read"
        return Verdict(DEFAULT_ROUTE, score[best], spoken, (reason,))
    return Verdict(best, score[best], spoken, tuple(reason for of, _, reason in signs if of == best))
