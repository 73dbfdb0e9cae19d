"""Whether what a consumer trains is what the model said: its labels taken apart and held against the run's records.

Knows how chat templates write a turn (a thought, words, calls between tags) and no consumer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

Said = tuple[str, str, list[Any]]
"""Thought, words, calls as (name, arguments)."""

_THOUGHT = re.compile(r"\A\s*<think>\n?(.*?)\n?</think>\n*", re.DOTALL)
_CALL = re.compile(r"<tool_call>\n([^\n]*)\n</tool_call>")


def as_said(read: Sequence[Sequence[str]], records: Sequence[Mapping[str, Any]]) -> int:
    """How many rows of labels are exactly what the model said in the record at the same place."""
    return sum(
        [_heard(span) for span in spans] == [_spoken(turn) for turn in record["conversations"] if turn["from"] == "gpt"]
        for spans, record in zip(read, records, strict=True)
    )


def _spoken(turn: Mapping[str, Any]) -> Said:
    thought, words = _parted(turn["value"])
    return thought, words, [(call["name"], call["arguments"]) for call in turn["tool_calls"]]


def _heard(span: str) -> Said:
    thought, words = _parted(span.removesuffix("\n").removesuffix("<|im_end|>"))
    calls = []
    for found in _CALL.finditer(words):
        try:
            call = json.loads(found[1])
        except ValueError:
            return thought, words, []
        calls.append((call["name"], call["arguments"]))
    return thought, _CALL.sub("", words).strip("\n"), calls


def _parted(text: str) -> tuple[str, str]:
    found = _THOUGHT.match(text)
    thought, words = (found[1], text[found.end() :]) if found else ("", text)
    return thought.strip("\n"), words.strip("\n")
