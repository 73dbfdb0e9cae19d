"""The tables of a board. A change once released is never edited: another is added. Runs on SQLite and PostgreSQL."""

from __future__ import annotations

from hermes_engine.board.values import STATES

_STATES = ", ".join(f"'{state}'" for state in STATES)

_FIRST = f"""
CREATE TABLE cards (
    number SERIAL_KEY,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ({_STATES})),
    phase TEXT NOT NULL DEFAULT 'work' CHECK (phase IN ('work', 'review')),
    assignee TEXT NOT NULL,
    reviewer TEXT NOT NULL,
    priority BIGINT NOT NULL,
    workspace TEXT NOT NULL,
    max_retries BIGINT,
    idempotency_key TEXT,
    result TEXT NOT NULL DEFAULT '',
    said TEXT NOT NULL DEFAULT '',
    retry_at DOUBLE PRECISION NOT NULL DEFAULT 0,
    fresh_after BIGINT NOT NULL DEFAULT 0,
    created_by TEXT NOT NULL,
    created_run BIGINT,
    created DOUBLE PRECISION NOT NULL,
    updated DOUBLE PRECISION NOT NULL,
    finished DOUBLE PRECISION
);
CREATE UNIQUE INDEX cards_by_key ON cards (idempotency_key);
CREATE INDEX cards_to_claim ON cards (status, priority DESC, number);
CREATE TABLE links (
    parent BIGINT NOT NULL REFERENCES cards (number),
    child BIGINT NOT NULL REFERENCES cards (number),
    PRIMARY KEY (parent, child),
    CHECK (parent <> child)
);
CREATE INDEX links_by_child ON links (child);
CREATE TABLE runs (
    id SERIAL_KEY,
    card BIGINT NOT NULL REFERENCES cards (number),
    token TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL,
    profile TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'running',
    machine TEXT NOT NULL,
    boot TEXT NOT NULL,
    pid BIGINT NOT NULL,
    birth TEXT NOT NULL,
    instance TEXT NOT NULL,
    host TEXT NOT NULL,
    started DOUBLE PRECISION NOT NULL,
    heartbeat DOUBLE PRECISION NOT NULL,
    lease DOUBLE PRECISION NOT NULL,
    expires DOUBLE PRECISION NOT NULL,
    ended DOUBLE PRECISION,
    summary TEXT NOT NULL DEFAULT '',
    error TEXT NOT NULL DEFAULT '',
    activity TEXT NOT NULL DEFAULT '',
    tokens BIGINT NOT NULL DEFAULT 0,
    session TEXT NOT NULL DEFAULT '',
    workspace TEXT NOT NULL DEFAULT '',
    commit_id TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX one_open_run ON runs (card) WHERE ended IS NULL;
CREATE INDEX runs_by_card ON runs (card);
CREATE TABLE comments (
    id SERIAL_KEY,
    card BIGINT NOT NULL REFERENCES cards (number),
    run BIGINT,
    author TEXT NOT NULL,
    text TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL
);
CREATE INDEX comments_by_card ON comments (card);
CREATE TABLE attachments (
    id SERIAL_KEY,
    card BIGINT NOT NULL REFERENCES cards (number),
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    by_whom TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL
);
CREATE INDEX attachments_by_card ON attachments (card);
CREATE TABLE events (
    id SERIAL_KEY,
    card BIGINT NOT NULL REFERENCES cards (number),
    run BIGINT,
    verb TEXT NOT NULL,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    by_whom TEXT NOT NULL,
    text TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL
);
CREATE INDEX events_by_card ON events (card);
CREATE TABLE attendants (
    instance TEXT PRIMARY KEY,
    machine TEXT NOT NULL,
    boot TEXT NOT NULL,
    pid BIGINT NOT NULL,
    birth TEXT NOT NULL,
    host TEXT NOT NULL,
    beat DOUBLE PRECISION NOT NULL
);
CREATE TABLE memory (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
"""

_ATTENDANTS = """
ALTER TABLE attendants ADD COLUMN takes TEXT NOT NULL DEFAULT '';
ALTER TABLE attendants ADD COLUMN paused TEXT NOT NULL DEFAULT '{}';
"""

CHANGES: tuple[tuple[str, str], ...] = (("board", _FIRST), ("what attendants take", _ATTENDANTS))
"""Name and statements of each change, in order. SERIAL_KEY is a key that counts up and never repeats."""


def statements(text: str, serial: str) -> list[str]:
    """The single statements of a change, in the dialect's spelling of a counting key."""
    return [part.strip() for part in text.replace("SERIAL_KEY", serial).split(";") if part.strip()]
