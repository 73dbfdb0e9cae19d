"""From nothing to a reviewed result, headless: the board enabled, two profiles made, a goal planned, worked, judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Serve
from tests.e2e.program import hermes
from tests.server.answers import Answer, Seen, call, say

pytestmark = pytest.mark.e2e

RESEARCHER = "Capaz de leer código fuente y documentación externa, y producir informes de investigación"
CODER = "Escribe código y sus pruebas"
GOAL = "Añade un caché al cliente HTTP, con un informe previo"
PLAN = {
    "cards": [
        {"title": "Escribe el caché", "body": "Según el informe", "assignee": "coder", "after": [2]},
        {"title": "Informe sobre cachés", "body": "Compara tres", "assignee": "researcher"},
    ]
}


def part(seen: Seen) -> str:
    """Which agent asks."""
    system = seen.messages[0]["content"]
    if "You plan and do nothing else" in system:
        return "planner"
    if "You review the work of another" in system:
        return "reviewer"
    return "coder" if "Card k2" in seen.messages[1]["content"] else "researcher"


def script(seen: Seen) -> Answer:
    """Everybody's model."""
    made = sum(message["role"] == "tool" for message in seen.messages)
    told = seen.messages[1]["content"]
    match part(seen):
        case "planner":
            return say(json.dumps(PLAN, ensure_ascii=False))
        case "researcher":
            return call("kanban_complete", {"summary": "LRU es lo mejor"})
        case "coder" if made == 0:
            return call("write_file", {"path": "cache.py", "content": "# v2\n" if "faltan" in told else "# v1\n"})
        case "coder":
            return call(
                "kanban_request_review", {"summary": "cache.py con pruebas" if "faltan" in told else "cache.py"}
            )
        case _:
            if "cache.py con pruebas" in told:
                return call("kanban_complete", {"summary": "bien"})
            return call("kanban_send_back", {"note": "faltan pruebas"})


def test_the_mission_from_enabling_the_board_to_a_reviewed_result(
    serve: Serve, tmp_path: Path, isolated_home: Path
) -> None:
    server = serve(script)

    def run(*words: str) -> str:
        done = hermes(*words, cwd=tmp_path, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="k")
        assert done.code == 0, (words, done.err)
        return done.out

    assert "tokens in every request" in run("tools", "enable", "kanban")
    run("profile", "create", "researcher", "--description", RESEARCHER, "--model", "reads")
    run("profile", "create", "coder", "--description", CODER, "--model", "writes")
    assert RESEARCHER in run("profile", "list")

    shown = run("-m", "thinks", "kanban", "plan", GOAL, "--yes")
    assert shown.splitlines()[-1] == "created k1, k2"
    run("kanban", "edit", "k2", "--reviewer", "reviewer")
    cards = {card["id"]: card for card in json.loads(run("kanban", "list", "--json"))}
    assert (cards["k1"]["title"], cards["k1"]["assignee"], cards["k1"]["status"]) == (
        "Informe sobre cachés", "researcher", "ready",
    )  # fmt: skip
    assert (cards["k2"]["parents"], cards["k2"]["status"]) == (["k1"], "todo")

    run("kanban", "run", "--once")
    report = json.loads(run("kanban", "show", "k1", "--json"))
    code = json.loads(run("kanban", "show", "k2", "--json"))
    assert (report["status"], report["result"]) == ("done", "LRU es lo mejor")
    assert (code["status"], code["result"]) == ("done", "cache.py con pruebas")
    assert [(run["profile"], run["state"]) for run in code["runs"]] == [
        ("coder", "review"), ("reviewer", "sent_back"), ("coder", "review"), ("reviewer", "done"),
    ]  # fmt: skip
    assert Path(code["runs"][2]["workspace"], "cache.py").read_text() == "# v2\n"

    order = [part(seen) for seen in server.requests]
    assert order == ["planner", "researcher", "coder", "coder", "reviewer", "coder", "coder", "reviewer"]
    models = {part(seen): seen.body["model"] for seen in server.requests}
    assert (models["planner"], models["researcher"], models["coder"]) == ("thinks", "reads", "writes")
    planner = server.requests[0]
    assert planner.tools == []
    assert planner.messages[1] == {"role": "user", "content": GOAL}
    assert f"- researcher: {RESEARCHER}" in planner.messages[0]["content"]
    assert f"- coder: {CODER}" in planner.messages[0]["content"]
    for seen in server.requests[1:]:
        own = {name for name in seen.tools if name.startswith("kanban_")}
        assert {"kanban_show", "kanban_complete", "kanban_block"} <= own
        assert ("kanban_send_back" in own) == (part(seen) == "reviewer")
        assert "kanban_claim" not in own
        assert "You are a worker of a board" in seen.messages[0]["content"] or part(seen) == "reviewer"
        assert GOAL not in json.dumps(seen.messages, ensure_ascii=False), "a worker knows its card and no more"
    assert "LRU es lo mejor" in server.requests[2].messages[1]["content"], "the parent's result is handed on"

    run("kanban", "run", "--once")
    assert len(server.requests) == len(order), "nothing is left to do, so nothing is asked"
    rows = [row.split("\t") for row in run("tasks", "list").splitlines()]
    assert len(rows) == 6, rows
