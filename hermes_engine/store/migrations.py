"""The tables of `state.db`, as an ordered list of changes. A change once released is never edited: add another."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from hermes_engine.store.database import Database, Migration

_FIRST = """
CREATE TABLE instances (
    id TEXT PRIMARY KEY,
    boot TEXT NOT NULL,
    pid INTEGER NOT NULL,
    birth TEXT NOT NULL,
    host TEXT NOT NULL,
    cwd TEXT NOT NULL,
    started REAL NOT NULL,
    heartbeat REAL NOT NULL,
    ended REAL
);
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL DEFAULT '',
    cwd NOT NULL,
    model TEXT NOT NULL DEFAULT '',
    profile TEXT NOT NULL DEFAULT '',
    kind TEXT NOT NULL DEFAULT 'chat',
    parent TEXT NOT NULL DEFAULT '',
    mode TEXT NOT NULL DEFAULT '',
    toolsets TEXT,
    holder TEXT NOT NULL DEFAULT '',
    created REAL NOT NULL,
    updated REAL NOT NULL,
    prompt_tokens INTEGER NOT NULL DEFAULT 0,
    completion_tokens INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens INTEGER NOT NULL DEFAULT 0,
    tokens_known INTEGER NOT NULL DEFAULT 1,
    cost_usd REAL NOT NULL DEFAULT 0,
    cost_known INTEGER NOT NULL DEFAULT 1
);
CREATE INDEX sessions_by_time ON sessions (updated);
CREATE INDEX sessions_by_parent ON sessions (parent) WHERE parent != '';
CREATE TABLE messages (
    id INTEGER PRIMARY KEY,
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    role TEXT NOT NULL,
    content TEXT NOT NULL,
    calls TEXT NOT NULL DEFAULT '',
    call_id TEXT NOT NULL DEFAULT '',
    name TEXT NOT NULL DEFAULT '',
    reasoning TEXT NOT NULL DEFAULT '',
    partial INTEGER NOT NULL DEFAULT 0,
    archived INTEGER NOT NULL DEFAULT 0,
    created REAL NOT NULL,
    UNIQUE (session, position)
);
CREATE TABLE agents (
    id TEXT PRIMARY KEY,
    parent TEXT NOT NULL DEFAULT '',
    session TEXT NOT NULL DEFAULT '',
    instance TEXT NOT NULL DEFAULT '',
    name TEXT NOT NULL DEFAULT '',
    title TEXT NOT NULL DEFAULT '',
    kind TEXT NOT NULL DEFAULT 'chat',
    state TEXT NOT NULL DEFAULT 'waiting',
    activity TEXT NOT NULL DEFAULT '',
    prompt TEXT NOT NULL DEFAULT '',
    model TEXT NOT NULL DEFAULT '',
    profile TEXT NOT NULL DEFAULT '',
    created REAL NOT NULL,
    started REAL,
    ended REAL,
    usage TEXT NOT NULL DEFAULT '',
    answer TEXT NOT NULL DEFAULT '',
    error TEXT NOT NULL DEFAULT '',
    result_seen INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX agents_open ON agents (instance) WHERE ended IS NULL;
CREATE INDEX agents_unseen ON agents (session) WHERE ended IS NOT NULL AND result_seen = 0;
CREATE INDEX agents_by_time ON agents (created);
CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    session TEXT NOT NULL DEFAULT '',
    agent TEXT NOT NULL DEFAULT '',
    parent TEXT NOT NULL DEFAULT '',
    instance TEXT NOT NULL DEFAULT '',
    model TEXT NOT NULL DEFAULT '',
    prompt TEXT NOT NULL DEFAULT '',
    status TEXT NOT NULL DEFAULT '',
    error TEXT NOT NULL DEFAULT '',
    started REAL NOT NULL,
    ended REAL
);
CREATE INDEX runs_by_session ON runs (session);
CREATE INDEX runs_open ON runs (instance) WHERE ended IS NULL;
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    session TEXT NOT NULL DEFAULT '',
    run TEXT NOT NULL DEFAULT '',
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    created REAL NOT NULL,
    data BLOB NOT NULL
);
CREATE INDEX events_by_run ON events (run, id);
CREATE INDEX events_by_time ON events (created);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    instance TEXT NOT NULL DEFAULT '',
    agent TEXT NOT NULL DEFAULT '',
    kind TEXT NOT NULL,
    payload TEXT NOT NULL DEFAULT '{}',
    created REAL NOT NULL,
    taken_by TEXT NOT NULL DEFAULT '',
    taken REAL
);
CREATE INDEX orders_waiting ON orders (instance) WHERE taken IS NULL;
"""


def _script(text: str) -> Callable[[sqlite3.Connection], None]:
    """A change made of statements. `executescript` would commit the transaction it runs in."""

    def change(connection: sqlite3.Connection) -> None:
        for statement in text.split(";\n"):
            if statement.strip():
                connection.execute(statement)

    return change


_RESULTS = """
ALTER TABLE agents ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE agents ADD COLUMN request TEXT NOT NULL DEFAULT '';
ALTER TABLE agents ADD COLUMN note TEXT NOT NULL DEFAULT '';
ALTER TABLE agents ADD COLUMN files TEXT NOT NULL DEFAULT '[]';
CREATE INDEX agents_by_owner ON agents (owner) WHERE ended IS NOT NULL AND result_seen = 0;
CREATE INDEX agents_by_session ON agents (session);
DROP INDEX agents_unseen;
"""

_BOUND = "ALTER TABLE agents ADD COLUMN bound INTEGER NOT NULL DEFAULT 0"

_CHAINS = """
ALTER TABLE agents ADD COLUMN follows TEXT NOT NULL DEFAULT '';
ALTER TABLE instances ADD COLUMN flags TEXT NOT NULL DEFAULT '{}';
"""

_STATUS = "ALTER TABLE messages ADD COLUMN status TEXT NOT NULL DEFAULT ''"

STATE_MIGRATIONS: tuple[Migration, ...] = (
    ("0001 sessions, agents, runs, orders", _script(_FIRST)),
    ("0002 how tool calls ended", _script(_STATUS)),
    ("0003 whose an agent's result is, what it asks, what it changed", _script(_RESULTS)),
    ("0004 which agents a model's call started", _script(_BOUND)),
    ("0005 which agent one goes on from, what a program was started with", _script(_CHAINS)),
)
"""Everything that was ever done to `state.db`, in order."""


def open_state(path: Path, *, on_notice: Callable[[str], None] | None = None) -> Database:
    """Opens (and creates or brings up to date) `state.db`. Raises StateError."""
    return Database(path, STATE_MIGRATIONS, on_notice=on_notice)
