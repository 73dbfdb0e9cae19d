-- The tables as version 0.1.0 wrote them, with a session in them. Never edited: later versions open it in a test.
PRAGMA application_id=1212502605;
BEGIN TRANSACTION;
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
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    session TEXT NOT NULL DEFAULT '',
    run TEXT NOT NULL DEFAULT '',
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    created REAL NOT NULL,
    data BLOB NOT NULL
);
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
INSERT INTO "messages" VALUES(1,'20261130-101530-x7k2',0,'user','hello','','','','',0,0,1.0);
CREATE TABLE migrations (name TEXT PRIMARY KEY, applied REAL NOT NULL);
INSERT INTO "migrations" VALUES('0001 sessions, agents, runs, orders',1.0);
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
INSERT INTO "sessions" VALUES('20261130-101530-x7k2','from the first form','/tmp','','','chat','','',NULL,'',1.0,2.0,0,0,0,1,0.0,1);
CREATE INDEX sessions_by_time ON sessions (updated);
CREATE INDEX sessions_by_parent ON sessions (parent) WHERE parent != '';
CREATE INDEX agents_open ON agents (instance) WHERE ended IS NULL;
CREATE INDEX agents_unseen ON agents (session) WHERE ended IS NOT NULL AND result_seen = 0;
CREATE INDEX agents_by_time ON agents (created);
CREATE INDEX runs_by_session ON runs (session);
CREATE INDEX runs_open ON runs (instance) WHERE ended IS NULL;
CREATE INDEX events_by_run ON events (run, id);
CREATE INDEX events_by_time ON events (created);
CREATE INDEX orders_waiting ON orders (instance) WHERE taken IS NULL;
DELETE FROM "sqlite_sequence";
COMMIT;
