"""What a child may have, what it is asked with and how many there may be (faults, section 3)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.events import AgentFinished, ToolFinished, to_json
from tests.conftest import Serve
from tests.server.answers import Seen, hang, message, plain_json, status
from tests.work.conftest import Configure, Hear
from tests.work.support import Heard, answered, by_prompt, call, first_user, say, spawn


def children(heard: Heard, beginning: str) -> list[Seen]:
    return [seen for seen in heard.server.requests if first_user(seen).startswith(beginning)]


def one(heard: Heard) -> dict[str, Any]:
    [entry] = heard.results()["results"]
    assert isinstance(entry, dict)
    return entry


def test_f3_3_the_argument_wins_over_the_settings(hear: Hear, configure: Configure) -> None:
    configure("delegation: {timeout_seconds: 600}\n")
    script = by_prompt({"go": [call("spawn_agent", {"prompt": "silent", "timeout_seconds": 1}), say("ok")],
                        "silent": hang(60)})  # fmt: skip
    heard = hear(script)
    heard.ask("go")
    entry = one(heard)
    assert (entry["status"], "1 s" in entry["error"]) == ("timeout", True)
    assert 1 <= entry["seconds"] < 10


def test_f3_3_without_an_argument_or_with_nothing_the_settings_count(hear: Hear, configure: Configure) -> None:
    configure("delegation: {timeout_seconds: 0.5}\n")
    tasks = ["silent 1", {"prompt": "silent 2", "timeout_seconds": 0}, {"prompt": "silent 3", "timeout_seconds": None}]
    heard = hear(by_prompt({"go": [spawn(*tasks), say("ok")], "silent": hang(60)}))
    heard.ask("go")
    assert [entry["status"] for entry in heard.results()["results"]] == ["timeout"] * 3


@pytest.mark.parametrize("seconds", [-1, "soon", "NaN", "Infinity", [1]])
def test_f3_3_a_timeout_that_is_none_is_refused(hear: Hear, seconds: Any) -> None:
    heard = hear(by_prompt({"go": [call("spawn_agent", {"prompt": "child", "timeout_seconds": seconds}), say("ok")]}))
    assert heard.ask("go").answer == "ok"
    assert "timeout_seconds" in heard.of(ToolFinished)[-1].text
    assert children(heard, "child") == []


def test_f3_5_a_ceiling_for_all_children_of_one_turn(hear: Hear, configure: Configure) -> None:
    configure("delegation: {max_per_turn: 5}\n")

    def go(seen: Seen) -> Any:
        asked = answered(seen) % 3 if len([m for m in seen.messages if m["role"] == "user"]) == 1 else 0
        return [spawn("task 1", "task 2", "task 3"), spawn("task 4", "task 5", "task 6"), say("ok")][asked]

    heard = hear(by_prompt({"go": go}))
    assert heard.ask("go").answer == "ok"
    first, second = heard.of(ToolFinished)
    assert json.loads(first.text)["ok"] == 3
    assert second.status == "error"
    assert "2 more" in second.text
    assert len(children(heard, "task")) == 3


def test_f3_5_the_ceiling_counts_grandchildren_and_begins_anew_with_a_turn(hear: Hear, configure: Configure) -> None:
    configure("delegation: {max_per_turn: 3}\n")
    heard = hear(by_prompt({
        "go": lambda seen: say("ok") if seen.last["role"] == "tool" else spawn("mid"),
        "mid": [spawn("low 1", "low 2", "low 3"), spawn("low 4", "low 5"), say("mid done")],
    }))  # fmt: skip
    for turn in (1, 2):
        assert heard.ask("go on").answer == "ok"
        assert len(children(heard, "low")) == 2 * turn, "3 asked for was too many, 2 were not"


def test_f3_8_a_bundle_gives_a_child_nothing_its_parent_lacks(hear: Hear, configure: Configure) -> None:
    configure("toolsets: [file, delegation, clarify]\ndelegation: {max_depth: 1}\n")
    tasks: list[Any] = [{"prompt": "child all", "toolsets": ["all"]}, {"prompt": "child star", "toolsets": ["*"]},
                        {"prompt": "child none", "toolsets": []}, "child plain"]  # fmt: skip
    heard = hear(by_prompt({"go": [spawn(*tasks), say("ok")]}))
    heard.ask("go")
    assert heard.results()["ok"] == 4
    files = ["read_file", "write_file", "patch", "search_files"]
    offered = {first_user(seen): seen.tools for seen in children(heard, "child")}
    assert offered == {"child all": files, "child star": files, "child plain": files, "child none": []}


@pytest.mark.parametrize("name", ["terminal", "clarify", "web", "delegation"])
def test_f3_8_a_set_by_name_that_no_child_can_have_is_refused(hear: Hear, configure: Configure, name: str) -> None:
    configure("toolsets: [file, delegation, clarify]\ndelegation: {max_depth: 1}\n")
    heard = hear(by_prompt({"go": [spawn({"prompt": "child", "toolsets": [name]}), say("ok")]}))
    heard.ask("go")
    entry = one(heard)
    assert entry["status"] == "error"
    assert name in entry["error"]
    assert children(heard, "child") == []


def test_f3_8_a_parent_with_delegation_alone_hands_down_the_default_sets(hear: Hear, configure: Configure) -> None:
    configure("toolsets: [delegation]\n")
    heard = hear(by_prompt({"go": [spawn("child"), say("ok")]}))
    heard.ask("go")
    assert heard.server.requests[0].tools == ["spawn_agent", "spawn_parallel"]
    assert "terminal" in children(heard, "child")[0].tools
    assert "read_file" in children(heard, "child")[0].tools


def test_f3_8_at_depth_none_nobody_has_the_tools(hear: Hear, configure: Configure) -> None:
    configure("delegation: {max_depth: 0}\n")
    heard = hear(by_prompt({"go": [spawn("child"), say("ok")]}))
    heard.ask("go")
    assert "spawn_agent" not in heard.server.requests[0].tools
    assert heard.of(ToolFinished)[-1].status == "error"
    assert children(heard, "child") == []


def test_f3_9_a_toolset_that_does_not_exist_is_an_error_before_the_start(hear: Hear) -> None:
    heard = hear(by_prompt({"go": [spawn({"prompt": "child", "toolsets": ["file", "nosuch"]}, "child 2"), say("ok")]}))
    heard.ask("go")
    first, second = heard.results()["results"]
    assert (first["status"], second["status"]) == ("error", "ok")
    assert "nosuch" in first["error"]
    assert "terminal" in first["error"], "the valid ones are named"
    assert [first_user(seen) for seen in children(heard, "child")] == ["child 2"]


def test_f3_10_a_child_is_asked_with_its_own_model(hear: Hear, configure: Configure) -> None:
    configure("delegation: {model: cheap}\n")
    heard = hear(by_prompt({"go": [spawn({"prompt": "child 1", "model": "m2"}, "child 2"), say("ok")]}))
    heard.ask("go")
    assert {first_user(seen): seen.body["model"] for seen in heard.server.requests} == {
        "go": "m", "child 1": "m2", "child 2": "cheap",
    }  # fmt: skip


def test_f3_10_a_profile_brings_its_own_server_model_and_key(
    hear: Hear, serve: Serve, configure: Configure, isolated_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-of-the-profile-12345678"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-default-12345678")
    own = serve(by_prompt({"child": [call("terminal", {"command": f"echo {key}"}), say(f"the key is {key}")]}))
    configure("{}\n")
    folder = isolated_home / "profiles" / "checker"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(f"model: own-model\nbase_url: {own.base_url}\n")
    (folder / "SOUL.md").write_text("You check.\n")
    (folder / ".env").write_text(f"OPENAI_API_KEY={key}\n")
    heard = hear(by_prompt({"go": [spawn({"prompt": "child", "profile": "checker"}), say("ok")]}), mode="auto")
    heard.ask("go")
    entry = one(heard)
    assert (entry["status"], entry["answer"]) == ("ok", "the key is [redacted]")
    assert {seen.body["model"] for seen in own.requests} == {"own-model"}
    assert {seen.headers["authorization"] for seen in own.requests} == {f"Bearer {key}"}
    assert "You check." in own.requests[0].messages[0]["content"]
    assert children(heard, "child") == [], "the default server was not asked"
    assert all(key not in seen.raw.decode() and key not in str(seen.headers) for seen in heard.server.requests)
    said = [json.dumps(to_json(event)) for event in heard.events if isinstance(event, ToolFinished)]
    assert all(key not in line for line in said)
    heard.engine.close()
    written = [path for path in isolated_home.rglob("*") if path.is_file() and path.name != ".env"]
    assert [path for path in written if key.encode() in path.read_bytes()] == []


@pytest.mark.parametrize("sets", ["file", "file, terminal", '["file"]', ["file"]])
def test_toolsets_may_come_as_one_text(hear: Hear, sets: str | list[str]) -> None:
    lone = call("spawn_agent", {"prompt": "child 1", "toolsets": sets})
    heard = hear(by_prompt({"go": [lone, spawn({"prompt": "child 2", "toolsets": sets}), say("ok")]}))
    heard.ask("go")
    for seen in children(heard, "child"):
        assert ("read_file" in seen.tools, "terminal" in seen.tools) == (True, "terminal" in sets)
        assert "spawn_agent" not in seen.tools
    assert len(children(heard, "child")) == 2


def test_a_blank_text_for_an_argument_says_nothing(hear: Hear) -> None:
    blank = {"context": "", "profile": "", "model": "", "toolsets": "", "output_schema": ""}
    lone = call("spawn_agent", {"prompt": "child 1", **blank})
    heard = hear(by_prompt({"go": [lone, spawn({"prompt": "child 2", **blank}), say("ok")]}))
    heard.ask("go")
    asked = {first_user(seen): ("read_file" in seen.tools, "terminal" in seen.tools) for seen in heard.server.requests}
    assert asked == {"go": (True, True), "child 1": (True, True), "child 2": (True, True)}
    assert "schema_valid" not in one(heard)


@pytest.mark.parametrize(("told", "asked"), [("null", "m"), ("cheap", "cheap")])
def test_a_child_on_a_profile_that_names_no_model_has_one_the_server_knows(
    hear: Hear, configure: Configure, told: str, asked: str
) -> None:
    configure(f"delegation: {{model: {told}}}\n")
    heard = hear(by_prompt({"go": [spawn({"prompt": "child", "profile": "reviewer"}), say("ok")]}))
    heard.ask("go")
    task = heard.engine.tasks.start(heard.session, "mine", kind="child", profile="reviewer")
    heard.wait(lambda: any(event.agent == task.id for event in heard.of(AgentFinished)))
    models = {first_user(seen): seen.body["model"] for seen in heard.server.requests}
    assert models == {"go": "m", "child": asked, "mine": "m"}


def test_f3_8_a_profile_brings_no_tools_its_parent_lacks(hear: Hear, configure: Configure, isolated_home: Path) -> None:
    configure("toolsets: [file, delegation]\ndelegation: {max_depth: 1}\n")
    folder = isolated_home / "profiles" / "wide"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text("toolsets: [all]\n")
    heard = hear(by_prompt({"go": [spawn({"prompt": "child", "profile": "wide"}), say("ok")]}))
    heard.ask("go")
    assert children(heard, "child")[0].tools == ["read_file", "write_file", "patch", "search_files"]


def test_a_grandchild_of_a_child_on_a_profile_stays_with_its_server_and_key(
    hear: Hear, serve: Serve, configure: Configure, isolated_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-default-12345678")
    own = serve(by_prompt({"child": [spawn("deep 1", {"prompt": "deep 2", "profile": "default"}), say("ok")]}))
    configure("{}\n")
    folder = isolated_home / "profiles" / "checker"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(f"model: own-model\nbase_url: {own.base_url}\n")
    (folder / ".env").write_text("OPENAI_API_KEY=sk-of-the-profile-12345678\n")
    heard = hear(by_prompt({"go": [spawn({"prompt": "child", "profile": "checker"}), say("ok")]}))
    heard.ask("go")
    asked = {first_user(seen): (seen.body["model"], seen.headers["authorization"]) for seen in own.requests}
    key = "Bearer sk-of-the-profile-12345678"
    assert asked == {"child": ("own-model", key), "deep 1": ("own-model", key)}
    other = {first_user(seen): (seen.body["model"], str(seen.headers)) for seen in heard.server.requests}
    assert set(other) == {"go", "deep 2"}
    assert all(model != "own-model" and "of-the-profile" not in headers for model, headers in other.values())


def test_an_unknown_profile_is_an_error_of_that_task_alone(hear: Hear) -> None:
    heard = hear(by_prompt({"go": [spawn({"prompt": "child 1", "profile": "nobody"}, "child 2"), say("ok")]}))
    heard.ask("go")
    first, second = heard.results()["results"]
    assert (first["status"], second["status"]) == ("error", "ok")
    assert "nobody" in first["error"]


def test_f3_11_content_that_is_a_list_of_parts_is_joined(hear: Hear) -> None:
    parts = [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]
    heard = hear(by_prompt({"go": [spawn("child"), say("ok")], "child": plain_json(message(parts))}))
    heard.ask("go")
    assert one(heard)["answer"] == "one two"


def test_f3_12_ended_is_not_the_same_as_done(hear: Hear) -> None:
    tasks = ["refused", {"prompt": "endless", "max_turns": 2}, "empty", {"prompt": "cut"}]

    def endless(seen: Seen) -> Any:
        return call("terminal", {"command": f"echo {answered(seen)}"}, text=f"round {answered(seen)}")

    heard = hear(
        by_prompt({
            "go": [spawn(*tasks), say("ok")], "refused": status(401, {"error": {"message": "bad key"}}),
            "endless": endless, "empty": say(""), "cut": say("as far as", finish="length"),
        }),
        mode="auto",
    )  # fmt: skip
    heard.ask("go")
    told = heard.results()
    assert (told["ok"], told["failed"]) == (0, 4)
    refused, turned, empty, cut = told["results"]
    assert (refused["status"], "401" in refused["error"]) == ("error", True)
    assert (turned["status"], turned["turns"], turned["answer"]) == ("max_turns", 2, "round 1")
    assert turned["error"]
    assert (empty["status"], empty["answer"]) == ("error", "")
    assert "empty" in empty["error"]
    assert (cut["status"], cut["answer"]) == ("error", "as far as")
    assert "limit" in cut["error"]


def test_f3_13_a_task_that_keeps_failing_is_not_started_again(hear: Hear) -> None:
    heard = hear(by_prompt({"go": spawn({"prompt": "child", "model": "m2"}), "child": status(401, "bad key")}))
    ended = heard.ask("go")
    assert ended.status in ("error", "max_turns")
    assert len(children(heard, "child")) == 2
    told = [json.loads(event.text)["results"][0]["error"] for event in heard.of(ToolFinished)]
    assert "failed 2 times already" in told[2]
    assert "401" in told[2], "and why"


def test_f3_13_another_task_or_another_turn_begins_anew(hear: Hear) -> None:
    def go(seen: Seen) -> Any:
        roles = [message["role"] for message in seen.messages]
        rounds = roles[::-1].index("user") // 2
        return [spawn("child"), spawn("child"), spawn("child"), spawn("child other"), say("ok")][rounds]

    heard = hear(by_prompt({"go": go, "child": status(401, "bad key")}))
    for turn in (1, 2):
        assert heard.ask("go").answer == "ok"
        assert len(children(heard, "child other")) == turn
        assert len(children(heard, "child")) == 3 * turn


def test_children_on_one_profile_at_the_same_time_share_its_client(
    hear: Hear, serve: Serve, configure: Configure, isolated_home: Path
) -> None:
    own = serve(by_prompt({"child": say("done", first_delay=0.5)}))  # one that ends at once asks no further
    configure("{}\n")
    folder = isolated_home / "profiles" / "checker"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(f"model: own-model\nbase_url: {own.base_url}\n")
    tasks = [{"prompt": f"child {n}", "profile": "checker"} for n in range(6)]
    heard = hear(by_prompt({"go": [spawn(*tasks), say("ok")]}))
    heard.ask("go")
    assert heard.results()["ok"] == 6
    assert len([seen for seen in own.others if seen.path == "/v1/models"]) == 1
