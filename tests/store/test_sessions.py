"""Sessions: kept as they happen, valid after any end, found again by id or title."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_engine.errors import StateError, UsageError
from hermes_engine.messages import CANCELLED_RESULT, Message, ToolCall, Usage, closed, tool_message, user
from hermes_engine.protocols import Store
from hermes_engine.store.database import Database
from hermes_engine.store.migrations import STATE_MIGRATIONS, open_state
from hermes_engine.store.sessions import SessionStore, new_session_id

ROOT = str(Path(__file__).parents[2])


@pytest.fixture
def store(database: Database) -> SessionStore:
    return SessionStore(database)


def new(store: SessionStore, cwd: str = "/work", **values: Any) -> str:
    return store.create_session(cwd=Path(cwd), model="m", profile="default", **values)


def call(number: int, arguments: str = "{}") -> ToolCall:
    return ToolCall(f"c{number}", "terminal", arguments)


def asked(*calls: ToolCall, content: str = "") -> Message:
    return Message("assistant", content, calls, reasoning="r")


def test_it_is_the_store_of_the_contract(store: SessionStore) -> None:
    as_contract: Store = store
    session = as_contract.create_session(cwd=Path("/work"), model="m", profile="p", parent="")
    as_contract.append(session, [user("hi")])
    assert as_contract.load(session) == [user("hi")]


def test_a_conversation_comes_back_equal(store: SessionStore) -> None:
    session = new(store)
    said = [
        user("hello \U0001f600 \u2028 \0 end"),
        asked(call(1, '{"command": "ls"}'), call(2, "not json"), content="text"),
        tool_message(call(1), "one\n"),
        tool_message(call(2), ""),
        Message("assistant", "done", reasoning="thought", partial=True),
    ]
    store.append(session, said[:2])
    store.append(session, said[2:])
    store.append(session, [])
    assert store.load(session) == said
    row = store.row(session)
    assert (row.messages, row.preview, row.cwd, row.model, row.profile) == (
        5,
        "hello \U0001f600",
        Path("/work"),
        "m",
        "default",
    )


def test_f2_5_lone_surrogates_are_replaced_and_stop_nothing(store: SessionStore) -> None:
    session = new(store, cwd="/tmp/x\udcff")
    store.append(session, [user("a\ud83d b"), asked(call(1, '{"a": "\udc00"}')), tool_message(call(1), "\udcff")])
    assert store.load(session) == [
        user("a\ufffd b"),
        asked(call(1, '{"a": "\ufffd"}')),
        tool_message(call(1), "\ufffd"),
    ]
    assert store.row(session).cwd == Path("/tmp/x\udcff")
    assert store.latest(Path("/tmp/x\udcff")) == store.row(session)


def test_ids_are_short_unique_and_sortable() -> None:
    moment = datetime(2026, 11, 30, 10, 15, 30, tzinfo=UTC)
    found = {new_session_id(moment) for _ in range(300)}
    assert len(found) > 295
    assert all(name.startswith("20261130-101530-") and len(name) == 20 for name in found)
    assert new_session_id(moment) < new_session_id(datetime(2026, 11, 30, 10, 15, 31, tzinfo=UTC))


def test_the_same_id_twice_is_avoided(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    names = iter(["a", "a", "b"])
    monkeypatch.setattr("hermes_engine.store.sessions.new_session_id", lambda: next(names))
    assert [new(store), new(store)] == ["a", "b"]


def test_unknown_sessions_are_refused(store: SessionStore) -> None:
    for act in (
        lambda: store.load("nope"),
        lambda: store.append("nope", [user("x")]),
        lambda: store.replace("nope", []),
        lambda: store.set_title("nope", "t"),
        lambda: store.add_usage("nope", Usage()),
        lambda: store.delete("../../x"),
        lambda: store.hold("nope", "i", lambda _: True),
    ):
        with pytest.raises(StateError, match="there is no session"):
            act()


# -- crashes ------------------------------------------------------------------------------------------------------


def test_f3_16_a_conversation_left_open_is_valid_when_loaded_and_stays_so(store: SessionStore) -> None:
    session = new(store)
    store.append(session, [user("go"), asked(call(1), call(2)), tool_message(call(2), "two")])
    expected = [
        user("go"),
        asked(call(1), call(2)),
        tool_message(call(1), CANCELLED_RESULT, "cancelled"),
        tool_message(call(2), "two"),
    ]
    assert store.load(session) == expected
    assert store.row(session).messages == 3, "loading writes nothing"
    store.append(session, [user("again"), Message("assistant", "ok")])
    assert store.load(session) == [*expected, user("again"), Message("assistant", "ok")]


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from hermes_engine.messages import Message, ToolCall, tool_message, user
from hermes_engine.store.migrations import open_state
from hermes_engine.store.sessions import SessionStore
store = SessionStore(open_state(Path(sys.argv[1])))
session = store.create_session(cwd=Path("/work"), model="m", profile="default")
print(session, flush=True)
for turn in range(10_000):
    call = ToolCall(f"c{turn}", "terminal", "{}")
    store.append(session, [user(f"turn {turn}")])
    store.append(session, [Message("assistant", "", (call,))])
    store.append(session, [tool_message(call, "x" * 20_000)])
    store.append(session, [Message("assistant", f"done {turn}")])
    print(turn, flush=True)
"""


@pytest.mark.parametrize("lines", [2, 3, 9, 20])
def test_a_writer_killed_at_any_moment_leaves_a_valid_history(tmp_path: Path, lines: int) -> None:
    path = tmp_path / "state.db"
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path), ROOT], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    session = writer.stdout.readline().strip()
    turns = [int(writer.stdout.readline()) for _ in range(lines - 1)]
    time.sleep(0.002 * lines)
    os.kill(writer.pid, signal.SIGKILL)
    writer.communicate()
    opened = open_state(path)
    messages = SessionStore(opened).load(session)
    assert messages == closed(messages)
    assert messages[: 4 * len(turns)][-1].content == f"done {turns[-1]}", "what was reported as written is there"
    assert [message.content for message in messages if message.role == "user"] == [
        f"turn {turn}" for turn in range(len([message for message in messages if message.role == "user"]))
    ]
    assert opened.read("PRAGMA integrity_check")[0][0] == "ok"
    opened.close()


def test_f9_18_a_session_with_a_20_mb_result_opens_in_seconds(store: SessionStore) -> None:
    session = new(store)
    store.append(session, [user("go"), asked(call(1)), tool_message(call(1), "0123456789\n" * 1_900_000)])
    started = time.monotonic()
    assert len(store.load(session)[2].content) == 20_900_000
    assert store.list()[0].preview == "go"
    assert store.latest() is not None
    assert time.monotonic() - started < 3


# -- compaction ---------------------------------------------------------------------------------------------------


def test_replacing_keeps_the_old_ones_in_the_archive(store: SessionStore, database: Database) -> None:
    session = new(store)
    old = [user("one"), Message("assistant", "1"), user("two"), Message("assistant", "2"), user("three")]
    store.append(session, old)
    shorter = [user("summary"), user("two"), Message("assistant", "2"), user("three")]
    store.replace(session, shorter)
    assert store.load(session) == shorter
    assert store.archive(session) == [*old, user("summary")]
    assert store.row(session).preview == "one", "the list still shows how it began"
    ids = [row[0] for row in database.read("SELECT id FROM messages WHERE archived = 0 ORDER BY position")]
    assert ids == [6, 3, 4, 5], "what stays is not written again"
    store.append(session, [Message("assistant", "3")])
    assert store.load(session) == [*shorter, Message("assistant", "3")]


conversations = st.lists(st.sampled_from("abc").map(user), max_size=7)


@given(st.lists(conversations, min_size=1, max_size=4), conversations)
def test_any_replacement_is_what_is_loaded(replacements: list[list[Message]], more: list[Message]) -> None:
    opened = Database.temporary(STATE_MIGRATIONS)
    try:
        store = SessionStore(opened)
        session = new(store)
        store.append(session, [user("a"), user("b")])
        ever = {"a", "b"}
        for messages in replacements:
            store.replace(session, messages)
            assert store.load(session) == messages
            ever |= {message.content for message in messages}
        store.append(session, more)
        assert store.load(session) == [*replacements[-1], *more]
        assert ever <= {message.content for message in store.archive(session)}
    finally:
        opened.close()


# -- finding ------------------------------------------------------------------------------------------------------


def test_lists_show_the_last_used_first_and_no_empty_ones(store: SessionStore) -> None:
    first, second, other, child, empty = (
        new(store), new(store), new(store, "/other"), new(store, kind="child", parent="x"), new(store),
    )  # fmt: skip
    for session in (second, other, child, first):
        store.append(session, [user(f"prompt of\n  {session}")])
        time.sleep(0.002)
    assert [row.id for row in store.list()] == [first, other, second]
    assert [row.id for row in store.list(1)] == [first]
    assert [row.id for row in store.list(cwd=Path("/other"))] == [other]
    assert [row.id for row in store.list(kinds=("child",))] == [child]
    assert empty in [row.id for row in store.list(empty=True)]
    latest = store.latest(Path("/work"))
    assert latest is not None
    assert latest.id == first
    assert latest.name == f"prompt of {first}"
    assert store.latest(Path("/nowhere")) is None
    store.set_title(second, "A title")
    assert [row.id for row in store.list()] == [first, other, second], "naming is not using"


def test_a_session_is_found_by_id_beginning_or_title(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    names = iter(["20261130-101530-aaaa", "20261130-101530-bbbb", "20261201-000000-cccc"])
    monkeypatch.setattr("hermes_engine.store.sessions.new_session_id", lambda: next(names))
    one, two, three = new(store), new(store), new(store)
    for session, title in ((one, "Fix the login"), (two, "fix the logout"), (three, "100%_done")):
        store.append(session, [user("x")])
        store.set_title(session, title)
    assert store.find(one).id == one
    assert store.find("20261201").id == three
    assert store.find("FIX THE LOGIN").id == one
    assert store.find("logout").id == two
    assert store.find("100%_d").id == three
    with pytest.raises(UsageError, match="means several sessions") as caught:
        store.find("20261130")
    assert one in str(caught.value)
    assert two in str(caught.value)
    with pytest.raises(UsageError, match="there is no session 'fix the logn'") as caught:
        store.find("fix the logn")
    assert one in caught.value.hint
    for text in ("", "%%", "__", "../../x", "/abs", "a\0b"):
        with pytest.raises(UsageError):
            store.find(text)


def test_titles_are_one_clean_line(store: SessionStore) -> None:
    session = new(store)
    store.set_title(session, "  a\n\tb\x1b[31m [bold] \ud83d ")
    assert store.row(session).title == "a b [31m [bold]"


def test_facts_and_usage_are_kept(store: SessionStore) -> None:
    session = new(store)
    store.set_model(session, "m2")
    store.set_mode(session, "plan")
    assert store.row(session).toolsets is None
    store.set_toolsets(session, ["file"])
    store.add_usage(session, Usage(10, 5, 2, cost_usd=0.5))
    store.add_usage(session, Usage(1, 1, 0, cost_usd=0.25))
    row = store.row(session)
    assert (row.model, row.mode, row.toolsets) == ("m2", "plan", ("file",))
    assert row.usage == Usage(11, 6, 2, cost_usd=0.75)
    store.add_usage(session, Usage(tokens_known=False, cost_known=False))
    assert (store.row(session).usage.tokens_known, store.row(session).usage.cost_known) == (False, False)


def test_deleting_takes_what_belongs_to_it(store: SessionStore, database: Database) -> None:
    keep, root = new(store), new(store)
    child = new(store, kind="child", parent=root)
    grandchild = new(store, kind="child", parent=child)
    for session in (keep, root, child, grandchild):
        store.append(session, [user("x")])
    with database.write() as connection:
        connection.execute("INSERT INTO agents (id, session, created) VALUES ('a', ?, 1)", (child,))
        connection.execute("INSERT INTO runs (id, session, started) VALUES ('r', ?, 1)", (child,))
        connection.execute(
            "INSERT INTO events (session, run, first_seq, last_seq, created, data) VALUES (?, 'r', 1, 2, 1, '')",
            (child,),
        )
    store.delete(root)
    assert [row.id for row in store.list(empty=True, kinds=("chat", "child"))] == [keep]
    for table, left in (("messages", 1), ("agents", 0), ("runs", 0), ("events", 0)):
        assert database.read(f"SELECT count(*) FROM {table}")[0][0] == left


def test_one_instance_at_a_time_writes_a_session(store: SessionStore) -> None:
    session = new(store)
    assert store.hold(session, "i1", lambda _: True) == ""
    assert store.hold(session, "i1", lambda _: True) == ""
    assert store.hold(session, "i2", lambda _: True) == "i1"
    assert store.hold(session, "i2", lambda _: False) == "", "the holder is dead"
    store.release("i1")
    assert store.hold(session, "i3", lambda _: True) == "i2"
    store.release("i2")
    assert store.hold(session, "i3", lambda _: True) == ""
