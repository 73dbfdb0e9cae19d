"""Records of agents: chats, children, background tasks and workers of this and of other instances.

A record is written before its agent starts, so that a crash leaves a truthful account; what a dead instance
left open is closed as `interrupted`. Batch rows have no records here: the run's folder is theirs.
"""

from __future__ import annotations

import dataclasses
import json
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hermes_engine.errors import UsageError
from hermes_engine.events import ApprovalAsked, QuestionAsked, from_json
from hermes_engine.messages import NO_USAGE, UNKNOWN_USAGE, Usage
from hermes_engine.store.database import Database, clean
from hermes_engine.store.instances import Instances
from hermes_engine.store.recordings import Recordings
from hermes_engine.store.rows import usage_from_text, usage_text

OPEN_STATES = ("waiting", "running")
INTERRUPTED = "the program ended while this ran"


@dataclass(frozen=True, slots=True)
class AgentRecord:
    """One agent, past or present.

    Attributes:
        id: of the agent.
        parent: agent that started it, or "".
        session: its own conversation.
        instance: process it runs in.
        name, title, kind: as in `events.AgentStarted`.
        state: as in `events.AgentState`.
        activity: what it did last, one line.
        prompt: its task.
        model, profile: what it runs on.
        created, started, ended: seconds since the epoch; None where not yet.
        usage: of the whole of it.
        answer, error: its result.
        result_seen: whether a person has had the result; from the start for one whose parent gets it.
        owner: session its result is for, whatever is open meanwhile; "" for a chat.
        request: what it waits to be told, as JSON of the event that asked; "" for nothing.
        note: where its work lies, one line.
        files: what its tools wrote.
        bound: a model's call started it and had its result.
        follows: agent whose task it goes on with or runs again, or "".
    """

    id: str
    parent: str = ""
    session: str = ""
    instance: str = ""
    name: str = ""
    title: str = ""
    kind: str = "chat"
    state: str = "waiting"
    activity: str = ""
    prompt: str = ""
    model: str = ""
    profile: str = ""
    created: float = 0.0
    started: float | None = None
    ended: float | None = None
    usage: Usage = NO_USAGE
    answer: str = ""
    error: str = ""
    result_seen: bool = False
    owner: str = ""
    request: str = ""
    note: str = ""
    files: tuple[str, ...] = ()
    bound: bool = False
    follows: str = ""

    @property
    def live(self) -> bool:
        """Whether it has not come to its end."""
        return self.ended is None

    @property
    def asks(self) -> ApprovalAsked | QuestionAsked | None:
        """The event of what it waits to be told, None when that is nothing."""
        try:
            event = from_json(json.loads(self.request)) if self.request and self.live else None
        except (ValueError, TypeError):
            return None
        return event if isinstance(event, (ApprovalAsked, QuestionAsked)) else None


Names = list[str]
Values = list[Any]
"""Spelled out here because the store has a method named `list`."""


class AgentStore:
    """The agents' table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def insert(self, record: AgentRecord) -> None:
        """Records an agent before it starts. A second insert of the same id changes nothing."""
        with self._database.write() as connection:
            insert_agent(connection, record)

    def change(self, agent: str, *, state: str | None = None, activity: str | None = None) -> None:
        """Records a new state or action of an agent that has not ended."""
        with self._database.write() as connection:
            change_agent(connection, agent, state=state, activity=activity)

    def finish(self, agent: str, *, state: str, answer: str = "", error: str = "", usage: Usage = NO_USAGE) -> None:
        """Records how an agent ended. Only the first end counts."""
        with self._database.write() as connection:
            finish_agent(connection, agent, state=state, answer=answer, error=error, usage=usage)

    def get(self, agent: str) -> AgentRecord | None:
        """One record, or None."""
        rows = self._database.read("SELECT * FROM agents WHERE id = ?", (agent,))
        return _record(rows[0]) if rows else None

    def list(
        self,
        *,
        session: str | None = None,
        kinds: Sequence[str] | None = None,
        states: Sequence[str] | None = None,
        limit: int = 500,
    ) -> tuple[AgentRecord, ...]:
        """Records, the newest first, of all instances."""
        where, values = ["1"], []
        for column, wanted in (
            ("session", None if session is None else (session,)),
            ("kind", kinds),
            ("state", states),
        ):
            if wanted is not None:
                where.append(f"{column} IN ({','.join('?' * len(wanted))})")
                values += [*wanted]
        return self._select(f"{' AND '.join(where)} ORDER BY created DESC, rowid DESC LIMIT ?", [*values, limit])

    def unseen(self, owner: str) -> tuple[AgentRecord, ...]:
        """Ended agents whose results are for a session and which nobody has had, oldest first."""
        where = "owner = ? AND ended IS NOT NULL AND result_seen = 0 AND state != 'handed over' ORDER BY ended"
        return self._select(where, [owner])

    def seen(self, owner: str, limit: int = 200) -> tuple[AgentRecord, ...]:
        """The newest ended tasks of a session whose results somebody has had, oldest first."""
        where = (
            "owner = ? AND bound = 0 AND ended IS NOT NULL AND result_seen = 1 AND state != 'handed over'"
            " ORDER BY ended DESC LIMIT ?"
        )
        return self._select(where, [owner, limit])[::-1]

    def find(self, text: str) -> AgentRecord:
        """The agent meant by an id, the beginning of one, or a name (the newest of that name).

        Raises:
            UsageError: none, or several by the beginning of their ids.
        """
        wanted = text.strip()
        if record := self.get(wanted):
            return record
        if named := self._select("name = ? AND kind != 'chat' ORDER BY created DESC, rowid DESC LIMIT 1", [wanted]):
            return named[0]
        begun = self._select("substr(id, 1, ?) = ? AND ? != '' LIMIT 3", [len(wanted), wanted, wanted])
        if len(begun) == 1:
            return begun[0]
        told = "; ".join(record.id for record in begun)
        raise UsageError(f"{wanted!r} means several tasks: {told}" if begun else f"there is no task {wanted!r}")

    def mark_seen(self, agents: Sequence[str]) -> None:
        """Records that the results were delivered."""
        with self._database.write() as connection:
            connection.executemany("UPDATE agents SET result_seen = 1 WHERE id = ?", [(agent,) for agent in agents])

    def close_dead(self) -> tuple[AgentRecord, ...]:
        """Ends, as `interrupted`, what instances that no longer live left open; returns those records.

        Agents of living instances are left alone. Identity is boot, pid and birth of the process.
        """
        instances = Instances(self._database)
        instances.bury()
        with self._database.write() as connection:
            rows = connection.execute(
                "UPDATE agents SET state = 'interrupted', error = ?, ended = max(coalesce(started, created),"
                " coalesce((SELECT max(created) FROM messages m WHERE m.session = agents.session), 0),"
                " coalesce((SELECT heartbeat FROM instances i WHERE i.id = agents.instance), ?))"
                " WHERE ended IS NULL AND NOT EXISTS"
                " (SELECT 1 FROM instances i WHERE i.id = agents.instance AND i.ended IS NULL) RETURNING *",
                (INTERRUPTED, time.time()),
            ).fetchall()
            connection.execute(
                "UPDATE runs SET status = 'interrupted', error = ?, ended = ? WHERE ended IS NULL AND NOT EXISTS"
                " (SELECT 1 FROM instances i WHERE i.id = runs.instance AND i.ended IS NULL)",
                (INTERRUPTED, time.time()),
            )
        return tuple(self._counted(_record(row)) for row in sorted(rows, key=lambda row: row["created"], reverse=True))

    def _counted(self, record: AgentRecord) -> AgentRecord:
        """An interrupted record with what it had used, as far as that was told; those below it were counted before."""
        if record.kind == "chat" or record.started is None:
            return record
        below = self._database.read("SELECT usage FROM agents WHERE parent = ? AND usage != ''", (record.id,))
        own = Recordings(self._database).spent(record.id) + UNKNOWN_USAGE  # of the step that was cut off
        usage = sum((usage_from_text(row["usage"]) for row in below), own)
        with self._database.write() as connection:
            connection.execute("UPDATE agents SET usage = ? WHERE id = ?", (usage_text(usage), record.id))
        return dataclasses.replace(record, usage=usage)

    def _select(self, where: str, values: Sequence[Any]) -> tuple[AgentRecord, ...]:
        return tuple(_record(row) for row in self._database.read(f"SELECT * FROM agents WHERE {where}", values))


def insert_agent(connection: sqlite3.Connection, record: AgentRecord) -> None:
    """Within a transaction: see `AgentStore.insert`."""
    now = record.created or time.time()
    connection.execute(
        "INSERT OR IGNORE INTO agents (id, parent, session, instance, name, title, kind, state, activity, prompt,"
        " model, profile, created, started, owner, bound, result_seen, follows)"
        " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        (
            record.id,
            record.parent,
            record.session,
            record.instance,
            clean(record.name),
            clean(record.title),
            record.kind,
            record.state,
            clean(record.activity),
            clean(record.prompt),
            clean(record.model),
            clean(record.profile),
            now,
            now if record.state == "running" else record.started,
            record.owner,
            record.bound,
            record.result_seen,
            record.follows,
        ),
    )


def change_agent(
    connection: sqlite3.Connection,
    agent: str,
    *,
    state: str | None = None,
    activity: str | None = None,
    now: float | None = None,
) -> None:
    """Within a transaction: see `AgentStore.change`."""
    connection.execute(
        "UPDATE agents SET state = coalesce(?, state), activity = coalesce(?, activity),"
        " started = CASE WHEN started IS NULL AND ? = 'running' THEN ? ELSE started END"
        " WHERE id = ? AND ended IS NULL",
        (state, None if activity is None else clean(activity), state, now or time.time(), agent),
    )


def finish_agent(
    connection: sqlite3.Connection,
    agent: str,
    *,
    state: str,
    answer: str = "",
    error: str = "",
    usage: Usage = NO_USAGE,
    note: str = "",
    files: Sequence[str] = (),
    now: float | None = None,
) -> None:
    """Within a transaction: see `AgentStore.finish`."""
    told = clean(json.dumps(list(files), ensure_ascii=False))
    connection.execute(
        "UPDATE agents SET state = ?, answer = ?, error = ?, usage = ?, note = ?, files = ?, request = '', ended = ?"
        " WHERE id = ? AND ended IS NULL",
        (state, clean(answer), clean(error), usage_text(usage), clean(note), told, now or time.time(), agent),
    )


def set_request(connection: sqlite3.Connection, agent: str, request: str) -> None:
    """Within a transaction: records what an agent waits to be told, "" when it no longer does."""
    connection.execute("UPDATE agents SET request = ? WHERE id = ? AND ended IS NULL", (clean(request), agent))


def _record(row: sqlite3.Row) -> AgentRecord:
    values = {name: row[name] for name in row.keys() if name not in ("usage", "result_seen", "files", "bound")}  # noqa: SIM118
    return AgentRecord(
        **values,
        usage=usage_from_text(row["usage"]),
        result_seen=bool(row["result_seen"]),
        files=tuple(json.loads(row["files"])),
        bound=bool(row["bound"]),
    )
