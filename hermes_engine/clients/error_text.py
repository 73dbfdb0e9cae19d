"""Makes an error body fit to be shown: the words in it, without tags, control codes and secrets. Pure."""

from __future__ import annotations

import html
import json
import re
from typing import Any

MAX_SHOWN = 300
_HIDDEN = re.compile(r"<(script|style|head)\b.*?</\1\s*>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^<>]{0,2000}>")
_ESCAPE = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|[@-_])")
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]+")
_KEY = re.compile(r"\b(sk|pk|gsk|xai|hf|AIza)[-_][\w*-]{12,}|\bBearer\s+[\w.~+/*-]{8,}=*", re.ASCII)
_FIELDS = ("message", "detail", "error", "error_description", "msg", "title", "reason")


def readable(text: str, secrets: tuple[str, ...] = ()) -> str:
    """One line of at most about 300 characters that can be shown to a person."""
    text = text[: MAX_SHOWN * 200]
    for secret in secrets:
        if secret:
            text = text.replace(secret, "[key]")
    text = _KEY.sub("[key]", text)
    text = _HIDDEN.sub(" ", _ESCAPE.sub("", text))
    text = html.unescape(_TAG.sub(" ", text))
    text = " ".join(_UNSEEN.sub(" ", text).split())
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


def error_message(body: str, secrets: tuple[str, ...] = ()) -> str:
    """What an error body says: the message of a JSON one, the words of a page, the text as it is."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return readable(body, secrets)
    said = " – ".join(dict.fromkeys(_said(value)))
    return readable(said or body, secrets)


def error_code(error: Any) -> str:
    """The short words an error names itself by (`code`, `type`), or ""."""
    if isinstance(error, str):
        try:
            error = json.loads(error)
        except (ValueError, RecursionError):
            return ""
    if isinstance(error, dict) and isinstance(error.get("error"), dict):
        error = error["error"]
    if not isinstance(error, dict):
        return ""
    return " ".join(str(error[name]) for name in ("code", "type") if isinstance(error.get(name), str))


def _said(value: Any, depth: int = 0) -> list[str]:
    if isinstance(value, str):
        return [value] if value.strip() else []
    if depth > 4:
        return []
    if isinstance(value, list):
        return [said for item in value[:3] for said in _said(item, depth + 1)]
    if not isinstance(value, dict):
        return []
    for name in _FIELDS:
        if said := _said(value.get(name), depth + 1):
            return said + _upstream(value)
    return []


def _upstream(value: dict[str, Any]) -> list[str]:
    """What the server behind a router said, which the router's own message hides."""
    metadata = value.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if not isinstance(raw, str) or not raw.strip():
        return []
    try:
        return _said(json.loads(raw), 2) or [raw]
    except (ValueError, RecursionError):
        return [raw]
