"""`/fork` and `/rewind`: going on in a copy of the chat, which stays as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_tui.commands import dispatch
from tests.conftest import Serve
from tests.server.scripted import say
from tests.tui.command_desk import Sit, sit
from tests.tui.live import live, settings

__all__ = ["sit"]


def test_fork_goes_on_in_a_copy(sit: Sit) -> None:
    desk, _server = sit([say("one"), say("two")])
    assert desk.do("/fork").kind == "error", "nothing was said yet"
    desk.turn("first words")
    assert dispatch("/fork  Another  way", desk) == "ran"
    desk.until(lambda: desk.opened)
    made = desk.opened[0]
    assert made is not None
    view = desk.engine.open_session(Path.cwd(), resume=made)
    assert (view.title, [message.content for message in view.messages]) == ("Another way", ["first words", "one"])


def test_rewind_goes_back_to_before_a_message_and_hands_it_back(sit: Sit) -> None:
    desk, _server = sit([say("one"), say("two"), say("three")])
    for text in ("first", "second", "third"):
        desk.turn(text)
    assert desk.do("/rewind x").kind == "error"
    assert desk.do("/rewind 9").kind == "error"
    assert dispatch("/rewind 2", desk) == "ran"
    desk.until(lambda: desk.draft == "second")
    [made] = desk.opened
    assert made is not None
    view = desk.engine.open_session(Path.cwd(), resume=made)
    assert [message.content for message in view.messages] == ["first", "one"]
    assert len(desk.engine.view(desk.session).messages) == 6, "the chat as it was stays"


async def test_in_the_app_the_copy_is_what_is_seen_and_the_message_waits_in_the_prompt(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve([say("answer one"), say("answer two"), say("answer three")])
    async with live(settings(server), tmp_path) as app:
        await app.ready()
        await app.say("first words")
        await app.shows("answer one")
        await app.idle()
        await app.say("second words")
        await app.shows("answer two")
        await app.idle()
        before = app.desk.session
        await app.say("/rewind")
        await app.until(lambda: app.desk.session != before and app.chat.prompt.text == "second words")
        await app.until(lambda: "answer two" not in app.screen)
        assert "answer one" in app.screen
        await app.pilot.press("enter")
        await app.shows("answer three")
        assert [message["content"] for message in server.requests[2].messages if message["role"] == "user"] == [
            "first words",
            "second words",
        ]


@pytest.mark.parametrize("verb", ["/fork", "/rewind"])
async def test_a_copy_works_as_the_chat_did_not_as_the_program_was_started(
    verb: str, serve: Serve, tmp_path: Path
) -> None:
    server = serve([say("answer one"), say("answer two")])
    async with live(settings(server, mode="yolo", toolsets=("terminal", "file")), tmp_path, mode="yolo") as app:
        await app.ready()
        await app.say("first words")
        await app.shows("answer one")
        await app.idle()
        for command in ("/mode plan", "/model other", "/toolsets file"):
            await app.say(command)
        await app.shows("Toolsets from the next turn on: file")
        before = app.desk.session
        await app.say(verb)
        await app.until(lambda: app.desk.session != before)
        await app.say("second words")
        await app.shows("answer two")
        assert app.desk.engine is not None
        view = app.desk.engine.view(app.desk.session)
        assert (view.mode, view.model, view.toolsets) == ("plan", "other", ("file",))
        assert server.requests[1].body["model"] == "other"
        assert app.desk.mode == "plan"
