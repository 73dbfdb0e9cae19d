"""Workers on profiles: each has its own model, endpoint, key and tools, and nothing of another's."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import pytest

from hermes_engine.board import CardDraft
from tests.conftest import Serve
from tests.e2e.program import hermes
from tests.kanban.shop import OpenShop, board_of, calls_made, finishing, first_line, profile, until
from tests.server.answers import Answer, Seen, call, say


def test_f6_4_one_profiles_keys_do_not_leak_into_anothers_run(shop: OpenShop, home: Path, serve: Serve) -> None:
    """One after the other, in one dispatcher; commands see no key of either."""

    def script(seen: Seen) -> Answer:
        if calls_made(seen) == 0:
            return call("terminal", {"command": "env"})
        return call("kanban_complete", {"summary": seen.last["content"]})

    theirs = serve(script)
    profile(
        home, "alpha", env=f"OPENAI_API_KEY=key-of-alpha\nOPENAI_BASE_URL={theirs.base_url}\nMY_TOKEN=token-of-alpha1\n"
    )
    profile(home, "beta")
    own = serve(script)
    (home / ".env").write_text(f"OPENAI_API_KEY=key-of-home\nOPENAI_BASE_URL={own.base_url}\n")
    before = dict(os.environ)
    one = shop([], base_url=None)
    one.board.create(CardDraft("a", assignee="alpha"))
    one.board.create(CardDraft("b", assignee="beta", parents=("k1",)))
    assert one.work() == 0
    assert dict(os.environ) == before
    assert {seen.headers["authorization"] for seen in theirs.requests} == {"Bearer key-of-alpha"}
    assert {seen.headers["authorization"] for seen in own.requests} == {"Bearer key-of-home"}
    for card in ("k1", "k2"):
        assert "PATH=" in one.board.card(card).result
        assert "OPENAI" not in one.board.card(card).result
        assert "MY_TOKEN" not in one.board.card(card).result
    assert "-alpha" not in json.dumps([seen.body for seen in own.requests])


def test_f6_5_a_profiles_own_endpoint_model_and_key_are_used(shop: OpenShop, home: Path, serve: Serve) -> None:
    own = serve(finishing)
    profile(home, "special", env="OPENAI_API_KEY=special-key\n", base_url=own.base_url, model="special-model",
            toolsets="[file]")  # fmt: skip
    one = shop(finishing, api_key="home-key")
    one.board.create(CardDraft("x", assignee="special"))
    assert one.work() == 0
    [seen] = own.requests
    assert (seen.body["model"], seen.headers["authorization"]) == ("special-model", "Bearer special-key")
    assert one.server.requests == []
    assert "terminal" not in seen.tools
    assert {"read_file", "kanban_complete"} <= set(seen.tools), "its card's verbs, whatever its profile lists"
    assert "kanban_list" not in seen.tools


@pytest.mark.parametrize("isolation", ["inprocess", "process"])
def test_flags_of_run_are_for_every_worker_whose_profile_says_nothing_else(
    home: Path, serve: Serve, work: Path, isolation: str
) -> None:
    def script(seen: Seen) -> Answer:
        if calls_made(seen) == 0:
            return call("write_file", {"path": "x.txt", "content": "x"})
        return call("kanban_complete", {"summary": seen.last["content"]})

    server = serve(script)
    profile(home, "plain")
    profile(home, "named", model="its-own")
    (home / "profiles" / "named" / "config.yaml").write_text("model: its-own\napprovals: {mode: yolo}\n")
    with contextlib.closing(board_of(home)) as board:
        board.create_all([CardDraft("x", assignee=name) for name in ("default", "plain", "named")])
        words = ["-m", "typed", "--base-url", server.base_url, "--mode", "plan", "kanban", "run", "--once"]
        done = hermes(*words, "--isolation", isolation, cwd=work)
        assert done.code == 0, done.err
        models = {first_line(seen): seen.body["model"] for seen in server.requests}
        assert models == {"Card k1: x": "typed", "Card k2: x": "typed", "Card k3: x": "its-own"}
        assert all("mode" in card.result for card in board.cards()), "no worker is freer than who had it work"


def test_f6_6_a_cloned_profile_takes_no_history_and_no_keys(home: Path, serve: Serve, work: Path) -> None:
    server = serve([say("hi")])
    profile(home, "old", env="OPENAI_API_KEY=old-key\n", base_url=server.base_url, model="m")
    assert hermes("-p", "old", "chat", "-q", "remember me", cwd=work).code == 0
    assert hermes("profile", "create", "new", "--clone", "old").code == 0
    copied = {path.name for path in (home / "profiles" / "new").iterdir()}
    assert copied == {"profile.yaml", "config.yaml", "SOUL.md"}
    sessions = hermes("sessions", "list", "--json").json
    assert [row["profile"] for row in sessions] == ["old"]


def test_kanban_tools_are_in_no_request_where_they_are_not_enabled(home: Path, serve: Serve, work: Path) -> None:
    server = serve([say("hi")])
    (home / "config.yaml").write_text(f"base_url: {server.base_url}\nmodel: m\ntoolsets: all\n")
    assert hermes("chat", "-q", "x", cwd=work).code == 0
    assert not [tool for tool in server.requests[0].tools if tool.startswith("kanban_")]
    refused = hermes("chat", "-q", "x", "-t", "file,kanban", cwd=work)
    assert refused.code == 2
    assert "hermes tools enable kanban" in refused.err
    assert len(server.requests) == 1
    for words in (("kanban", "run", "--once"), ("kanban", "plan", "x")):
        refused = hermes(*words, cwd=work)
        assert (refused.code, refused.out) == (2, "")
        assert "hermes tools enable kanban" in refused.err


def test_what_enabling_costs_is_what_a_request_grows_by(home: Path, serve: Serve, work: Path) -> None:
    server = serve([say("hi")])
    (home / "config.yaml").write_text(f"base_url: {server.base_url}\nmodel: m\ntoolsets: [file]\n")
    assert hermes("chat", "-q", "x", cwd=work).code == 0
    told = hermes("tools", "enable", "kanban").out
    assert hermes("chat", "-q", "x", cwd=work).code == 0
    before, after = (json.dumps(seen.body["tools"]) for seen in server.requests)
    grown = (len(after) - len(before)) // 4
    said = int(told.split("about ")[1].split()[0])
    assert abs(said - grown) <= 10, (said, grown)
    count = len(server.requests[1].tools) - len(server.requests[0].tools)
    assert f"{count} tools" in told
    assert hermes("tools", "disable", "kanban").code == 0
    assert hermes("chat", "-q", "x", cwd=work).code == 0
    assert server.requests[2].body["tools"] == server.requests[0].body["tools"]


def test_children_of_a_worker_have_no_verb_of_its_card(shop: OpenShop, home: Path) -> None:
    (home / "config.yaml").write_text("toolsets: [file, delegation]\n")
    profile(home, "lead", toolsets="[file, delegation, kanban]")
    (home / "config.yaml").write_text("toolsets: [file, delegation, kanban]\n")

    def script(seen: Seen) -> Answer:
        if "kanban_complete" not in seen.tools:
            return say("child's word")
        if calls_made(seen) == 0:
            return call("spawn_agent", {"prompt": "help"})
        return call("kanban_complete", {"summary": json.loads(seen.last["content"])["results"][0]["answer"]})

    one = shop(script)
    one.board.create(CardDraft("x", assignee="lead"))
    assert one.work() == 0
    assert one.board.card("k1").result == "child's word"
    until(lambda: all(not row.live for row in one.engine.agents()))
