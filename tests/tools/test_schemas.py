"""Tool definitions: exactly what the model is told, and what becomes of the arguments it sends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from hermes_engine.errors import ToolFault
from hermes_engine.messages import ToolResult
from hermes_engine.tools.context import ToolContext
from hermes_engine.tools.registry import make_tool, registered
from hermes_engine.tools.schema import check_arguments, parse_arguments
from hermes_engine.toolsets import TOOLSETS, tools_of
from hermes_engine.work.offered import bound_tools

GOLDEN = Path(__file__).parent.parent / "golden" / "tool_schemas.json"


class Job(BaseModel):
    """One job."""

    prompt: str
    turns: int | None = None


async def sample(
    ctx: ToolContext,
    path: str,
    count: int = 3,
    ratio: float | None = None,
    kind: Literal["a", "b"] = "a",
    jobs: list[Job] | None = None,
    deep: bool = False,
) -> ToolResult:
    """First line,
    second line.

    Args:
        path: Where, on
            two lines.
        count: How many.

    Returns:
        nothing that the model is told.
    """
    return ToolResult("")


SAMPLE = make_tool(sample, "x", "Try", aliases={"tasks": "jobs"})


def test_the_exact_schema_of_every_tool() -> None:
    """What is sent at every request. After a wanted change: write the new text into the golden file."""
    every = {**registered(), **{tool.name: tool for tool in bound_tools()}}
    told = json.dumps({name: tool.schema for name, tool in sorted(every.items())}, indent=1) + "\n"
    assert told == GOLDEN.read_text("utf-8")


def test_every_tool_is_registered_under_its_set() -> None:
    bound = {tool.name for tool in bound_tools()}
    assert bound | {"kanban_complete"} == set(tools_of(["delegation", "kanban", "session_search"]))
    bound.add("kanban_complete")  # a worker's alone
    assert set(registered()) | bound == set(tools_of(TOOLSETS))
    for name, tool in registered().items():
        assert name in TOOLSETS[tool.toolset]


def test_all_schemas_together_are_cheap() -> None:
    assert len(json.dumps([tool.schema for tool in registered().values()])) < 4500
    assert len(json.dumps([tool.schema for tool in bound_tools()])) < 5700


def test_schema_from_signature_and_docstring() -> None:
    assert SAMPLE.schema == {
        "type": "function",
        "function": {
            "name": "sample",
            "description": "First line, second line.",
            "parameters": {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Where, on two lines."},
                    "count": {"type": "integer", "description": "How many.", "default": 3},
                    "ratio": {"type": "number"},
                    "kind": {"type": "string", "enum": ["a", "b"], "default": "a"},
                    "jobs": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "description": "One job.",
                            "properties": {"prompt": {"type": "string"}, "turns": {"type": "integer"}},
                            "required": ["prompt"],
                        },
                    },
                    "deep": {"type": "boolean"},
                },
                "required": ["path"],
            },
        },
    }
    assert SAMPLE.schema is SAMPLE.schema


def checked(**given: Any) -> dict[str, Any]:
    return check_arguments("sample", SAMPLE.signature, given)


def test_f12_7_values_are_coerced_where_that_is_safe() -> None:
    assert checked(path="x", count="5", ratio="0.5", deep="true") == {
        "path": "x",
        "count": 5,
        "ratio": 0.5,
        "deep": True,
    }
    assert checked(path=5) == {"path": "5"}
    assert checked(path="x", count=4.0) == {"path": "x", "count": 4}
    assert checked(path="x", jobs='[{"prompt": "p", "turns": "3"}]') == {
        "path": "x",
        "jobs": [Job(prompt="p", turns=3)],
    }
    assert checked(path="x", tasks=[{"prompt": "p"}]) == {"path": "x", "jobs": [Job(prompt="p")]}
    assert checked(path='["not a list"]') == {"path": '["not a list"]'}


def test_f12_7_null_for_an_optional_argument_is_absent() -> None:
    assert checked(path="x", count=None, ratio=None, jobs=None) == {"path": "x"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "path is missing"),
        ({"path": None}, "path must not be null"),
        ({"path": "x", "wrong": 1}, "there is no argument 'wrong'"),
        ({"path": "x", "count": "many"}, "count: "),
        ({"path": "x", "count": 1.5}, "count: "),
        ({"path": "x", "kind": "c"}, "kind: "),
        ({"path": {"a": 1}}, "path: "),
        ({"path": "x", "jobs": [{"turns": 1}]}, "jobs.0.prompt is missing"),
        ({"path": "x", "jobs": "[1, 2"}, "jobs: "),
    ],
)
def test_f12_7_what_is_wrong_is_named_with_what_is_valid(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ToolFault) as raised:
        checked(**given)
    assert said in str(raised.value)
    assert "path (string, required), count (integer), ratio (number)" in str(raised.value)


@pytest.mark.parametrize("text", ["", "  ", "null", "{}"])
def test_f7_5_blank_arguments_mean_none(text: str) -> None:
    assert parse_arguments("sample", text) == {}


@pytest.mark.parametrize("text", ["[]", '"x"', "5", "{bad", "true"])
def test_f7_5_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ToolFault, match="JSON"):
        parse_arguments("sample", text)


@pytest.mark.parametrize("depth", [101, 900, 5_000, 200_000])
def test_arguments_nested_without_measure_are_refused(depth: int) -> None:
    for text in ('{"path": ' + "[" * depth + "]" * depth + "}", '{"a": ' * depth + "1" + "}" * depth):
        with pytest.raises(ToolFault, match="nested more than 100 levels"):
            parse_arguments("sample", text)
    with pytest.raises(ToolFault, match="bad arguments for sample"):
        checked(path="f", jobs="[" * depth + "]" * depth)


def test_deep_arguments_that_are_real_pass() -> None:
    text = '{"path": ' + "[" * 99 + "]" * 99 + "}"
    assert list(parse_arguments("sample", text)) == ["path"]


def test_f2_5_lone_surrogates_in_arguments_are_replaced() -> None:
    assert parse_arguments("sample", '{"path": "a\\ud83d", "l": [{"\\udc00": "😀"}]}') == {
        "path": "a\ufffd",
        "l": [{"\ufffd": "😀"}],
    }
