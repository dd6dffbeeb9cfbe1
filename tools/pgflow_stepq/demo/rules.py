# ruff: noqa: RUF001 -- letters and marks of many languages are meant as they stand
"""The words and patterns by which a thread finds its route, by route and language."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

# In this order a tie is decided: what must not be missed first.
ROUTES: Final = ("spam", "jobs", "announcement", "help", "showcase", "chat")
DEFAULT_ROUTE: Final = "chat"
# Below this nothing is certain enough to bother people outside the forum.
THRESHOLD: Final = 2

KEYWORDS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "help": {
        "en": (
            "how do i",
            "how can i",
            "what should i",
            "what is wrong",
            "why does",
            "fails",
            "failed",
            "error",
            "please help",
            "help me",
        ),
        "de": ("fehler", "fehlermeldung", "schlägt fehl", "bricht", "woran", "hilfe", "wie kann ich"),
        "fr": ("comment faut-il", "comment importer", "erreur", "échoue", "à l'aide"),
        "es": ("por qué", "qué estoy haciendo mal", "cómo puedo", "error", "ayuda"),
        "pt": ("erro", "como faço", "alguém pode ajudar", "ajuda"),
        "pl": ("jak ustawić", "jak zmienić", "błąd", "pomoc", "za pomoc"),
        "it": ("come posso", "errore", "aiuto"),
        "tr": ("hata", "nasıl", "yardım"),
        "ru": ("не запускается", "ошибка", "помогите", "что можно сделать"),
        "ja": ("どうすれば", "教えてください", "エラー", "見つかりません"),
        "zh": ("怎么办", "请问", "报错", "变慢"),
        "ko": ("어떻게", "도와주세요", "오류", "이유가 무엇"),
        "ar": ("كيف", "المساعدة", "خطأ"),
        "he": ("איך", "עזרה", "שגיאה"),
        "hi": ("कैसे", "मदद", "त्रुटि"),
    },
    "showcase": {
        "en": ("i built", "i made", "show:", "source code", "demo video", "feedback welcome"),
        "de": ("mein projekt", "gebaut", "feedback"),
        "fr": ("j'ai créé", "mon projet", "code source"),
        "es": ("mi proyecto", "he creado", "código fuente"),
        "pt": ("meu projeto", "fiz um", "código-fonte"),
        "ja": ("作ってみました", "を作りました", "感想"),
        "zh": ("我做了", "作品展示"),
    },
    "jobs": {
        "en": ("hiring", "apply with", "four-day week", "salary", "remote"),
        "de": ("stellenangebot", "wir suchen", "gehalt", "bewerbung", "m/w/d"),
        "fr": ("nous recrutons", "offre d'emploi", "salaire"),
        "es": ("oferta de empleo", "salario", "contratamos"),
        "pl": ("praca", "szukamy", "wynagrodzenie", "umowa o pracę"),
        "tr": ("iş ilanı", "maaş", "başvuru", "arıyoruz"),
        "zh": ("招聘", "薪资", "简历"),
    },
    "announcement": {
        "en": ("release", "is out", "changelog", "scheduled maintenance", "read-only mode", "no action is needed"),
        "de": ("ankündigung", "anmeldung", "findet am", "ab sofort"),
        "fr": ("nouvelle version", "disponible", "dès aujourd'hui"),
        "es": ("nueva versión", "ya disponible"),
        "hi": ("सूचना", "रखरखाव"),
        "ar": ("إعلان", "الإصدار"),
        "zh": ("公告", "新版本发布"),
    },
    "spam": {
        "en": ("click here", "act now", "limited offer", "no risk", "100% free", "per week from home"),
        "es": ("gana dinero", "haz clic aquí", "oferta limitada"),
        "zh": ("点击这里", "免费领取", "限时优惠"),
    },
}


@dataclass(frozen=True)
class Pattern:
    """A sign that is no keyword: where it is searched ("raw" with code and tags, or "prose")."""

    route: str
    weight: int
    reason: str
    scope: str
    regex: re.Pattern[str]


PATTERNS: Final = (
    Pattern("help", 2, "stack trace", "raw", re.compile(r"Traceback \(most recent call last\)")),
    Pattern("help", 2, "error class", "raw", re.compile(r"\b[A-Z][A-Za-z]{2,40}(?:Error|Exception)\b")),
    Pattern("help", 2, "server message", "raw", re.compile(r"\b(?:ERROR|FATAL|PANIC): ")),
    Pattern("help", 1, "HTTP 5xx", "prose", re.compile(r"\b50[0-4]\b")),
    Pattern("jobs", 1, "salary range", "prose", re.compile(r"\b\d{2,3}[-–]\d{2,3}k\b")),
    Pattern("announcement", 1, "version number", "prose", re.compile(r"\b\d+\.\d+(?:\.\d+)?\b")),
    Pattern("spam", 1, "sum of money in the title", "title", re.compile(r"[$€]\d{3,}")),
)

QUESTION_MARKS: Final = "?？؟"
