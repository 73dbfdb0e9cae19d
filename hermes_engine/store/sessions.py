"""Sessions and their messages (`protocols.Store`, and what lists and resumes need besides). Blocking.

What was compacted away stays in the table, marked archived. Reading changes nothing: a conversation that a
crash left open is made valid as it is loaded.
"""

from __future__ import annotations

import difflib
import json
import secrets
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hermes_engine.errors import StateError, UsageError
from hermes_engine.messages import Message, Usage, closed
from hermes_engine.store.database import Database, clean
from hermes_engine.store.recordings import Recordings
from hermes_engine.store.rows import (
    MESSAGE_COLUMNS,
    as_stored,
    common_ends,
    message_of,
    message_values,
    path_of,
    path_value,
    usage_of,
)
from hermes_engine.store.searching import Hit, hits

_LETTERS = "abcdefghjkmnpqrstvwxyz23456789"
_PREVIEW = 200
_LIVE = "SELECT * FROM messages WHERE session = ? AND archived = 0 ORDER BY position"


@dataclass(frozen=True, slots=True)
class SessionRow:
    """What a list shows of a session.

    Attributes:
        id: sortable by the time it began.
        title: given by a person or the program, or "".
        preview: beginning of the first user message, on one line.
        cwd: folder it works in.
        model, profile, mode: "" where never set.
        kind: chat | child | background | worker.
        parent: session that started it, or "".
        toolsets: None where never set.
        created, updated: seconds since the epoch.
        messages: how many the live conversation has.
        usage: of all its turns.
    """

    id: str
    title: str
    preview: str
    cwd: Path
    model: str
    profile: str
    mode: str
    kind: str
    parent: str
    toolsets: tuple[str, ...] | None
    created: float
    updated: float
    messages: int
    usage: Usage

    @property
    def name(self) -> str:
        """Title, else preview, else id: what people recognise it by."""
        return self.title or self.preview or self.id


Messages = list[Message]
SessionRows = list[SessionRow]
Hits = list[Hit]
Values = list[Any]
"""Spelled out here because the store has a method named `list`."""


def new_session_id(now: datetime | None = None) -> str:
    """Short, unique, sortable by time (UTC): 20261130-101530-x7k2."""
    moment = now or datetime.now(UTC)
    return f"{moment:%Y%m%d-%H%M%S}-{''.join(secrets.choice(_LETTERS) for _ in range(4))}"


class SessionStore:
    """Sessions in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create_session(
        self,
        *,
        cwd: Path,
        model: str,
        profile: str,
        kind: str = "chat",
        parent: str = "",
        mode: str = "",
        toolsets: Sequence[str] | None = None,
    ) -> str:
        """A new session's id."""
        now = time.time()
        sets = None if toolsets is None else json.dumps(list(toolsets))
        while True:
            session = new_session_id()
            try:
                with self._database.write() as connection:
                    connection.execute(
                        "INSERT INTO sessions (id, cwd, model, profile, kind, parent, mode, toolsets, created, updated)"
                        " VALUES (?,?,?,?,?,?,?,?,?,?)",
                        (session, path_value(cwd), clean(model), clean(profile), kind, parent, mode, sets, now, now),
                    )
            except sqlite3.IntegrityError:
                continue
            return session

    def append(self, session: str, messages: Sequence[Message]) -> None:
        """Adds messages at the end. Raises StateError for an unknown id."""
        with self._database.write() as connection:
            self._touch(connection, session)
            self._insert(connection, session, messages)

    def replace(self, session: str, messages: Sequence[Message]) -> None:
        """Makes the live conversation these messages; those that are in it no more stay, archived.

        What both share at the beginning and at the end is not written again, however large it is.
        """
        new = [as_stored(message) for message in messages]
        with self._database.write() as connection:
            self._touch(connection, session)
            rows = connection.execute(_LIVE, (session,)).fetchall()
            head, tail = common_ends([message_of(row) for row in rows], new)
            gone = rows[head : len(rows) - tail]
            kept = rows[len(rows) - tail :]
            connection.executemany("UPDATE messages SET archived = 1 WHERE id = ?", [(row["id"],) for row in gone])
            added = new[head : len(new) - tail]
            if not added:
                return
            after = self._insert(connection, session, added)
            moved = [(after + index, row["id"]) for index, row in enumerate(kept)]
            connection.executemany("UPDATE messages SET position = ? WHERE id = ?", moved)

    def load(self, session: str) -> Messages:
        """The conversation, made valid. Raises StateError for an unknown id."""
        self.row(session)
        return closed(message_of(row) for row in self._database.read(_LIVE, (session,)))

    def archive(self, session: str) -> Messages:
        """Everything ever said, archived messages included, in the order it was written."""
        rows = self._database.read("SELECT * FROM messages WHERE session = ? ORDER BY id", (session,))
        return [message_of(row) for row in rows]

    def row(self, session: str) -> SessionRow:
        """One session. Raises StateError for an unknown id."""
        rows = self._rows("s.id = ?", (session,), 1)
        if not rows:
            raise StateError(f"there is no session {session!r}")
        return rows[0]

    def list(
        self, limit: int = 50, *, cwd: Path | None = None, kinds: Sequence[str] = ("chat",), empty: bool = False
    ) -> SessionRows:
        """Sessions, the one used last first.

        Args:
            limit: at most so many.
            cwd: only those of this folder.
            kinds: only of these kinds.
            empty: also those without a message and without a task that was started from it.
        """
        marks = ",".join("?" * len(kinds))
        where = [f"s.kind IN ({marks})"]
        values: Values = [*kinds]
        if cwd is not None:
            where.append("s.cwd = ?")
            values.append(path_value(cwd))
        if not empty:
            said = "EXISTS (SELECT 1 FROM messages m WHERE m.session = s.id)"
            started = "EXISTS (SELECT 1 FROM sessions c WHERE c.parent = s.id)"
            where.append(f"({said} OR {started})")
        return self._rows(" AND ".join(where), values, limit)

    def latest(self, cwd: Path | None = None) -> SessionRow | None:
        """The chat used last (in a folder), or None."""
        rows = self.list(1, cwd=cwd)
        return rows[0] if rows else None

    def find(self, text: str) -> SessionRow:
        """The session meant by an id, the beginning of an id, or a chat's title or a part of it.

        Raises:
            UsageError: none or several; the message names near ones.
        """
        wanted = text.strip()
        if not wanted:
            raise UsageError("a session's id or title is needed")
        escaped = wanted.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        attempts: tuple[tuple[str, str], ...] = (
            ("s.id = ?", wanted),
            ("s.kind = 'chat' AND lower(s.title) = lower(?)", wanted),
            ("s.id LIKE ? ESCAPE '\\'", f"{escaped}%"),
            ("s.kind = 'chat' AND s.title LIKE ? ESCAPE '\\'", f"%{escaped}%"),
        )
        for where, value in attempts:
            rows = self._rows(where, (clean(value),), 6)
            if len(rows) == 1:
                return rows[0]
            if rows:
                listed = "; ".join(f"{row.id} {row.name}".strip() for row in rows[:5])
                raise UsageError(f"{wanted!r} means several sessions: {listed}", hint="give more of the id")
        raise UsageError(f"there is no session {wanted!r}", hint=self._near(wanted))

    def search(self, text: str, limit: int = 20) -> Hits:
        """Chats in which every word of `text` stands, the newest first; see `searching.hits`."""
        return hits(self._database, text, limit=limit)

    def set_title(self, session: str, title: str) -> None:
        """Names the session; control characters and line ends become spaces."""
        words = " ".join("".join(letter if letter.isprintable() else " " for letter in title).split())
        self._set(session, "title", clean(words))

    def set_model(self, session: str, model: str) -> None:
        """Records the model in use from now on."""
        self._set(session, "model", clean(model))

    def set_kind(self, session: str, kind: str) -> None:
        """Records what the session is from now on: a task that a person talks to becomes a chat."""
        self._set(session, "kind", kind)

    def set_mode(self, session: str, mode: str) -> None:
        """Records the approval mode."""
        self._set(session, "mode", mode)

    def set_toolsets(self, session: str, toolsets: Sequence[str]) -> None:
        """Records the toolsets on offer."""
        self._set(session, "toolsets", json.dumps(list(toolsets)))

    def add_usage(self, session: str, usage: Usage) -> None:
        """Adds a turn's tokens and money."""
        with self._database.write() as connection:
            self._touch(connection, session)
            connection.execute(
                "UPDATE sessions SET prompt_tokens = prompt_tokens + ?, completion_tokens = completion_tokens + ?,"
                " reasoning_tokens = reasoning_tokens + ?, tokens_known = tokens_known AND ?,"
                " cost_usd = cost_usd + ?, cost_known = cost_known AND ? WHERE id = ?",
                (
                    usage.prompt_tokens,
                    usage.completion_tokens,
                    usage.reasoning_tokens,
                    int(usage.tokens_known),
                    usage.cost_usd,
                    int(usage.cost_known),
                    session,
                ),
            )

    def recordings(self) -> Recordings:
        """What was recorded of the turns of all sessions."""
        return Recordings(self._database)

    def has_started(self, session: str) -> bool:
        """Whether other sessions were started from it."""
        return bool(self._database.read("SELECT 1 FROM sessions WHERE parent = ? LIMIT 1", (session,)))

    def delete(self, session: str) -> None:
        """Removes a session, those it started, their messages and recordings. Raises StateError if unknown."""
        self.row(session)
        family = (
            "WITH RECURSIVE family (id) AS"
            " (SELECT ? UNION SELECT s.id FROM sessions s JOIN family f ON s.parent = f.id)"
            " SELECT id FROM family"
        )
        with self._database.write() as connection:
            ids = [(row[0],) for row in connection.execute(family, (session,)).fetchall()]
            for table, column in (
                ("events", "session"),
                ("runs", "session"),
                ("agents", "session"),
                ("sessions", "id"),
            ):
                connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", ids)

    def hold(self, session: str, instance: str, alive: Callable[[str], bool]) -> str:
        """Takes the session for an instance, so that two do not write one conversation.

        Args:
            session: which.
            instance: who wants it.
            alive: tells whether another instance still runs.

        Returns:
            "" when it is ours now, else the id of the living instance that has it.
        """
        with self._database.write() as connection:
            found = connection.execute("SELECT holder FROM sessions WHERE id = ?", (session,)).fetchone()
            if found is None:
                raise StateError(f"there is no session {session!r}")
            holder = str(found["holder"])
            if holder not in ("", instance) and alive(holder):
                return holder
            connection.execute("UPDATE sessions SET holder = ? WHERE id = ?", (instance, session))
        return ""

    def release(self, instance: str, session: str | None = None) -> None:
        """Gives back a session the instance holds; None: every one."""
        with self._database.write() as connection:
            connection.execute(
                "UPDATE sessions SET holder = '' WHERE holder = ? AND (? IS NULL OR id = ?)",
                (instance, session, session),
            )

    def _near(self, wanted: str) -> str:
        rows = self.list(200)
        names = {row.id: row for row in rows} | {row.title.casefold(): row for row in rows if row.title}
        near = difflib.get_close_matches(wanted.casefold(), names, n=3, cutoff=0.5)
        listed = [names[name] for name in near] or rows[:3]
        return "near: " + "; ".join(f"{row.id} {row.name}" for row in listed) if listed else "none is stored yet"

    def _set(self, session: str, column: str, value: Any) -> None:
        with self._database.write() as connection:
            changed = connection.execute(f"UPDATE sessions SET {column} = ? WHERE id = ?", (value, session))
            _require(changed, session)

    def _touch(self, connection: sqlite3.Connection, session: str) -> None:
        _require(connection.execute("UPDATE sessions SET updated = ? WHERE id = ?", (time.time(), session)), session)

    def _insert(self, connection: sqlite3.Connection, session: str, messages: Sequence[Message]) -> int:
        """Writes messages behind everything there is; returns the next free position."""
        first = connection.execute(
            "SELECT coalesce(max(position) + 1, 0) FROM messages WHERE session = ?", (session,)
        ).fetchone()[0]
        now = time.time()
        connection.executemany(
            f"INSERT INTO messages ({MESSAGE_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?)",
            [message_values(session, first + index, message, now) for index, message in enumerate(messages)],
        )
        return int(first) + len(messages)

    def _rows(self, where: str, values: Sequence[Any], limit: int) -> SessionRows:
        found = self._database.read(
            "SELECT s.*,"
            " (SELECT count(*) FROM messages m WHERE m.session = s.id AND m.archived = 0) AS messages,"
            f" (SELECT substr(m.content, 1, {_PREVIEW}) FROM messages m WHERE m.session = s.id AND m.role = 'user'"
            "  ORDER BY m.position LIMIT 1) AS preview"
            f" FROM sessions s WHERE {where} ORDER BY s.updated DESC, s.id DESC LIMIT ?",
            (*values, limit),
        )
        return [_session_row(row) for row in found]


def _require(changed: sqlite3.Cursor, session: str) -> None:
    if changed.rowcount == 0:
        raise StateError(f"there is no session {session!r}")


def _session_row(row: sqlite3.Row) -> SessionRow:
    return SessionRow(
        id=row["id"],
        title=row["title"],
        preview=" ".join((row["preview"] or "").split()),
        cwd=path_of(row["cwd"]),
        model=row["model"],
        profile=row["profile"],
        mode=row["mode"],
        kind=row["kind"],
        parent=row["parent"],
        toolsets=None if row["toolsets"] is None else tuple(json.loads(row["toolsets"])),
        created=row["created"],
        updated=row["updated"],
        messages=row["messages"],
        usage=usage_of(row),
    )
