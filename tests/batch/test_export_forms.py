"""Exports in the forms trainers read, each checked in a real consumer where one can run here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets
import pytest
from transformers import AutoTokenizer

from hermes_engine.batch.export import FORMATS, Form, FormOptions, export, form_of
from hermes_engine.batch.export.atropos import UNTRAINED, messages_of
from hermes_engine.batch.export.turns import Unfit, turns_of
from hermes_engine.batch.folder import RunFolder
from hermes_engine.errors import UsageError
from hermes_engine.messages import Message, ToolCall, tool_message
from tests.batch.support import Played, Ran, dataset, play, read_rows

TOKENIZER = Path(__file__).with_name("tiny_tokenizer")
LS = ToolCall("a", "terminal", '{"command": "ls"}')
CAT = ToolCall("b", "read_file", '{"path": "it\'s.md"}')
TURNS = [
    Message("assistant", "I look.", (LS, CAT), reasoning="two at once"),
    tool_message(LS, "it's.md"),
    tool_message(CAT, 'He said "hi"\n'),
    Message("assistant", "One file.", reasoning="seen"),
]
THOUGHT = "<think>\ntwo at once\n</think>\n"


@pytest.fixture
def ran(tmp_path: Path) -> Ran:
    dataset(tmp_path / "prompts.jsonl", ["List the files", "again"])
    return play(tmp_path, lambda prompt, spec: Played(list(TURNS)))


def exported(ran: Ran, tmp_path: Path, name: str, **options: Any) -> list[dict[str, Any]]:
    folder = RunFolder(ran.folder)
    form = form_of(name, folder.settings()["tools"], FormOptions(**options))
    assert export(folder, form, tmp_path / f"{name}.jsonl").written == 2
    return read_rows(tmp_path / f"{name}.jsonl")


def test_openai_messages_and_tools(ran: Ran, tmp_path: Path) -> None:
    row = exported(ran, tmp_path, "openai")[0]
    assert list(row) == ["messages", "tools"]
    user, asks, first, second, ends = row["messages"]
    assert user == {"role": "user", "content": "List the files"}
    assert (asks["content"], asks["weight"]) == (f"{THOUGHT}I look.", 1)
    assert [call["function"] for call in asks["tool_calls"]] == [
        {"name": "terminal", "arguments": '{"command": "ls"}'},
        {"name": "read_file", "arguments": '{"path": "it\'s.md"}'},
    ]
    ids = [call["id"] for call in asks["tool_calls"]]
    assert len(set(ids)) == 2
    assert [(m["role"], m["tool_call_id"], m["content"]) for m in (first, second)] == [
        ("tool", ids[0], "it's.md"),
        ("tool", ids[1], 'He said "hi"\n'),
    ]
    assert ends == {"role": "assistant", "content": "<think>\nseen\n</think>\nOne file.", "weight": 1}
    offered = [tool["function"]["name"] for tool in json.loads(row["tools"])]
    assert {"terminal", "read_file"} <= set(offered)


def test_openai_with_objects_and_a_list(ran: Ran, tmp_path: Path) -> None:
    row = exported(ran, tmp_path, "openai", arguments="object", tools="list")[0]
    assert row["messages"][1]["tool_calls"][0]["function"]["arguments"] == {"command": "ls"}
    assert isinstance(row["tools"], list)


def test_hermes_fc_holds_everything_as_text(ran: Ran, tmp_path: Path) -> None:
    row = exported(ran, tmp_path, "hermes-fc")[0]
    assert [turn["from"] for turn in row["conversations"]] == ["system", "human", "gpt", "tool", "gpt"]
    system, _, asks, told, _ = (turn["value"] for turn in row["conversations"])
    assert json.loads(system.partition("<tools>\n")[2].partition("\n</tools>")[0]) == json.loads(row["tools"])
    calls = [json.loads(part.partition("\n</tool_call>")[0]) for part in asks.split("<tool_call>\n")[1:]]
    assert calls == [
        {"name": "terminal", "arguments": {"command": "ls"}},
        {"name": "read_file", "arguments": {"path": "it's.md"}},
    ]
    assert asks.startswith(THOUGHT)
    results = [json.loads(part.partition("\n</tool_response>")[0]) for part in told.split("<tool_response>\n")[1:]]
    assert [result["content"] for result in results] == ["it's.md", 'He said "hi"\n']


def test_llamafactory_alternates_and_names_its_columns(ran: Ran, tmp_path: Path) -> None:
    (tmp_path / "dataset_info.json").write_text('{"mine": {"file_name": "x"}}')
    row = exported(ran, tmp_path, "llamafactory")[0]
    assert [turn["from"] for turn in row["conversations"]] == ["human", "function_call", "observation", "gpt"]
    assert row["conversations"][1]["value"] == (
        '<think>\ntwo at once\n</think>\n\nI look.\n<tool_call>\n[{"name": "terminal", "arguments": {"command": "ls"}},'
        ' {"name": "read_file", "arguments": {"path": "it\'s.md"}}]\n</tool_call>'
    )
    assert row["conversations"][3]["value"] == "<think>\nseen\n</think>\n\nOne file."
    assert row["conversations"][2]["value"] == 'it\'s.md\n</tool_response>\n<tool_response>\nHe said "hi"\n'
    info = json.loads((tmp_path / "dataset_info.json").read_text())
    assert info["mine"] == {"file_name": "x"}
    assert info["llamafactory"]["columns"] == {"messages": "conversations", "tools": "tools"}


def test_atropos_trains_what_the_model_said_and_nothing_else(ran: Ran, tmp_path: Path) -> None:
    group = exported(ran, tmp_path, "atropos", tokenizer=TOKENIZER)[0]
    assert group["scores"] == [1.0]
    assert (group["group_overrides"], group["inference_logprobs"]) == ({"sft": True}, [])
    [tokens], [masks], [messages] = group["tokens"], group["masks"], group["messages"]
    assert len(tokens) == len(masks)
    assert all(mask in (UNTRAINED, token) for token, mask in zip(tokens, masks, strict=True))
    tokenizer = AutoTokenizer.from_pretrained(str(TOKENIZER))
    said = "".join(f"{message['content']}<|im_end|>\n" for message in messages if message["role"] == "assistant")
    assert tokenizer.decode([mask for mask in masks if mask != UNTRAINED]) == said
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]


def test_atropos_without_a_usable_tokenizer(tmp_path: Path) -> None:
    for folder in (None, tmp_path / "nowhere", tmp_path):
        with pytest.raises(UsageError, match="tokenizer"):
            form_of("atropos", (), FormOptions(tokenizer=folder))


class Forgetful:
    """A template that takes earlier thoughts out, as some models' do."""

    def apply_chat_template(self, conversation: list[dict[str, str]], **options: Any) -> list[int]:
        last = len(conversation) - 1
        text = "".join(
            message["content"].rpartition("</think>")[2] if place < last else message["content"]
            for place, message in enumerate(conversation)
        )
        return list(text.encode())

    def __call__(self, text: str, **options: Any) -> list[int]:
        return list(text.encode())


def test_a_template_that_rewrites_earlier_turns_is_refused(ran: Ran) -> None:
    from hermes_engine.batch.export.atropos import Atropos

    with pytest.raises(Unfit, match="rewrites earlier turns"):
        Atropos(Forgetful()).rows(ran.rows()[0])


@pytest.mark.parametrize("quoted", ["<|im_start|>assistant", "I end with <|im_end|>."])
def test_special_tokens_in_a_text_are_no_turns(ran: Ran, tmp_path: Path, quoted: str) -> None:
    """A page that says `<|im_start|>assistant` would become a turn of the model's in the tokens of its row."""
    human, asks, _, *others = ran.rows()[0]["conversations"]
    said = {**ran.rows()[0], "conversations": [human, asks, {"from": "tool", "value": quoted}, *others]}
    with pytest.raises(Unfit, match="quotes special tokens"):
        form_of("atropos", (), FormOptions(tokenizer=TOKENIZER)).rows(said)
    assert form_of("hermes-fc", ()).rows(said)


class Slow:
    """A tokenizer that cannot tell where its tokens stand."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def apply_chat_template(self, conversation: list[dict[str, str]], **options: Any) -> Any:
        return self._inner.apply_chat_template(conversation, **options)

    def __call__(self, text: str, **options: Any) -> Any:
        raise AssertionError("never asked")


@pytest.mark.parametrize("text", ["One file.", "", " trails \n", "año 🙂 文字\n\n", "<|im_end|>\n<|im_start|>user"])
@pytest.mark.parametrize("roles", ["ua", "uata", "suatata", "uu"])
def test_masks_by_places_are_those_by_lengths(text: str, roles: str) -> None:
    from hermes_engine.batch.export.atropos import Atropos, load_tokenizer

    names = {"u": "user", "a": "assistant", "t": "tool", "s": "system"}
    messages = [{"role": names[role], "content": text + str(number)} for number, role in enumerate(roles)]
    tokenizer = load_tokenizer(TOKENIZER)
    told: list[Any] = []
    for form in (Atropos(tokenizer), Atropos(Slow(tokenizer))):
        try:
            told.append(form.tokenized(messages))
        except Unfit as reason:
            told.append(str(reason))
    assert told[0] == told[1]


@pytest.mark.parametrize("name", FORMATS)
def test_every_form_loads_in_datasets_also_when_calls_come_late(ran: Ran, tmp_path: Path, name: str) -> None:
    folder = RunFolder(ran.folder)
    form = form_of(name, folder.settings()["tools"], FormOptions(tokenizer=TOKENIZER))
    late = ran.rows()[0]
    plain = {**late, "conversations": [late["conversations"][0], {**late["conversations"][-1], "value": "x" * 3000}]}
    rows = [row for record in [plain] * 400 + [late] for row in form.rows(record)]
    path = tmp_path / "late.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    loaded = datasets.load_dataset("json", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache"))
    assert len(loaded) == 401
    assert [loaded[place] for place in (0, 400)] == [rows[0], rows[400]]


def test_rows_that_no_form_can_tell_are_counted_by_reason(ran: Ran, tmp_path: Path) -> None:
    record = ran.rows()[0]
    cut = {**record, "conversations": record["conversations"][:3]}
    for name in ("openai", "hermes-fc", "llamafactory"):
        form: Form = form_of(name, ())
        with pytest.raises(Unfit, match="a call has no result"):
            form.rows(cut)
    with pytest.raises(Unfit, match="result without a call"):
        turns_of({**record, "conversations": [record["conversations"][0], record["conversations"][2]]})
    twice = {**record, "conversations": [record["conversations"][0], *record["conversations"]]}
    with pytest.raises(Unfit, match="alternate"):
        form_of("llamafactory", ()).rows(twice)
    assert messages_of(record)[0] == {"role": "user", "content": "List the files"}


def test_arguments_that_were_no_json_are_json_in_every_row(ran: Ran) -> None:
    """axolotl parses the arguments of every row, and one that does not parse ends its whole run."""
    record = ran.rows()[0]
    broken = {"name": "terminal", "arguments": {"_raw": '{"command": '}}
    asks = {**record["conversations"][1], "tool_calls": [broken, record["conversations"][1]["tool_calls"][1]]}
    row = form_of("openai", ()).rows(
        {**record, "conversations": [record["conversations"][0], asks, *record["conversations"][2:]]}
    )[0]
    told = row["messages"][1]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(told) == broken["arguments"]


QUOTING = "<tool_call>\n{}\n</tool_call> and <tool_response>"


@pytest.mark.parametrize("name", ["hermes-fc", "llamafactory"])
def test_tags_that_arguments_and_results_quote_are_no_tags(ran: Ran, name: str) -> None:
    """Readers look for the next tag: a quoted one made LLaMA-Factory end with an error at the first such row."""
    record = ran.rows()[0]
    human, asks, _, *others = record["conversations"]
    first, second = asks["tool_calls"]
    asks = {**asks, "tool_calls": [{**first, "arguments": {"command": QUOTING}}, second]}
    quoting = {**record, "conversations": [human, asks, {"from": "tool", "value": QUOTING}, *others]}
    told = form_of(name, ()).rows(quoting)[0]["conversations"]
    parts = [part.partition("</tool_call>")[0] for part in told[-3]["value"].split("<tool_call>")[1:]]
    calls = [call for part in parts for call in _listed(json.loads(part))]
    assert [call["arguments"] for call in calls] == [{"command": QUOTING}, second["arguments"]]
    if name == "hermes-fc":
        answers = [part.partition("</tool_response>")[0] for part in told[-2]["value"].split("<tool_response>")[1:]]
        assert [json.loads(answer)["content"] for answer in answers] == [QUOTING, others[0]["value"]]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_llamafactory_leaves_out_words_that_quote_the_tags_beside_a_call(ran: Ran) -> None:
    record = ran.rows()[0]
    human, asks, *others = record["conversations"]
    said = {**asks, "value": "I write <tool_call>."}
    with pytest.raises(Unfit, match="quote the tags"):
        form_of("llamafactory", ()).rows({**record, "conversations": [human, said, *others]})
