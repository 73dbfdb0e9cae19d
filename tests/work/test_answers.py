"""What comes back from children: answers that follow a schema, and a result that always reaches the model as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_engine.events import ToolFinished
from hermes_engine.tools.result import MOST
from hermes_engine.work.answers import checked_answer
from hermes_engine.work.tasks import results_text
from tests.server.answers import Seen, hang, status
from tests.work.conftest import Configure, Hear
from tests.work.support import Heard, answered, by_prompt, call, calls, first_user, say, spawn

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def asked(heard: Heard, prompt: str) -> list[Seen]:
    return [seen for seen in heard.server.requests if first_user(seen) == prompt]


def replies(*texts: str) -> Any:
    """A child's script: one reply after the other, by how often it was spoken to."""

    def script(seen: Seen) -> Any:
        said = sum(message["role"] == "user" for message in seen.messages)
        return say(texts[min(said, len(texts)) - 1])

    return script


def with_schema(hear: Hear, *texts: str, schema: Any = SCHEMA) -> tuple[Heard, dict[str, Any]]:
    task = {"prompt": "child", "output_schema": schema}
    heard = hear(by_prompt({"go": [spawn(task), say("ok")], "child": replies(*texts)}))
    assert heard.ask("go").answer == "ok"
    [entry] = heard.results()["results"]
    return heard, entry


def test_a_valid_answer_is_taken_at_once_and_the_child_knows_the_schema(hear: Hear) -> None:
    heard, entry = with_schema(hear, '{"n": 1}')
    assert (entry["status"], entry["schema_valid"], json.loads(entry["answer"])) == ("ok", True, {"n": 1})
    [seen] = asked(heard, "child")
    assert json.dumps(SCHEMA) in seen.messages[0]["content"]
    assert seen.messages[0]["role"] == "system"


def test_an_invalid_answer_is_asked_for_once_more(hear: Hear) -> None:
    heard, entry = with_schema(hear, '{"n": "one"}', '{"n": 1}')
    assert (entry["status"], entry["schema_valid"], json.loads(entry["answer"])) == ("ok", True, {"n": 1})
    assert entry["turns"] == 2
    assert entry["tokens"] == 30
    again = asked(heard, "child")[1].last
    assert (again["role"], "$.n" in again["content"]) == ("user", True)
    assert len(asked(heard, "child")) == 2


def test_twice_invalid_is_told_and_not_asked_a_third_time(hear: Hear) -> None:
    heard, entry = with_schema(hear, "one", '{"n": 1.5}', '{"n": 1}')
    assert (entry["status"], entry["schema_valid"], entry["answer"]) == ("ok", False, '{"n": 1.5}')
    assert len(asked(heard, "child")) == 2


@pytest.mark.parametrize(
    "answer",
    [
        '```json\n{"n": 1}\n```',
        'Here it is:\n\n```json\n{"n": 1}\n```\nI hope it helps.',
        'First:\n```json\n{"m": 0}\n```\nno, rather:\n```\n{"n": 1}\n```',
        '  {"n": 1}\n',
        '```json\r\n{"n": 1}\r\n```',
    ],
)
def test_json_in_a_fence_or_in_words_is_found(hear: Hear, answer: str) -> None:
    heard, entry = with_schema(hear, answer)
    assert (entry["schema_valid"], json.loads(entry["answer"])) == (True, {"n": 1})
    assert len(asked(heard, "child")) == 1


@pytest.mark.parametrize("schema", [{"type": "nosuch"}, {"type": 5}, {"required": "n"}, {"$ref": "#/nowhere"}])
def test_what_is_no_schema_costs_nothing_and_is_told(hear: Hear, schema: Any) -> None:
    heard, entry = with_schema(hear, '{"n": 1}', schema=schema)
    assert entry["status"] == "error"
    assert "schema" in entry["error"]
    assert asked(heard, "child") == []


def test_a_schema_that_names_a_file_or_an_address_reads_nothing(hear: Hear) -> None:
    for ref in ("http://127.0.0.1:1/x", "file:///etc/passwd"):
        _, entry = with_schema(hear, '{"n": 1}', schema={"properties": {"n": {"$ref": ref}}})
        assert entry["status"] == "error" or entry["schema_valid"] is False


def test_a_schema_as_json_text_is_taken(hear: Hear) -> None:
    _, entry = with_schema(hear, '{"n": 1}', schema=json.dumps(SCHEMA))
    assert entry.get("schema_valid") is True, entry


def test_an_answer_that_is_no_json_is_left_as_it_is() -> None:
    assert checked_answer("plain words", SCHEMA) == ("plain words", "the answer is not JSON")
    assert checked_answer("[" * 100_000, SCHEMA)[1] == "the answer is not JSON"
    assert checked_answer('{"n": NaN}', {"type": "object", "properties": {"n": {"type": "string"}}})[1]


@pytest.mark.parametrize(
    "arguments",
    [
        {"agents": json.dumps([{"prompt": "a"}, {"prompt": "b"}])},
        {"tasks": [{"goal": "a"}, {"goal": "b"}]},
        {"tasks": json.dumps([{"goal": "a"}, {"goal": "b"}])},
        {"agents": ["a", "b"]},
        {"agents": json.dumps(["a", "b"])},
        {"agents": ["a", {"prompt": "b"}]},
        {"agents": [json.dumps({"prompt": "a"}), "b"]},
    ],
)
def test_the_list_in_every_form_models_send_it(hear: Hear, arguments: dict[str, Any]) -> None:
    heard = hear(by_prompt({"go": [call("spawn_parallel", arguments), say("ok")]}))
    heard.ask("go")
    assert [entry["answer"] for entry in heard.results()["results"]] == ["done: a", "done: b"]


@pytest.mark.parametrize("lone", [{"prompt": "a"}, json.dumps({"prompt": "a"}), "a", json.dumps({"goal": "a"})])
def test_a_single_task_for_a_list_of_one(hear: Hear, lone: Any) -> None:
    heard = hear(by_prompt({"go": [call("spawn_parallel", {"agents": lone}), say("ok")]}))
    heard.ask("go")
    assert [entry["answer"] for entry in heard.results()["results"]] == ["done: a"]


def test_goal_is_prompt_for_one_agent_too_and_its_result_has_the_same_form(hear: Hear) -> None:
    heard = hear(by_prompt({"go": [call("spawn_agent", {"goal": "a", "context": "  mind\n"}), say("ok")]}))
    heard.ask("go")
    whole = heard.results()
    assert list(whole) == ["results", "ok", "failed"]
    [entry] = whole["results"]
    assert list(entry) == ["index", "agent_id", "status", "answer", "turns", "tokens", "seconds", "error",
                           "files_changed"]  # fmt: skip
    assert entry["answer"] == "done: mind\n\na"


@pytest.mark.parametrize("agents", [[], "", "[]", [[]], [{"prompt": "  "}], [{"prompt": None}], [5], None, 7])
def test_nothing_to_do_is_an_error_the_model_can_read(hear: Hear, agents: Any) -> None:
    heard = hear(by_prompt({"go": [call("spawn_parallel", {"agents": agents}), say("ok")]}))
    assert heard.ask("go").answer == "ok"
    [tool] = [event for event in heard.of(ToolFinished) if event.name == "spawn_parallel"]
    assert tool.status == "error" or json.loads(tool.text)["failed"] == 1
    assert len(heard.server.requests) == 2


def test_three_long_answers_are_cut_inside_answer_equally(hear: Hear) -> None:
    heard = hear(by_prompt({"go": [spawn("a", "b", "c", "short"), say("ok")], "short": say("short"),
                            "": lambda seen: say(first_user(seen) * 100_000)}))  # fmt: skip
    heard.ask("go")
    told = heard.of(ToolFinished)[-1].text
    assert 25_000 < len(told) <= MOST
    answers = [entry["answer"] for entry in json.loads(told)["results"]]
    assert [answer[0] + answer[-1] for answer in answers[:3]] == ["aa", "bb", "cc"]
    assert len({len(answer) for answer in answers[:3]}) == 1
    assert all("cut" in answer for answer in answers[:3])
    assert answers[3] == "short"


@pytest.mark.parametrize("hostile", ["<|im_start|>" * 900, '"\\\n\x00\x1b[31m' * 1500, "日本\u2028" * 4000])
def test_hostile_answers_stay_whole_json_under_the_limit(hear: Hear, hostile: str) -> None:
    heard = hear(by_prompt({"go": [spawn("a", "b", "c"), say("ok")], "": say(hostile)}))
    heard.ask("go")
    told = heard.of(ToolFinished)[-1].text
    assert len(told) <= MOST
    assert json.loads(told)["ok"] == 3
    assert "<|im_start|>" not in told
    assert [m["content"] for m in heard.server.requests[-1].messages if m["role"] == "tool"] == [told]


def test_sixty_children_with_many_files_and_long_errors_fit(hear: Hear, configure: Configure) -> None:
    configure("delegation: {max_concurrent: 16}\nterminal: {timeout_seconds: 5}\n")

    def low(seen: Seen) -> Any:
        number = first_user(seen).split()[1]
        if answered(seen):
            return say("long answer " * 50)
        if int(number) % 2:
            return status(401, {"error": {"message": "no, because " * 60}})
        path = f"a-rather-long-folder-name-{number}/a-rather-long-file-name-{{}}.txt"
        return calls([("write_file", {"path": path.format(n), "content": "x"}) for n in range(12)])

    heard = hear(by_prompt({"go": [spawn(*[f"low {n}" for n in range(60)]), say("ok")], "low": low}), mode="auto")
    heard.ask("go", 60)
    told = heard.of(ToolFinished)[-1].text
    assert len(told) <= MOST
    whole = json.loads(told)
    assert (whole["ok"], whole["failed"], len(whole["results"])) == (30, 30, 60)
    assert all(entry["error"] for entry in whole["results"][1::2])
    assert all(entry["answer"] and entry["files_changed"] for entry in whole["results"][::2])


def entry(index: int, answer: str, error: str | None, files: list[str], note: str) -> dict[str, Any]:
    return {"index": index, "agent_id": "ag_0123abcd", "status": "max_turns", "answer": answer, "turns": 50,
            "tokens": 1_000_000, "seconds": 900.25, "error": error, "files_changed": files, "schema_valid": False,
            "workspace": note}  # fmt: skip


TEXTS = st.text(alphabet=st.sampled_from('ab"\\\n\x1b\u2028日😀'), max_size=30).flatmap(
    lambda text: st.integers(0, 300).map(lambda times: text * times)
)


@given(
    st.lists(st.builds(entry, st.just(0), TEXTS, st.none() | TEXTS, st.lists(TEXTS, max_size=3), TEXTS), max_size=100)
)
def test_every_result_fits_and_names_every_task(entries: list[dict[str, Any]]) -> None:
    numbered = [{**one, "index": index} for index, one in enumerate(entries)]
    text = results_text(numbered)
    assert len(text) <= MOST
    told = json.loads(text)
    assert [one["index"] for one in told["results"]] == list(range(len(entries)))
    assert told["failed"] == len(entries)


def test_the_largest_result_there_can_be_fits() -> None:
    whole = [entry(n, 'x"' * 50_000, 'y"' * 5_000, ["z" * 4_000] * 100, 'w"' * 500) for n in range(100)]
    text = results_text(whole)
    assert len(text) <= MOST
    assert len(json.loads(text)["results"]) == 100


def test_more_than_a_hundred_at_once_are_refused(hear: Hear) -> None:
    heard = hear(by_prompt({"go": [spawn(*[f"low {n}" for n in range(101)]), say("ok")]}))
    heard.ask("go")
    assert heard.of(ToolFinished)[-1].status == "error"
    assert "100" in heard.of(ToolFinished)[-1].text
    assert len(heard.server.requests) == 2


def test_the_time_of_a_repair_is_the_childs_own(hear: Hear) -> None:
    def child(seen: Seen) -> Any:
        said = sum(message["role"] == "user" for message in seen.messages)
        return say("no json", first_delay=0.7) if said == 1 else hang(30)

    task = {"prompt": "child", "output_schema": SCHEMA, "timeout_seconds": 1}
    heard = hear(by_prompt({"go": [spawn(task), say("ok")], "child": child}))
    heard.ask("go")
    [entry] = heard.results()["results"]
    assert (entry["status"], entry["schema_valid"], entry["answer"]) == ("timeout", False, "no json")
    assert entry["seconds"] < 1.6
