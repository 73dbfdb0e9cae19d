"""Keeps secrets out of everything written: by value in text, by value and by key name in JSON-like values.

Knows nothing of settings or tools; whoever learns a secret adds it. Works on joined text: a stream goes
through `StreamRedactor`, which holds back what may still become a secret.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

MARK = "[redacted]"
SHORTEST = 8
"""Shorter values are never taken for secrets: they would blot out ordinary words."""
_SHORTEST_ENCODED = 16

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_LAST_WORDS = frozenset(
    {
        "password", "passwd", "pwd", "passphrase", "secret", "secrets", "token", "authorization", "apikey",
        "credential", "credentials", "cookie", "bearer",
    }
)  # fmt: skip
_LAST_PAIRS = frozenset(
    {("api", "key"), ("access", "key"), ("secret", "key"), ("private", "key"), ("signing", "key"), ("auth", "key")}
)
_NO_SECRET_TOKENS = frozenset(
    {"max", "min", "prompt", "completion", "page", "next", "stop", "eos", "bos", "pad", "per"}
)


class Redactor:
    """Replaces secrets by a mark. `add` may be called from any thread at any time."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: frozenset[str] = frozenset()
        self._forms: tuple[str, ...] = ()
        self._pattern: re.Pattern[str] | None = None
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str) -> None:
        """Learns a secret with its URL-encoded, JSON-escaped and base64 forms. Under 8 characters: ignored."""
        secret = secret.strip()
        if len(secret) < SHORTEST or secret in self._secrets:
            return
        self._secrets |= {secret}
        forms = {form for known in self._secrets for form in _forms(known)}
        self._forms = tuple(sorted(forms, key=lambda form: (-len(form), form)))
        self._pattern = re.compile("|".join(map(re.escape, self._forms)))

    @property
    def forms(self) -> tuple[str, ...]:
        """Everything that is replaced, longest first."""
        return self._forms

    def text(self, text: str) -> str:
        """The text with every secret replaced."""
        if self._pattern is None or not any(form in text for form in self._forms):
            return text
        return self._pattern.sub(MARK, text)

    def value(self, value: Any) -> Any:
        """A JSON-like value with secrets replaced, also text that stands under a key such as `api_key`."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {
                self.text(key) if isinstance(key, str) else key: self._under(key, item) for key, item in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self.value(item) for item in value]
        return value

    def _under(self, key: object, value: Any) -> Any:
        if not (isinstance(key, str) and is_secret_name(key)):
            return self.value(value)
        if isinstance(value, str):
            return MARK if len(value) >= SHORTEST else value
        if isinstance(value, (list, tuple)):
            return [self._under(key, item) for item in value]
        return self.value(value)

    def search(self, text: str, start: int = 0) -> re.Match[str] | None:
        """The first secret at or after `start`."""
        return self._pattern.search(text, start) if self._pattern else None


class StreamRedactor:
    """Redacts text that comes in pieces: the joined output equals `redactor.text` of the joined input.

    Holds back only what can be the beginning of a secret, so at most as much as the longest one.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""

    def feed(self, piece: str) -> str:
        """Takes a piece, returns what is safe to show now."""
        text = self._held + piece
        out: list[str] = []
        position = 0
        while True:
            match = self._redactor.search(text, position)
            hold = self._first_beginning(text, position)
            if match is None or match.start() >= hold:
                break
            out += (text[position : match.start()], MARK)
            position = match.end()
        out.append(text[position:hold])
        self._held = text[hold:]
        return "".join(out)

    def end(self) -> str:
        """Returns what was held back."""
        rest, self._held = self._redactor.text(self._held), ""
        return rest

    def _first_beginning(self, text: str, start: int) -> int:
        """Where the first tail that is a proper beginning of a secret starts; the text's end when none is."""
        forms = self._redactor.forms
        if not forms:
            return len(text)
        for position in range(max(start, len(text) - len(forms[0]) + 1), len(text)):
            tail = text[position:]
            if any(form.startswith(tail) and len(form) > len(tail) for form in forms):
                return position
        return len(text)


def is_secret_name(name: str) -> bool:
    """Whether a key of this name holds a secret: `api_key`, `X-Api-Key`, `clientSecret`; not `max_tokens`."""
    words = [word.lower() for word in _WORDS.findall(name)]
    if not words:
        return False
    if words[-1] == "token" and len(words) > 1 and words[-2] in _NO_SECRET_TOKENS:
        return False
    return words[-1] in _LAST_WORDS or tuple(words[-2:]) in _LAST_PAIRS


def _forms(secret: str) -> set[str]:
    forms = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    raw = secret.encode("utf-8", "surrogatepass")
    forms |= {quote(raw), quote(raw, safe=""), quote_plus(raw)}
    for encoded in (base64.b64encode(raw).decode("ascii"), *_base64_cores(raw)):
        if len(encoded) >= _SHORTEST_ENCODED:
            forms |= {encoded, encoded.replace("+", "-").replace("/", "_")}
    return forms


def _base64_cores(raw: bytes) -> list[str]:
    """What the bytes look like inside base64, for each of the three places they can begin at."""
    cores: list[str] = []
    for lead in range(3):
        encoded = base64.b64encode(bytes(lead) + raw).decode("ascii")
        first = (0, 2, 3)[lead]
        whole = (lead + len(raw)) // 3 * 4
        cores.append(encoded[first:whole])
    return cores
