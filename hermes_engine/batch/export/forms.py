"""The forms of an export, one class each: what a trainer's loader reads (measured rules: docs/batch.md, Exports).

A form makes a row out of a record, or says why it cannot; what belongs beside the file it writes at the end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from hermes_engine.batch.export.turns import (
    TAG,
    Asked,
    Turn,
    Unfit,
    between_tags,
    dumps,
    tools_of_row,
    turns_of,
    whole_rounds,
)
from hermes_engine.batch.folder import write_object
from hermes_engine.batch.job import Record
from hermes_engine.errors import StateError

Schemas = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class ShareGPT:
    """The records as they are."""

    name: ClassVar[str] = "sharegpt"

    def rows(self, record: Record) -> list[Any]:
        """The record itself."""
        return [record]

    def beside(self, target: Path) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class OpenAI:
    """`messages` and `tools`, as for OpenAI's fine-tuning, TRL and axolotl.

    Every assistant message has `weight` 1: with key sets that differ between roles from the first row on, loaders that
    infer a schema from the beginning of a file keep later shapes as they are.

    Attributes:
        schemas: tool definitions of the run.
        arguments: string (as the API has them) or object (templates encode strings twice).
        tools: string (JSON text, for loaders) or list (for OpenAI's upload).
    """

    schemas: Schemas
    arguments: Literal["string", "object"] = "string"
    tools: Literal["string", "list"] = "string"
    name: ClassVar[str] = "openai"

    def rows(self, record: Record) -> list[Any]:
        """One row."""
        offered = tools_of_row(record, self.schemas)
        messages = [message for number, turn in self._numbered(record) for message in self._told(turn, number)]
        return [{"messages": messages, "tools": offered if self.tools == "list" else dumps(offered)}]

    def _numbered(self, record: Record) -> list[tuple[str, Turn]]:
        row = f"{record['prompt_index']}_{record['sample']}"
        return [(f"{row}_{number}", turn) for number, turn in enumerate(whole_rounds(turns_of(record)))]

    def _told(self, turn: Turn, number: str) -> list[dict[str, Any]]:
        if turn.role != "assistant":
            return [{"role": turn.role, "content": turn.value}]
        told: dict[str, Any] = {"role": "assistant", "content": turn.value, "weight": 1}
        ids = [f"call_{number}_{place}" for place in range(len(turn.calls))]
        if turn.calls:
            told["tool_calls"] = [self._call(call, key) for call, key in zip(turn.calls, ids, strict=True)]
        results = [
            {"role": "tool", "tool_call_id": key, "content": call.result}
            for call, key in zip(turn.calls, ids, strict=True)
        ]
        return [told, *results]

    def _call(self, call: Asked, key: str) -> dict[str, Any]:
        arguments: Any = call.arguments if self.arguments == "object" else dumps(call.arguments)
        return {"id": key, "type": "function", "function": {"name": call.name, "arguments": arguments}}

    def beside(self, target: Path) -> None:
        """Nothing."""


_FC_SYSTEM = """You can call functions. Their definitions stand between <tools> tags. Call one by writing, between \
<tool_call> tags, a JSON object with its name and arguments; the result comes between <tool_response> tags.
<tools>
{tools}
</tools>"""


@dataclass(frozen=True, slots=True)
class HermesFC:
    """Calls and results as text between tags: the form that every chat template and every loader keeps.

    Attributes:
        schemas: tool definitions of the run.
    """

    schemas: Schemas
    name: ClassVar[str] = "hermes-fc"

    def rows(self, record: Record) -> list[Any]:
        """One row; a system turn stands first, all results of a turn in one."""
        tools = dumps(tools_of_row(record, self.schemas))
        told = [{"from": "system", "value": _FC_SYSTEM.format(tools=tools)}]
        for turn in whole_rounds(turns_of(record)):
            if turn.role == "system":
                told[0]["value"] = f"{turn.value}\n\n{told[0]['value']}"
                continue
            told.append({"from": "human" if turn.role == "user" else "gpt", "value": with_calls(turn)})
            if turn.calls:
                told.append({"from": "tool", "value": responses(turn.calls)})
        key = f"{record['metadata']['row_id']}-{record['sample']}"
        return [{"id": key, "conversations": told, "tools": tools}]

    def beside(self, target: Path) -> None:
        """Nothing."""


def with_calls(turn: Turn) -> str:
    """A turn's text with its calls behind it, each between tags."""
    parts = [turn.value] if turn.value else []
    return "\n".join([*parts, *(f"<tool_call>\n{call.as_json}\n</tool_call>" for call in turn.calls)])


def responses(calls: Sequence[Asked]) -> str:
    """The results of a turn's calls, each between tags."""
    return "\n".join(
        f"<tool_response>\n{between_tags({'name': call.name, 'content': call.result})}\n</tool_response>"
        for call in calls
    )


@dataclass(frozen=True, slots=True)
class LlamaFactory:
    """LLaMA-Factory's sharegpt with `function_call` and `observation`; `dataset_info.json` names its columns.

    Its reader passes over, without a word, rows in which sides do not alternate; here they are left out and counted.

    Attributes:
        schemas: tool definitions of the run.
    """

    schemas: Schemas
    name: ClassVar[str] = "llamafactory"

    def rows(self, record: Record) -> list[Any]:
        """One row."""
        told: list[dict[str, str]] = []
        system: list[dict[str, str]] = []
        for turn in whole_rounds(turns_of(record)):
            if turn.role == "system":
                system.append({"from": "system", "value": turn.value})
            elif turn.role == "user":
                told.append({"from": "human", "value": turn.value})
            elif turn.calls:
                told.append({"from": "function_call", "value": _function_call(turn)})
                joined = "\n</tool_response>\n<tool_response>\n".join(call.result or "" for call in turn.calls)
                told.append({"from": "observation", "value": joined})
            else:
                told.append({"from": "gpt", "value": _thought(turn) + turn.text})
        sides = [entry["from"] in ("human", "observation") for entry in told]
        if len(told) % 2 or sides != [True, False] * (len(told) // 2):
            raise Unfit("its sides do not alternate")
        return [{"conversations": [*system[:1], *told], "tools": dumps(tools_of_row(record, self.schemas))}]

    def beside(self, target: Path) -> None:
        """`dataset_info.json` in the file's folder, other data sets in it kept. Raises StateError."""
        path = target.parent / "dataset_info.json"
        known = _data_sets(path)
        known[target.stem] = {
            "file_name": target.name,
            "formatting": "sharegpt",
            "columns": {"messages": "conversations", "tools": "tools"},
        }
        write_object(path, known)


def _data_sets(path: Path) -> dict[str, Any]:
    """The data sets that a file names. Raises StateError when it is there and names none."""
    try:
        known = json.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or error
        raise StateError(f"{path} cannot be read, so the export has no place in it: {why}") from None
    if not isinstance(known, dict):
        raise StateError(f"{path} holds no JSON object, so the export has no place in it")
    return known


def _function_call(turn: Turn) -> str:
    """Thought, words and calls in the only shapes its templates take apart.

    Raises:
        Unfit: they would take its words for calls, and end the whole training over it.
    """
    if TAG.search(turn.value):
        raise Unfit("its words quote the tags of calls")
    calls = between_tags([{"name": call.name, "arguments": call.arguments} for call in turn.calls])
    if not turn.text.strip():
        return _thought(turn) + calls
    return f"{_thought(turn)}{turn.text}\n<tool_call>\n{calls}\n</tool_call>"


def _thought(turn: Turn) -> str:
    return f"<think>\n{turn.thought}\n</think>\n\n" if turn.thought else ""
