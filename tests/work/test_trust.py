"""What a child may do and what of it is written: never more than its parent, and no secret (faults 10.2, 10.3)."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.events import AgentFinished, ApprovalAsked, RequestSettled, ToolFinished, TurnFinished, to_json
from hermes_engine.requests import Answer
from tests.server.answers import Seen
from tests.work.conftest import Configure, Hear
from tests.work.support import Heard, answered, by_prompt, call, first_user, say, spawn

KEY = "sk-very-secret-key-0123456789"


def trust(heard: Heard) -> set[str]:
    return heard.engine._chat(heard.session).hands.gate.trust.hosts


def test_a_models_words_to_a_child_name_no_host_and_a_persons_do(hear: Hear) -> None:
    low = {"prompt": "low: get https://evil.example/x", "context": "a person named bad.example.org"}
    deep = [spawn("deep other.example.net"), say("ok")]
    heard = hear(by_prompt({"go": [spawn(low), say("ok")], "a person named": deep}))
    heard.ask("go to good.example.com")
    assert len(heard.of(AgentFinished)) == 2
    assert trust(heard) == {"good.example.com"}
    [child] = [event for event in heard.of(AgentFinished) if event.prompt.startswith("a person")]
    heard.engine.tasks.retry(child.agent)
    heard.wait(lambda: len(heard.of(AgentFinished)) == 4)
    assert trust(heard) == {"good.example.com"}, "nor do they when a person has it run again"
    heard.engine.tasks.tell(child.agent, "also see more.example.com")
    heard.wait(lambda: len(heard.of(AgentFinished)) == 5)
    heard.engine.tasks.start(heard.session, "look at task.example.com", kind="child")
    heard.wait(lambda: len(heard.of(AgentFinished)) == 6)
    assert trust(heard) == {"good.example.com", "more.example.com", "task.example.com"}


def test_f10_2_a_child_asks_what_its_parent_would_ask(hear: Hear) -> None:
    script = {"go": [spawn("low"), say("ok")], "low": [call("write_file", {"path": "a", "content": "x"}), say("x")]}
    heard = hear(by_prompt(script), mode="ask")
    heard.ask("go")
    denied = next(event for event in heard.of(ToolFinished) if event.name == "write_file")
    assert denied.status == "denied"
    assert "nobody is here" in denied.text
    assert not (heard.cwd / "a").exists()


def test_f10_2_a_mode_tightened_while_the_child_works_holds_for_it(hear: Hear) -> None:
    gate = threading.Event()

    def low(seen: Seen) -> Any:
        if not answered(seen):
            return call("terminal", {"command": "touch first"})
        if answered(seen) == 1:
            assert gate.wait(10)
            return call("terminal", {"command": "touch second"})
        return say("ok")

    script: dict[str, Any] = {"go": [spawn("mid"), say("ok")], "mid": [spawn("low"), say("ok")], "low": low}
    heard = hear(by_prompt(script), mode="auto")
    heard.engine.send(heard.session, "go")
    heard.wait(lambda: [event for event in heard.of(ToolFinished) if event.name == "terminal"])
    heard.engine.set_mode(heard.session, "plan")
    gate.set()
    heard.wait(lambda: any(event.session == heard.session for event in heard.of(TurnFinished)))
    commands = [event.status for event in heard.of(ToolFinished) if event.name == "terminal"]
    assert commands == ["ok", "denied"]
    assert (heard.cwd / "first").exists()
    assert not (heard.cwd / "second").exists()


def test_a_mode_loosened_meanwhile_does_not_free_the_child(hear: Hear) -> None:
    work = [call("terminal", {"command": "touch a"}), call("terminal", {"command": "touch b"}), say("x")]
    script = {"go": [spawn("low"), say("ok")], "low": work}
    heard = hear(by_prompt(script), attended=True, mode="ask")
    heard.engine.send(heard.session, "go")
    heard.wait(lambda: heard.of(ApprovalAsked))
    heard.engine.set_mode(heard.session, "yolo")
    assert heard.engine.answer(heard.of(ApprovalAsked)[0].request, Answer("no"))
    heard.wait(lambda: len(heard.of(ApprovalAsked)) == 2)
    assert heard.engine.answer(heard.of(ApprovalAsked)[1].request, Answer("no", "not now"))
    heard.wait(lambda: any(event.session == heard.session for event in heard.of(TurnFinished)))
    assert not (heard.cwd / "a").exists()
    assert not (heard.cwd / "b").exists()


def test_a_yes_for_the_session_answers_all_that_wait_for_the_same_and_those_who_would_ask_later(hear: Hear) -> None:
    heard = hear(by_prompt({"go": [spawn(*[f"low {n}" for n in range(4)]), spawn("low again"), say("ok")],
                            "low": [call("terminal", {"command": "touch a"}), say("x")]}),
                 attended=True, mode="ask")  # fmt: skip
    heard.engine.send(heard.session, "go")
    heard.wait(lambda: len(heard.of(ApprovalAsked)) == 4)
    heard.engine.answer(heard.of(ApprovalAsked)[1].request, Answer("session"))
    heard.wait(lambda: any(event.session == heard.session for event in heard.of(TurnFinished)))
    assert [event.choice for event in heard.of(RequestSettled)] == ["session"] * 4
    assert [event.status for event in heard.of(ToolFinished) if event.name == "terminal"] == ["ok"] * 5


def test_a_yes_for_the_session_answers_nothing_else(hear: Hear) -> None:
    heard = hear(by_prompt({"go": [spawn("one", "two"), say("ok")],
                            "one": [call("terminal", {"command": "touch a"}), say("x")],
                            "two": [call("terminal", {"command": "mkdir b"}), say("x")]}),
                 attended=True, mode="ask")  # fmt: skip
    heard.engine.send(heard.session, "go")
    heard.wait(lambda: len(heard.of(ApprovalAsked)) == 2)
    asked = {event.title: event.request for event in heard.of(ApprovalAsked)}
    heard.engine.answer(asked["mkdir b"], Answer("session"))
    heard.wait(lambda: heard.of(RequestSettled))
    assert [event.request for event in heard.of(RequestSettled)] == [asked["mkdir b"]]
    assert [event.request for event in heard.engine.broker.pending()] == [asked["touch a"]]


def test_deny_rules_of_the_settings_hold_at_every_depth(hear: Hear, configure: Configure) -> None:
    configure('approvals: {deny: ["terminal(touch *)"]}\n')
    heard = hear(by_prompt({"go": [spawn("mid"), say("ok")], "mid": [spawn("low"), say("ok")],
                            "low": [call("terminal", {"command": "touch a"}), say("x")]}), mode="yolo")  # fmt: skip
    heard.ask("go")
    [denied] = [event for event in heard.of(ToolFinished) if event.name == "terminal"]
    assert (denied.status, "touch" in denied.text) == ("denied", True)


def test_deny_rules_of_a_profile_hold_for_a_child_on_it_and_its_allow_rules_do_not(
    hear: Hear, configure: Configure, isolated_home: Path
) -> None:
    configure("{}\n")
    folder = isolated_home / "profiles" / "intern"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(
        'approvals: {mode: yolo, allow: ["terminal(mkdir *)"], deny: ["terminal(touch *)"]}\n'
    )
    work = [call("terminal", {"command": "mkdir b"}), call("terminal", {"command": "touch a"}), say("x")]
    script = {"go": [spawn({"prompt": "low", "profile": "intern"}), say("ok")], "low": work}
    heard = hear(by_prompt(script), mode="ask")
    heard.ask("go")
    made, touched = [event for event in heard.of(ToolFinished) if event.name == "terminal"]
    assert (made.status, "nobody is here" in made.text) == ("denied", True)
    assert (touched.status, "rule" in touched.text) == ("denied", True)


def test_a_child_cannot_read_the_keys_of_the_home(hear: Hear, configure: Configure, isolated_home: Path) -> None:
    configure("{}\n")
    (isolated_home / ".env").write_text(f"OTHER_API_KEY={KEY}\n")
    target = str(isolated_home / ".env")
    heard = hear(by_prompt({"go": [spawn("low"), say("ok")], "low": [call("read_file", {"path": target}), say("x")]}),
                 mode="yolo")  # fmt: skip
    heard.ask("go")
    assert next(event for event in heard.of(ToolFinished) if event.name == "read_file").status == "error"
    assert all(KEY not in seen.raw.decode() for seen in heard.server.requests)


def test_f10_3_secrets_in_childrens_words_are_written_nowhere(
    hear: Hear, isolated_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    heard = hear(by_prompt({
        "go": [spawn({"prompt": "low", "context": f"use {KEY}"}), say("ok")],
        "use": [call("terminal", {"command": f"echo {KEY}; env"}), say(f"it is {KEY}")],
    }), mode="auto")  # fmt: skip
    heard.ask("go")
    [entry] = heard.results()["results"]
    assert entry["answer"] == "it is [redacted]"
    terminal = next(event for event in heard.of(ToolFinished) if event.name == "terminal")
    assert KEY not in terminal.text
    assert "OPENAI_API_KEY" not in terminal.text, "a child's commands do not see it"
    parent = [seen for seen in heard.server.requests if first_user(seen) == "go"][-1]
    assert KEY not in json.dumps([m for m in parent.messages if m["role"] == "tool"])
    heard.engine.tasks.start(heard.session, f"use {KEY}", kind="background")
    heard.wait(lambda: len(heard.of(AgentFinished)) == 2)
    assert [record.answer for record in heard.engine.tasks.results(heard.session)] == ["it is [redacted]"]
    told = [json.dumps(to_json(event)) for event in heard.of(AgentFinished)]
    heard.engine.close()
    files = [path for path in isolated_home.rglob("*") if path.is_file()]
    assert [path.name for path in files if KEY.encode() in path.read_bytes()] == []
    assert all(KEY not in line for line in told)


@pytest.mark.parametrize(("own", "denied"), [("mode: plan", True), ("mode: yolo", False), ("allow: []", False)])
def test_a_profiles_own_mode_tightens_its_children_and_frees_none(
    hear: Hear, isolated_home: Path, own: str, denied: bool
) -> None:
    folder = isolated_home / "profiles" / "careful"
    folder.mkdir(parents=True)
    (folder / "profile.yaml").write_text("description: looks, touches nothing\n")
    (folder / "config.yaml").write_text(f"approvals: {{{own}}}\n")
    heard = hear(by_prompt({
        "go": [spawn({"prompt": "low", "profile": "careful"}), say("ok")],
        "low": [call("terminal", {"command": "touch made"}), say("x")],
    }), mode="auto")  # fmt: skip
    heard.ask("go")
    touched = next(event for event in heard.of(ToolFinished) if event.name == "terminal")
    assert (touched.status == "denied") is denied
    assert (heard.cwd / "made").exists() is not denied
