"""Finds words in saved conversations. Reads only; a plain look through the messages, so no index to keep true."""

from __future__ import annotations

from dataclasses import dataclass

from hermes_engine.cleaning import one_line
from hermes_engine.store.database import Database, clean

_BEFORE, _AFTER = 60, 160
"""Letters shown around the first word found."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A conversation in which the words stand.

    Attributes:
        session: its id.
        count: messages that hold all the words; 0 when only the title does.
        excerpt: of the newest of them, on one line.
        role: who said it, "" for the title.
        said: when, in seconds since the epoch.
    """

    session: str
    count: int
    excerpt: str
    role: str
    said: float


def hits(database: Database, text: str, *, limit: int, kinds: tuple[str, ...] = ("chat",)) -> list[Hit]:
    """Conversations with a message, or else a title, that holds every word of `text`, the newest first.

    Upper and lower case are the same. [] for a text without words.
    """
    words = clean(text).split()
    if not words:
        return []
    marks = ",".join("?" * len(kinds))
    inside, values = _holds("m.content", words)
    found = database.read(
        "SELECT m.session, count(*) AS count, max(m.id) AS newest FROM messages m JOIN sessions s ON s.id = m.session"
        f" WHERE s.kind IN ({marks}) AND m.role != 'system' AND {inside}"
        " GROUP BY m.session ORDER BY newest DESC LIMIT ?",
        (*kinds, *values, limit),
    )
    said = {row["session"]: _hit(database, row["count"], row["newest"], words) for row in found}
    inside, values = _holds("s.title", words)
    titled = database.read(
        f"SELECT s.id, s.title, s.updated FROM sessions s WHERE s.kind IN ({marks}) AND {inside}"
        " ORDER BY s.updated DESC LIMIT ?",
        (*kinds, *values, limit),
    )
    for row in titled:
        said.setdefault(row["id"], Hit(row["id"], 0, row["title"], "", row["updated"]))
    return sorted(said.values(), key=lambda hit: hit.said, reverse=True)[:limit]


def _holds(column: str, words: list[str]) -> tuple[str, list[str]]:
    """A condition that every word stands in the column, and its values."""
    parts: list[str] = []
    values: list[str] = []
    for word in words:
        # SQLite knows upper and lower case of ASCII letters only.
        forms = [word] if word.isascii() else list(dict.fromkeys((word, word.lower(), word.upper(), word.capitalize())))
        parts.append("(" + " OR ".join([f"{column} LIKE ? ESCAPE '\\'"] * len(forms)) + ")")
        values += [f"%{_escaped(form)}%" for form in forms]
    return " AND ".join(parts), values


def _escaped(word: str) -> str:
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _hit(database: Database, count: int, message: int, words: list[str]) -> Hit:
    row = database.read("SELECT session, role, content, created FROM messages WHERE id = ?", (message,))[0]
    content = row["content"]
    at = max(0, content.lower().find(words[0].lower()))
    start = max(0, at - _BEFORE)
    piece = content[start : at + _AFTER]
    cut = ("…" if start else "") + piece + ("…" if at + _AFTER < len(content) else "")
    return Hit(row["session"], count, one_line(cut, _BEFORE + _AFTER + 2), row["role"], row["created"])
