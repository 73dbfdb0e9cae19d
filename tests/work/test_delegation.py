"""Agents that start agents, through the whole engine over real HTTP."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hermes_engine.events import AgentStarted
from tests.server.answers import hang, status
from tests.work.support import Heard, by_prompt, call, first_user, say, spawn


def test_results_come_back_in_order_one_for_each(hear: Callable[..., Heard]) -> None:
    heard = hear(
        by_prompt({"split": [spawn("task a", {"goal": "task b", "context": "mind"}, "task c"), say("all in")]})
    )
    ended = heard.ask("split the work")
    assert (ended.status, ended.answer) == ("ok", "all in")
    results = heard.results()
    assert (results["ok"], results["failed"]) == (3, 0)
    assert [entry["answer"] for entry in results["results"]] == ["done: task a", "done: mind\n\ntask b", "done: task c"]
    assert [entry["index"] for entry in results["results"]] == [0, 1, 2]
    names = [event.name for event in heard.of(AgentStarted) if event.kind == "child"]
    assert sorted(names) == ["task", "task-2", "task-3"], "each can be named, also when they start at once"
    assert all(entry["status"] == "ok" and entry["error"] is None for entry in results["results"])
    assert ended.usage.total_tokens == 5 * 15, "children count towards their parent"
    assert [row.title for row in heard.engine.agents()[1:]] == ["task a", "task b", "task c"]
    first = next(seen for seen in heard.server.requests if first_user(seen) == "task a")
    assert first.tools == ["terminal", "process", "read_file", "write_file", "patch", "search_files",
                           "spawn_agent", "spawn_parallel"]  # fmt: skip


def test_a_bare_list_is_the_list_of_agents(hear: Callable[..., Heard]) -> None:
    bare = call("spawn_parallel", '[{"prompt": "task a"}, {"prompt": "task b"}]')
    heard = hear(by_prompt({"split": [bare, say("all in")]}))
    assert heard.ask("split the work").status == "ok"
    assert [entry["answer"] for entry in heard.results()["results"]] == ["done: task a", "done: task b"]


def test_f3_1_f12_2_a_hanging_and_a_failing_child_cost_only_themselves(hear: Callable[..., Heard]) -> None:
    tasks = ["good", {"prompt": "silent", "timeout_seconds": 0.5}, "refused"]
    heard = hear(
        by_prompt({"split": [spawn(*tasks), say("ok")], "silent": hang(30), "refused": status(401, "bad key")})
    )
    heard.ask("split the work")
    told = heard.results()["results"]
    assert [entry["status"] for entry in told] == ["ok", "timeout", "error"]
    assert "0.5 s" in told[1]["error"]
    assert "401" in told[2]["error"]
    assert heard.server.wait_until(lambda: heard.server.open_requests == 0)


def test_f3_5_no_more_at_once_than_allowed(hear: Callable[..., Heard], isolated_home: Path) -> None:
    isolated_home.mkdir(parents=True)
    (isolated_home / "config.yaml").write_text("delegation: {max_concurrent: 3}\n")
    tasks = [f"task {number:02}" for number in range(20)]
    heard = hear(
        by_prompt({"split": [spawn(*tasks), say("ok")], "task": lambda seen: say(first_user(seen), delay=0.1)})
    )
    heard.ask("split the work")
    assert [entry["answer"] for entry in heard.results()["results"]] == tasks
    children = [seen for seen in heard.server.requests if first_user(seen).startswith("task")]
    most = max(sum(a.started <= b.started < (a.ended or 0) for a in children) for b in children)
    assert most == 3


def test_children_that_wait_for_children_block_nobody(hear: Callable[..., Heard], isolated_home: Path) -> None:
    isolated_home.mkdir(parents=True)
    (isolated_home / "config.yaml").write_text("delegation: {max_concurrent: 1, max_depth: 3}\n")
    heard = hear(
        by_prompt(
            {
                "top": [spawn("mid 1", "mid 2"), say("top done")],
                "mid": [spawn("low 1", "low 2"), say("mid done")],
                "low": [call("spawn_agent", {"prompt": "leaf"}), say("low done")],
            }
        )
    )
    ended = heard.ask("top")
    assert ended.answer == "top done"
    assert [entry["answer"] for entry in heard.results()["results"]] == ["mid done", "mid done"]
    leaf = next(seen for seen in heard.server.requests if first_user(seen) == "leaf")
    assert "spawn_agent" not in leaf.tools
