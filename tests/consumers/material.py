"""What the consumers are given: runs of the real agent against a scripted server, exported in every format.

One row of each kind that a loader could stumble over, and rows that no export may hold. Knows no consumer.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes_engine.batch.export import FormOptions, export, form_of
from hermes_engine.batch.export.atropos import UNTRAINED, Atropos, Tokenizer, load_tokenizer
from hermes_engine.batch.export.groups import Groups
from hermes_engine.batch.folder import RunFolder
from tests.batch.served import prompt_of, run
from tests.batch.support import read_rows
from tests.server.scripted import Answer, ScriptedServer, Seen, call, calls, say, status

TOKENIZER = Path(__file__).parents[1] / "batch" / "tiny_tokenizer"

EXPORTS: Mapping[str, tuple[str, FormOptions]] = {
    "sharegpt": ("sharegpt", FormOptions()),
    "openai": ("openai", FormOptions()),
    "openai-object": ("openai", FormOptions(arguments="object")),
    "openai-list": ("openai", FormOptions(arguments="object", tools="list")),
    "hermes-fc": ("hermes-fc", FormOptions()),
    "llamafactory": ("llamafactory", FormOptions()),
    "atropos": ("atropos", FormOptions(tokenizer=TOKENIZER)),
}
"""Name of a file of the material → format and options."""

RECORDED = Path(__file__).with_name("expected") / "exports"
"""The exports that the recorded expectations are of, as `told` tells them."""

NO_REASONING = "Answer without a thought"
REFUSED = "Be refused"
ENDLESS = "Never end"

TALKS: Mapping[str, Sequence[Answer]] = {
    "What is two and two?": [say("Four.", "Two and two: four.")],
    "List the files": [
        call("terminal", {"command": "printf 'README.md\\n'"}, reasoning="I look."),
        say("One file.", "One line came."),
    ],
    "Two at once, and talk": [
        calls(
            [("terminal", {"command": "printf one"}), ("write_file", {"path": "it's.txt", "content": 'a\n"b"\n'})],
            text="I do both:",
            reasoning="Both can go together.",
        ),
        say("Both done."),
    ],
    '¿Qué año? 文字 🙂 it\'s "quoted"': [
        call("terminal", {"command": "printf '%s' \"año 文字 🙂 it's\""}, reasoning="Año, 文字, 🙂 and it's."),
        say('It\'s «año 文字 🙂», he said "yes".\u2028Next line \\ back. \ud83d', "Two\nlines\n\nand a gap."),
    ],
    "Arguments whose kinds differ": [
        calls([("terminal", {"command": ["ls", "-l"]}), ("terminal", {"command": "printf x", "timeout": 5})]),
        calls([("terminal", {"command": {"deep": [1, None, 0.5]}}), ("read_file", {"path": 7, "limit": "five"})]),
        say("None of them worked.", "They were wrong."),
    ],
    "Arguments that are no JSON": [
        call("terminal", '{"command": "printf', reasoning="Cut off."),
        say("It broke."),
    ],
    "Steps without words": [
        call("terminal", {"command": "printf 1"}, reasoning="First."),
        call("terminal", {"command": "true"}),
        call("terminal", {"command": "printf '<b>3</b> {\"a\": 1}'"}, text="And now the third."),
        say("1, nothing, 3.", "That was all."),
    ],
    "Quote the tags": [
        call(
            "write_file",
            {"path": "tags.md", "content": "<tool_call>\n{}\n</tool_call> <tool_response>1</tool_response> <b>"},
            text="Written as it is:",
            reasoning="They are only text.",
        ),
        call("terminal", {"command": "cat tags.md; printf '</tool_response></tool_call>'"}),
        say("Calls stand between `<tool_call>` and `</tool_call>`.", "It came back whole."),
    ],
    "No tools at all": [say("  Fine: `x = {'a': [1, 2]}`\n\n```python\nprint('hi')\n```\n", "Just text.")],
    ENDLESS: [call("terminal", {"command": "printf again"}, reasoning="Once more.")],
    NO_REASONING: [say("No thought.")],
    REFUSED: [status(400, {"error": {"message": "This prompt is refused"}})],
}
"""Prompt → what the model answers, the last one again and again."""

TOOLLESS = "No tools at all"
MAX_TURNS = 5
PAIRS = tuple(f"Name a {thing}" for thing in ("colour", "number", "tree", "river", "star", "bird", "fish", "town"))
"""Prompts of the run with two samples; so many groups are a batch of the grabber of pairs."""


def make(place: Path) -> Path:
    """Makes the run and its exports in `place`; the folder with one file an export.

    Beside it lie the runs, `one` and `pairs`, the second with two samples of each prompt; `feed.json` in it holds the
    command that feeds each to an Atropos server.
    """
    rows = [
        {"prompt": prompt, "toolsets": [] if prompt == TOOLLESS else ["terminal", "file"], "id": f"n{number}"}
        for number, prompt in enumerate(TALKS)
    ]
    folder = _run(place / "one", rows, max_turns=MAX_TURNS)
    exports = place / "exports"
    exports.mkdir()
    schemas = folder.settings()["tools"]
    for name, (form, options) in EXPORTS.items():
        export(folder, form_of(form, schemas, options), exports / f"{name}.jsonl")
    pairs = _run(place / "pairs", [{"prompt": prompt, "toolsets": []} for prompt in PAIRS], num_generations=2)
    groups = Groups(Atropos(load_tokenizer(TOKENIZER)), first_is_better)
    export(pairs, groups.form, exports / "atropos-pairs.jsonl", groups=groups)
    feed = {"atropos": _feed(folder), "atropos-pairs": [*_feed(pairs), "--reward", f"{__name__}:first_is_better"]}
    (exports / "feed.json").write_text(json.dumps(feed))
    return exports


def first_is_better(record: Mapping[str, Any]) -> float:
    """A reward that tells two samples apart."""
    return 1.0 - float(record["sample"])


def _feed(folder: RunFolder) -> list[str]:
    place = ["--output_dir", str(folder.root.parent), "--tokenizer", str(TOKENIZER)]
    return [sys.executable, "-m", "hermes_tui.cli", "batch", "feed", folder.root.name, *place]


def _run(place: Path, rows: list[Any], **values: Any) -> RunFolder:
    place.mkdir(parents=True)
    with ScriptedServer(_talk) as server:
        return RunFolder(run(place, server, rows, num_workers=1, **values).folder)


def _talk(seen: Seen) -> Answer:
    prompt = prompt_of(seen)
    if prompt in PAIRS:
        return say(f"A {prompt.rpartition(' ')[2]}, number {seen.index}.", "Any will do.")
    answers = TALKS[prompt]
    asked: int = sum(item["role"] == "assistant" for item in seen.messages)
    return answers[min(asked, len(answers) - 1)]


def record(exports: Path) -> None:
    """Makes these exports the ones that expectations are of."""
    RECORDED.mkdir(parents=True, exist_ok=True)
    for path in sorted(exports.glob("*.jsonl")):
        rows = told(path.stem, path)
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (RECORDED / path.name).write_text(text, "utf-8")


def told(name: str, path: Path) -> list[Any]:
    """The rows of an export without what is no matter of its form: definitions of tools, times, hashes of rows.

    Token ids stand as the texts they are of.
    """
    match EXPORTS.get(name, ("atropos", None))[0]:
        case "sharegpt":
            return [{**row, **_unlike_in_each_run(row)} for row in read_rows(path)]
        case "atropos":
            tokenizer = load_tokenizer(TOKENIZER)
            return [_spelled(row, tokenizer) for row in read_rows(path)]
    return [_without_definitions(row) for row in read_rows(path)]


def _unlike_in_each_run(row: Mapping[str, Any]) -> dict[str, Any]:
    names = {"tool_stats": sorted(row["tool_stats"])[:1], "tool_error_counts": sorted(row["tool_error_counts"])[:1]}
    return {**names, "metadata": sorted(row["metadata"])}


def _without_definitions(row: dict[str, Any]) -> dict[str, Any]:
    tools = row["tools"]
    names = [tool["function"]["name"] for tool in (tools if isinstance(tools, list) else json.loads(tools))]
    row = {**row, "tools": [type(tools).__name__, *names]}
    if "id" in row:
        first, *rest = row["conversations"]
        head, found, after = first["value"].partition(json.dumps(json.loads(tools), ensure_ascii=False))
        assert found, "the system turn holds the definitions of the column"
        row |= {"id": "", "conversations": [{**first, "value": f"{head}…{after}"}, *rest]}
    return row


def _spelled(row: dict[str, Any], tokenizer: Tokenizer) -> dict[str, Any]:
    decode = tokenizer.decode  # type: ignore[attr-defined]
    trained = [[mask for mask in masks if mask != UNTRAINED] for masks in row["masks"]]
    return {**row, "tokens": [decode(ids) for ids in row["tokens"]], "masks": [decode(ids) for ids in trained]}
