"""One-shots whose model starts agents."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Serve
from tests.e2e.program import hermes
from tests.server.answers import call, say
from tests.server.scripted import ScriptedServer
from tests.work.support import by_prompt, spawn

pytestmark = pytest.mark.e2e


def ask(server: ScriptedServer, *args: str) -> tuple[str, ...]:
    return ("chat", "-q", "split it", "--base-url", server.base_url, "-m", "m", *args)


def test_f4_9_a_one_shot_waits_for_its_agents_and_tells_what_each_does(serve: Serve, tmp_path: Path) -> None:
    work = [call("terminal", {"command": "echo so"}), say("looked", delay=0.3)]
    server = serve(by_prompt({"split": [spawn("scout the place", "other work"), say("all in")], "scout": work}))
    done = hermes(*ask(server, "--json"), cwd=tmp_path)
    assert done.code == 0
    assert (done.json["status"], done.json["answer"]) == ("ok", "all in")
    assert done.json["usage"]["prompt_tokens"] == 5 * 10, "the chat's two requests, the scout's two, the other's one"
    for words in ("started scout: scout the place", "scout: ▸ Run echo so", "✓ scout done", "✓ other done"):
        assert words in done.err


def test_nobody_answers_for_a_child_so_what_would_ask_is_denied_at_once(serve: Serve, tmp_path: Path) -> None:
    asks = call("terminal", {"command": "rm -rf ../elsewhere"})
    server = serve(by_prompt({"split": [spawn("scout the place"), say("all in")], "scout": [asks, say("could not")]}))
    done = hermes(*ask(server), cwd=tmp_path)
    assert (done.code, done.out) == (0, "all in\n")
    told = next(
        seen for seen in server.requests if seen.last.get("role") == "tool" and "scout" in str(seen.messages[1])
    )
    assert "nobody is here to answer" in str(told.last["content"])
    assert "scout: ✗ Run rm -rf ../elsewhere" in done.err
