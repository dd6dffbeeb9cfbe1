# ruff: noqa: RUF001 -- letters and marks of many languages are meant as they stand
"""Guess the language of a short text from its script and its most frequent small words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from pgflow_stepq.demo.text import fold

UNKNOWN = "und"  # the ISO 639 code for "undetermined"

_SCRIPT_LANGUAGE = {
    "HANGUL": "ko",
    "ARABIC": "ar",
    "HEBREW": "he",
    "DEVANAGARI": "hi",
    "CYRILLIC": "ru",
}
_SMALL_WORDS = {
    "en": "the and is to of in it that for with was are this my how what do you not on we from who here",
    "de": "der die das und ist nicht ich wir ein eine mit auf für von den heute bitte es zu im wie aus dem mein",
    "fr": "le la les et est un une des pour dans que je nous vous chez avec du ce mon comment faut",
    "es": "el la los las es un una de que por para con mi no qué en del se sin tengo está",
    "pt": "os as um uma de que para com meu não em do da ao quando estou fiz",
    "pl": "na nie się jest do jak dla że czy o tylko tu jestem po który",
    "it": "il lo la gli un una di che per con non come posso senza della tutti mio",
    "tr": "ve bir bu için ile çok ne da de mi nasıl ben bunu olarak iş göre",
}
_VOCABULARY = {language: frozenset(fold(word) for word in words.split()) for language, words in _SMALL_WORDS.items()}
# A single letter is a word in many languages, and a fragment in all of them.
_WORD = re.compile(r"[^\W\d_]{2,}")
# The whole of a long post says nothing about its language that its beginning doesn't.
_SAMPLE_CHARS = 2000
# One sign alone can be chance: "no" and "de" are words of several languages.
_MIN_HITS = 2


def _dominant_script(text: str) -> str | None:
    scripts: Counter[str] = Counter()
    for char in text:
        if char.isalpha():
            scripts[unicodedata.name(char, "?").split(" ")[0].removesuffix("-")] += 1
    # Japanese mixes kana with Han characters; Chinese has no kana, but for one in a quoted name.
    if scripts["HIRAGANA"] + scripts["KATAKANA"] >= _MIN_HITS:
        return "KANA"
    if not scripts:
        return None
    # Ties go to the alphabetically first name, so that the answer never depends on the order of letters.
    return min(scripts, key=lambda name: (-scripts[name], name))


def detect(text: str) -> str:
    """Return the ISO 639-1 code of the text's language, or UNKNOWN when nothing tells it."""
    sample = text[:_SAMPLE_CHARS]
    script = _dominant_script(sample)
    if script == "KANA":
        return "ja"
    if script == "CJK":
        return "zh"
    if script in _SCRIPT_LANGUAGE:
        return _SCRIPT_LANGUAGE[script]
    if script != "LATIN":
        return UNKNOWN
    words = _WORD.findall(fold(sample))
    hits = {language: sum(word in vocabulary for word in words) for language, vocabulary in _VOCABULARY.items()}
    best = max(hits, key=lambda language: hits[language])
    return best if hits[best] >= _MIN_HITS else UNKNOWN
