"""Words found in saved chats, and copies of chats up to a place in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_engine.errors import StateError, UsageError
from hermes_engine.messages import Message, ToolCall, tool_message, user
from hermes_engine.store.copies import copied
from hermes_engine.store.database import Database
from hermes_engine.store.sessions import SessionStore


@pytest.fixture
def store(database: Database) -> SessionStore:
    return SessionStore(database)


def chat(store: SessionStore, *said: Message, title: str = "", kind: str = "chat") -> str:
    session = store.create_session(cwd=Path("/work"), model="m", profile="default", kind=kind)
    store.append(session, said)
    if title:
        store.set_title(session, title)
    return session


def answer(text: str) -> Message:
    return Message("assistant", text)


def test_every_word_must_stand_in_one_message(store: SessionStore) -> None:
    both = chat(store, user("the Quick brown fox"), answer("a slow bear"))
    chat(store, user("quick"), answer("fox"))
    [hit] = store.search("FOX quick")
    assert (hit.session, hit.count, hit.role, hit.excerpt) == (both, 1, "user", "the Quick brown fox")


def test_letters_beyond_ascii_are_the_same_in_upper_and_lower_case(store: SessionStore) -> None:
    session = chat(store, user("Ñandú y ÁRBOL"))
    assert [hit.session for hit in store.search("ñandú árbol")] == [session]


@pytest.mark.parametrize("word", ["100%", "a_b", "back\\slash", "it's", '"x"', "*"])
def test_signs_mean_themselves(store: SessionStore, word: str) -> None:
    session = chat(store, user(f"here is {word} indeed"))
    chat(store, user("here is 1000 aXb backslash its x indeed"))
    assert [hit.session for hit in store.search(word)] == [session]


def test_newest_first_counts_and_what_is_left_out(store: SessionStore) -> None:
    old = chat(store, user("needle"), answer("needle again"))
    titled = chat(store, user("nothing"), title="The Needle")
    new = chat(store, user("x"), tool_message(ToolCall("c", "terminal", "{}"), "needle in a result"))
    chat(store, Message("system", "needle"))
    chat(store, user("needle"), kind="child")
    found = store.search("needle")
    assert {hit.session: hit.count for hit in found} == {old: 2, titled: 0, new: 1}
    assert found[0].session == new
    assert store.search("needle", limit=1) == found[:1]
    assert store.search("   ") == []


def test_an_excerpt_shows_the_word_in_a_long_message(store: SessionStore) -> None:
    chat(store, user("a " * 5000 + "needle\nnext line" + " b" * 5000))
    [hit] = store.search("needle")
    assert "needle next line" in hit.excerpt
    assert hit.excerpt.startswith("…")
    assert hit.excerpt.endswith("…")
    assert len(hit.excerpt) < 240


def test_a_copy_has_all_that_was_said_and_the_chat_stays(store: SessionStore) -> None:
    call = ToolCall("c1", "terminal", "{}")
    said = [
        user("one"),
        Message("assistant", "", (call,)),
        tool_message(call, "r"),
        answer("1"),
        user("two"),
        answer("2"),
    ]
    session = chat(store, *said, title="Work")
    made, left = copied(store, session)
    assert (store.load(made), left) == (said, "")
    assert store.row(made).title == "Work (2)"
    again, _left = copied(store, made)
    assert store.row(again).title == "Work (3)"
    store.append(made, [user("three")])
    assert store.load(session) == said
    store.delete(session)
    assert store.load(made) == [*said, user("three")]


def test_back_leaves_out_the_last_messages_and_tells_the_first_of_them(store: SessionStore) -> None:
    session = chat(store, user("one"), answer("1"), user("two"), answer("2"), user("three"), answer("3"))
    made, left = copied(store, session, back=2)
    assert (store.load(made), left) == ([user("one"), answer("1")], "two")
    empty, left = copied(store, session, back=3)
    assert (store.load(empty), left) == ([], "one")
    with pytest.raises(UsageError, match="only 3"):
        copied(store, session, back=4)


def test_what_cannot_be_copied(store: SessionStore) -> None:
    with pytest.raises(UsageError, match="nothing was said"):
        copied(store, chat(store))
    with pytest.raises(StateError):
        copied(store, "nosuch")
